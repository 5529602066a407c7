//! The words of a text, for the search without embeddings.
//!
//! The stores find candidates with their own index of words. The similarity is computed here, so that it means the
//! same in every store: the number of shared words divided by the geometric mean of the numbers of words. Words that
//! nearly every English mail contains do not count.

use std::collections::BTreeSet;

/// The number of candidates that a store looks at closely.
pub(crate) const CANDIDATES: usize = 50;

/// The maximum number of words of a query. The first ones count, and a mail begins with its subject.
const MAX_WORDS: usize = 120;

/// The maximum length of a word, in characters. Longer ones are encoded data.
const MAX_LENGTH: usize = 40;

/// Words that say nothing about the subject of a mail.
const COMMON: &[&str] = &[
    "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before",
    "best", "but", "by", "can", "could", "dear", "did", "do", "does", "for", "from", "fwd", "get", "had", "has",
    "have", "he", "hello", "her", "here", "hi", "him", "his", "how", "if", "in", "into", "is", "it", "its", "just",
    "know", "let", "like", "may", "me", "might", "more", "my", "no", "not", "of", "on", "one", "or", "our", "out",
    "over", "please", "re", "regards", "she", "should", "so", "some", "such", "than", "thank", "thanks", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "to", "too", "up", "us", "very", "was", "we",
    "were", "what", "when", "where", "which", "who", "will", "with", "would", "yes", "you", "your",
];

/// Returns the distinct words of a text that count.
pub(crate) fn of(text: &str) -> BTreeSet<String> {
    words(text).collect()
}

/// Returns the first distinct words of a query, without duplicates and in alphabetical order.
pub(crate) fn of_query(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for word in words(text) {
        if found.len() == MAX_WORDS {
            break;
        }
        found.insert(word);
    }
    found
}

/// Returns the similarity of two sets of words, from 0 to 1.
pub(crate) fn similarity(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f32 {
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    let shared = one.intersection(other).count() as f64;
    (shared / (one.len() as f64 * other.len() as f64).sqrt()) as f32
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_alphanumeric());
    parts.map(str::to_lowercase).filter(|word| {
        (2..=MAX_LENGTH).contains(&word.chars().count()) && COMMON.binary_search(&word.as_str()).is_err()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_words_are_sorted() {
        assert!(COMMON.is_sorted());
    }

    #[test]
    fn words_are_compared_without_case_and_without_common_ones() {
        let one = of("Re: Refund for order 4711, please!");
        assert_eq!(one.iter().map(String::as_str).collect::<Vec<_>>(), ["4711", "order", "refund"]);
        assert_eq!(similarity(&one, &of("ORDER 4711: refund")), 1.0);
        assert_eq!(similarity(&one, &of("the and of")), 0.0);
        let half = similarity(&of("refund order"), &of("refund delay"));
        assert!((half - 0.5).abs() < 1e-6, "{half}");
    }

    #[test]
    fn a_query_has_a_limited_number_of_words() {
        let long: String = (0..500).map(|n| format!("word{n} ")).collect();
        assert_eq!(of_query(&long).len(), MAX_WORDS);
        assert!(of_query(&"x".repeat(100)).is_empty(), "no word");
    }
}
