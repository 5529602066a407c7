//! The replies that explain terms and the parameters of actions.

use countersign_core::reply::{Part, Reply, Text};
use serde_json::Value;

use super::answers::unreadable;

/// Explains one term, or how two terms work together, from the result of `explain_upgrade_concept`.
pub fn explain_reply(answer: &Value) -> Reply {
    let Some(meaning) = answer["meaning"].as_str() else { return unreadable() };
    match answer["example"].as_str() {
        Some(example) => Reply::markdown(meaning).and(Part::Text(with_code_spans(example))),
        None => Reply::markdown(meaning),
    }
}

/// Lists all terms, from the result of `list_upgrade_concepts`.
pub fn concepts_reply(answer: &Value) -> Reply {
    let words = |part: &str| {
        let words = answer[part].as_array().into_iter().flatten().filter_map(Value::as_str);
        Text::from(words.collect::<Vec<_>>().join(", "))
    };
    Reply::text("I can explain these terms. For example, ask “what is a weight?” or “how do weights and consistency rules work together?”")
        .and(Part::Facts(vec![
            ("Experiments".to_owned(), words("core")),
            ("Assignment".to_owned(), words("assignment")),
        ]))
        .choice("Core terms", "explain the core terms")
        .choice("Assignment terms", "explain the assignment terms")
}

/// Explains each term in one sentence, from the result of `get_core_terms` or `get_assignment_terms`.
pub fn terms_reply(answer: &Value) -> Reply {
    let terms = answer.as_object().into_iter().flat_map(|parts| parts.values()).filter_map(Value::as_array).flatten();
    let lines: Vec<String> = terms.filter_map(|term| Some(format!("• {}", term["meaning"].as_str()?))).collect();
    Reply::markdown(lines.join("\n")).hint("Ask about any of them to learn more.")
}

/// Describes the parameters of an action, from the result of a `get_…_schema` tool.
pub fn schema_reply(answer: &Value) -> Reply {
    let (purpose, example) = match answer["action"].as_str().unwrap_or_default() {
        "create_experiment" => (
            "create an experiment",
            "create experiment Hint Timing in assign-prog with conditions control, variant at SelectSection/area_model",
        ),
        "update_experiment" => ("change an experiment", "set the weights of Math Hints to 70/30"),
        "update_experiment_status" => ("start, stop, resume or cancel an experiment", "start Math Hints"),
        "delete_experiment" => ("delete an experiment", "delete Math Hints"),
        "init_experiment_user" => ("initialize a user", "initialize user u1 with groups classId 5B in assign-prog"),
        "get_decision_point_assignments" => {
            ("ask what a participant gets", "what condition would u1 get in assign-prog?")
        }
        "mark_decision_point" => ("mark a visit", "mark SelectSection/area_model for u1 in Math Hints"),
        "test_condition_balance" => ("test the balance of conditions", "test the balance of Math Hints with 200 users"),
        "test_consistency_rules" => ("test the consistency rules", "test consistency rules for Math Hints"),
        "simulate_user_journey" => ("simulate a user's visit", "simulate user u1 in Math Hints"),
        _ => return unreadable(),
    };
    let parameters = answer["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let words = |parameter: &Value, key: &str| parameter[key].as_str().unwrap_or_default().to_owned();
    let name = |parameter: &Value| words(parameter, "name").replace('_', " ");
    let (needed, optional): (Vec<&Value>, Vec<&Value>) =
        parameters.iter().partition(|parameter| parameter["needed"] == true);
    let needs: Vec<String> = needed.iter().map(|parameter| name(parameter)).collect();
    let rest = if optional.is_empty() { "" } else { " Everything else is optional." };
    let opening = Text::new().plain("To ").bold(purpose).plain(format!(", I need: {}.{rest}", needs.join(", ")));
    let rows = needed.iter().chain(&optional).map(|parameter| {
        let need = if parameter["needed"] == true { "yes" } else { "no" };
        vec![
            Text::new().bold(name(parameter)),
            Text::from(need),
            with_code_spans(&in_typed_notation(words(parameter, "what"))),
        ]
    });
    let columns = ["What", "Needed", "Meaning"].map(str::to_owned).to_vec();
    Reply::text(opening).and(Part::Table { columns, rows: rows.collect() }).hint(
        Text::new()
            .plain("Say it in one sentence, for example “")
            .plain(example)
            .plain("”, or step by step: I'll ask for what's missing."),
    )
}

/// Replaces data formats in a parameter's description with the notation that people type.
fn in_typed_notation(description: String) -> String {
    const REPLACEMENTS: [(&str, &str); 6] = [
        ("objects with `site` and `target`, or texts `site / target`", "one or several, each as `site / target`"),
        ("objects with `code` and `weight`, or codes", "their codes, with weights if they differ"),
        ("objects with `code` and `weight`", "their codes, with weights if they differ"),
        ("`{\"classId\": [\"class-1\"]}`", "`classId class-1`"),
        ("`{\"classId\": \"class-1\"}`", "`classId class-1`"),
        ("enrolment", "enrollment"),
    ];
    REPLACEMENTS.iter().fold(description, |text, (format, notation)| text.replace(format, notation))
}

/// Formats text between backticks as code.
fn with_code_spans(text: &str) -> Text {
    text.split('`').enumerate().fold(Text::new(), |text, (nth, part)| match (part, nth % 2) {
        ("", _) => text,
        (part, 0) => text.plain(part),
        (part, _) => text.code(part),
    })
}
