//! Finds the experiment that a person means.
//!
//! A name is accepted if exactly one experiment has it, ignoring case, surrounding quotes, accents and punctuation.
//! Otherwise the person is asked: similar names are suggested, never chosen.
//!
//! [`NameIndex`] finds a name without comparing it with all others; only suggestions do that.

use std::collections::HashMap;

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

/// The names of all experiments, indexed by the forms in which they are compared.
#[derive(Debug, Default)]
pub struct NameIndex {
    /// All names, by name and id.
    all: Vec<ExperimentName>,
    by_id: HashMap<ExperimentId, usize>,
    /// The places of the names by [`plain`].
    by_words: HashMap<String, Vec<usize>>,
    /// The places of the names by [`fold`].
    by_folded: HashMap<String, Vec<usize>>,
}

impl NameIndex {
    /// Indexes these names.
    pub fn new(mut all: Vec<ExperimentName>) -> Self {
        all.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        let mut index = Self::default();
        for (at, named) in all.iter().enumerate() {
            index.by_id.insert(named.id, at);
            index.by_words.entry(plain(&named.name)).or_default().push(at);
            index.by_folded.entry(fold(&named.name)).or_default().push(at);
        }
        Self { all, ..index }
    }

    /// Returns all names, sorted by name.
    pub fn all(&self) -> &[ExperimentName] {
        &self.all
    }

    /// Returns the name of an experiment.
    pub fn by_id(&self, id: ExperimentId) -> Option<&ExperimentName> {
        self.by_id.get(&id).map(|at| &self.all[*at])
    }

    /// Returns the names with this one in place of an earlier one; `None` if it is among them.
    pub(crate) fn with(&self, named: ExperimentName) -> Option<Self> {
        let is_changed = self.by_id(named.id) != Some(&named);
        let others = self.all.iter().filter(|other| other.id != named.id).cloned();
        is_changed.then(|| Self::new(others.chain([named.clone()]).collect()))
    }

    /// Returns the names without that of an experiment; `None` if it is not among them.
    pub(crate) fn without(&self, id: ExperimentId) -> Option<Self> {
        let others = self.all.iter().filter(|other| other.id != id).cloned();
        self.by_id.contains_key(&id).then(|| Self::new(others.collect()))
    }

    /// Returns the names with this form.
    fn with_form<'a>(&'a self, forms: &HashMap<String, Vec<usize>>, form: &str) -> Vec<&'a ExperimentName> {
        forms.get(form).into_iter().flatten().map(|at| &self.all[*at]).collect()
    }
}

/// Searches all names for `asked`, a name or an id.
pub fn find(names: &NameIndex, asked: &str) -> LookupResult {
    if let Ok(id) = asked.parse::<ExperimentId>() {
        return names.by_id(id).cloned().map_or(LookupResult::None(Vec::new()), LookupResult::One);
    }
    let wanted = plain(asked);
    let mut found = names.with_form(&names.by_words, &wanted);
    if found.iter().any(|named| named.name == asked) {
        found.retain(|named| named.name == asked);
    }
    let folded = fold(asked);
    if found.is_empty() && !folded.is_empty() {
        found = names.with_form(&names.by_folded, &folded);
    }
    match found.as_slice() {
        [] if let Some(named) = by_short_id(&names.all, &wanted) => LookupResult::One(named.clone()),
        [] => LookupResult::None(similar(&names.all, &wanted)),
        [one] => LookupResult::One((*one).clone()),
        several => LookupResult::Several(several.iter().copied().cloned().collect()),
    }
}

/// Returns the only experiment with these words in a row in its name.
pub fn with_part(names: &NameIndex, asked: &str) -> Option<ExperimentName> {
    const MIN_LETTERS: usize = 4;
    let part = fold(asked);
    let part = part.strip_suffix(" thing").or_else(|| part.strip_suffix(" one")).unwrap_or(&part);
    let wanted = format!(" {part} ");
    let has_it = |named: &&ExperimentName| format!(" {} ", fold(&named.name)).contains(&wanted);
    let mut found = names.all.iter().filter(has_it);
    let one = found.next().filter(|_| part.chars().count() >= MIN_LETTERS)?;
    found.next().is_none().then(|| one.clone())
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

    fn names(all: &[&str]) -> NameIndex {
        let named = |(i, name): (usize, &&str)| ExperimentName {
            id: ExperimentId(Uuid::from_u128(i as u128 + 1)),
            name: (*name).to_owned(),
        };
        NameIndex::new(all.iter().enumerate().map(named).collect())
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
        assert_eq!(found(&["math hints", "Math Hints"], "MATH HINTS"), "several: Math Hints, math hints");
    }

    #[test]
    fn none_of_several_equal_names_is_chosen() {
        assert_eq!(found(&["Minimal", "Minimal"], "minimal"), "several: Minimal, Minimal");
    }

    #[test]
    fn a_short_id_has_to_be_unique() {
        let at = |id: u128| ExperimentName { id: ExperimentId(Uuid::from_u128(id << 92)), name: "Minimal".to_owned() };
        let all = NameIndex::new(vec![at(0x10), at(0x21), at(0x22)]);
        assert_eq!(find(&all, "00000002"), LookupResult::None(Vec::new()), "two begin like this");
        let all = NameIndex::new(vec![at(0x1_0000_0001), at(0x2_0000_0002)]);
        for (asked, place) in [("10000000", 0), ("id 20000000…", 1), ("20000000-2", 1)] {
            assert_eq!(find(&all, asked), LookupResult::One(all.all()[place].clone()), "{asked}");
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
