//! Draws text as mrkdwn or as the cells of a table.

use countersign_core::reply::{Span, Text};
use countersign_slack::{
    blocks,
    mrkdwn::{self, Mrkdwn, cut, length, utc, web_address},
};
use serde_json::{Value, json};

/// The length above which a span loses its formatting, since it may have to be split.
const MAX_FORMATTED_CHARS: usize = 500;

/// Draws a text as mrkdwn, split into pieces of at most `limit` characters. `limit` must be at
/// least 2,600, so that a span of the maximum length fits with all its characters escaped.
pub(super) fn paragraphs(text: &Text, limit: usize) -> Vec<String> {
    let mut done = Vec::new();
    let mut current = Mrkdwn::new(limit);
    for span in split_spans(text) {
        let longer = push(current.clone(), &span);
        current = if longer.is_cut() {
            done.push(current.finish());
            push(Mrkdwn::new(limit), &span)
        } else {
            longer
        };
    }
    done.push(current.finish());
    done.retain(|piece| !piece.trim().is_empty());
    done
}

/// Appends a text to `line` as mrkdwn, cut if it does not fit.
pub(super) fn write(mut line: Mrkdwn, text: &Text) -> Mrkdwn {
    for span in &text.0 {
        line = push(line, span);
    }
    line
}

/// Returns the text on one line, since a value must not look like another line of a card.
pub(super) fn one_line(text: &Text) -> Text {
    let flat = |words: &String| words.replace("\r\n", "\n").replace(['\n', '\r', '\u{2028}', '\u{2029}'], " ↵ ");
    Text(
        text.0
            .iter()
            .map(|span| match span {
                Span::Plain(words) => Span::Plain(flat(words)),
                Span::Bold(words) => Span::Bold(flat(words)),
                Span::Italic(words) => Span::Italic(flat(words)),
                Span::Code(words) => Span::Code(flat(words)),
                Span::Quote(words) => Span::Plain(flat(words)),
                Span::Link { url, text } => Span::Link { url: url.clone(), text: flat(text) },
                Span::Person(_) | Span::Name(_) | Span::Group(_) | Span::Channel(_) | Span::Moment(_) => span.clone(),
            })
            .collect(),
    )
}

/// The maximum length of a name in a title or a list, in characters.
const MAX_NAME_CHARS: usize = 80;

/// Returns the text with its bold spans, which are names, shortened for a list.
pub(super) fn with_short_names(text: &Text) -> Text {
    let short = |span: &Span| match span {
        Span::Bold(name) => Span::Bold(cut(name, MAX_NAME_CHARS)),
        other => other.clone(),
    };
    Text(text.0.iter().map(short).collect())
}

/// Returns a title with the names in its quotation marks shortened.
pub(super) fn with_short_quotes(title: &str) -> String {
    let mut out = String::with_capacity(title.len());
    let mut rest = title;
    while let Some((before, after)) = rest.split_once('“') {
        out.push_str(before);
        out.push('“');
        // A name may itself contain quotation marks. If there is only one name, the last mark ends it.
        let end = if after.contains('“') { after.find('”') } else { after.rfind('”') };
        let name = &after[..end.unwrap_or(after.len())];
        out.push_str(&cut(name, MAX_NAME_CHARS));
        rest = &after[name.len()..];
    }
    out.push_str(rest);
    cut(&out, 3 * MAX_NAME_CHARS)
}

/// Returns the text with its plain spans in bold.
pub(super) fn in_bold(text: Text) -> Text {
    Text(
        text.0
            .into_iter()
            .map(|span| match span {
                Span::Plain(words) => Span::Bold(words),
                other => other,
            })
            .collect(),
    )
}

/// Draws a text as a cell of at most `limit` characters.
pub(super) fn cell(text: &Text, limit: usize) -> Value {
    let words: String = cut(&text.words(), limit);
    if words.trim().is_empty() {
        return blocks::cell("–");
    }
    let only_words = text.0.iter().all(|span| matches!(span, Span::Plain(_)));
    if only_words || length(&text.words()) > limit {
        return blocks::cell(&visible(&words));
    }
    let elements: Vec<_> = text.0.iter().filter_map(element).collect();
    if elements.is_empty() { blocks::cell("–") } else { blocks::rich_cell(&elements) }
}

/// Returns a span as an element of rich text, where nothing is parsed; `None` if it is empty.
fn element(span: &Span) -> Option<Value> {
    let text = |words: &str, style: Option<&str>| {
        let mut element = json!({ "type": "text", "text": visible(words) });
        if let Some(style) = style {
            element["style"] = json!({ style: true });
        }
        (!words.is_empty()).then_some(element)
    };
    match span {
        Span::Plain(words) | Span::Quote(words) => text(words, None),
        Span::Bold(words) => text(words, Some("bold")),
        Span::Italic(words) => text(words, Some("italic")),
        Span::Code(words) | Span::Group(words) => text(words, Some("code")),
        Span::Person(user) | Span::Name(user) => match user.key() {
            Some(_) => text(&Text(vec![span.clone()]).words(), None),
            None => Some(json!({ "type": "user", "user_id": user })),
        },
        Span::Channel(channel) => Some(json!({ "type": "channel", "channel_id": channel })),
        Span::Moment(at) => Some(json!({ "type": "date", "timestamp": at.seconds(),
            "format": "{date_short_pretty} {time}", "fallback": utc(*at) })),
        Span::Link { url, text: words } => match web_address(url) {
            Some(url) => Some(json!({ "type": "link", "url": url, "text": mrkdwn::line(words, 200) })),
            None => text(words, None),
        },
    }
}

/// Returns the words without control characters and reordering marks. They are never empty.
fn visible(words: &str) -> String {
    let kept: String = words.chars().filter(|c| mrkdwn::is_visible(*c)).collect();
    if kept.is_empty() { "–".to_owned() } else { kept }
}

fn push(line: Mrkdwn, span: &Span) -> Mrkdwn {
    match span {
        Span::Plain(words) | Span::Quote(words) => line.plain(words),
        Span::Bold(words) => line.bold(words),
        Span::Italic(words) => line.italic(words),
        Span::Code(words) | Span::Group(words) => line.code(words),
        Span::Person(user) | Span::Name(user) => line.person(user),
        Span::Channel(channel) => line.channel(channel),
        Span::Moment(at) => line.moment(*at),
        Span::Link { url, text } => line.link(url, text),
    }
}

/// Returns the spans, with long ones split so that each fits on an empty line.
fn split_spans(text: &Text) -> Vec<Span> {
    let mut spans = Vec::new();
    for span in &text.0 {
        match span {
            Span::Plain(words) | Span::Bold(words) | Span::Italic(words) | Span::Code(words) | Span::Quote(words)
                if length(words) > MAX_FORMATTED_CHARS =>
            {
                spans.extend(pieces(words).into_iter().map(Span::Plain));
            }
            Span::Link { url, .. } if web_address(url).is_none() => {
                let text = Text(vec![Span::Plain(text_of_link(span))]);
                spans.extend(split_spans(&text));
            }
            other => spans.push(other.clone()),
        }
    }
    spans
}

/// Returns a link without a valid address as plain text.
fn text_of_link(span: &Span) -> String {
    match span {
        Span::Link { url, text } => format!("{text} ({url})"),
        _ => String::new(),
    }
}

/// Splits the words into pieces of at most [`MAX_FORMATTED_CHARS`], after a line or a word if
/// possible.
pub(super) fn pieces(words: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut piece_chars = 0;
    for word in words.split_inclusive([' ', '\n']) {
        if piece_chars + length(word) > MAX_FORMATTED_CHARS && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            piece_chars = 0;
        }
        for c in word.chars() {
            if piece_chars + c.len_utf16() > MAX_FORMATTED_CHARS {
                pieces.push(std::mem::take(&mut piece));
                piece_chars = 0;
            }
            piece.push(c);
            piece_chars += c.len_utf16();
        }
    }
    pieces.push(piece);
    pieces
}
