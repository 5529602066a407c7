//! What Slack would make of a payload: whether it takes it, whom it calls, where it leads. Knows nothing of how the bot
//! writes.

use countersign_sandbox::slack::check;
use serde_json::Value;

/// Where a link of ours may lead in these tests.
pub(super) const GIVEN: &str = "https://given.example/";

/// Where links to our own cards lead.
const OURS: &str = "https://learning-lab.slack.com/archives/";

/// Fails unless Slack would take a message (`text` and `blocks`), and it calls nobody but people and leads nowhere.
pub(super) fn message(body: &Value) {
    let blocks = body["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
    check::message(blocks).unwrap_or_else(|problem| panic!("{problem:?} in {body:#}"));
    let text = body["text"].as_str().unwrap_or_default();
    assert!((1..=4_000).contains(&text.chars().count()), "`text` has {} characters", text.chars().count());
    mrkdwn(text);
    blocks.iter().for_each(parts);
}

/// Fails unless Slack would take a view of a kind, and it calls nobody but people and leads nowhere.
pub(super) fn view(view: &Value) {
    let kind = view["type"].as_str().unwrap_or_default();
    check::view(view, kind).unwrap_or_else(|problem| panic!("{problem:?} in {view:#}"));
    parts(&view["blocks"]);
}

fn parts(value: &Value) {
    match value {
        Value::Array(items) => items.iter().for_each(parts),
        Value::Object(fields) => {
            let text = value["text"].as_str();
            match (value["type"].as_str(), text) {
                (Some("mrkdwn"), Some(text)) => {
                    assert_eq!(value["verbatim"], true, "Slack would make links of {text}");
                    mrkdwn(text);
                }
                (Some("markdown"), Some(text)) => markdown(text),
                (Some("link"), _) => assert!(value["url"].as_str().unwrap().starts_with(GIVEN), "{value}"),
                (Some("broadcast" | "usergroup"), _) => panic!("calls everybody: {value}"),
                _ => {}
            }
            fields.values().for_each(parts);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Every `<` opens a person, a channel, a moment or a link of ours.
fn mrkdwn(text: &str) {
    for (at, _) in text.match_indices('<') {
        let inside = text[at + 1..].split('>').next().unwrap_or_default();
        let person =
            inside.strip_prefix('@').is_some_and(|id| id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        let channel = inside.strip_prefix('#').is_some_and(|id| id.bytes().all(|b| b.is_ascii_alphanumeric()));
        let fine =
            person || channel || inside.starts_with("!date^") || inside.starts_with(GIVEN) || inside.starts_with(OURS);
        assert!(fine, "`<{inside}>` in {text}");
    }
}

/// Nothing is left that a reader of Markdown might make a link or a mention of.
fn markdown(text: &str) {
    for token in ["<!", "<@", "<#"] {
        assert!(!text.contains(token), "`{token}` in {text}");
    }
    let shown = without_code(text);
    let lower = shown.to_lowercase();
    for sign in ["://", "www.", "mailto:", "javascript:", "](", "]:"] {
        let definition = sign == "]:"; // only with an address behind it
        let found = lower.match_indices(sign).any(|(at, _)| {
            !definition || lower[at + 2..].split_whitespace().next().is_some_and(|to| to.contains([':', '/']))
        });
        assert!(!found, "`{sign}` outside of code in {text}\nshown: {shown}");
    }
    let mail = shown.split(|c: char| c.is_whitespace() || "<>()[]".contains(c)).find(|word| {
        word.split_once('@').is_some_and(|(name, host)| {
            let host: String = host.chars().take_while(|c| c.is_ascii_alphanumeric() || "-.".contains(*c)).collect();
            let labels = host.trim_end_matches('.').split('.').filter(|label| !label.is_empty()).count();
            name.ends_with(|c: char| c.is_ascii_alphanumeric()) && !host.starts_with('.') && labels > 1
        })
    });
    assert_eq!(mail, None, "a mail address outside of code in {text}");
}

/// The text without code blocks and code spans, by the rules of CommonMark, as far as the bot may write them.
fn without_code(text: &str) -> String {
    let mut shown = String::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") && !line.trim_start()[3..].contains('`') {
            fenced = !fenced;
        } else if !fenced {
            shown.push_str(&without_spans(line));
            shown.push('\n');
        }
    }
    assert!(!fenced, "a code block stays open: {text}");
    shown
}

fn without_spans(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        shown.push_str(&rest[..at]);
        let after = rest[at..].trim_start_matches('`');
        let marks = rest.len() - at - after.len();
        let mut end = None;
        let mut from = 0;
        while let Some(found) = after[from..].find('`').map(|found| from + found) {
            let behind = after[found..].trim_start_matches('`');
            let length = after.len() - found - behind.len();
            if length == marks {
                end = Some(found + length);
                break;
            }
            from = found + length;
        }
        shown.push(' ');
        rest = end.map_or(after, |end| &after[end..]);
    }
    shown.push_str(rest);
    shown
}

#[test]
fn the_judge_sees_what_there_is_to_see() {
    use serde_json::json;
    let section = |text: Value| json!({ "text": "x", "blocks": [{ "type": "section", "text": text }] });
    let markdown = |text: &str| json!({ "text": "x", "blocks": [{ "type": "markdown", "text": text }] });
    let wrong = [
        section(json!({ "type": "mrkdwn", "text": "https://e.io" })),
        section(json!({ "type": "mrkdwn", "text": "<!here>", "verbatim": true })),
        section(json!({ "type": "mrkdwn", "text": "<https://e.io|a>", "verbatim": true })),
        section(json!({ "type": "mrkdwn", "text": "x".repeat(3_001), "verbatim": true })),
        json!({ "text": "", "blocks": [{ "type": "divider" }] }),
        markdown("see https://e.io"),
        markdown("[a](b)"),
        markdown("`a https://e.io"),
        markdown("```\na\n"),
        markdown("ana@e.io"),
        markdown("[a]: https://e.io"),
    ];
    for body in wrong {
        let judged = std::panic::catch_unwind(|| message(&body));
        assert!(judged.is_err(), "{body}");
    }
    message(&section(json!({ "type": "mrkdwn", "text": "https://e.io <@U1>", "verbatim": true })));
    message(&section(json!({ "type": "plain_text", "text": "<!here> https://e.io" })));
    message(&markdown("see `https://e.io` and ``a ` www.e.io``\n```\nhttps://e.io\n```"));
}
