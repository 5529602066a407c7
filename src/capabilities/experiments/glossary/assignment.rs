//! The terms of assignment: how people get their condition.

use super::{Example, Term};

/// The terms, in the order in which they are listed.
pub(super) const TERMS: &[Term] = &[
    Term {
        names: &[
            "unit of assignment",
            "assignment unit",
            "units of assignment",
            "assignment units",
            "group unit",
            "group units",
        ],
        meaning: "The *unit of assignment* says who draws a lot. *Individual*: each person, so classmates may differ. *Group*: the whole group, such as a class, draws once and everybody in it gets the same. *Within-subjects*: each visit, so one person meets several conditions.\n\nGroup assignment needs a group type, and people without a valid working group get the default.",
        example: Some(Example::Units),
    },
    Term {
        names: &["individual assignment", "individual"],
        meaning: "With *individual assignment* every person draws their own lot. Two students in one class may get different conditions.",
        example: None,
    },
    Term {
        names: &["group assignment"],
        meaning: "With *group assignment* the working group, such as a class, draws once, and everybody in it gets the same condition. It needs a group type. People without a valid working group get the default.",
        example: None,
    },
    Term {
        names: &["within-subjects", "within subjects", "within-subjects design", "within subjects design"],
        meaning: "In a *within-subjects* design one person meets several conditions over repeated visits, in random or fixed order. It has no consistency rule. I can show such experiments, but not set them up.",
        example: None,
    },
    Term {
        names: &["consistency rule", "consistency", "consistency rules"],
        meaning: "The *consistency rule* decides whose past counts when histories conflict, for example when someone moves to another class. *individual*: the person keeps what they first had. *group*: the whole group stays alike, and a newcomer takes the group's condition. *experiment*: nobody is left out for having been there before the start.",
        example: None,
    },
    Term {
        names: &["assignment algorithm", "algorithm", "assignment algorithms"],
        meaning: "The *assignment algorithm* is how the lot is drawn: plainly at *random*, by *stratified random sampling*, or adaptively (`ts_configurable`). I set up random ones.",
        example: None,
    },
    Term {
        names: &["random", "random assignment", "randomization", "randomisation"],
        meaning: "*Random* assignment compares a fixed pseudo-random number for each person (or group) and experiment with the weights. So asking again never changes the answer, and a copy of an experiment gives the same people other conditions.",
        example: None,
    },
    Term {
        names: &["stratification", "stratified random sampling", "stratification factor"],
        meaning: "*Stratification* keeps the mix of an attribute, such as grade, even across conditions by favouring those that have too few. It needs each person's value, uploaded beforehand.",
        example: None,
    },
    Term {
        names: &["ts_configurable", "ts configurable", "adaptive assignment", "mooclet"],
        meaning: "`ts_configurable` is adaptive assignment: conditions that do better get more people as the experiment goes on. It needs an extra service beside the server.",
        example: None,
    },
    Term {
        names: &["factorial design", "factorial", "factorial experiment"],
        meaning: "In a *factorial* design the conditions are all combinations of the levels of two or more factors, such as hint × colour. A *simple* experiment just has conditions.",
        example: None,
    },
    Term {
        names: &["factor", "factors", "level", "levels"],
        meaning: "A *factor* is a dimension that a factorial experiment varies, and a *level* is one of its values.",
        example: None,
    },
    Term {
        names: &["enrollment", "enrolment", "enrollments", "enrolments", "enrolling"],
        meaning: "*Enrollment* is the moment a participant becomes part of the data: when they visit a decision point and the application marks it. Merely asking for a condition enrolls nobody.",
        example: None,
    },
    Term {
        names: &["excluded users", "users excluded", "exclusion count"],
        meaning: "*Excluded* people, as a number, came to a decision point but may not take part. They are counted when they visit.",
        example: None,
    },
    Term {
        names: &["exclude if reached", "excludeifreached"],
        meaning: "*Exclude if reached* keeps people out for good who were at the decision point before the start. It works only when the experiment is started by a change of status, and not with the consistency rule *experiment*. With group consistency one early visitor keeps the whole group out.",
        example: None,
    },
    Term {
        names: &["competing experiments", "competing experiment", "pool"],
        meaning: "*Competing experiments* share a decision point. Each person is in at most one of them, and whoever is enrolled in one stays there.",
        example: None,
    },
    Term {
        names: &["ending criterion", "ending criteria", "enrollment complete condition", "stopping rule"],
        meaning: "The *ending criterion* pauses an experiment by itself when enough people, or enough groups, are enrolled. It is checked at each visit.",
        example: None,
    },
    Term {
        names: &["mark", "marking", "marked"],
        meaning: "*Marking* is the application's report that a person reached a decision point. It is what enrolls them; “condition not applied” excludes them instead.",
        example: None,
    },
    Term {
        names: &["uniquifier"],
        meaning: "A *uniquifier* tells repeated visits of one person apart. Only within-subjects designs need it.",
        example: None,
    },
];
