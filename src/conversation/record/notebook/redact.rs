//! Hides values in exports: those of named fields, those that match a pattern, and people.

use countersign_config::Record;
use countersign_graph::store::AuditEntry;
use serde_json::Value;

use super::people::People;

/// The rules for hiding values in exports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redaction {
    fields: Vec<String>,
    patterns: Vec<String>,
    pseudonyms: bool,
}

impl From<&Record> for Redaction {
    fn from(settings: &Record) -> Self {
        Self {
            fields: settings.redact.clone(),
            patterns: settings.redact_matching.iter().map(|pattern| pattern.to_lowercase()).collect(),
            pseudonyms: settings.pseudonyms,
        }
    }
}

impl Redaction {
    /// Returns true if people appear as `Person 1` instead of by name.
    pub(super) fn hides_people(&self) -> bool {
        self.pseudonyms
    }

    /// Returns the record of a thread with its secret values hidden. People have numbers in it if they are hidden.
    pub async fn applied(&self, record: Vec<AuditEntry>) -> Vec<AuditEntry> {
        if *self == Self::default() {
            return record;
        }
        let people = People::of(&record, self.pseudonyms, None).await;
        record.into_iter().map(|entry| self.apply(entry, &people)).collect()
    }

    /// Returns the entry with its secret values hidden.
    pub(super) fn apply(&self, entry: AuditEntry, people: &People) -> AuditEntry {
        entry.hide(|place, value, commitment| {
            if self.hides(place, value) {
                return Some(placeholder(commitment));
            }
            let shown = value.as_str().filter(|_| self.pseudonyms).map(|text| people.pseudonymized(text))?;
            (Some(shown.as_str()) != value.as_str()).then_some(shown)
        })
    }

    fn hides(&self, place: &str, value: &Value) -> bool {
        let is = |step: &str| self.fields.iter().any(|field| field == step);
        let named = || place.split('/').skip(1).any(is);
        let text = || match value {
            Value::String(text) => text.to_lowercase(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let alike = || {
            let text = text();
            self.patterns.iter().any(|pattern| text.split_whitespace().any(|word| matches(pattern, word)))
        };
        named() || (!self.patterns.is_empty() && alike())
    }
}

/// Returns the placeholder of a hidden value, with enough of its commitment to distinguish values.
pub fn placeholder(commitment: &str) -> String {
    format!("[hidden {}]", commitment.get(..8).unwrap_or("completely"))
}

/// Returns true if `word` matches `pattern`, in which `*` stands for anything.
fn matches(pattern: &str, word: &str) -> bool {
    let Some((start, end)) = pattern.split_once('*') else { return word == pattern };
    let Some(rest) = word.strip_prefix(start) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| matches(end, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_anything() {
        for (pattern, word, is) in [
            ("*@*", "ann@example.org", true),
            ("*@*.org", "ann@example.org", true),
            ("*@*.org", "ann@example.com", false),
            ("ann", "ann", true),
            ("ann", "anne", false),
            ("st-*", "st-0042", true),
            ("st-*-x", "st-0042", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("*ab*ab", "ab", false),
        ] {
            assert_eq!(matches(pattern, word), is, "{pattern} and {word}");
        }
    }
}
