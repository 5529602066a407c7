//! The name that may have been meant by a wrong one.

/// The similarity, from 0 to 1, from which a known name is suggested for a wrong one.
const MIN_SIMILARITY: f64 = 0.6;

/// Returns the known name that is most like this one, ignoring case, if any is similar enough.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let similarity = |known: &str| strsim::normalized_damerau_levenshtein(&known.to_lowercase(), &name);
    let known = known.map(|known| (similarity(known), known)).max_by(|(a, _), (b, _)| a.total_cmp(b));
    known.filter(|(similarity, _)| *similarity >= MIN_SIMILARITY).map(|(_, known)| known)
}
