//! What a correction says, without the words that only mark it as one: `no, make it 60/40 instead` says `60/40`.
//!
//! Each capability reads the new value by its own types. The marks are the same for all of them.

use crate::words::{Word, after, without_last};

/// Words that object to what was said before.
const OBJECTS: &str =
    "no|nope|wait|actually|sorry|oh no|oops|ooops|whoops|ah|argh|my bad|my mistake|i meant|i mean|instead|rather";
/// Words that set a value.
const MAKES: &str = "make it|make that|make this|set it to|set that to|change it to|change that to|use|let it be|let us say|\
    let us make it";
/// Other words before a value.
const BEFORE: &str = "yes , but|yes but|ok , but|ok but|okay , but|okay but|sure , but|sure but|but|oh|hm|hmm|better|please|\
    just|then|it should be|it should become|should be|turn it into|mark it as|mark it|,|–|-";
/// Words after a value.
pub const AFTER: &[&str] =
    &["instead", "rather", "actually", "please", "pls", "though", "then", "sorry", "too", "also", "thanks", ","];

/// A correction.
#[derive(Clone, Copy, Debug)]
pub struct Correction<'a> {
    /// The words without those that mark a correction; may be empty.
    pub value: &'a [Word],
    /// True after “no”, “actually”, “rather” and the like.
    pub objects: bool,
    /// True after “make it” and the like.
    pub makes: bool,
    /// True with “instead” or “rather” at any place.
    pub replaces: bool,
    /// True if any words mark it as a correction, also “yes, but”.
    pub is_marked: bool,
}

impl<'a> Correction<'a> {
    /// Reads the words of a message.
    pub fn of(words: &'a [Word]) -> Self {
        let replaces = words.iter().any(|word| word.any(&["instead", "rather"]));
        let mut found = Self { value: words, objects: false, makes: false, replaces, is_marked: replaces };
        loop {
            let (objects, makes) = (after(found.value, OBJECTS), after(found.value, MAKES));
            let Some(rest) = objects.or(makes).or_else(|| after(found.value, BEFORE)) else { break };
            found = Self {
                value: rest,
                objects: found.objects || objects.is_some(),
                makes: found.makes || makes.is_some(),
                is_marked: true,
                ..found
            };
        }
        // `60/40, I mean`
        let is_end = |at: &usize| after(&found.value[*at..], "i mean|i meant|sorry").is_some_and(<[Word]>::is_empty);
        if let Some(end) = (1..found.value.len()).find(is_end) {
            found = Self { value: &found.value[..end], objects: true, is_marked: true, ..found };
        }
        Self { value: without_last(found.value, AFTER), ..found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{text, words};

    #[test]
    fn only_the_value_is_left() {
        for (said, value, is_marked) in [
            ("no, make it 60/40 instead", "60/40", true),
            ("actually 60/40", "60/40", true),
            ("60/40, I mean", "60/40", true),
            ("oops, I meant mathstream", "mathstream", true),
            ("rather pause it", "pause it", true),
            ("yes, but on Friday please", "on Friday", true),
            ("hm, mathstream", "mathstream", true),
            ("60/40", "60/40", false),
            ("no", "", true),
        ] {
            let words = words(said);
            let found = Correction::of(&words);
            assert_eq!((text(found.value).as_str(), found.is_marked), (value, is_marked), "{said}");
        }
    }
}
