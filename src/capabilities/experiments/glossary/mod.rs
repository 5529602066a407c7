//! The glossary of the platform: the meaning of each term, and common mistakes about it.
//!
//! It is used by the tools of this capability and by the grammar, which explains terms without a
//! language model. The texts are Markdown. They describe the platform's behaviour.

mod assignment;
mod core;
mod pairs;

/// A term: its names and its meaning.
#[derive(Debug, PartialEq, Eq)]
pub struct Term {
    /// The names, in lower case; the first one is the usual one.
    pub names: &'static [&'static str],
    /// The explanation.
    pub meaning: &'static str,
    /// The data of the platform that can serve as an example.
    pub example: Option<Example>,
}

/// The kind of data on the platform that can serve as an example of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Example {
    /// The names of the contexts.
    Contexts,
    /// An experiment with its conditions and decision points.
    Experiment,
    /// The conditions of an experiment with their weights.
    Conditions,
    /// The decision points of an experiment.
    Points,
    /// The group types of the contexts.
    GroupTypes,
    /// The units of assignment of experiments.
    Units,
    /// The post-experiment rules of experiments.
    Afterwards,
    /// The number of experiments in each status.
    Statuses,
    /// The tags in use.
    Tags,
}

/// Returns the terms for the parts of an experiment, its participants, and its life cycle.
pub const fn core_terms() -> &'static [Term] {
    core::TERMS
}

/// Returns the terms for the way people get their condition.
pub const fn assignment_terms() -> &'static [Term] {
    assignment::TERMS
}

fn all() -> impl Iterator<Item = &'static Term> {
    core::TERMS.iter().chain(assignment::TERMS)
}

impl Term {
    /// Returns the usual name.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }
}

/// Returns the term that these words name, allowing other spellings and one typing error.
pub fn find(asked: &str) -> Option<&'static Term> {
    let asked = asked.trim().to_lowercase();
    let asked = ["a ", "an ", "the "].iter().find_map(|article| asked.strip_prefix(article)).unwrap_or(&asked);
    let max_distance = 1 + asked.len() / 12;
    let is_comparable = |name: &str| {
        name.len().abs_diff(asked.len()) <= max_distance
            && (name.as_bytes()[0] == asked.as_bytes()[0] || name.ends_with(&asked[asked.len() - 1..]))
    };
    let is_similar = |name: &str| is_comparable(name) && strsim::damerau_levenshtein(name, asked) <= max_distance;
    all().find(|term| term.names.contains(&asked)).or_else(|| {
        all().find(|term| asked.is_ascii() && asked.len() >= 6 && term.names.iter().any(|name| is_similar(name)))
    })
}

/// Returns the term that has exactly this name, singular or plural.
pub fn exactly(asked: &str) -> Option<&'static Term> {
    all().find(|term| term.names.contains(&asked))
}

/// Returns up to four terms with names similar to these words.
pub fn similar(asked: &str) -> Vec<&'static Term> {
    let asked = asked.trim().to_lowercase();
    let similarity = |term: &Term| {
        let of_name = |name: &&str| match asked.len() >= 4 && (name.contains(&asked) || asked.contains(*name)) {
            true => 0.95,
            false => strsim::jaro_winkler(name, &asked),
        };
        term.names.iter().map(of_name).fold(0.0, f64::max)
    };
    let mut found: Vec<_> = all().map(|term| (similarity(term), term)).filter(|(value, _)| *value > 0.85).collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().take(4).map(|(_, term)| term).collect()
}

/// Returns the text on how two terms work together, if there is one.
pub fn together(one: &Term, other: &Term) -> Option<&'static str> {
    let pair = |(a, b): (&str, &str)| (one.name() == a && other.name() == b) || (one.name() == b && other.name() == a);
    pairs::PAIRS.iter().find(|(a, b, _)| pair((a, b))).map(|(_, _, words)| *words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_two_things() {
        let mut names: Vec<_> = all().flat_map(|term| term.names).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| **name == name.to_lowercase()));
    }

    #[test]
    fn pairs_use_the_usual_names() {
        for (one, other, words) in pairs::PAIRS {
            for name in [one, other] {
                assert!(all().any(|term| term.name() == *name), "{name}");
            }
            assert!(words.ends_with('.'));
        }
    }

    #[test]
    fn terms_are_found_despite_articles_and_typing_errors() {
        let name = |asked| find(asked).map(Term::name);
        assert_eq!(name("a desicion point"), Some("decision point"));
        assert_eq!(name("the Weights"), Some("weight"));
        assert_eq!(name("zebra"), None);
        assert_eq!(similar("consist").first().map(|term| term.name()), Some("consistency rule"));
    }
}
