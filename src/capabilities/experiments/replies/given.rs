//! What people can give for each action, in their words. The schemas of the actions are written for models.

/// An action, and what it can be given.
pub(super) struct Explained {
    /// The name of the action.
    pub(super) action: &'static str,
    /// What it does, after “to”.
    pub(super) purpose: &'static str,
    /// A request for it.
    pub(super) example: &'static str,
    /// What it can be given; first what it needs.
    pub(super) parts: &'static [Given],
}

/// A part of a request.
pub(super) struct Given {
    /// The word for it.
    pub(super) label: &'static str,
    /// The parameters of the action that it stands for.
    pub(super) parameters: &'static [&'static str],
    /// What it means, and how it is said.
    pub(super) meaning: &'static str,
}

const fn given(label: &'static str, parameters: &'static [&'static str], meaning: &'static str) -> Given {
    Given { label, parameters, meaning }
}

const EXPERIMENT: Given = given("Experiment", &["experiment"], "its name or ID");
const USER: Given = given("User", &["user"], "the user's ID, such as `student-001`");
const GROUPS: Given = given("Groups", &["group"], "the groups of the user by type, such as `classId 5B`");
const WORKING_GROUP: Given =
    given("Working group", &["working_group"], "the group that the user acts in, such as `classId 5B`");
const CONSISTENCY: Given =
    given("Consistency", &["consistency"], "whose earlier visits count: individual, group or experiment");
const ORDER: Given = given(
    "Order of conditions",
    &["condition_order"],
    "within subjects: random, random round robin or ordered round robin",
);
const PAYLOADS: Given =
    given("Payloads", &["payloads"], "what the application receives with a condition: text, JSON or CSV");
const AFTERWARDS: Given = given(
    "After enrollment ends",
    &["post_rule"],
    "enrolled users keep their condition, or all get one condition or the default",
);
const ENROLLMENT_ENDS: Given = given(
    "Enrollment ends",
    &["ends_after_users", "ends_after_groups"],
    "the number of users or groups after which nobody else is enrolled",
);
const FILTER: Given = given("Users on no list", &["filter_mode"], "included or excluded");
const EARLY: Given = given(
    "Early visitors",
    &["exclude_if_reached"],
    "whether users who were at a decision point before the start are excluded",
);

/// All actions.
pub(super) const ALL: &[Explained] = &[
    Explained {
        action: "create_experiment",
        purpose: "create an experiment",
        example: "create experiment Hint Timing in assign-prog with conditions control, variant at SelectSection/area_model",
        parts: &[
            given("Name", &["name"], "what it is called"),
            given("Context", &["context"], "the application it is for"),
            given("Decision points", &["decision_points", "site", "target"], "one or several, each as `site / target`"),
            given(
                "Conditions",
                &["conditions", "weights"],
                "their codes, with weights if they differ; otherwise the context's first two, 50/50",
            ),
            given("Description", &["description"], "what it is about"),
            given(
                "Copy",
                &["copy_of", "conditions_of", "points_of"],
                "another experiment whose design, conditions or decision points it takes over",
            ),
            given("Factors", &["factors"], "for a factorial experiment: each factor with its levels"),
            PAYLOADS,
            given(
                "Assignment",
                &["unit", "group"],
                "individual, by a group type such as `classId`, or within subjects",
            ),
            CONSISTENCY,
            ORDER,
            given(
                "Algorithm",
                &["algorithm", "stratification_factor"],
                "random, or stratified by a factor that was uploaded to UpGrade",
            ),
            EARLY,
            AFTERWARDS,
            ENROLLMENT_ENDS,
            FILTER,
            given(
                "Lists",
                &["inclusion", "exclusion"],
                "who is included or excluded: users, and groups such as `classId:5B`",
            ),
            given("Start and end", &["start_on", "end_on"], "dates such as `Friday 9:00` or `2027-01-15 09:00`"),
            given("Tags", &["tags"], "free labels for finding it again"),
            given(
                "New words",
                &["beyond_context"],
                "whether conditions, sites and targets may be used that the context doesn't list; I ask if there are any",
            ),
        ],
    },
    Explained {
        action: "update_experiment",
        purpose: "change an experiment",
        example: "set the weights of Math Hints to 70/30",
        parts: &[
            EXPERIMENT,
            given("Name and description", &["new_name", "description"], "the new ones"),
            given("Tags", &["tags"], "the new ones, or which to add or remove"),
            given("Weights", &["weights"], "such as 70/30, in the order of the conditions"),
            given("Conditions", &["conditions"], "all codes, to add, remove or rename conditions"),
            given("Decision points", &["decision_points"], "all of them, each as `site / target`"),
            PAYLOADS,
            given(
                "Assignment",
                &["unit", "group"],
                "individual, by a group type such as `classId`, or within subjects",
            ),
            CONSISTENCY,
            ORDER,
            given("Algorithm", &["algorithm"], "only the one it has: I can't change it"),
            EARLY,
            AFTERWARDS,
            ENROLLMENT_ENDS,
            FILTER,
            given(
                "Lists",
                &[
                    "inclusion",
                    "add_to_inclusion",
                    "remove_from_inclusion",
                    "exclusion",
                    "add_to_exclusion",
                    "remove_from_exclusion",
                ],
                "who to add to or remove from the inclusion or exclusion list, or the whole list",
            ),
            given("End", &["end_on"], "a date such as `Friday` or `2027-01-15 09:00`"),
        ],
    },
    Explained {
        action: "update_experiment_status",
        purpose: "start, stop, resume or cancel an experiment",
        example: "start Math Hints",
        parts: &[
            given(
                "Experiment",
                &["experiment", "experiments", "all"],
                "one or several by name, or all with a status, context, tag or month",
            ),
            given(
                "Change",
                &["status"],
                "start, stop, resume, cancel, archive, schedule or unschedule, or set it back to inactive",
            ),
            given("Start", &["start_on"], "when a scheduled experiment starts, such as `Friday 9:00`"),
            given("End", &["end_on"], "when it ends, such as `2027-02-15`; that day is included"),
        ],
    },
    Explained {
        action: "delete_experiment",
        purpose: "delete an experiment",
        example: "delete Math Hints",
        parts: &[EXPERIMENT],
    },
    Explained {
        action: "init_experiment_user",
        purpose: "initialize a user",
        example: "initialize user u1 with groups classId 5B in assign-prog",
        parts: &[
            USER,
            GROUPS,
            WORKING_GROUP,
            given("Context", &["context"], "the application whose group types are meant"),
        ],
    },
    Explained {
        action: "get_decision_point_assignments",
        purpose: "ask what a participant gets",
        example: "what condition would u1 get in assign-prog?",
        parts: &[USER, given("Context", &["context"], "the application that asks")],
    },
    Explained {
        action: "mark_decision_point",
        purpose: "mark a visit",
        example: "mark SelectSection/area_model for u1 in Math Hints",
        parts: &[
            USER,
            given("Decision point", &["site", "target"], "`site / target`"),
            given("Condition", &["condition"], "the code that the user got there"),
            given("Experiment", &["experiment", "context"], "its name or context, if several have the decision point"),
            given("Outcome", &["status"], "whether the condition was applied; “not applied” excludes the user"),
        ],
    },
    Explained {
        action: "test_condition_balance",
        purpose: "test the balance of conditions",
        example: "test the balance of Math Hints with 200 users",
        parts: &[EXPERIMENT, given("Users", &["users"], "how many test users to enroll, up to 1,000; otherwise 100")],
    },
    Explained {
        action: "test_consistency_rules",
        purpose: "test the consistency rules",
        example: "test consistency rules for Math Hints",
        parts: &[EXPERIMENT],
    },
    Explained {
        action: "simulate_user_journey",
        purpose: "simulate a user's visit",
        example: "simulate user u1 in Math Hints",
        parts: &[
            USER,
            given("Experiment", &["experiment"], "its name or ID, or its decision point"),
            given("Decision point", &["site", "target"], "`site / target`; otherwise its first"),
            GROUPS,
            WORKING_GROUP,
        ],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use countersign_capabilities::Capability as _;

    use super::*;
    use crate::{Experiments, settings::Upgrade};

    #[test]
    fn everything_that_an_action_takes_is_explained() {
        let settings = serde_json::json!({
            "api_url": "http://127.0.0.1:9/api", "timeout": "1s", "max_answer_mb": 1, "settle_within": "1s",
        });
        let settings: Upgrade = serde_json::from_value(settings).unwrap();
        let clock = std::sync::Arc::new(countersign_core::clock::SystemClock);
        let actions = Experiments::new(&settings, clock).unwrap().actions();
        assert_eq!(actions.len(), ALL.len());
        for action in actions {
            let schema = action.schema();
            let taken: BTreeSet<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            let explained = ALL.iter().find(|explained| explained.action == action.name());
            let explained = explained.unwrap_or_else(|| panic!("{} is not explained", action.name()));
            let said: BTreeSet<&str> = explained.parts.iter().flat_map(|part| part.parameters).copied().collect();
            assert_eq!(said, taken, "{}", action.name());
        }
    }
}
