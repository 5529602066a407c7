//! Quotations of a message: what a question puts in quotation marks was typed so.
//!
//! A reading collects words, and drops small ones between them. Quoted as they were collected, they would be a phrase that
//! nobody wrote.

use crate::user_request::{Interpretation, UserRequest};

/// Returns the interpretation with the quotations in its question as they were typed in the message `said`.
pub(crate) fn exact(mut found: Interpretation, said: &str) -> Interpretation {
    if let UserRequest::Unclear { question, .. } = &mut found.user_request
        && question.contains('“')
    {
        *question = with_exact_quotations(question, said);
    }
    found
}

/// Returns a text in which each quotation of the message is a part of it. Words between which others were dropped become
/// a quotation each. A quotation with words that are not in the message is not one of it, and stays.
fn with_exact_quotations(text: &str, said: &str) -> String {
    let message = Letters::of(said);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, inside, after)) = quotation(rest) {
        out.push_str(before);
        let pieces = message.pieces(inside);
        match pieces.as_slice() {
            [] => out.push_str(&format!("“{inside}”")),
            pieces => {
                let quoted: Vec<String> = pieces.iter().map(|piece| format!("“{piece}”")).collect();
                out.push_str(&quoted.join(" and "));
            }
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the text before the first quotation, the quoted text, which may contain quotations itself, and the rest.
fn quotation(text: &str) -> Option<(&str, &str, &str)> {
    let open = text.find('“')?;
    let inside = open + '“'.len_utf8();
    let mut depth = 1;
    for (at, letter) in text[inside..].char_indices() {
        match letter {
            '“' => depth += 1,
            '”' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let end = inside + at;
            return Some((&text[..open], &text[inside..end], &text[end + letter.len_utf8()..]));
        }
    }
    None
}

/// The letters, digits and signs of a text in lower case, without spaces, quotes and punctuation.
struct Letters<'a> {
    text: &'a str,
    /// Each letter with the byte range of the character that it comes from.
    all: Vec<(char, usize, usize)>,
}

impl<'a> Letters<'a> {
    fn of(text: &'a str) -> Self {
        let counts = |c: &char| !(c.is_whitespace() || "“”„\"«»‘’'`,.;!?()[]*_…".contains(*c));
        let all = text
            .char_indices()
            .filter(|(_, c)| counts(c))
            .flat_map(|(at, c)| c.to_lowercase().map(move |lower| (lower, at, at + c.len_utf8())));
        Self { text, all: all.collect() }
    }

    /// Returns the parts of this text that a quotation consists of, in its order; none if a word of it is not here.
    fn pieces(&self, quoted: &str) -> Vec<&'a str> {
        let words: Vec<&str> = quoted.split_whitespace().collect();
        let (mut pieces, mut rest) = (Vec::new(), words.as_slice());
        while !rest.is_empty() {
            let longest =
                (1..=rest.len()).rev().find_map(|length| Some((self.find(&rest[..length].join(" "))?, length)));
            let Some((piece, length)) = longest else { return Vec::new() };
            if !piece.is_empty() {
                pieces.push(piece);
            }
            rest = &rest[length..];
        }
        pieces
    }

    /// Returns the part of this text with the letters of `wanted`, if it begins and ends where words do. It is empty for
    /// a text without letters.
    fn find(&self, wanted: &str) -> Option<&'a str> {
        let wanted: Vec<char> = Letters::of(wanted).all.iter().map(|(letter, ..)| *letter).collect();
        let Some(last) = wanted.len().checked_sub(1) else { return Some("") };
        let is_here = |at: &usize| self.all[*at..].iter().map(|(letter, ..)| letter).take(wanted.len()).eq(&wanted);
        let range = |at: usize| (self.all[at].1, self.all[at + last].2);
        let is_whole = |(from, to): &(usize, usize)| {
            !self.text[..*from].ends_with(char::is_alphanumeric) && !self.text[*to..].starts_with(char::is_alphanumeric)
        };
        let (from, to) = (0..self.all.len().saturating_sub(last)).filter(is_here).map(range).find(is_whole)?;
        Some(&self.text[from..to])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_was_typed() {
        for (text, said, expected) in [
            (
                "I can pause it, but not “for the weekend and resume it”.",
                "pause it for the weekend and then resume it",
                "I can pause it, but not “for the weekend and” and “resume it”.",
            ),
            (
                "but not “SelectSection/area_model”",
                "at SelectSection / area_model",
                "but not “SelectSection / area_model”",
            ),
            (
                "I couldn't make sense of “for 5b only”.",
                "start it  for 5B, only",
                "I couldn't make sense of “for 5B, only”.",
            ),
            ("“start “Math Hints” twice”", "start \"Math Hints\" twice", "“start \"Math Hints\" twice”"),
            ("Did you mean “list experiments”?", "lst exps", "Did you mean “list experiments”?"),
            ("“at” it", "that is at hand", "“at” it"),
            ("an open “quotation", "open", "an open “quotation"),
            ("“, ,”", "a, b", "“, ,”"),
        ] {
            assert_eq!(with_exact_quotations(text, said), expected, "{said}");
        }
    }
}
