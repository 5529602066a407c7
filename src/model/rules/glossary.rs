//! What the words of the platform mean: a fact, then what people often get wrong about it.

use super::words::{Word, lower, skip};

/// A term: what it may be called, and what it is.
struct Term {
    names: &'static [&'static str],
    meaning: &'static str,
}

const TERMS: &[Term] = &[
    Term {
        names: &["a/b testing", "a/b test", "ab testing", "ab test", "a/b tests", "a b testing", "split testing"],
        meaning: "*A/B testing* shows different versions of the same thing to different people at the same time, decided by lot, and compares how they do. Because only chance decides who gets which, a difference beyond ordinary luck is owed to the version.\n\nOn UpGrade such a comparison is an *experiment*, and its versions are *conditions*.",
    },
    Term {
        names: &["experiment", "experiments", "study"],
        meaning: "An *experiment* compares two or more conditions inside one application. It says where it runs (decision points), what is compared (conditions and their weights), who takes part, how people are assigned, and what they see afterwards.\n\nIts name is only a label and may occur twice; the id is what identifies it.",
    },
    Term {
        names: &["condition", "conditions", "arm", "treatment", "variant", "condition code"],
        meaning: "A *condition* is one of the versions being compared, known to the application by its code, such as `control`.\n\n“Default” is not a condition: it is what the application does when UpGrade gives no answer, and it never shows up in the statistics.",
    },
    Term {
        names: &["weight", "weights", "assignment weight", "weighting", "assignment weights"],
        meaning: "A *weight* is the share of participants, in percent, that a condition should get. Weights total 100.\n\nIt is a chance, not a quota: with 200 people at 50/50, something like 94 to 106 is perfectly normal. People who are enrolled keep their condition when weights change.",
    },
    Term {
        names: &["decision point", "decision points", "partition"],
        meaning: "A *decision point* is a place where the application asks “which version for this person?” It is named by a site and a target, such as `SelectSection / area_model`.\n\nAt all decision points of one experiment a person gets the same condition.",
    },
    Term {
        names: &["site", "sites"],
        meaning: "A *site* is the broader place of a decision point: a page, a function, a step. Together with a *target* it names the exact spot.",
    },
    Term {
        names: &["target", "targets"],
        meaning: "A *target* is the thing within a site that a decision point is about: a problem, a button, a lesson.",
    },
    Term {
        names: &["context", "contexts", "app context"],
        meaning: "A *context* is the application an experiment belongs to, such as `assign-prog`. Each has a vocabulary of its own: condition codes, group types, sites and targets, set up by the server's administrator.",
    },
    Term {
        names: &["context metadata", "metadata"],
        meaning: "The *context metadata* is the vocabulary of each context: its suggested condition codes, kinds of groups, sites and targets.",
    },
    Term {
        names: &["unit of assignment", "assignment unit", "individual assignment", "group assignment"],
        meaning: "The *unit of assignment* says who draws a lot. *Individual*: each person, so classmates may differ. *Group*: the whole group, such as a class, draws once and everybody in it gets the same.\n\nGroup assignment needs a group type, and people without a valid working group get the default.",
    },
    Term {
        names: &["consistency rule", "consistency", "consistency rules"],
        meaning: "The *consistency rule* decides whose past counts when histories conflict, for example when someone moves to another class. *individual*: the person keeps what they first had. *group*: the whole group stays alike, and a newcomer takes the group's condition. *experiment*: nobody is left out for having been there before the start.",
    },
    Term {
        names: &[
            "post-experiment rule",
            "post experiment rule",
            "post rule",
            "post-experiment rules",
            "pause behaviour",
            "pause behavior",
        ],
        meaning: "The *post-experiment rule* says what participants see once enrollment is complete. *continue*: everyone keeps their condition. *assign* with a condition: all participants get that one. *assign* without: all get the default.\n\nPeople who were never enrolled get the default either way.",
    },
    Term {
        names: &["segment", "segments"],
        meaning: "A *segment* is a named collection of people, groups and other segments, used to include or exclude them. *Public* ones can be shared by experiments, *private* ones are the lists of a single experiment, and the *global exclude* segment of a context beats everything.",
    },
    Term {
        names: &["inclusion list", "include list", "inclusion"],
        meaning: "The *inclusion list* says who may take part. It matters when the filter mode keeps everyone else out. Someone on the exclusion list stays out even if they are listed here.",
    },
    Term {
        names: &["exclusion list", "exclude list", "exclusion"],
        meaning: "The *exclusion list* says who must not take part. A person listed there is out, whatever else holds.",
    },
    Term {
        names: &["filter mode"],
        meaning: "The *filter mode* says what happens to people on no list: `includeAll` lets them in, `excludeAll` keeps them out. The usual reason why an experiment runs and nobody enrolls is `excludeAll` with no inclusion list.",
    },
    Term {
        names: &["payload", "payloads"],
        meaning: "A *payload* is the value that is handed to the application for one condition at one decision point: text, JSON or CSV. Without one the application goes by the condition's code.",
    },
    Term {
        names: &["enrollment", "enrolment", "enrollments", "enrolling"],
        meaning: "*Enrollment* is the moment a participant becomes part of the data: when they visit a decision point and the application marks it. Merely asking for a condition enrolls nobody.",
    },
    Term {
        names: &["mark", "marking"],
        meaning: "*Marking* is the application's report that a person reached a decision point. It is what enrolls them.",
    },
    Term {
        names: &["participant", "participants"],
        meaning: "A *participant* is an end user of the application under test, known by an opaque id. They are not the people who manage experiments.",
    },
    Term {
        names: &["group", "groups", "group type", "group types"],
        meaning: "A *group type* is a kind of group, such as `classId` or `schoolId`; a *group* is one of them, such as class 5B. Lists look at all groups of a person, group assignment only at the one they work in at the moment, the *working group*.",
    },
    Term {
        names: &["working group"],
        meaning: "The *working group* is, for each group type, the one group in which a person is acting now. It decides group assignment, and it must be one of the person's groups.",
    },
    Term {
        names: &["status", "experiment status", "statuses", "experiment statuses"],
        meaning: "An experiment is `inactive` while it is being designed, `enrolling` (shown as *running*) while it assigns people, `enrollmentComplete` (*paused*) when it takes nobody new and can be resumed, and `cancelled` (*completed*) when it gives nobody a condition any more.",
    },
    Term {
        names: &["tag", "tags"],
        meaning: "A *tag* is a free label for finding experiments again. It has no effect on who gets what.",
    },
    Term {
        names: &["metric", "metrics"],
        meaning: "A *metric* is an outcome that the application reports. It is stored only if some experiment asks for it.",
    },
    Term {
        names: &["upgrade"],
        meaning: "*UpGrade* is the A/B testing platform that your experiments run on. It draws the lots, remembers who got what, and counts.",
    },
    Term {
        names: &["countersign"],
        meaning: "That's me. I look things up on your experiment platform and prepare changes; a person here countersigns each one before it is made.",
    },
];

/// The term that these words name: by one of its names, in one spelling or with one slip.
pub(super) fn find(words: &[Word]) -> Option<&'static str> {
    let asked = lower(skip(words, "a|an|the"));
    let named = |close: bool| {
        TERMS.iter().flat_map(|term| term.names).find(|name| match close {
            false => **name == asked,
            true => asked.len() >= 6 && strsim::damerau_levenshtein(name, &asked) <= 1 + asked.len() / 12,
        })
    };
    named(false).or_else(|| named(true)).copied()
}

/// What it means.
pub(super) fn meaning(name: &str) -> &'static str {
    let term = TERMS.iter().find(|term| term.names.contains(&name));
    term.map_or("I have no short explanation of that.", |term| term.meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_two_things() {
        let mut names: Vec<_> = TERMS.iter().flat_map(|term| term.names).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
