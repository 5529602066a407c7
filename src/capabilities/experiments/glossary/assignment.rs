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
        meaning: "The *unit of assignment* is what a condition is assigned to. *Individual*: each user, so classmates may get different conditions. *Group*: a whole group, such as a class, so everyone in it gets the same condition. *Within-subjects*: each visit, so one user gets several conditions.\n\nGroup assignment needs a group type, and users without a valid working group get the default.",
        example: Some(Example::Units),
    },
    Term {
        names: &["individual assignment", "individual"],
        meaning: "With *individual assignment*, each user is assigned separately. Two students in one class may get different conditions.",
        example: None,
    },
    Term {
        names: &["group assignment"],
        meaning: "With *group assignment*, the working group, such as a class, is assigned once, and everyone in it gets the same condition. It needs a group type. Users without a valid working group get the default.",
        example: None,
    },
    Term {
        names: &["within-subjects", "within subjects", "within-subjects design", "within subjects design"],
        meaning: "In a *within-subjects* design, each user gets several conditions over repeated visits, in random or fixed order. It has no consistency rule.",
        example: None,
    },
    Term {
        names: &["consistency rule", "consistency", "consistency rules"],
        meaning: "The *consistency rule* decides whose earlier visits count when they conflict, for example when a user moves to another class. *individual*: the user keeps their first condition. *group*: everyone in the group gets the same condition, including newcomers. *experiment*: no one is excluded for having been there before the start.",
        example: None,
    },
    Term {
        names: &["assignment algorithm", "algorithm", "assignment algorithms"],
        meaning: "The *assignment algorithm* decides how conditions are assigned: at *random*, by *stratified random sampling*, or adaptively (`ts_configurable`). I create random ones unless you ask for stratified sampling; I can't create adaptive ones.",
        example: None,
    },
    Term {
        names: &["random", "random assignment", "randomization", "randomisation"],
        meaning: "*Random* assignment compares a fixed pseudo-random number for each user (or group) and experiment with the weights. Asking again never changes the result, and a copy of an experiment can give the same users different conditions.",
        example: None,
    },
    Term {
        names: &["stratification", "stratified random sampling", "stratification factor"],
        meaning: "*Stratification* keeps the mix of an attribute, such as grade, even across conditions by favoring those that have too few. It needs each user's value, uploaded to UpGrade beforehand; a user without one still gets a condition.",
        example: None,
    },
    Term {
        names: &["ts_configurable", "ts configurable", "adaptive assignment", "mooclet"],
        meaning: "`ts_configurable` is adaptive assignment: conditions that do better get more users as the experiment runs. It needs an extra service (Mooclet) in addition to the server. I can't create such experiments.",
        example: None,
    },
    Term {
        names: &["factorial design", "factorial", "factorial experiment"],
        meaning: "In a *factorial* design the conditions are all combinations of the levels of two or more factors, such as hint × color. A *simple* experiment just has conditions.",
        example: None,
    },
    Term {
        names: &["factor", "factors", "level", "levels"],
        meaning: "A *factor* is a dimension that a factorial experiment varies, and a *level* is one of its values.",
        example: None,
    },
    Term {
        names: &["enrollment", "enrolment", "enrollments", "enrolments", "enrolling"],
        meaning: "*Enrollment* is the moment a participant becomes part of the data: when they visit a decision point and the application marks it. Requesting a condition enrolls nobody.",
        example: None,
    },
    Term {
        names: &["excluded users", "users excluded", "exclusion count"],
        meaning: "The *excluded* count is the number of users who reached a decision point but are excluded. They are counted when they visit.",
        example: None,
    },
    Term {
        names: &["exclude if reached", "excludeifreached"],
        meaning: "*Exclude if reached* permanently excludes users who were at the decision point before the start. It works only when a status change starts the experiment, and not with the consistency rule *experiment*. With group consistency, one early visitor excludes the whole group.",
        example: None,
    },
    Term {
        names: &["competing experiments", "competing experiment", "pool"],
        meaning: "*Competing experiments* share a decision point. Each user is in at most one of them, and a user enrolled in one stays there.",
        example: None,
    },
    Term {
        names: &["ending criterion", "ending criteria", "enrollment complete condition", "stopping rule"],
        meaning: "The *ending criterion* pauses an experiment automatically when enough users or groups are enrolled. It is checked at each visit.",
        example: None,
    },
    Term {
        names: &["mark", "marking", "marked"],
        meaning: "*Marking* is the application's report that a user reached a decision point. It is what enrolls them; “condition not applied” excludes them instead.",
        example: None,
    },
    Term {
        names: &["uniquifier"],
        meaning: "A *uniquifier* tells repeated visits of one user apart. Only within-subjects designs need it.",
        example: None,
    },
];
