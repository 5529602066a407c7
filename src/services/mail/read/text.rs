//! Plain text that is safe to show: without invisible and control characters, and of limited length.

use crate::address::is_invisible;

/// A text that grows up to a limit, one character at a time.
#[derive(Debug)]
pub(super) struct Clean {
    text: String,
    left: usize,
    /// True if the limit was reached.
    pub(super) is_cut: bool,
    /// True if there were invisible characters, except for those that are usual in honest mails.
    pub(super) had_invisible: bool,
}

impl Clean {
    /// Creates an empty text with at most `most` characters.
    pub(super) fn with_limit(most: usize) -> Self {
        Self { text: String::new(), left: most, is_cut: false, had_invisible: false }
    }

    /// Appends a character, unless it is one that nobody sees.
    pub(super) fn push(&mut self, char: char) {
        if is_invisible(char) {
            self.had_invisible |= !is_usual(char);
        } else if !char.is_control() || matches!(char, '\n' | '\t') {
            self.push_visible(char);
        }
    }

    /// Returns true if no more characters fit.
    pub(super) fn is_full(&self) -> bool {
        self.is_cut
    }

    /// Returns the text so far.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text.
    pub(super) fn into_string(self) -> String {
        self.text
    }

    fn push_visible(&mut self, char: char) {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            self.text.push(char);
        } else {
            self.is_cut = true;
        }
    }
}

/// Cleans a plain text: its lines end with `\n`.
pub(super) fn plain(text: &str, most: usize) -> Clean {
    let mut clean = Clean::with_limit(most);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\r' => {
                chars.next_if_eq(&'\n');
                clean.push('\n');
            }
            '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{b}' | '\u{c}' => clean.push('\n'),
            char => clean.push(char),
        }
        if clean.is_full() {
            break;
        }
    }
    clean
}

/// Returns true for invisible characters that mail programs insert without a purpose of the sender: soft hyphens, byte
/// order marks, and the marks of writing from right to left.
fn is_usual(char: char) -> bool {
    matches!(char, '\u{ad}' | '\u{feff}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_line_feeds() {
        assert_eq!(plain("a\r\nb\rc\nd\u{2028}e", 100).into_string(), "a\nb\nc\nd\ne");
    }

    #[test]
    fn invisible_characters_are_removed_and_noticed() {
        let clean = plain("ap\u{200b}prove\u{e0041}\u{7} this", 100);
        assert!(clean.had_invisible);
        assert_eq!(clean.into_string(), "approve this");
        let usual = plain("\u{feff}hyphen\u{ad}ation", 100);
        assert!(!usual.had_invisible);
        assert_eq!(usual.into_string(), "hyphenation");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let clean = plain("äöü", 2);
        assert!(clean.is_cut);
        assert_eq!(clean.into_string(), "äö");
        assert!(!plain("äö", 2).is_cut);
    }
}
