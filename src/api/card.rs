//! The card of a change that a program asked for.
//!
//! Whatever the program wrote is plain text behind a fixed label, with hidden characters made visible. The values are read from
//! the payload, and the card counts those that it does not list.

use countersign_core::{
    ids::UserId,
    reply::{Card, Fact, KEY_MARK, Text},
};
use countersign_graph::digest::Digest;
use countersign_slack::mrkdwn;
use serde_json::Value;

use super::{
    asked::{Asked, Field},
    outside_change::OutsideChange,
};

/// The longest pointer in a label, in characters.
const MAX_POINTER: usize = 60;

/// Returns the card.
pub(super) fn card(change: &OutsideChange) -> Card {
    let OutsideChange { key, asked, before, .. } = change;
    let Asked { title, reason, change: asked_change, links, .. } = asked;
    let mut facts = vec![Fact::new("Title", plain(title))];
    facts.extend(
        reason
            .as_deref()
            .filter(|reason| !reason.trim().is_empty())
            .map(|reason| Fact::new("Reason given", plain(reason))),
    );
    facts.extend(asked_change.fields.iter().map(|field| fact(field, &asked_change.payload)));
    for link in links {
        let host =
            url::Url::parse(&link.url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
        facts.push(Fact::new("Link", Text::new().link(&link.url, plain(&link.label)).plain(format!(" ({host})"))));
    }
    let asker = || Text::new().person(UserId::of_key(key));
    let mut notes = Vec::new();
    if asked_change.fields.iter().any(|field| field.before.is_some()) {
        notes.push(Text::from("The values before “→” are as stated by ").join(asker()).plain("."));
    }
    notes.extend(not_listed(&asked_change.fields, &asked_change.payload));
    notes.push(asker().plain(" is an API key, and carries this out itself. Who started this is not known."));
    let mut warnings: Vec<Text> = before.iter().cloned().collect();
    warnings.retain(|warning| !warning.words().is_empty());
    let act = act(change);
    Card {
        facts,
        warnings,
        notes,
        ..Card::new(
            format!("{KEY_MARK}{key} asks: {act}?"),
            "Approve",
            format!("{KEY_MARK}{key} reports: {act} is done."),
        )
    }
}

/// Returns the change in a few words: `deploy “web/production”`.
pub(super) fn act(change: &OutsideChange) -> String {
    let asked = &change.asked.change;
    format!("{} “{}”", asked.kind, plain(&asked.target))
}

fn fact(field: &Field, payload: &Value) -> Fact {
    let Field { label, pointer, before } = field;
    let label = format!("{} ({})", plain(label), mrkdwn::cut(&plain(pointer), MAX_POINTER));
    let after = payload.pointer(pointer).map(value).unwrap_or_default();
    match before {
        Some(before) => Fact::change(label, plain(before), after),
        None => Fact::new(label, after),
    }
}

/// Returns a value for people. A text that looks like another value is in quotes.
fn value(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() || serde_json::from_str::<Value>(text).is_ok() => {
            format!("\"{}\"", plain(text))
        }
        Value::String(text) => plain(text),
        other => plain(&Digest::canonical_text(other).unwrap_or_else(|| other.to_string())),
    }
}

/// Returns the line about the values of the payload that no field shows.
fn not_listed(fields: &[Field], payload: &Value) -> Option<Text> {
    let shown: Vec<&str> = fields.iter().map(|field| field.pointer.as_str()).collect();
    let line = match hidden_leaves(payload, "", &shown) {
        0 => return None,
        1 => Text::from("1 more value is not listed. "),
        more => Text::from(format!("{more} more values are not listed. ")),
    };
    Some(line.bold("Show all").plain(" shows the whole payload."))
}

/// Counts the values without parts that are at none of these places, nor below one of them.
fn hidden_leaves(value: &Value, at: &str, shown: &[&str]) -> usize {
    if shown.contains(&at) {
        return 0;
    }
    let place = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().map(|(name, member)| hidden_leaves(member, &place(name), shown)).sum()
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().map(|(nth, item)| hidden_leaves(item, &place(&nth.to_string()), shown)).sum()
        }
        // Of an empty payload, there is nothing to list.
        Value::Object(_) if at.is_empty() => 0,
        _ => 1,
    }
}

/// Returns the text of a program as people may see it: hidden characters, and those that change the order, are replaced
/// by a visible one, and no emoji appears in the place of a code.
pub(super) fn plain(text: &str) -> String {
    let shown: String = text.chars().map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect();
    without_emoji_codes(&shown)
}

fn is_hidden(c: char) -> bool {
    !mrkdwn::is_visible(c)
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Replaces the colons around what Slack would draw as an emoji with look-alikes.
fn without_emoji_codes(text: &str) -> String {
    let is_of_code = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_+-'".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(':') {
        out.push_str(before);
        let name = after.find(|c| !is_of_code(c)).map_or("", |end| &after[..end]);
        if !name.is_empty() && after[name.len()..].starts_with(':') {
            out.extend(["꞉", name, "꞉"]);
            rest = &after[name.len() + 1..];
        } else {
            out.push(':');
            rest = after;
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_program_wrote_is_shown_as_it_is() {
        assert_eq!(plain("Deploy \u{202e}evorppa"), "Deploy \u{fffd}evorppa");
        assert_eq!(plain("a\u{200b}b\u{7}c\u{200d}d"), "a\u{fffd}b\u{fffd}c\u{fffd}d");
        assert_eq!(plain(":white_check_mark: Approved"), "꞉white_check_mark꞉ Approved");
        assert_eq!(plain("at 10:30, 12:45; a::b, x:y"), "at 10:30, 12:45; a::b, x:y");
        assert_eq!(plain(":100:"), "꞉100꞉");
        assert_eq!(value(&json!("true")), "\"true\"");
        assert_eq!(value(&json!(true)), "true");
        assert_eq!(value(&json!("1.4.2")), "1.4.2");
        assert_eq!(value(&json!({ "b": 1, "a": [] })), r#"{"a":[],"b":1}"#);
    }

    #[test]
    fn values_that_no_field_shows_are_counted() {
        let payload = json!({ "a": 1, "b": { "c": [1, 2, {}], "d~/": null }, "e": {} });
        let count = |shown: &[&str]| hidden_leaves(&payload, "", shown);
        assert_eq!(count(&[]), 6);
        assert_eq!(count(&["/a", "/b/c"]), 2);
        assert_eq!(count(&["/b/d~0~1", "/b/c/0", "/b/c/1"]), 3);
        assert_eq!(count(&["/a", "/b", "/e"]), 0);
        assert_eq!(count(&[""]), 0);
        assert_eq!(hidden_leaves(&json!({}), "", &[]), 0);
    }
}
