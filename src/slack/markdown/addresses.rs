//! Addresses in Markdown as code: to be read and copied, not to be clicked.
//!
//! Only text that is certainly code to every reader of Markdown is left alone. So code blocks are written anew in one
//! form, and a backtick without a partner on its line becomes a look-alike: otherwise code here might be none in Slack.

use super::{
    Link,
    divide::{closes, fence},
};

/// Endings that make a word with dots an address.
const ENDINGS: [&str; 28] = [
    "ai", "app", "at", "biz", "cc", "ch", "co", "com", "de", "dev", "edu", "eu", "fr", "gov", "info", "io", "ly", "me",
    "net", "nl", "online", "org", "ru", "site", "uk", "us", "xyz", "zip",
];

/// The look-alike of a backtick that would begin code.
const NO_BACKTICK: &str = "ˋ";

/// Returns the text with its addresses as code.
pub(super) fn as_code(text: &str) -> String {
    let mut out = Vec::new();
    let mut open: Option<&str> = None;
    for line in text.lines() {
        match (open, fence(line)) {
            (Some(mark), Some(other)) if closes(mark, other, line) => {
                open = None;
                out.push("```".to_owned());
            }
            (Some(_), _) => out.push(line.replace("```", &NO_BACKTICK.repeat(3)).replace("~~~", "∼∼∼")),
            (None, Some(mark)) => {
                let info = line.trim_start()[mark.len()..].split_whitespace().next().unwrap_or_default();
                let info: String = info.chars().filter(char::is_ascii_alphanumeric).collect();
                open = Some(mark);
                out.push(format!("```{info}"));
            }
            (None, None) => {
                let mut shown = String::with_capacity(line.len());
                inline(line, &mut shown, 0);
                out.push(shown);
            }
        }
    }
    if open.is_some() {
        out.push("```".to_owned());
    }
    out.join("\n")
}

/// The depth to which links are searched for in the words of links.
const DEPTH: usize = 8;

/// Appends one line outside of code blocks.
fn inline(line: &str, out: &mut String, depth: usize) {
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if c == '`' {
            rest = code(rest, out);
            continue;
        }
        if let Some(link) = link(rest, depth) {
            while out.ends_with('!') {
                out.pop();
            }
            inline(link.words, out, depth + 1);
            if !link.target.trim().is_empty() {
                out.push_str(" (");
                push_code(link.target, out);
                out.push(')');
            }
            rest = &rest[link.length..];
            continue;
        }
        if let Some((address, length)) = bracketed(rest) {
            push_code(address, out);
            rest = &rest[length..];
            continue;
        }
        let length = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
        if length == 0 {
            match c {
                '(' if out.ends_with(']') => out.push_str(" ("),
                c => out.push(c),
            }
            rest = &rest[c.len_utf8()..];
            continue;
        }
        word(&rest[..length], out);
        rest = &rest[length..];
    }
}

fn link(text: &str, depth: usize) -> Option<Link<'_>> {
    (text.starts_with('[') && depth < DEPTH).then(|| Link::at_start_of(text)).flatten()
}

/// Returns the address of `<address>`, and the length of both with the brackets, in bytes.
fn bracketed(text: &str) -> Option<(&str, usize)> {
    let inside = text.strip_prefix('<')?;
    let end = inside.find(['>', '<', ' ', '|', '`'])?;
    let is_one = inside[end..].starts_with('>') && is_address(&inside[..end]);
    is_one.then(|| (&inside[..end], end + 2))
}

/// Appends a code span that ends on the same line as it is; other backticks become look-alikes. Returns the rest.
fn code<'a>(text: &'a str, out: &mut String) -> &'a str {
    let after = text.trim_start_matches('`');
    let marks = &text[..text.len() - after.len()];
    let mut searched = 0;
    while let Some(at) = after[searched..].find('`').map(|at| at + searched) {
        let behind = after[at..].trim_start_matches('`');
        let length = after.len() - at - behind.len();
        if length == marks.len() && !out.ends_with('\\') {
            if out.ends_with('`') {
                out.push(' ');
            }
            out.push_str(&text[..marks.len() + at + length]);
            return behind;
        }
        searched = at + length;
    }
    out.push_str(&NO_BACKTICK.repeat(marks.len()));
    after
}

/// Returns true if a character may be part of an address. Brackets may not: they end links.
fn is_of_word(c: char) -> bool {
    !(c.is_whitespace() || "`<>\"|[](){}*~".contains(c))
}

/// Appends a word: as code if it is an address, with the marks around it left outside.
fn word(word: &str, out: &mut String) {
    let plain = word.replace('\\', "");
    let inner = plain.trim_matches(|c: char| ".,;:!?'_“”‘’„‹›…&-–—".contains(c));
    let start = plain.find(inner).unwrap_or(0);
    if inner.is_empty() || !is_address(inner) {
        out.push_str(&unentitled(word));
        return;
    }
    out.push_str(&plain[..start]);
    push_code(inner, out);
    out.push_str(&plain[start + inner.len()..]);
}

/// Returns the word without references to other characters, such as `&#58;` for a colon.
fn unentitled(word: &str) -> String {
    const HARMLESS: [&str; 5] = ["amp;", "lt;", "gt;", "quot;", "nbsp;"];
    let mut out = String::with_capacity(word.len());
    for (nth, piece) in word.split('&').enumerate() {
        if nth > 0 {
            let letters = piece.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '#');
            let stands = letters.len() < piece.len() && letters.starts_with(';');
            let harmless = HARMLESS.iter().any(|name| piece.starts_with(name));
            out.push(if stands && !harmless { '＆' } else { '&' });
        }
        out.push_str(piece);
    }
    out
}

fn push_code(address: &str, out: &mut String) {
    if out.ends_with('`') {
        out.push(' ');
    }
    out.push('`');
    out.push_str(address.trim().replace('`', "%60").as_str());
    out.push('`');
}

/// Returns true if any Slack client would make a link of the word.
fn is_address(word: &str) -> bool {
    let lower = word.to_lowercase();
    let schemes = ["mailto:", "javascript:", "data:", "tel:", "sms:", "vbscript:", "www."];
    lower.contains("://") || schemes.iter().any(|scheme| lower.contains(scheme)) || is_mail(&lower) || is_host(&lower)
}

fn is_mail(word: &str) -> bool {
    word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.trim_matches('.').contains('.'))
}

/// Returns true for `example.org`, also with a path or port behind it.
fn is_host(word: &str) -> bool {
    let host = word.split(['/', '?', '#', ':']).next().unwrap_or_default().trim_end_matches('.');
    let ending = host.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_stays_and_what_only_looks_like_it_does_not() {
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
        ] {
            assert_eq!(as_code(written), kept, "{written}");
        }
    }

    #[test]
    fn no_disguise_helps() {
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
