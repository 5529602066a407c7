//! Converts Slack's message text to plain text, as the person typed it.
//!
//! Slack escapes `&`, `<` and `>`, and wraps links and mentions in `<…>`. None of this belongs in a model's prompt or
//! in a name.

use countersign_core::{emoji, ids::UserId};

/// Returns the text as the person saw it: links as their address, people as `@` and their id (or name, if Slack sends
/// one), emoji as such.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        let (before, from_open) = rest.split_at(open);
        unescape_into(&mut out, before);
        match from_open.find('>') {
            Some(close) => {
                unescape_into(&mut out, &token(&from_open[1..close]));
                rest = &from_open[close + 1..];
            }
            None => {
                unescape_into(&mut out, from_open);
                rest = "";
            }
        }
    }
    unescape_into(&mut out, rest);
    emoji::from_names(out.trim())
}

/// Returns true if the text mentions `user`.
pub fn mentions(text: &str, user: &UserId) -> bool {
    let open = format!("<@{user}");
    text.match_indices(&open).any(|(at, _)| text[at + open.len()..].starts_with(['>', '|']))
}

/// Returns true if the text mentions a person, a group or everyone.
pub fn mentions_anyone(text: &str) -> bool {
    ["<@", "<!subteam^", "<!here", "<!channel", "<!everyone"].iter().any(|sign| text.contains(sign))
}

/// Returns true if the text begins by addressing a person by name: “Ana, are you sure?”, “hey bo: look at this”, “@di
/// thanks”.
pub fn addresses_by_name(text: &str) -> bool {
    let mut words = text.split_whitespace().peekable();
    while words.next_if(|word| GREETINGS.contains(&word.trim_end_matches([',', '!']).to_lowercase().as_str())).is_some()
    {
    }
    let Some(first) = words.next() else { return false };
    if first.len() > 1 && first.starts_with('@') {
        return true;
    }
    let name = first.trim_end_matches([',', ':', '–', '-']);
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphabetic() || c == '-' || c == '\'');
    let addressed = first.len() > name.len() || matches!(words.peek(), Some(&("-" | "–" | "—")));
    let lower = name.to_lowercase().replace('’', "'");
    // A name is followed by a sentence, whereas a list (“control, treatment”) has few words.
    let is_other = NOT_NAMES.contains(&lower.as_str()) || is_contraction(&lower) || DAYS.contains(&lower.as_str());
    // “honestly”, but not “Emily”
    let is_adverb = name == lower && lower.ends_with("ly");
    is_name && addressed && !is_other && !is_adverb && words.filter(|word| word.len() > 1).count() > 2
}

/// Returns true for “let's”, “that's”, “we'll”, “don't” and the like, in lower case.
fn is_contraction(word: &str) -> bool {
    ["'s", "'ll", "'re", "'ve", "'d", "'m", "n't"].iter().any(|ending| word.ends_with(ending))
}

/// Words for days, in lower case.
const DAYS: &[&str] =
    &["today", "tomorrow", "tonight", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Words that may precede a name.
const GREETINGS: &[&str] = &["hey", "hi", "hello", "ok", "okay", "thanks", "thx", "sorry", "well", "so", "and", "yo"];

/// Words before a comma or colon that are not names.
const NOT_NAMES: &[&str] = &[
    "yes",
    "yep",
    "yeah",
    "yup",
    "nah",
    "cool",
    "alright",
    "fine",
    "perfect",
    "awesome",
    "lovely",
    "oops",
    "whoops",
    "ah",
    "aha",
    "ugh",
    "um",
    "uh",
    "anyway",
    "no",
    "nope",
    "ok",
    "okay",
    "please",
    "actually",
    "wait",
    "hm",
    "hmm",
    "oh",
    "well",
    "sorry",
    "thanks",
    "great",
    "good",
    "nice",
    "sure",
    "right",
    "also",
    "again",
    "instead",
    "shorter",
    "longer",
    "warmer",
    "colder",
    "friendlier",
    "nicer",
    "kinder",
    "softer",
    "simpler",
    "clearer",
    "better",
    "bigger",
    "smaller",
    "faster",
    "slower",
    "rewrite",
    "redraft",
    "apologize",
    "apologise",
    "now",
    "then",
    "so",
    "but",
    "and",
    "or",
    "maybe",
    "perhaps",
    "rather",
    "first",
    "second",
    "third",
    "finally",
    "next",
    "stop",
    "cancel",
    "never",
    "hello",
    "hi",
    "hey",
    "name",
    "context",
    "weights",
    "conditions",
    "description",
    "tags",
    "point",
    "points",
    "site",
    "target",
    "start",
    "end",
    "control",
    "treatment",
    "equal",
    "equally",
    "half",
    "both",
    "all",
    "none",
    "individual",
    "group",
    "however",
    "correct",
    "exactly",
    "done",
    "wow",
    "oops",
    "damn",
    "status",
    "question",
    "answer",
    "note",
    "example",
];

/// Returns the text without mentions of `user`, and without the comma or colon after them. “Can @bot start it?” becomes
/// “can you start it?”. A mention that belongs to its sentence, as in “tell @bot”, stays.
pub fn without_mentions(text: &str, user: &UserId) -> String {
    const ASKS: &[&str] = &["can", "could", "would", "will", "should", "may", "do", "did", "have"];
    const KEEPS: &[&str] = &[
        "tell", "ask", "about", "to", "from", "with", "for", "by", "of", "at", "and", "or", "like", "let", "mention",
        "via", "through", "on", "than", "is", "are", "was", "does", "has", "who", "what", "that", "whether", "if",
    ];
    let open = format!("<@{user}");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim();
    let mut at = 0;
    while let Some(start) = rest[at..].find(&open).map(|found| at + found) {
        let inside = start + open.len();
        let end = match rest[inside..].find('>').filter(|_| rest[inside..].starts_with(['>', '|'])) {
            Some(close) => inside + close + 1,
            None => {
                at = inside;
                continue;
            }
        };
        let before = rest[..start].rsplit(char::is_whitespace).find(|word| !word.is_empty());
        let before = before.unwrap_or_default().to_lowercase();
        let is_last = rest[end..].trim().is_empty();
        if !is_last && (KEEPS.contains(&before.as_str()) || rest[end..].starts_with(['\'', '’'])) {
            at = end;
            continue;
        }
        out.push_str(rest[..start].trim_end());
        if !is_last && ASKS.contains(&before.as_str()) {
            out.push_str(" you");
        }
        rest = rest[end..].trim_start_matches([':', ',']).trim_start();
        at = 0;
        if !out.is_empty() && !rest.is_empty() {
            out.push(' ');
        }
    }
    out.push_str(rest);
    out.trim().to_owned()
}

/// Returns the text of a token, given its content inside `<…>`. The text is still escaped.
fn token(inside: &str) -> String {
    let (target, label) = match inside.split_once('|') {
        Some((target, label)) => (target, Some(label).filter(|label| !label.is_empty())),
        None => (inside, None),
    };
    let named = |sigil: char, id: &str| {
        let name = label.unwrap_or(id);
        if name.starts_with(sigil) { name.to_owned() } else { format!("{sigil}{name}") }
    };
    match target.chars().next() {
        Some('@') => named('@', &target[1..]),
        Some('#') => named('#', &target[1..]),
        Some('!') => match label {
            Some(label) => label.to_owned(), // a date or user group, for which Slack sends the text
            None => format!("@{}", target[1..].split('^').next().unwrap_or_default()),
        },
        _ => match label {
            Some(label) if target.ends_with(label) => label.to_owned(), // text that Slack turned into a link
            Some(label) => format!("{label} ({target})"),
            None => target.to_owned(),
        },
    }
}

/// Appends text with `&lt;`, `&gt;` and `&amp;` unescaped, once.
fn unescape_into(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (length, unescaped) = match rest {
            _ if rest.starts_with("&lt;") => (4, '<'),
            _ if rest.starts_with("&gt;") => (4, '>'),
            _ if rest.starts_with("&amp;") => (5, '&'),
            _ => (1, '&'),
        };
        out.push(unescaped);
        rest = &rest[length..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_text_is_as_the_person_typed_it() {
        for (wire, typed) in [
            ("start Math Hints", "start Math Hints"),
            ("a &lt; b &amp;&amp; b &gt; c", "a < b && b > c"),
            ("&amp;lt; stays &lt; written", "&lt; stays < written"),
            ("ask <@U0BO> and <@U0ANA|ana>", "ask @U0BO and @ana"),
            ("in <#C1|general> or <#C2>", "in #general or #C2"),
            ("<!here> and <!subteam^S1|@research> and <!subteam^S2>", "@here and @research and @subteam"),
            ("<!date^1767225600^{date}|2026-01-01>", "2026-01-01"),
            ("see <https://e.io/?a=1&amp;b=2>", "see https://e.io/?a=1&b=2"),
            ("see <http://example.org|example.org>", "see example.org"),
            ("see <https://e.io|the page>", "see the page (https://e.io)"),
            ("mail <mailto:ana@example.org|ana@example.org>", "mail ana@example.org"),
            ("an unclosed < stays", "an unclosed < stays"),
            ("start Hints :tada:", "start Hints 🎉"),
        ] {
            assert_eq!(plain(wire), typed, "{wire}");
        }
    }

    #[test]
    fn only_mentions_of_the_bot_are_removed() {
        let us = UserId::from("U0BOT");
        for (wire, rest) in [
            ("<@U0BOT> start it", "start it"),
            ("<@U0BOT|countersign>: start it", "start it"),
            ("<@U0BOT>, <@U0BOT> start it", "start it"),
            ("start it <@U0BOT>", "start it"),
            ("<@U0BOT>", ""),
            ("<@U0BOTTOM> start it", "<@U0BOTTOM> start it"),
            ("tell <@U0BOT> to start it", "tell <@U0BOT> to start it"),
            ("start <@U0BOT> <@U0ANA>", "start <@U0ANA>"),
            ("hey <@U0BOT> show exp-1", "hey show exp-1"),
            ("hey, <@U0BOT>, show exp-1", "hey, show exp-1"),
            ("please <@U0BOT> start exp-1", "please start exp-1"),
            ("can you <@U0BOT> start exp-1?", "can you start exp-1?"),
            ("can <@U0BOT> start exp-1?", "can you start exp-1?"),
            ("what can <@U0BOT|countersign> do?", "what can you do?"),
            ("ok <@U0BOT> go ahead <@U0BOT>", "ok go ahead"),
            ("show exp-1 <@U0BOT> please", "show exp-1 please"),
            ("<@U0ANA> and <@U0BOT> please look", "<@U0ANA> and <@U0BOT> please look"),
            ("what does <@U0BOT>'s answer mean?", "what does <@U0BOT>'s answer mean?"),
            ("thanks <@U0BOT>", "thanks"),
            ("<@U0BOT and <@U0BOTTOM>", "<@U0BOT and <@U0BOTTOM>"),
        ] {
            assert_eq!(without_mentions(wire, &us), rest, "{wire}");
        }
        assert!(mentions("tell <@U0BOT> to start it", &us));
        assert!(mentions("<@U0BOT|countersign> hello", &us));
        assert!(!mentions("<@U0BOTTOM> hello", &us));
    }

    #[test]
    fn a_message_to_another_person_is_recognised() {
        for text in [
            "Ana, are you sure about 70/30? I would wait until Monday.",
            "bo: what do you think about it",
            "hey bo, have a look at this",
            "@bo what do you think",
            "thanks Ana, that was quick of you",
            "Ana - did you ask the teachers",
            "Emily, would you look at this",
            "O'Brien, would you look at this",
        ] {
            assert!(addresses_by_name(text), "{text}");
        }
        for text in [
            "yes, do it please now",
            "no, use mathstream for it",
            "control, treatment",
            "Control, Treatment, Both",
            "60/40",
            "actually, make it 60/40 please",
            "start Math Hints",
            "weights: 60/40",
            "shorter, and offer Tuesday instead",
            "Friendlier, and leave out the price",
            "rewrite: we can only do Friday afternoon",
            "let's - start it with 60/40 on Monday",
            "Let’s, if nobody minds, start Math Hints",
            "that's - hm - the one in mathstream",
            "Friday, or the Monday after it",
            "honestly, make it 60/40 please",
            "",
            "@",
        ] {
            assert!(!addresses_by_name(text), "{text}");
        }
        assert!(mentions_anyone("what does <@U2> say") && mentions_anyone("<!here> look"));
        assert!(!mentions_anyone("see <#C1|general>"));
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in any::<String>(), odd in "[<>@!#|&;a-z ^U0BOT]{0,60}") {
            let us = UserId::from("U0BOT");
            for text in [text, odd] {
                plain(&text);
                mentions(&text, &us);
                without_mentions(&text, &us);
            }
        }
    }
}
