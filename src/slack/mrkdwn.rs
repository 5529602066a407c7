//! Writes Slack's mrkdwn so that text from outside is shown literally.
//!
//! [`Mrkdwn`] builds a text up to a limit. Text is escaped before it is counted, and truncated at a character boundary;
//! a mention, time or link is appended as a whole or not at all. Lengths are counted in UTF-16 units, the strictest
//! possible meaning of “characters” in Slack's limits.
//!
//! Escaping `&`, `<` and `>` prevents mentions, broadcasts and forged links. As formatting, `*`, `_`, `~` and backticks
//! would disappear from the text that a person approves, so they are replaced with look-alikes where they would begin a
//! format.

use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, UserId},
    reply::KEY_MARK,
};
use url::Url;

/// The mark at the place where a text was truncated.
const CUT_MARK: char = '…';

/// A mrkdwn text that is being built.
#[derive(Clone, Debug)]
pub struct Mrkdwn {
    text: String,
    length: usize,
    limit: usize,
    cut: bool,
    previous: Option<char>,
}

impl Mrkdwn {
    /// Creates an empty text with a maximum length of `limit`.
    pub fn new(limit: usize) -> Self {
        Self { text: String::new(), length: 0, limit, cut: false, previous: None }
    }

    /// Appends plain text.
    pub fn plain(mut self, words: &str) -> Self {
        self.push_words(words, |c| c, true);
        self
    }

    /// Appends text inside a code block. Only backticks become look-alikes.
    pub fn verbatim(mut self, words: &str) -> Self {
        self.push_words(words, |c| if c == '`' { look_alike(c) } else { c }, false);
        self
    }

    /// Appends bold text, on one line.
    pub fn bold(self, words: &str) -> Self {
        self.wrapped(words, "*", &['*'])
    }

    /// Appends italic text, on one line.
    pub fn italic(self, words: &str) -> Self {
        self.wrapped(words, "_", &[])
    }

    /// Appends a code span, on one line. Backticks inside become look-alikes, since Slack has no way to escape them.
    pub fn code(self, words: &str) -> Self {
        self.wrapped(words, "`", &['`'])
    }

    /// Appends a mention of a person, which notifies them, or the name of an API key with its mark.
    pub fn person(self, user: &UserId) -> Self {
        if let Some(key) = user.key() {
            return self.plain(KEY_MARK).code(key);
        }
        let id = user.as_str();
        if is_id(id) { self.push_token(&format!("<@{id}>")) } else { self.plain("@").plain(id) }
    }

    /// Appends a channel. Slack shows its name to people who have access to it.
    pub fn channel(self, channel: &ChannelId) -> Self {
        let id = channel.as_str();
        let is_id = (1..=40).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric());
        if is_id { self.push_token(&format!("<#{id}>")) } else { self.plain("#").plain(id) }
    }

    /// Appends a time, which is shown in the reader's time zone.
    pub fn moment(self, at: Timestamp) -> Self {
        self.push_token(&format!("<!date^{}^{{date_short_pretty}} {{time}}|{}>", at.seconds(), utc(at)))
    }

    /// Appends a link with its text. If the address is not `http` or `https`, the text and the address are appended
    /// instead.
    pub fn link(self, url: &str, words: &str) -> Self {
        let Some(url) = web_address(url) else { return self.plain(words).plain(" (").plain(url).plain(")") };
        let mut label = Mrkdwn::new(200);
        label.push_words(words, one_line, true);
        if label.text.is_empty() {
            return self.push_token(&format!("<{}>", escape(&url)));
        }
        self.push_token(&format!("<{}|{}>", escape(&url), label.text.replace('|', "∣")))
    }

    /// Appends text that is already mrkdwn. It must not come from outside.
    pub fn raw(self, ours: &str) -> Self {
        self.push_token(ours)
    }

    /// Returns the remaining length.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.length)
    }

    /// Returns true if the text was truncated.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns true if the text is empty or consists of white space.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        self.text
    }

    /// Appends text between two marks, on one line. The characters `inside` are replaced with look-alikes. If the text
    /// is blank, nothing is appended.
    fn wrapped(mut self, words: &str, mark: &str, inside: &[char]) -> Self {
        let words = words.trim();
        if words.is_empty() {
            return self;
        }
        if self.room() < 2 * length(mark) + 2 {
            return self.mark_full();
        }
        self.append(mark);
        self.limit -= length(mark);
        let was_cut = std::mem::take(&mut self.cut);
        self.previous = None;
        let map = |c| if inside.contains(&c) { look_alike(c) } else { one_line(c) };
        self.push_words(words, map, mark != "`");
        self.cut |= was_cut;
        self.limit += length(mark);
        self.append(mark);
        self
    }

    /// Appends a token as a whole, or marks the text as truncated if it does not fit.
    fn push_token(mut self, token: &str) -> Self {
        if self.cut || length(token) > self.room() {
            return self.mark_full();
        }
        self.append(token);
        self
    }

    /// Marks the text as truncated. Nothing can be appended afterwards.
    fn mark_full(mut self) -> Self {
        if !self.cut && self.room() > 0 {
            self.append(&CUT_MARK.to_string());
        }
        self.cut = true;
        self
    }

    /// Appends text, mapped and escaped. If `formats` is true, characters that would begin a format become look-alikes.
    fn push_words(&mut self, words: &str, map: impl Fn(char) -> char, formats: bool) {
        let mut buffer = [0; 4];
        let mut begun = None;
        let mut rest = words;
        while !self.cut {
            rest = self.push_letters(rest);
            let mut characters = rest.char_indices().filter(|(_, c)| is_visible(*c));
            let Some((start, c)) = characters.next() else { return };
            let next = characters.next().map(|(_, next)| map(next));
            rest = &rest[start + c.len_utf8()..];
            let c = map(c);
            let begins = formats && begins_format(self.previous, c, next);
            let ends = begun == Some(c); // replaced as well, since it would look odd beside a look-alike
            if begins || ends {
                begun = begins.then_some(c);
            }
            let c = if begins || ends { look_alike(c) } else { c };
            let piece = match c {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                c => c.encode_utf8(&mut buffer),
            };
            // Unless this is the last character, room is kept for the mark of truncation.
            let size = length(piece);
            if size + usize::from(next.is_some()) > self.room() {
                if self.room() > 0 {
                    self.append(&CUT_MARK.to_string());
                }
                self.cut = true;
                return;
            }
            self.text.push_str(piece);
            self.length += size;
            self.previous = Some(c);
        }
    }

    /// Appends the letters, digits and spaces at the beginning of a text that fit in any case, and returns the rest. They
    /// mean the same everywhere.
    fn push_letters<'w>(&mut self, words: &'w str) -> &'w str {
        let is_letter = |b: &u8| b.is_ascii_alphanumeric() || *b == b' ';
        // Room is left for the mark of truncation, in case it follows.
        let end = words.bytes().take(self.room().saturating_sub(1)).take_while(is_letter).count();
        if end == 0 {
            return words;
        }
        let (letters, rest) = words.split_at(end);
        self.text.push_str(letters);
        self.length += end;
        self.previous = letters.chars().next_back();
        rest
    }

    fn append(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.length += length(piece);
        self.previous = piece.chars().next_back();
    }
}

/// Returns true if a text looks like one of Slack's ids, and so is safe between angle brackets.
fn is_id(id: &str) -> bool {
    (1..=40).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Escapes text as mrkdwn, without a limit.
pub fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the length of a text in UTF-16 units, as Slack may count it.
pub fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Returns text for a `plain_text` object, in which nothing is parsed: one line, at most `limit` long, never empty.
pub fn line(words: &str, limit: usize) -> String {
    let visible: String = words.chars().filter(|c| is_visible(*c)).map(one_line).collect();
    let text = cut(visible.trim(), limit);
    if text.is_empty() { CUT_MARK.to_string() } else { text }
}

/// Truncates a text to `limit`, at a character boundary. A truncated text ends with `…`.
pub fn cut(text: &str, limit: usize) -> String {
    if length(text) <= limit {
        return text.to_owned();
    }
    let mut room = limit.saturating_sub(1);
    let kept = text.chars().take_while(|c| {
        let fits = c.len_utf16() <= room;
        room = room.saturating_sub(c.len_utf16());
        fits
    });
    let mut text: String = kept.collect();
    if limit > 0 {
        text.push(CUT_MARK);
    }
    text
}

/// Formats a time for clients that do not show Slack's dates.
pub fn utc(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.millis()) {
        Ok(moment) => moment.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        Err(_) => at.to_string(),
    }
}

/// Returns the address in normalized form if a browser can open it.
pub fn web_address(url: &str) -> Option<String> {
    let url = Url::parse(url.trim()).ok()?;
    let opens = matches!(url.scheme(), "http" | "https") && url.has_host();
    let text = url.as_str().replace('|', "%7C").replace('<', "%3C").replace('>', "%3E");
    (opens && length(&escape(&text)) <= 2000).then_some(text)
}

/// Returns true if a character may be shown. Control characters other than line breaks and tabs may not, nor may
/// invisible characters and those that reorder text.
pub fn is_visible(c: char) -> bool {
    let reorders = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let invisible = matches!(c, '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    (!c.is_control() || c == '\n' || c == '\t') && !reorders && !invisible
}

/// Returns the text with invisible characters, and those that change the appearance of others, as escapes such as
/// `\u{202e}`. For places where every character matters.
pub fn spelled_out(text: &str) -> String {
    escaped(text, |c| !is_visible(c) || is_easily_missed(c))
}

/// Returns the text as it is, except that characters which may not be shown appear as escapes such as `\u{202e}`. For
/// places where nothing is parsed.
pub fn literal(text: &str) -> String {
    escaped(text, |c| !is_visible(c))
}

fn escaped(text: &str, hides: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if hides(c) {
            escaped.extend(c.escape_unicode());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Returns true if a character that may be shown has no width, looks like a space, or changes the one before it.
fn is_easily_missed(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
            | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Replaces line breaks and tabs with spaces.
fn one_line(c: char) -> char {
    if matches!(c, '\n' | '\t' | '\u{2028}' | '\u{2029}') { ' ' } else { c }
}

/// Returns true if Slack might interpret `c` as the beginning of a format.
fn begins_format(previous: Option<char>, c: char, next: Option<char>) -> bool {
    match c {
        '`' => true,
        '*' | '_' | '~' => previous.is_none_or(|c| !c.is_alphanumeric()) && next.is_some_and(|c| !c.is_whitespace()),
        _ => false,
    }
}

fn look_alike(c: char) -> char {
    match c {
        '*' => '∗',
        '_' => '＿',
        '~' => '∼',
        '`' => 'ˋ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(limit: usize, words: &str) -> String {
        Mrkdwn::new(limit)
            .plain(words)
            .bold(words)
            .italic(words)
            .code(words)
            .link("https://e.io/a|b", words)
            .person(&words.into())
            .moment(Timestamp(1_767_225_600_000))
            .finish()
    }

    #[test]
    fn invisible_characters_are_spelled_out() {
        for (text, spelled) in [
            ("Größe 日本 🙂, \"a\"\n\tb", "Größe 日本 🙂, \"a\"\n\tb"),
            ("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c"),
            ("admin\u{200b}\u{200d}\u{ad}\u{a0}x\u{7f}", "admin\\u{200b}\\u{200d}\\u{ad}\\u{a0}x\\u{7f}"),
            ("\u{e0041}\u{feff}\u{2028}", "\\u{e0041}\\u{feff}\\u{2028}"),
        ] {
            assert_eq!(spelled_out(text), spelled, "{text:?}");
        }
    }

    #[test]
    fn plain_text_is_shown_literally() {
        for (words, written) in [
            ("a < b && b > c", "a &lt; b &amp;&amp; b &gt; c"),
            ("<!channel> <@U1>", "&lt;!channel&gt; &lt;@U1&gt;"),
            ("*approved* by ~nobody~", "∗approved∗ by ∼nobody∼"),
            ("assign_prog 2 * 3", "assign_prog 2 * 3"),
            ("`code`", "ˋcodeˋ"),
            ("a\u{202e}b\u{0}c", "abc"),
        ] {
            assert_eq!(Mrkdwn::new(3000).plain(words).finish(), written);
        }
    }

    #[test]
    fn each_style_is_written_as_mrkdwn() {
        let text = Mrkdwn::new(3000)
            .bold("Math* <Hints>")
            .plain(" is ")
            .code("in`active")
            .plain(", see ")
            .link("https://e.io/?a=1&b=2", "the <page>")
            .plain(" ")
            .link("javascript:alert(1)", "this")
            .plain(" or ask ")
            .person(&"U0BO".into())
            .plain(" until ")
            .moment(Timestamp(1_767_225_600_000));
        insta::assert_snapshot!(text.finish(), @"*Math∗ &lt;Hints&gt;* is `inˋactive`, see <https://e.io/?a=1&amp;b=2|the &lt;page&gt;> this (javascript:alert(1)) or ask <@U0BO> until <!date^1767225600^{date_short_pretty} {time}|2026-01-01 00:00 UTC>");
    }

    #[test]
    fn text_is_truncated_by_its_escaped_length_and_marked() {
        assert_eq!(Mrkdwn::new(9).plain("a<b<c").finish(), "a&lt;b…");
        assert_eq!(Mrkdwn::new(4).plain("über").finish(), "über");
        assert_eq!(Mrkdwn::new(4).plain("🦀🦀🦀").finish(), "🦀…");
        assert_eq!(Mrkdwn::new(8).plain("see ").person(&"U0BO".into()).plain(" now").finish(), "see …");
        assert_eq!(Mrkdwn::new(6).bold("Math Hints").finish(), "*Mat…*");
        assert_eq!(line("two\nlines", 5), "two …");
        assert_eq!(line(" \u{0} ", 5), "…");
    }

    proptest! {
        #[test]
        fn nothing_is_too_long_and_nothing_gets_out(limit in 0_usize..200, words in any::<String>(), odd in "[<>@!#|&;a-z ^*`~_🦀\n]{0,80}") {
            for words in [words, odd] {
                let text = all(limit, &words);
                prop_assert!(length(&text) <= limit, "{text}");
                let opened = text.matches('<').count();
                let ours = text.matches("<https://e.io/a%7Cb").count() + text.matches("<!date^1767225600^").count();
                let people = text.match_indices("<@").filter(|(at, _)| text[*at..].starts_with(&format!("<@{words}>"))).count();
                prop_assert_eq!(opened, ours + people, "{}", text);
            }
        }
    }
}
