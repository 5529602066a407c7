//! Which capability a request needs, and which requests none serves.

use serde::Serialize;

use super::{
    situation::Situation,
    wish::{Talk, Understood, Wish},
    words::{Word, after, lower},
};

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Capability {
    /// What words mean, and what changes take.
    Terminology,
    /// Whether the platform answers, and its version.
    VersionCheck,
    /// Which experiments there are, and what contexts offer them.
    ListExperiments,
    /// One experiment.
    ExperimentDetails,
    /// Changes of experiments, and what was changed.
    ExperimentManagement,
    /// What a user would get, and a user's way through an experiment.
    UserSimulation,
    /// Tests with simulated users.
    Testing,
    /// Nothing here serves it.
    Unsupported,
}

impl Capability {
    /// Its name, as the capabilities themselves give it.
    pub(super) fn name(self) -> String {
        serde_json::json!(self).as_str().unwrap_or_default().to_owned()
    }
}

/// The capability that a wish needs; talk needs none.
pub(super) fn of(wish: &Wish, situation: &Situation) -> Option<Capability> {
    match wish {
        Wish::Term(_) => Some(Capability::Terminology),
        Wish::Read { tool, .. } => Some(of_tool(tool)),
        Wish::Change { action, .. } => Some(of_action(action)),
        Wish::Update(_) | Wish::Drop => situation.in_hand().map(|draft| of_action(&draft.action)),
        Wish::Unsupported => Some(Capability::Unsupported),
        Wish::Talk(Talk::NothingDone(_)) => Some(Capability::ExperimentManagement),
        Wish::Talk(_) => None,
        Wish::Unclear { options, .. } => (!options.is_empty()).then_some(Capability::ExperimentManagement),
    }
}

fn of_tool(tool: &str) -> Capability {
    match tool {
        "check_upgrade_health" => Capability::VersionCheck,
        "get_experiment_details" => Capability::ExperimentDetails,
        "get_execution_log" | "list_standing_approvals" => Capability::ExperimentManagement,
        tool if tool.contains("test") || tool.contains("consistency") => Capability::Testing,
        "explain_upgrade_concept" | "list_upgrade_concepts" | "get_core_terms" | "get_assignment_terms" => {
            Capability::Terminology
        }
        tool if tool.ends_with("_schema") => Capability::Terminology,
        _ => Capability::ListExperiments,
    }
}

fn of_action(action: &str) -> Capability {
    match action {
        "get_decision_point_assignments" | "init_experiment_user" | "mark_decision_point" | "simulate_user_journey" => {
            Capability::UserSimulation
        }
        action if action.contains("test") => Capability::Testing,
        _ => Capability::ExperimentManagement,
    }
}

/// What people ask a bot for and this one cannot do.
pub(super) fn unsupported(words: &[Word]) -> Option<Understood> {
    const NEVER: &str = "send an email|send a mail|send an e-mail|send a message|send me an email|email|e-mail|mail|remind me|set a reminder|\
        book|order|translate|tell me a joke|tell a joke|sing|play|write me|write a|write an|write some|write code|\
        what is the weather|what will the weather|how is the weather|what time is it|what day is it|what is the time|\
        create a segment|delete the segment|create a feature flag|delete the feature flag|turn on the feature flag|\
        create a context|delete the context|add a context|create a user account|delete the user|delete user|delete all users|\
        restart the server|restart upgrade|stop the server|stop upgrade|shut down|shut down upgrade|deploy|upgrade the server|update upgrade|\
        post in|post to|invite|give access to|grant|which condition is better|which condition wins|which condition won|\
        which variant is better|which variant won|is the difference significant|analyze the results|analyse the results|\
        show the results of|calculate the significance|order pizza|google|search the web|browse";
    if after(words, "shut down").is_some_and(|rest| rest.iter().any(|word| word.kind.is_some())) {
        return None; // an experiment is meant
    }
    let rest = after(words, NEVER)?;
    // “Play” alone may be the name of something.
    let says_something = !rest.is_empty() || lower(words).contains(' ');
    says_something.then_some(Understood { wish: Wish::Unsupported, confidence: 0.9 })
}

#[cfg(test)]
mod tests {
    use super::{
        super::{grammar::understand, situation::Situation, tests::check},
        of,
    };

    #[test]
    fn what_nobody_here_can_do() {
        let no = [
            "What's the weather like?",
            "please send an email to Bo",
            "write a poem about A/B testing",
            "create a segment",
            "restart the server",
            "can you remind me tomorrow?",
        ];
        check(&Situation::default(), &no.map(|said| (said, "unsupported")));
    }

    #[test]
    fn each_request_names_a_capability() {
        let rows = [
            ("what is a weight?", "terminology"),
            ("what is a segment?", "terminology"),
            ("what parameters does create take?", "terminology"),
            ("is UpGrade running?", "version_check"),
            ("list experiments", "list_experiments"),
            ("what conditions does assign-prog have?", "list_experiments"),
            ("show Math Hints", "experiment_details"),
            ("start Math Hints", "experiment_management"),
            ("what have we accomplished?", "experiment_management"),
            ("what condition would u1 get in assign-prog?", "user_simulation"),
            ("simulate user u1 in Math Hints", "user_simulation"),
            ("test the balance of Math Hints with 200 users", "testing"),
            ("order a pizza", "unsupported"),
        ];
        for (said, capability) in rows {
            let situation = Situation { said: said.to_owned(), ..Situation::default() };
            let found = of(&understand(&situation).wish, &situation);
            assert_eq!(serde_json::json!(found), capability, "{said}");
        }
    }
}
