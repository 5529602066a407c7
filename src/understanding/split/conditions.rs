//! Conditions of requests in a message with several: `and only if it is even, start it`, `start it
//! only if it is even`.

/// A request with its condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditional<'a> {
    /// The condition, such as `it is even`; `None` if the request is unconditional.
    pub condition: Option<&'a str>,
    /// The request.
    pub request: &'a str,
}

impl Conditional<'_> {
    /// Returns true if the condition precedes the request.
    pub(crate) fn is_before(&self) -> bool {
        self.condition.is_some_and(|condition| condition.as_ptr() < self.request.as_ptr())
    }
}

/// The phrases that may introduce a condition before its request, longer ones first.
const OPENINGS: &[&str] = &[
    "only if ",
    "but only if ",
    "and only if ",
    "and if ",
    "but if ",
    "then if ",
    "if ",
    "provided that ",
    "provided ",
];

/// The phrases between a request and the condition after it.
const CLOSINGS: &[&str] =
    &[", but only if ", " but only if ", ", only if ", " only if ", " provided that ", " as long as "];

/// Words after “if” that express politeness rather than a condition.
const POLITE: &[&str] =
    &["possible", "you can", "you could", "you like", "you please", "needed", "necessary", "ok", "okay"];

/// The maximum length of a condition, in bytes.
const MAX_LENGTH: usize = 200;

/// Splits a request into its condition and the request itself.
pub fn split(request: &str) -> Conditional<'_> {
    let request = request.trim();
    before(request).or_else(|| after(request)).unwrap_or(Conditional { condition: None, request })
}

/// Parses `only if <condition>, <request>`. The separator is a comma, a colon or “then”.
fn before(request: &str) -> Option<Conditional<'_>> {
    let lower = request.to_ascii_lowercase();
    let opening = OPENINGS.iter().find(|opening| lower.starts_with(*opening))?;
    let separators = [", then ", ": ", ", ", " then "];
    let positions =
        separators.iter().filter_map(|separator| Some((lower[opening.len()..].find(separator)?, separator.len())));
    let (position, length) = positions.min_by_key(|(position, length)| (*position, std::cmp::Reverse(*length)))?;
    let (start, end) = (opening.len(), opening.len() + position);
    conditional(&request[start..end], &request[end + length..])
}

/// Parses `<request> only if <condition>`.
fn after(request: &str) -> Option<Conditional<'_>> {
    let lower = request.to_ascii_lowercase();
    let found = CLOSINGS.iter().filter_map(|closing| Some((lower.find(closing)?, closing.len())));
    let (position, length) = found.min()?;
    conditional(&request[position + length..], &request[..position])
}

fn conditional<'a>(condition: &'a str, request: &'a str) -> Option<Conditional<'a>> {
    let condition = condition.trim().trim_end_matches(['.', '!', '?']);
    let request = request.trim();
    let is_polite = POLITE.iter().any(|polite| condition.eq_ignore_ascii_case(polite));
    let is_usable = !is_polite && !condition.is_empty() && condition.len() <= MAX_LENGTH && !request.is_empty();
    is_usable.then_some(Conditional { condition: Some(condition), request })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_may_precede_or_follow_its_request() {
        for words in [
            "only if it is even, start it",
            "and only if it is even, start it",
            "if it is even then start it",
            "if it is even, then start it",
            "If it is even: start it",
            "start it only if it is even",
            "start it, but only if it is even.",
        ] {
            assert_eq!(split(words), Conditional { condition: Some("it is even"), request: "start it" }, "{words}");
        }
    }

    #[test]
    fn other_requests_have_no_condition() {
        for words in ["start it", "tell me if it ends", "if it is even", "only if , start it", "is it even?"] {
            assert_eq!(split(words), Conditional { condition: None, request: words }, "{words}");
        }
    }
}
