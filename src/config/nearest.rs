//! Suggestions for misspelled names.

/// The minimum similarity, from 0 to 1, of a name that is suggested for a wrong one.
const MIN_SIMILARITY: f64 = 0.6;

/// Returns the known name that is most similar to this one, ignoring case, if it is similar enough.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    by_similarity(name, known).filter(|(similarity, _)| *similarity >= MIN_SIMILARITY).map(|(_, known)| known)
}

/// Returns the known name that is most similar to this one, ignoring case, however little that is.
pub fn most_similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    by_similarity(name, known).map(|(_, known)| known)
}

fn by_similarity<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<(f64, &'a str)> {
    let name = name.to_lowercase();
    let similarity = |known: &str| strsim::normalized_damerau_levenshtein(&known.to_lowercase(), &name);
    known.map(|known| (similarity(known), known)).max_by(|(a, _), (b, _)| a.total_cmp(b))
}
