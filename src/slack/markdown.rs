//! Sanitises the Markdown of a model for a `markdown` block.
//!
//! In such a block Slack renders Markdown, but also its own tokens, and turns anything that looks like an address into
//! a link. A model may repeat text that a user wrote, such as a name, so its text must not contain anything
//! clickable: `<!…>`, `<@…>` and `<#…>` are broken, and every address, including that of a link, becomes code
//! ([`addresses`]). Formatting is kept.

mod addresses;
mod divide;

pub use divide::divide;

use super::mrkdwn::{is_visible, length};

/// The maximum number of characters in the markdown blocks of one message.
pub const MAX_CHARS: usize = 12_000;

/// Returns the text without broadcasts, mentions and links. Text far beyond the length of a message is dropped.
pub fn harmless(markdown: &str) -> String {
    let visible: String = markdown.chars().filter(|c| is_visible(*c)).take(8 * MAX_CHARS).collect();
    let text = without_reference_links(&addresses::as_code(&without_tokens(&visible)));
    let text = without_tokens(&text); // removing other text may have joined the halves of a token
    text.trim().to_owned()
}

/// Truncates a sanitised text to `limit`, and closes a code block that is open at the end.
pub fn cut(text: &str, limit: usize) -> String {
    if length(text) <= limit {
        return text.to_owned();
    }
    const CLOSING_FENCE: &str = "\n```";
    let mut kept = super::mrkdwn::cut(text, limit.saturating_sub(length(CLOSING_FENCE)));
    if divide::open_fence(&kept.lines().collect::<Vec<_>>()).is_some() {
        return kept + CLOSING_FENCE;
    }
    // A code span that is cut in half would no longer be code, and its content could be a link.
    let last_line = kept.rfind('\n').map_or(0, |at| at + 1);
    while addresses::as_code(&kept[last_line..]) != kept[last_line..]
        && let Some(at) = kept.rfind('`').filter(|at| *at >= last_line)
    {
        kept.truncate(at);
        kept.push('…');
    }
    kept
}

/// Returns the text without its formatting, for notifications, which show none. The text is not sanitised.
pub fn plain(markdown: &str) -> String {
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in markdown.lines() {
        match line.trim_start().starts_with("```") {
            true => fenced = !fenced,
            false if fenced => lines.push(line.to_owned()),
            false => lines.push(plain_line(line)),
        }
    }
    lines.join("\n")
}

fn plain_line(line: &str) -> String {
    let content = line.trim();
    if is_thematic_break(content) {
        return String::new();
    }
    let heading = content.trim_start_matches('#');
    let content = if heading.starts_with(' ') { heading.trim_start() } else { content };
    match ["- ", "* ", "+ "].into_iter().find_map(|bullet| content.strip_prefix(bullet)) {
        Some(point) => {
            let indent = &line[..line.len() - line.trim_start().len()];
            format!("{indent}• {}", plain_words(point))
        }
        None => plain_words(content),
    }
}

/// Returns true for a line that Markdown draws as a rule: `***`.
fn is_thematic_break(line: &str) -> bool {
    let marks = || line.chars().filter(|c| !c.is_whitespace());
    let first = marks().next().filter(|c| "*-_".contains(*c));
    first.is_some_and(|first| marks().count() >= 3 && marks().all(|c| c == first))
}

fn plain_words(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let (mut rest, mut previous, mut code) = (line, None, false);
    while let Some(c) = rest.chars().next() {
        let of_image = rest.strip_prefix('!').filter(|_| !code);
        let from_bracket = of_image.unwrap_or(rest);
        let link = (from_bracket.starts_with('[') && !code).then(|| Link::at_start_of(from_bracket)).flatten();
        if let Some(link) = link {
            out.push_str(&plain_words(link.words));
            previous = out.chars().last();
            rest = &from_bracket[link.length..];
            continue;
        }
        // Marks that follow each other are one, and none of them is left over.
        let after = if "*_~".contains(c) && !code { rest.trim_start_matches(c) } else { &rest[c.len_utf8()..] };
        let marks = &rest[..rest.len() - after.len()];
        match c {
            '`' => code = !code,
            '*' | '_' if !code && is_formatting(previous, after.chars().next()) => {}
            '~' if !code && marks.len() == 2 && is_formatting(previous, after.chars().next()) => {}
            _ => {
                out.push_str(marks);
                previous = Some(c);
            }
        }
        rest = after;
    }
    out
}

/// Returns true if an asterisk or underscore between these characters is formatting. If it stands alone or inside a
/// word, it is not.
fn is_formatting(previous: Option<char>, next: Option<char>) -> bool {
    let blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let alone = blank(previous) && blank(next);
    let within = inside(previous) && inside(next);
    !(alone || within)
}

/// Breaks Slack's own tokens and labelled links by replacing the opening `<` with a look-alike.
fn without_tokens(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let next = characters.peek().map(|(_, c)| *c);
        let broken = c == '<' && (matches!(next, Some('!' | '@' | '#')) || is_labelled_link(&text[at + 1..]));
        out.push(if broken { '‹' } else { c });
    }
    out
}

/// Returns true if the text begins with the rest of a labelled link, `address|words>`.
fn is_labelled_link(text: &str) -> bool {
    let scheme = text.bytes().take(16).take_while(|b| b.is_ascii_alphanumeric()).count();
    let inside = || text.split(['>', '\n']).next().unwrap_or_default();
    text[scheme..].starts_with(':') && inside().contains('|')
}

/// Turns definitions of reference links (`[1]: https://…`) into text, so that `[words][1]` is not a link.
fn without_reference_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (nth, piece) in text.split("]:").enumerate() {
        if nth > 0 {
            out.push_str(if piece.contains([':', '/']) { "] :" } else { "]:" }); // an address may follow
        }
        out.push_str(piece);
    }
    out
}

/// An inline link in Markdown.
struct Link<'a> {
    /// The text.
    words: &'a str,
    /// The address, without a title.
    target: &'a str,
    /// The length of the whole link, in bytes.
    length: usize,
}

impl<'a> Link<'a> {
    /// Returns the link that begins with the first character, a `[`.
    fn at_start_of(text: &'a str) -> Option<Self> {
        let words_end = closing(text, b'[', b']')?;
        let after = &text[words_end + 1..];
        if !after.starts_with('(') {
            return None;
        }
        let inside_end = closing(after, b'(', b')')?;
        let inside = &after[1..inside_end];
        let trimmed = inside.trim();
        let target = match trimmed.strip_prefix('<') {
            Some(bracketed) => bracketed.split('>').next().unwrap_or_default(),
            None => trimmed.split_whitespace().next().unwrap_or_default(),
        };
        Some(Self { words: &text[1..words_end], target, length: words_end + 1 + inside_end + 1 })
    }
}

/// Returns the position of the bracket that closes the one at the start of `text`. The search is limited to 4096 bytes,
/// so that a text with many unclosed brackets does not take long.
fn closing(text: &str, open: u8, close: u8) -> Option<usize> {
    let mut depth = 0_usize;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().take(4096) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            _ if byte == open => depth += 1,
            _ if byte == close => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn formatting_is_kept_and_tokens_and_links_are_broken() {
        for (written, kept) in [
            ("**bold** and `a < b`", "**bold** and `a < b`"),
            ("a <!channel> b <@U1> <#C1|x>", "a ‹!channel> b ‹@U1> ‹#C1|x>"),
            ("<!<!here>channel>", "‹!‹!here>channel>"),
            ("<\u{200b}!here>", "‹!here>"),
            ("[the page](https://e.io/a)", "the page (`https://e.io/a`)"),
            ("[e.io](https://e.io/a \"title\")", "`e.io` (`https://e.io/a`)"),
            ("[https://a.io](https://b.io/x)", "`https://a.io` (`https://b.io/x`)"),
            ("[**a.io**](<https://b.io/x>)", "**`a.io`** (`https://b.io/x`)"),
            ("![chart](https://b.io/x)", "chart (`https://b.io/x`)"),
            ("[click](javascript:alert(1))", "click (`javascript:alert(1)`)"),
            ("[[https://a.io](https://b.io)](https://a.io)", "`https://a.io` (`https://b.io`) (`https://a.io`)"),
            ("<https://b.io|https://a.io>", "‹`https://b.io`|`https://a.io`>"),
            ("see <https://e.io>.", "see `https://e.io`."),
            ("see https://e.io/a_b, www.e.io and ana@e.io!", "see `https://e.io/a_b`, `www.e.io` and `ana@e.io`!"),
            ("[a.io][1]\n\n[1]: https://b.io", "[`a.io`][1]\n\n[1] : `https://b.io`"),
            ("array[0]: 1 and [x", "array[0]: 1 and [x"),
            ("[a]: /b", "[a] : /b"),
            ("[[<]()!everyone>", "[‹!everyone>"),
            ("version 2.5, e.g. 3.1 or assign-prog.v2", "version 2.5, e.g. 3.1 or assign-prog.v2"),
        ] {
            assert_eq!(harmless(written), kept, "{written}");
        }
    }

    #[test]
    fn plain_text_has_no_formatting() {
        for (written, plain_words) in [
            ("*A/B testing* compares **two** _versions_.", "A/B testing compares two versions."),
            (
                "## Next\n- `area_model` at 2 * 3\n* see [the page](https://e.io)",
                "Next\n• area_model at 2 * 3\n• see the page",
            ),
            ("```\na * b\n```\ndone", "a * b\ndone"),
            ("site_a and `*x*`, #general", "site_a and *x*, #general"),
            ("~~gone~~ *** ![pic](https://e.io/a.png)", "gone *** pic"),
            ("***both*** and __bold__ at ~5 ms, 2 ** 3", "both and bold at ~5 ms, 2 ** 3"),
            ("one\n***\ntwo", "one\n\ntwo"),
            ("- a\n  - `b`\n  - c", "• a\n  • b\n  • c"),
            ("[![pic](https://e.io/a.png)](https://e.io) [a](https://e.io)b", "pic ab"),
        ] {
            assert_eq!(plain(written), plain_words);
        }
    }

    #[test]
    fn a_long_text_is_truncated_and_its_code_block_closed() {
        let text = cut(&harmless(&format!("see\n```\n{}", "x".repeat(100))), 50);
        assert!(text.ends_with("…\n```"), "{text}");
        assert!(length(&text) <= 50);
        assert_eq!(cut(&harmless("see https://e.io/a/long/path and more words"), 20), "see …");
        let inline = format!("```no block``` {}", "x".repeat(100));
        assert_eq!(cut(&harmless(&inline), 30), format!("```no block``` {}…", "x".repeat(10)), "nothing to close");
    }

    proptest! {
        #[test]
        fn plain_words_are_kept_whatever_the_marks(words in "[a-z]{1,6}( [a-z]{1,6}){0,4}", mark in "[*]{1,3}|_{1,3}|~~|") {
            prop_assert_eq!(plain(&format!("{mark}{words}{mark}")), words);
        }

        #[test]
        fn no_text_gets_a_mention_through(text in any::<String>(), odd in "[<>@!#|\\[\\]():/a-z \n`]{0,120}") {
            for text in [text, odd] {
                let kept = cut(&harmless(&text), 100);
                for token in ["<!", "<@", "<#"] {
                    prop_assert!(!kept.contains(token), "{kept}");
                }
                prop_assert!(length(&kept) <= 100);
            }
        }
    }
}
