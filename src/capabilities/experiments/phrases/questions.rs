//! Questions that one tool answers.

use super::{
    details, knowledge, lists, names,
    situation::Situation,
    wish::{Understood, Wish},
    words::{Word, after, lower, skip, text},
};

const HEALTH: &str = "check_upgrade_health";
pub(super) const METADATA: &str = "get_context_metadata";

pub(super) const SHOWING: &str = "show me|show us|show|list|get me|get|display|give me|see|view|find|tell me|fetch|search for|look up|open|pull up|sort|order|check|bring up";
pub(super) const ASKING: &str = "what are|what is|which are|what|which|are there|how many|do we have|are any|is any";

/// What is asked, if it is one of these questions. `words` are without politeness.
pub(super) fn question(words: &[Word], situation: &Situation) -> Option<Understood> {
    health(words)
        .or_else(|| is_it_up(words, situation))
        .or_else(|| contexts(words))
        .or_else(|| known_to(words))
        .or_else(|| knowledge::knowledge(words))
        .map(Understood::from)
        .or_else(|| lists::list(words))
        .or_else(|| knowledge::concept(words, situation).map(Understood::from))
        .or_else(|| details::details(words, situation).map(Understood::from))
}

fn health(words: &[Word]) -> Option<Wish> {
    let asked =
        lower(skip(skip(words, "check if|check whether|tell me if|check|do a|run a|run"), "a quick|quick|a|the"))
            .replace("still ", "");
    let about = |subject: &str| {
        let state = [
            "running",
            "up",
            "ok",
            "okay",
            "alive",
            "available",
            "healthy",
            "working",
            "reachable",
            "online",
            "down",
            "there",
            "up and running",
        ];
        let asks = asked.strip_prefix("is ").or(Some(&asked)).and_then(|rest| rest.strip_prefix(subject));
        asks.is_some_and(|rest| state.contains(&rest.trim_start_matches(" is").trim()))
    };
    let version = (asked.contains("version")
        && (asked.contains("upgrade")
            || asked.contains("server")
            || asked.contains("platform")
            || (words.len() <= 6 && !asked.contains("experiment"))))
        && (asked.starts_with("what")
            || asked.starts_with("which")
            || asked.starts_with("version")
            || asked.starts_with("upgrade")
            || asked.starts_with("show")
            || asked.starts_with("get"));
    let fits =
        ["upgrade", "the server", "the platform", "server", "the upgrade server", "the upgrade service", "the service"]
            .into_iter()
            .any(about)
            || matches!(
                asked.as_str(),
                "health"
                    | "health check"
                    | "healthcheck"
                    | "upgrade health"
                    | "the health"
                    | "upgrade"
                    | "ping"
                    | "upgrade status"
                    | "status of upgrade"
                    | "the upgrade status"
                    | "how is upgrade"
                    | "how is upgrade doing"
                    | "server status"
                    | "status of the server"
                    | "what is the status of upgrade"
                    | "what is the upgrade status"
                    | "upgrade's health"
                    | "the server"
                    | "status"
            );
    (fits || version).then(|| Wish::read(HEALTH, []))
}

/// `is it up?`, while no experiment is talked about.
fn is_it_up(words: &[Word], situation: &Situation) -> Option<Wish> {
    const STATES: &str = "up and running|up|down|alive|online|reachable|healthy|working|ok|okay";
    let asked = after(words, "is it").and_then(|rest| after(skip(rest, "still"), STATES))?;
    (asked.is_empty() && situation.last_subject.is_none()).then(|| Wish::read(HEALTH, []))
}

/// `what does assign-prog know?`
fn known_to(words: &[Word]) -> Option<Wish> {
    let (last, named) = after(words, "what does|what do")?.split_last()?;
    let named = skip(named, "the context|context");
    (last.any(&["know", "offer", "contain", "support", "allow"]) && names::looks_like_context(named))
        .then(|| Wish::read(METADATA, [("context", Some(text(named)))]))
}

fn contexts(words: &[Word]) -> Option<Wish> {
    let last = words.iter().find(|word| word.any(&["contexts", "apps", "applications"]))?;
    let asks =
        after(words, SHOWING).is_some() || after(words, ASKING).is_some() || words[0] == *last || words[0].is("all");
    asks.then(|| Wish::read(METADATA, []))
}

#[cfg(test)]
mod tests {
    use super::super::{situation::Situation, tests::check};

    #[test]
    fn questions() {
        check(
            &Situation::default(),
            &[
                ("Is UpGrade running?", "read check_upgrade_health"),
                ("is upgrade up", "read check_upgrade_health"),
                ("health check", "read check_upgrade_health"),
                ("What version is it?", "read check_upgrade_health"),
                ("which version of UpGrade are we on?", "read check_upgrade_health"),
                ("check the health", "read check_upgrade_health"),
                ("is it up?", "read check_upgrade_health"),
                (
                    "what group types does livehint-ai know?",
                    r#"read get_group_types_for_context {"context":"livehint-ai"}"#,
                ),
                ("list experiments", "read get_all_experiments"),
                ("List all experiments", "read get_all_experiments"),
                ("show me all the experiments please", "read get_all_experiments"),
                ("What experiments are there?", "read get_all_experiments"),
                ("which experiments do we have?", "read get_all_experiments"),
                ("How many experiments are there?", "read get_all_experiments"),
                ("can you list our experiments", "read get_all_experiments"),
                ("list the experiment names", "read get_experiment_names"),
                ("what is running?", r#"read get_all_experiments {"status":"enrolling"}"#),
                ("which experiments are running", r#"read get_all_experiments {"status":"enrolling"}"#),
                (
                    "show running experiments in assign-prog",
                    r#"read get_all_experiments {"context":"assign-prog","status":"enrolling"}"#,
                ),
                ("show experiments in assign-prog", r#"read get_all_experiments {"context":"assign-prog"}"#),
                ("list the paused experiments", r#"read get_all_experiments {"status":"enrollmentComplete"}"#),
                ("list experiments for the mathstream context", r#"read get_all_experiments {"context":"mathstream"}"#),
                ("list contexts", "read get_context_metadata"),
                ("What contexts are available?", "read get_context_metadata"),
                (
                    "what conditions does assign-prog have?",
                    r#"read get_conditions_for_context {"context":"assign-prog"}"#,
                ),
                (
                    "What conditions are available in assign-prog?",
                    r#"read get_conditions_for_context {"context":"assign-prog"}"#,
                ),
                ("show the group types of mathstream", r#"read get_group_types_for_context {"context":"mathstream"}"#),
                (
                    "what decision points does assign-prog have?",
                    r#"read get_decision_points_for_context {"context":"assign-prog"}"#,
                ),
                (
                    "which sites are there in mathstream?",
                    r#"read get_decision_points_for_context {"context":"mathstream"}"#,
                ),
                (
                    "show Math Hints in detail",
                    r#"read get_experiment_details {"experiment_id":"Math Hints","form":"full"}"#,
                ),
                (
                    "explain the setup of Math Hints",
                    r#"read get_experiment_details {"experiment_id":"Math Hints","form":"full"}"#,
                ),
                (
                    "describe “Math Hints” in short",
                    r#"read get_experiment_details {"experiment_id":"Math Hints","form":"short"}"#,
                ),
                (
                    "give me a short summary of Math Hints",
                    r#"read get_experiment_details {"experiment_id":"Math Hints","form":"short"}"#,
                ),
                (
                    "show the raw JSON of Math Hints",
                    r#"read get_experiment_details {"experiment_id":"Math Hints","form":"raw"}"#,
                ),
                (
                    "show Math Hints as JSON",
                    r#"read get_experiment_details {"experiment_id":"Math Hints","form":"raw"}"#,
                ),
                ("what does assign-prog know?", r#"read get_context_metadata {"context":"assign-prog"}"#),
                (
                    "what conditions does Math Hints have?",
                    r#"read get_experiment_details {"experiment_id":"Math Hints"}"#,
                ),
                ("show Math Hints", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
                (
                    "details of the Math Hints experiment",
                    r#"read get_experiment_details {"experiment_id":"Math Hints"}"#,
                ),
                ("explain “Reading Pace”", r#"read get_experiment_details {"experiment_id":"Reading Pace"}"#),
                ("tell me about Math Hints", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
                ("status of Math Hints?", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
                (
                    "what's the status of the Running Test experiment?",
                    r#"read get_experiment_details {"experiment_id":"Running Test"}"#,
                ),
                ("is Math Hints running?", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
                (
                    "what are the weights of Math Hints?",
                    r#"read get_experiment_details {"experiment_id":"Math Hints"}"#,
                ),
                (
                    "what condition would u1 get in assign-prog?",
                    r#"get_decision_point_assignments {"context":"assign-prog","user":"u1"}"#,
                ),
                (
                    "Which condition does user student-7 get in assign-prog?",
                    r#"get_decision_point_assignments {"context":"assign-prog","user":"student-7"}"#,
                ),
                ("get assignments for u1", r#"get_decision_point_assignments {"user":"u1"}"#),
                (
                    "show me the assignments of u1 in assign-prog",
                    r#"get_decision_point_assignments {"context":"assign-prog","user":"u1"}"#,
                ),
                ("What have we accomplished?", "read get_execution_log"),
                ("what did you do so far?", "read get_execution_log"),
                ("what have we done in this thread", "read get_execution_log"),
            ],
        );
    }
}
