//! Finds the experiment that a person means.
//!
//! A name is accepted if exactly one experiment has it, ignoring case, surrounding quotes, accents and punctuation.
//! Otherwise the person is asked: similar names are suggested, never chosen.

use countersign_understanding::lexicon::fold;

use super::upgrade::experiment::{ExperimentId, ExperimentName};

/// The result of a search by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupResult {
    /// Exactly this experiment.
    One(ExperimentName),
    /// Several experiments with that name.
    Several(Vec<ExperimentName>),
    /// No experiment; these have similar names, the nearest first.
    None(Vec<ExperimentName>),
}

/// Searches all names for `asked`, a name or an id.
pub fn find(names: &[ExperimentName], asked: &str) -> LookupResult {
    if let Ok(id) = asked.parse::<ExperimentId>() {
        return names
            .iter()
            .find(|named| named.id == id)
            .cloned()
            .map_or(LookupResult::None(Vec::new()), LookupResult::One);
    }
    let exact: Vec<_> = names.iter().filter(|named| named.name == asked).collect();
    let wanted = plain(asked);
    let mut found = if exact.is_empty() { names.iter().filter(|n| plain(&n.name) == wanted).collect() } else { exact };
    let folded = fold(asked);
    if found.is_empty() && !folded.is_empty() {
        found = names.iter().filter(|n| fold(&n.name) == folded).collect();
    }
    match found.as_slice() {
        [] if let Some(named) = by_short_id(names, &wanted) => LookupResult::One(named.clone()),
        [] => LookupResult::None(similar(names, &wanted)),
        [one] => LookupResult::One((*one).clone()),
        several => LookupResult::Several(several.iter().copied().cloned().collect()),
    }
}

/// Returns the only experiment whose id begins with the short id `asked`: at least 8 characters, all
/// of them hexadecimal digits or hyphens.
fn by_short_id<'a>(names: &'a [ExperimentName], asked: &str) -> Option<&'a ExperimentName> {
    let short = asked.trim_end_matches('…');
    let short = short.strip_prefix("id ").unwrap_or(short);
    let is_short_id = short.len() >= 8 && short.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let mut found = names.iter().filter(|named| is_short_id && named.id.to_string().starts_with(short));
    found.next().filter(|_| found.next().is_none())
}

/// Returns the word of `known` that equals `asked`, or else the only one that does if case, blanks
/// and surrounding quotes are ignored, or also hyphens and the like: `assign prog` for `assign-prog`.
pub fn pick<'a>(known: &'a [String], asked: &str) -> Option<&'a String> {
    let only = |is_same: &dyn Fn(&str) -> bool| {
        let mut found = known.iter().filter(|word| is_same(word));
        found.next().filter(|_| found.next().is_none())
    };
    known
        .iter()
        .find(|word| *word == asked)
        .or_else(|| only(&|word| plain(word) == plain(asked)))
        .or_else(|| only(&|word| !letters(asked).is_empty() && letters(word) == letters(asked)))
}

/// Returns only the letters and digits, in lower case.
fn letters(words: &str) -> String {
    words.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns the words in lower case, with single blanks and without surrounding quotes.
fn plain(words: &str) -> String {
    let words = words.trim().trim_matches(['"', '\'', '“', '”', '„', '‘', '’', '`', '«', '»']);
    words.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Returns up to three names similar to `wanted`: those that contain it, are contained in it, or are
/// spelled similarly.
fn similar(names: &[ExperimentName], wanted: &str) -> Vec<ExperimentName> {
    let similarity = |named: &ExperimentName| {
        let name = plain(&named.name);
        let contains = wanted.chars().count() >= 3 && (name.contains(wanted) || wanted.contains(&name));
        let spelled = strsim::jaro_winkler(&name, wanted).max(strsim::normalized_damerau_levenshtein(&name, wanted));
        if contains && !name.is_empty() { spelled.max(0.9) } else { spelled }
    };
    let mut found: Vec<_> =
        names.iter().map(|named| (similarity(named), named)).filter(|(value, _)| *value > 0.78).collect();
    found
        .sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| (&one.name, one.id).cmp(&(&other.name, other.id))));
    found.dedup_by(|(_, a), (_, b)| a.name == b.name);
    found.into_iter().take(3).map(|(_, named)| named.clone()).collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn names(all: &[&str]) -> Vec<ExperimentName> {
        let named = |(i, name): (usize, &&str)| ExperimentName {
            id: ExperimentId(Uuid::from_u128(i as u128 + 1)),
            name: (*name).to_owned(),
        };
        all.iter().enumerate().map(named).collect()
    }

    fn found(all: &[&str], asked: &str) -> String {
        let words = |named: Vec<ExperimentName>| named.into_iter().map(|n| n.name).collect::<Vec<_>>().join(", ");
        match find(&names(all), asked) {
            LookupResult::One(one) => format!("one: {}", one.name),
            LookupResult::Several(several) => format!("several: {}", words(several)),
            LookupResult::None(similar) => format!("none, but: {}", words(similar)),
        }
    }

    #[test]
    fn a_name_is_found_whatever_its_case_and_quotes() {
        let all = ["Math Hints", "Reading Pace"];
        assert_eq!(found(&all, "Math Hints"), "one: Math Hints");
        assert_eq!(found(&all, "“math  hints”"), "one: Math Hints");
        assert_eq!(found(&["Ana's Übung"], "anas ubung"), "one: Ana's Übung");
        assert_eq!(found(&["Math Hints", "Math-Hints"], "math, hints"), "several: Math Hints, Math-Hints");
        assert_eq!(found(&all, "00000000-0000-0000-0000-000000000002"), "one: Reading Pace");
    }

    #[test]
    fn the_exact_name_wins_over_the_same_in_another_case() {
        assert_eq!(found(&["math hints", "Math Hints"], "Math Hints"), "one: Math Hints");
        assert_eq!(found(&["math hints", "Math Hints"], "MATH HINTS"), "several: math hints, Math Hints");
    }

    #[test]
    fn none_of_several_equal_names_is_chosen() {
        assert_eq!(found(&["Minimal", "Minimal"], "minimal"), "several: Minimal, Minimal");
    }

    #[test]
    fn a_short_id_has_to_be_unique() {
        let at = |id: u128| ExperimentName { id: ExperimentId(Uuid::from_u128(id << 92)), name: "Minimal".to_owned() };
        let all = [at(0x10), at(0x21), at(0x22)];
        assert_eq!(find(&all, "00000002"), LookupResult::None(Vec::new()), "two begin like this");
        let all = [at(0x1_0000_0001), at(0x2_0000_0002)];
        for (asked, place) in [("10000000", 0), ("id 20000000…", 1), ("20000000-2", 1)] {
            assert_eq!(find(&all, asked), LookupResult::One(all[place].clone()), "{asked}");
        }
        for asked in ["1000000", "30000000", "ffffffff"] {
            assert!(matches!(find(&all, asked), LookupResult::None(_)), "{asked}");
        }
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let all = ["Math Hints", "Math Hints v2", "Reading Pace", "Chat Tone"];
        assert_eq!(found(&all, "Maht Hints"), "none, but: Math Hints, Math Hints v2");
        assert_eq!(found(&all, "math"), "none, but: Math Hints, Math Hints v2");
        assert_eq!(found(&all, "zebra"), "none, but: ");
        assert_eq!(found(&all, "6d1f3f3e-8c54-4a1c-9f5e-2f7a1a3b0c01"), "none, but: ");
    }

    #[test]
    fn a_word_is_picked_from_a_vocabulary() {
        let known = ["SelectSection".to_owned(), "SelectProblem".to_owned()];
        assert_eq!(pick(&known, "selectsection").unwrap(), "SelectSection");
        assert_eq!(pick(&known, "Select"), None);
    }
}
