//! What words mean, how they go together, and what a change takes.

use super::{
    lists, names,
    situation::Situation,
    wish::Wish,
    words::{Word, after, lower, skip, text, without_last},
};
use crate::capabilities::experiments::glossary;

const EXPLAIN: &str = "explain_upgrade_concept";

/// What is asked about words or changes, if it is something one knows without looking.
pub(super) fn knowledge(words: &[Word]) -> Option<Wish> {
    catalogue(words)
        .or_else(|| together(words))
        .or_else(|| takes(words))
        .or_else(|| help(words))
        .or_else(|| term(words))
}

/// `what concepts can you explain?`
fn catalogue(words: &[Word]) -> Option<Wish> {
    let plain = lower(skip(words, "what are|show me|show|list all|list|explain|give me|what|which|tell me"));
    let plain = skip_the(&plain);
    let tool = match plain {
        "core terms" | "core concepts" | "basic terms" | "core upgrade terms" => "get_core_terms",
        "assignment terms" | "assignment concepts" | "terms of assignment" => "get_assignment_terms",
        "glossary" | "concepts" | "terms" | "upgrade concepts" | "upgrade terms" | "concepts are there"
        | "terms are there" => "list_upgrade_concepts",
        _ if (plain.starts_with("concepts ") || plain.starts_with("terms ") || plain.starts_with("words "))
            && ["explain", "know", "define", "help"].iter().any(|verb| plain.contains(verb)) =>
        {
            "list_upgrade_concepts"
        }
        _ => return None,
    };
    Some(Wish::read(tool, []))
}

fn skip_the(plain: &str) -> &str {
    plain.strip_prefix("the ").unwrap_or(plain)
}

/// `how do weights and consistency rules work together?`
fn together(words: &[Word]) -> Option<Wish> {
    let asked = after(
        words,
        "how do|how does|how are|what is the difference between|the difference between|difference between|explain how|\
         what is the relation between|how is|what do|compare|explain the difference between|explain",
    )?;
    let asked = without_last(
        asked,
        &[
            "work",
            "works",
            "together",
            "interact",
            "related",
            "fit",
            "play",
            "relate",
            "differ",
            "connected",
            "go",
            "have",
            "common",
            "in",
            "each",
            "other",
            "to",
            "different",
        ],
    );
    let between = |word: &Word| word.any(&["and", "with", "vs", "versus", "from", "to"]);
    let place = asked.iter().position(between)?;
    let (one, other) = (&asked[..place], &asked[place + 1..]);
    let one = without_last(
        one,
        &["work", "works", "interact", "interacts", "relate", "relates", "related", "differ", "differs", "different"],
    );
    let known = |words: &[Word]| glossary::find(&text(words)).map(|term| term.name().to_owned());
    let (one, other) = (known(one)?, known(other)?);
    (one != other).then(|| Wish::read(EXPLAIN, [("concept", Some(one)), ("with", Some(other))]))
}

/// `what parameters does create take?`, `what can I set when creating an experiment?`
fn takes(words: &[Word]) -> Option<Wish> {
    let about = after(
        words,
        "what parameters does|which parameters does|what parameters do i need to|what parameters are there for|what are the parameters of|\
         what are the parameters for|explain the parameters of|explain the parameters for|parameters of|parameters for|what can i set when|\
         what can be set when|what can i set for|what can i give when|what do you need to|what do i need to|what is needed to|what is required to|what information do you need to|\
         what do you need for|what does it take to|what can i change in|what can i change when|what options does|what options are there for|what can i say when|\
         show the schema of|schema of|schema for|show the parameters of|show parameters of|how do i|how can i|how do we|how does one|help me with|help me|help with|i need help with|what do i have to fill in for|what do i have to fill in to|\
         what do i fill in for|what do i have to say to|what do i have to give to",
    )?;
    let about =
        without_last(about, &["take", "takes", "need", "needs", "accept", "accepts", "have", "has", "know", "require"]);
    let verb = skip(skip(about, "the|a|an|to|action|when"), "i|we|you|new");
    let opening = lower(words);
    if opening.starts_with("what can i change in") {
        return Some(Wish::read("get_update_experiment_schema", []));
    }
    let (first, rest) = verb.split_first()?;
    let of_experiment = rest.is_empty()
        || rest.iter().any(|word| {
            word.any(&[
                "experiment",
                "experiments",
                "status",
                "change",
                "changes",
                "user",
                "users",
                "assignments",
                "point",
                "points",
                "one",
                "visit",
                "participant",
                "condition",
                "it",
                "action",
                "balance",
                "consistency",
            ])
        });
    if !of_experiment {
        return None;
    }
    let tool = match first.lower.as_str() {
        "create" | "creating" | "create_experiment" | "creation" | "experiment" => "get_create_experiment_schema",
        "update_experiment_status"
        | "start"
        | "starting"
        | "stop"
        | "stopping"
        | "pause"
        | "pausing"
        | "resume"
        | "resuming"
        | "cancel"
        | "cancelling"
        | "canceling"
        | "status" => "get_update_experiment_status_schema",
        "update" | "updating" | "change" | "changing" | "edit" | "editing" | "update_experiment" => {
            match rest.iter().any(|word| word.is("status")) {
                true => "get_update_experiment_status_schema",
                false => "get_update_experiment_schema",
            }
        }
        "delete" | "deleting" | "delete_experiment" | "remove" | "removing" => "get_delete_experiment_schema",
        "init"
        | "initialize"
        | "initialise"
        | "initializing"
        | "initialising"
        | "init_experiment_user"
        | "introduce" => "get_init_experiment_user_schema",
        "assign" | "assignments" | "get_decision_point_assignments" | "assignment" => {
            "get_get_decision_point_assignments_schema"
        }
        "get" | "getting" if rest.iter().any(|word| word.any(&["assignments", "condition"])) => {
            "get_get_decision_point_assignments_schema"
        }
        "mark" | "marking" | "mark_decision_point" => "get_mark_decision_point_schema",
        "test_condition_balance" => "get_test_condition_balance_schema",
        "test_consistency_rules" => "get_test_consistency_rules_schema",
        "test" | "testing" | "check" if rest.iter().any(|word| word.is("balance")) => {
            "get_test_condition_balance_schema"
        }
        "test" | "testing" | "check" if rest.iter().any(|word| word.is("consistency")) => {
            "get_test_consistency_rules_schema"
        }
        "simulate" | "simulating" | "simulate_user_journey" => "get_simulate_user_journey_schema",
        _ => return None,
    };
    Some(Wish::read(tool, []))
}

/// `help with weights`
fn help(words: &[Word]) -> Option<Wish> {
    let asked = after(words, "help me with|help with|i need help with|help me understand|help on|help")?;
    glossary::find(&text(asked)).map(explain)
}

/// `what is a weight?`
fn term(words: &[Word]) -> Option<Wish> {
    // `explain what decision points are`
    if let Some((last, asked)) =
        after(words, "explain to me what|explain what|tell me what|do you know what|you know what|know what")
            .and_then(|asked| asked.split_last())
        && last.any(&["is", "are", "means", "mean", "does"])
    {
        return glossary::find(&text(asked)).map(explain);
    }
    let asked = after(
        words,
        "eli5|explain like i am 5|what is meant by|what is the meaning of|what is the definition of|what is|what are|what does|what do|what|define|explain to me|explain|\
         meaning of|tell me about|describe|how does|how do",
    )?;
    let says_mean = asked.last().is_some_and(|word| word.any(&["mean", "means"]));
    let asked = without_last(asked, &["mean", "means", "work", "works", "exactly", "again", "stand", "for"]);
    if skip(asked, "the").len() != asked.len() && asked.len() <= 2 {
        return None; // “the experiment” is one of theirs
    }
    if let [only] = asked
        && lists::is_status(only)
        && after(words, "what is|what are|what").is_some()
        && !says_mean
    {
        return None; // “what is running?”
    }
    glossary::find(&text(asked)).map(explain)
}

/// `explain stratified sampling`: a word that is no name, in lower case and by its own.
pub(super) fn concept(words: &[Word], situation: &Situation) -> Option<Wish> {
    let asked = after(words, "explain to me|explain")?;
    let is_plain = |word: &Word| !word.quoted && word.text.chars().all(|c| c.is_lowercase() || c == '-' || c == '\'');
    let named =
        ["of", "in", "experiment", "study", "setup", "details", "detail", "context", "it", "its", "this", "that"];
    let of_theirs = asked.iter().any(|word| word.any(&named)) || names::points_back(asked);
    let known = situation.last_subject.as_ref().is_some_and(|name| name.to_lowercase() == lower(asked));
    let is_context = matches!(asked, [one] if one.text.contains('-'));
    (asked.iter().all(is_plain) && !of_theirs && !known && !is_context && lower(asked) != "briefly")
        .then(|| Wish::read(EXPLAIN, [("concept", Some(text(skip(asked, "the|a|an"))))]))
}

/// With a look at the platform, where that shows something.
pub(super) fn explain(term: &'static glossary::Term) -> Wish {
    match term.example {
        Some(_) => Wish::read(EXPLAIN, [("concept", Some(term.name().to_owned()))]),
        None => Wish::Term { name: term.name(), meaning: term.meaning },
    }
}

#[cfg(test)]
mod tests {
    use super::super::{situation::Situation, tests::check};

    #[test]
    fn words_and_what_changes_take() {
        let explain = |arguments: &str| format!("read explain_upgrade_concept {arguments}");
        let both = explain(r#"{"concept":"weight","with":"consistency rule"}"#);
        let status = explain(r#"{"concept":"status"}"#);
        check(
            &Situation::default(),
            &[
                ("What concepts can you explain?", "read list_upgrade_concepts"),
                ("which terms do you know?", "read list_upgrade_concepts"),
                ("list the core terms", "read get_core_terms"),
                ("explain the assignment terms", "read get_assignment_terms"),
                ("How do weights and consistency rules work together?", &both),
                ("how do weights work with consistency rules?", &both),
                ("what's the difference between weights and consistency rules?", &both),
                ("what does status mean?", &status),
                ("help with statuses", &status),
                ("explain decision points and weights", &explain(r#"{"concept":"decision point","with":"weight"}"#)),
                ("explain the weather", &explain(r#"{"concept":"weather"}"#)),
                (
                    "how do group units and exclude lists work together?",
                    &explain(r#"{"concept":"unit of assignment","with":"exclusion list"}"#),
                ),
                ("explain Math Hints", r#"read get_experiment_details {"experiment_id":"Math Hints"}"#),
                ("what parameters are there for the status change?", "read get_update_experiment_status_schema"),
                ("what does paused mean?", "term paused"),
                ("what is paused?", r#"read get_all_experiments {"status":"enrollmentComplete"}"#),
                ("What parameters does create take?", "read get_create_experiment_schema"),
                ("what can I set when creating an experiment?", "read get_create_experiment_schema"),
                ("help me create an experiment", "read get_create_experiment_schema"),
                ("what parameters does update_experiment take?", "read get_update_experiment_schema"),
                ("what can I change in an experiment?", "read get_update_experiment_schema"),
                ("how do I change the status of an experiment?", "read get_update_experiment_status_schema"),
                ("what do you need to delete an experiment?", "read get_delete_experiment_schema"),
                ("parameters of init_experiment_user", "read get_init_experiment_user_schema"),
                ("what do I need to initialize a user?", "read get_init_experiment_user_schema"),
                (
                    "what parameters does get_decision_point_assignments take",
                    "read get_get_decision_point_assignments_schema",
                ),
                ("what parameters does test_condition_balance take?", "read get_test_condition_balance_schema"),
                ("what do I need to test the balance?", "read get_test_condition_balance_schema"),
                ("how do I test consistency rules?", "read get_test_consistency_rules_schema"),
                ("what parameters does simulate_user_journey take?", "read get_simulate_user_journey_schema"),
                ("how do I simulate a user?", "read get_simulate_user_journey_schema"),
                ("how do I mark a decision point?", "read get_mark_decision_point_schema"),
            ],
        );
    }
}
