//! Emoji as Slack writes them in the text of messages: `:tada:` for 🎉.

use emojis::{Emoji, SkinTone};

/// The tones of skin in the order of Slack's names: `skin-tone-2` is the first.
const TONES: [SkinTone; 5] =
    [SkinTone::Light, SkinTone::MediumLight, SkinTone::Medium, SkinTone::MediumDark, SkinTone::Dark];

/// Returns the text with emoji in place of their names. A name that is none of an emoji, such as that of a workspace's own
/// one, stays.
pub fn from_names(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let begins = !rest[..at].ends_with(char::is_alphanumeric) && (at > 0 || !out.ends_with(char::is_alphanumeric));
        match named(&rest[at..]).filter(|_| begins) {
            Some((emoji, length)) => {
                out.push_str(&rest[..at]);
                out.push_str(emoji);
                rest = &rest[at + length..];
            }
            None => {
                out.push_str(&rest[..=at]);
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns the text with names in place of emoji, as Slack sends a message that contains some.
pub fn to_names(text: &str) -> String {
    let name = |letter: char| {
        let mut bytes = [0; 4];
        let emoji = emojis::get(letter.encode_utf8(&mut bytes)).filter(|_| u32::from(letter) >= 0x1_F300)?;
        Some(format!(":{}:", emoji.shortcode()?))
    };
    text.chars().map(|letter| name(letter).unwrap_or_else(|| letter.to_string())).collect()
}

/// Returns the emoji whose name, with a tone of skin if there is one, begins the text, and the length of the name.
fn named(text: &str) -> Option<(&'static str, usize)> {
    let (emoji, end) = one(text)?;
    // A number between colons may be part of a ratio or a time.
    if text[1..end - 1].chars().all(|c| c.is_ascii_digit()) && text[end..].starts_with(char::is_alphanumeric) {
        return None;
    }
    let emoji = find(emoji)?;
    let tone = text[end..].strip_prefix(":skin-tone-").and_then(|rest| rest.split_once(':')).and_then(|(tone, _)| {
        let nth = tone.parse::<usize>().ok()?.checked_sub(2)?;
        Some((emoji.with_skin_tone(*TONES.get(nth)?)?, end + ":skin-tone-:".len() + tone.len()))
    });
    Some(tone.map_or((emoji.as_str(), end), |(toned, end)| (toned.as_str(), end)))
}

/// Returns the text between two colons at the beginning, and the length up to the second one.
fn one(text: &str) -> Option<(&str, usize)> {
    let inside = text.strip_prefix(':')?;
    let end = inside.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || "_+-'".contains(c)))?;
    (end > 0 && inside[end..].starts_with(':')).then(|| (&inside[..end], end + 2))
}

/// Returns the emoji that Slack calls so. Most names are GitHub's as well; the others are the name in Unicode, or GitHub's
/// with something before it.
fn find(name: &str) -> Option<&'static Emoji> {
    let shorter = ["large_", "flag-"].into_iter().find_map(|prefix| name.strip_prefix(prefix));
    let in_unicode = |emoji: &&Emoji| {
        let same = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        emoji.name().chars().map(same).eq(name.chars().map(same))
    };
    emojis::get_by_shortcode(name)
        .or_else(|| emojis::get_by_shortcode(shorter?))
        .or_else(|| emojis::iter().find(in_unicode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_emoji() {
        for (sent, typed) in [
            ("start Hints :tada:", "start Hints 🎉"),
            (":rocket: :rocket::tada:!", "🚀 🚀🎉!"),
            (":thumbsup::skin-tone-3:", "👍🏼"),
            (":+1:", "👍"),
            (":large_green_circle: up", "🟢 up"),
            (":flag-de:", "🇩🇪"),
            (":face_with_raised_eyebrow:", "🤨"),
            (":our-own-emoji: hm", ":our-own-emoji: hm"),
            ("at 10:30:45, 1:100:1", "at 10:30:45, 1:100:1"),
            ("variant: blue, context: x", "variant: blue, context: x"),
            ("a:b:c ::: :: :", "a:b:c ::: :: :"),
        ] {
            assert_eq!(from_names(sent), typed, "{sent}");
        }
    }

    #[test]
    fn emoji_become_names_and_come_back() {
        for typed in ["Ana's Übung 🚀", "no emoji", "🎉🎉 → ©", "数学提示"] {
            assert_eq!(from_names(&to_names(typed)), typed);
        }
        assert_eq!(to_names("Hints 🎉"), "Hints :tada:");
    }
}
