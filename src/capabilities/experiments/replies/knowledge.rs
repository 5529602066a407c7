//! The replies that explain terms and the parameters of actions.

use countersign_core::reply::{Part, Reply, Text};
use serde_json::Value;

use super::{answers::unreadable, given};

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

/// Describes what an action can be given, from the result of `explain_change`.
pub fn schema_reply(answer: &Value) -> Reply {
    let Some(explained) = given::ALL.iter().find(|explained| answer["action"] == explained.action) else {
        return unreadable();
    };
    let parameters = answer["parameters"].as_array().into_iter().flatten();
    let needed: Vec<_> = parameters.filter(|parameter| parameter["needed"] == true).map(|one| &one["name"]).collect();
    let is_needed = |part: &&given::Given| part.parameters.iter().any(|name| needed.iter().any(|one| *one == name));
    let needs: Vec<_> = explained.parts.iter().filter(is_needed).map(|part| part.label.to_lowercase()).collect();
    let rest = if needs.len() == explained.parts.len() { "" } else { " Everything else is optional." };
    let opening =
        Text::new().plain("To ").bold(explained.purpose).plain(format!(", I need: {}.{rest}", needs.join(", ")));
    let rows = explained.parts.iter().map(|part| {
        let need = if is_needed(&part) { "yes" } else { "no" };
        vec![Text::new().bold(part.label), Text::from(need), with_code_spans(part.meaning)]
    });
    let columns = ["What", "Needed", "Meaning"].map(str::to_owned).to_vec();
    Reply::text(opening).and(Part::Table { columns, rows: rows.collect() }).hint(
        Text::new()
            .plain("Say it in one sentence, for example “")
            .plain(explained.example)
            .plain("”, or step by step: I'll ask for what's missing."),
    )
}

/// Formats text between backticks as code.
fn with_code_spans(text: &str) -> Text {
    text.split('`').enumerate().fold(Text::new(), |text, (nth, part)| match (part, nth % 2) {
        ("", _) => text,
        (part, 0) => text.plain(part),
        (part, _) => text.code(part),
    })
}
