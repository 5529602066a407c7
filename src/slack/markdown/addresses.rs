//! Turns the addresses in Markdown into code spans, so that people can read and copy them but not click them.
//!
//! Only text that every Markdown parser treats as code is left alone. Code blocks are therefore rewritten in one
//! canonical form, and an unpaired backtick is replaced with a look-alike; otherwise Slack might not treat as code what
//! this module does.

use super::{
    Link,
    divide::{closes, fence},
};

/// The top-level domains that make a dotted word an address.
const TOP_LEVEL_DOMAINS: [&str; 28] = [
    "ai", "app", "at", "biz", "cc", "ch", "co", "com", "de", "dev", "edu", "eu", "fr", "gov", "info", "io", "ly", "me",
    "net", "nl", "online", "org", "ru", "site", "uk", "us", "xyz", "zip",
];

/// The look-alike that replaces a backtick which would otherwise begin code.
const BACKTICK_LOOKALIKE: &str = "ˋ";

/// Returns the text with every address outside of code turned into a code span.
pub(super) fn as_code(text: &str) -> String {
    let mut out = Vec::new();
    let mut open: Option<&str> = None;
    // A block in a list is indented. It would end at a line that is less so, and everything after that would not be code.
    let mut indent = "";
    for line in text.lines() {
        match (open, fence(line)) {
            (Some(mark), Some(other)) if closes(mark, other, line) => {
                open = None;
                out.push(format!("{indent}```"));
            }
            (Some(_), _) => {
                let code = line.replace("```", &BACKTICK_LOOKALIKE.repeat(3)).replace("~~~", "∼∼∼");
                let is_inside = code.starts_with(indent) || code.trim().is_empty();
                out.push(if is_inside { code } else { format!("{indent}{}", code.trim_start()) });
            }
            (None, Some(mark)) => {
                let info = line.trim_start()[mark.len()..].split_whitespace().next().unwrap_or_default();
                let info: String = info.chars().filter(char::is_ascii_alphanumeric).collect();
                open = Some(mark);
                indent = indent_of(line);
                out.push(format!("{indent}```{info}"));
            }
            (None, None) => {
                let mut shown = String::with_capacity(line.len());
                push_line(line, &mut shown, 0);
                out.push(shown);
            }
        }
    }
    if open.is_some() {
        out.push(format!("{indent}```"));
    }
    out.join("\n")
}

/// Returns the spaces with which a line begins.
pub(super) fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches(' ').len()]
}

/// The maximum depth of links nested in the text of other links.
const MAX_LINK_DEPTH: usize = 8;

/// Appends a line from outside of code blocks, with its addresses as code spans.
fn push_line(line: &str, out: &mut String, depth: usize) {
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if c == '`' {
            rest = push_code_span(rest, out);
            continue;
        }
        if let Some(link) = link_at_start(rest, depth) {
            while out.ends_with('!') {
                out.pop();
            }
            push_line(link.words, out, depth + 1);
            if !link.target.trim().is_empty() {
                out.push_str(" (");
                push_as_code(link.target, out);
                out.push(')');
            }
            rest = &rest[link.length..];
            continue;
        }
        if let Some((address, length)) = autolink(rest) {
            push_as_code(address, out);
            rest = &rest[length..];
            continue;
        }
        let length = rest.find(|c: char| !is_address_char(c)).unwrap_or(rest.len());
        if length == 0 {
            match c {
                '(' if out.ends_with(']') => out.push_str(" ("),
                c => out.push(c),
            }
            rest = &rest[c.len_utf8()..];
            continue;
        }
        push_word(&rest[..length], out);
        rest = &rest[length..];
    }
}

fn link_at_start(text: &str, depth: usize) -> Option<Link<'_>> {
    (text.starts_with('[') && depth < MAX_LINK_DEPTH).then(|| Link::at_start_of(text)).flatten()
}

/// Returns the address of an autolink (`<address>`) at the start of the text, and the autolink's length in bytes.
fn autolink(text: &str) -> Option<(&str, usize)> {
    let inside = text.strip_prefix('<')?;
    let end = inside.find(['>', '<', ' ', '|', '`'])?;
    let is_autolink = inside[end..].starts_with('>') && is_address(&inside[..end]);
    is_autolink.then(|| (&inside[..end], end + 2))
}

/// Appends the code span at the start of the text unchanged, or look-alikes if its backticks are unpaired. Returns the
/// text after it.
fn push_code_span<'a>(text: &'a str, out: &mut String) -> &'a str {
    let after = text.trim_start_matches('`');
    let marks = &text[..text.len() - after.len()];
    let mut searched = 0;
    while let Some(at) = after[searched..].find('`').map(|at| at + searched) {
        let after_span = after[at..].trim_start_matches('`');
        let length = after.len() - at - after_span.len();
        if length == marks.len() && !out.ends_with('\\') {
            if out.ends_with('`') {
                out.push(' ');
            }
            out.push_str(&text[..marks.len() + at + length]);
            return after_span;
        }
        searched = at + length;
    }
    out.push_str(&BACKTICK_LOOKALIKE.repeat(marks.len()));
    after
}

/// Returns true if a character may be part of an address. Brackets may not, because they delimit links.
fn is_address_char(c: char) -> bool {
    !(c.is_whitespace() || "`<>\"|[](){}*~".contains(c))
}

/// Appends a word, as a code span if it is an address. Punctuation around the address stays outside of the span.
fn push_word(word: &str, out: &mut String) {
    let plain = word.replace('\\', "");
    let inner = plain.trim_matches(|c: char| ".,;:!?'_“”‘’„‹›…&-–—".contains(c));
    let start = plain.find(inner).unwrap_or(0);
    if inner.is_empty() || !is_address(inner) {
        out.push_str(&without_entities(word));
        return;
    }
    out.push_str(&plain[..start]);
    push_as_code(inner, out);
    out.push_str(&plain[start + inner.len()..]);
}

/// Returns the word with its HTML entities disabled, such as `&#58;` for a colon; a few common ones are kept.
fn without_entities(word: &str) -> String {
    const KEPT_ENTITIES: [&str; 5] = ["amp;", "lt;", "gt;", "quot;", "nbsp;"];
    let mut out = String::with_capacity(word.len());
    for (nth, piece) in word.split('&').enumerate() {
        if nth > 0 {
            let after_name = piece.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '#');
            let is_entity = after_name.len() < piece.len() && after_name.starts_with(';');
            let is_kept = KEPT_ENTITIES.iter().any(|name| piece.starts_with(name));
            out.push(if is_entity && !is_kept { '＆' } else { '&' });
        }
        out.push_str(piece);
    }
    out
}

fn push_as_code(address: &str, out: &mut String) {
    if out.ends_with('`') {
        out.push(' ');
    }
    out.push('`');
    out.push_str(address.trim().replace('`', "%60").as_str());
    out.push('`');
}

/// Returns true if any Slack client would turn the word into a link.
fn is_address(word: &str) -> bool {
    let lower = word.to_lowercase();
    let schemes = ["mailto:", "javascript:", "data:", "tel:", "sms:", "vbscript:", "www."];
    lower.contains("://") || schemes.iter().any(|scheme| lower.contains(scheme)) || is_email(&lower) || is_host(&lower)
}

fn is_email(word: &str) -> bool {
    word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.trim_matches('.').contains('.'))
}

/// Returns true for a host name such as `example.org`, with or without a port or path.
fn is_host(word: &str) -> bool {
    let host = word.split(['/', '?', '#', ':']).next().unwrap_or_default().trim_end_matches('.');
    let ending = host.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| TOP_LEVEL_DOMAINS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_code_is_kept_and_apparent_code_is_not() {
        for (written, kept) in [
            ("`https://e.io` stays", "`https://e.io` stays"),
            ("``a ` https://e.io`` stays", "``a ` https://e.io`` stays"),
            ("`open https://e.io", "ˋopen `https://e.io`"),
            ("\\`https://e.io\\`", "\\ˋ`https://e.io`ˋ"),
            ("`a`https://e.io`b`", "`a` `https://e.io` `b`"),
            ("```js x\nhttps://e.io\n```", "```js\nhttps://e.io\n```"),
            ("````\n```\n````\nhttps://e.io", "```\nˋˋˋ\n```\n`https://e.io`"),
            ("~~~\n```\nhttps://e.io", "```\nˋˋˋ\nhttps://e.io\n```"),
            ("```not a fence``` https://e.io", "```not a fence``` `https://e.io`"),
            ("1. one\n   ```sh\n   ls\n     -l\n   ```\n2. two", "1. one\n   ```sh\n   ls\n     -l\n   ```\n2. two"),
            ("- one\n  ```\n  ls\nhttps://e.io\n  ```", "- one\n  ```\n  ls\n  https://e.io\n  ```"),
            ("- one\n  ```\n\n  ls", "- one\n  ```\n\n  ls\n  ```"),
        ] {
            assert_eq!(as_code(written), kept, "{written}");
        }
    }

    #[test]
    fn disguised_addresses_are_recognised() {
        for (written, kept) in [
            ("https\\://e.io", "`https://e.io`"),
            ("https&#58;//e.io", "https＆#58;//e.io"),
            ("&lt;b&gt; R&D", "&lt;b&gt; R&D"),
            ("[a](//e.io", "[a] (//e.io"),
            ("[a\\](https://e.io)", "[a\\] (`https://e.io`)"),
            ("HTTPS://E.IO", "`HTTPS://E.IO`"),
            ("e.io/path?x=1", "`e.io/path?x=1`"),
            ("(see “www.e.io”)", "(see “`www.e.io`”)"),
            ("<ana@e.io>", "`ana@e.io`"),
            ("_https://e.io_", "_`https://e.io`_"),
            ("[a](b`c)", "a (`b%60c`)"),
        ] {
            assert_eq!(as_code(written), kept, "{written}");
        }
    }
}
