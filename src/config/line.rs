//! The default models: the newest of a line of models, such as the newest Sonnet.
//!
//! Providers retire a model after a year or two, and its successor has another name, so a fixed default would stop working.

use super::model::Provider;

/// A line of models, of which each is the successor of the one before.
#[derive(Debug)]
pub struct Line {
    /// The name of the line, as in “the newest Sonnet”.
    pub name: &'static str,
    /// The name of its newest model when this program was built. It is used if the provider's list cannot be read.
    pub known: &'static str,
    /// The part of a model's name before its version.
    before: &'static str,
    /// The part after its version: any of these.
    after: &'static [&'static str],
}

impl Line {
    /// Returns the line of a provider that is used if no model is named.
    pub fn of(provider: Provider) -> &'static Self {
        match provider {
            Provider::Anthropic => {
                &Self { name: "Sonnet", known: "claude-sonnet-5-5", before: "claude-sonnet-", after: &[""] }
            }
            // Luna is what mini was up to version 5.4.
            Provider::OpenAi => &Self { name: "Luna", known: "gpt-6-luna", before: "gpt-", after: &["-luna", "-mini"] },
            Provider::Gemini => {
                &Self { name: "Flash", known: "gemini-3.8-flash", before: "gemini-", after: &["-flash"] }
            }
        }
    }

    /// Returns the newest of these models that is in the line.
    pub fn newest<'a>(&self, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        newest(names.filter(|name| self.contains(name)))
    }

    /// Returns true if a model of this name is in the line.
    pub fn contains(&self, name: &str) -> bool {
        let Some(rest) = name.strip_prefix(self.before) else { return false };
        let is_version = |version: &str| {
            version.starts_with(|c: char| c.is_ascii_digit())
                && version.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-')
        };
        self.after.iter().any(|after| rest.strip_suffix(after).is_some_and(is_version))
    }
}

/// Returns the newest of the models that differ from this one only in their version, such as `claude-haiku-5-5` for
/// `claude-haiku-4-5`.
pub fn successor<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let kind = |name: &str| -> Vec<String> {
        let parts = name.split(['-', '.']).filter(|part| !part.starts_with(|c: char| c.is_ascii_digit()));
        parts.map(str::to_owned).collect()
    };
    let own = kind(name);
    newest(names.filter(|other| kind(other) == own && version(other) > version(name)))
}

/// Returns the name with the highest version; of several, the one without a date.
fn newest<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names.max_by_key(|name| (version(name), std::cmp::Reverse(name.len())))
}

/// Returns the numbers in a name, without a date.
fn version(name: &str) -> Vec<u32> {
    const LEAST_YEAR: u32 = 2000;
    let numbers = name.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
    numbers.take_while(|number| *number < LEAST_YEAR).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_a_line_is_found() {
        let newest = |provider, names: &[&'static str]| Line::of(provider).newest(names.iter().copied());
        let claude = ["claude-opus-5-5", "claude-sonnet-4-5-20250929", "claude-sonnet-5-5", "claude-sonnet-5"];
        assert_eq!(newest(Provider::Anthropic, &claude), Some("claude-sonnet-5-5"));
        let dated = ["claude-sonnet-4-20250514", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5"];
        assert_eq!(newest(Provider::Anthropic, &dated), Some("claude-sonnet-4-5"));
        let gpt = ["gpt-5.4-mini", "gpt-5.6-luna", "gpt-6.1-sol", "gpt-6-luna", "gpt-5.4-mini-2026-03-17", "o4-mini"];
        assert_eq!(newest(Provider::OpenAi, &gpt), Some("gpt-6-luna"));
        assert_eq!(newest(Provider::OpenAi, &gpt[..1]), Some("gpt-5.4-mini"));
        let gemini = ["gemini-3.8-flash", "gemini-3.10-flash", "gemini-3.5-flash-lite", "gemini-4-flash-image"];
        assert_eq!(newest(Provider::Gemini, &gemini), Some("gemini-3.10-flash"));
        assert_eq!(newest(Provider::Gemini, &["llama-3"]), None);
    }

    #[test]
    fn the_known_model_of_each_line_belongs_to_it() {
        for provider in Provider::ALL {
            let line = Line::of(provider);
            assert_eq!(line.newest([line.known].into_iter()), Some(line.known));
        }
    }

    #[test]
    fn a_successor_differs_only_in_its_version() {
        let names = ["claude-haiku-4-5-20251001", "claude-haiku-5-5", "claude-sonnet-5-5", "gpt-5.4-mini"];
        let successor = |name| successor(name, names.iter().copied());
        assert_eq!(successor("claude-haiku-4-5"), Some("claude-haiku-5-5"));
        assert_eq!(successor("gpt-4.1-mini"), Some("gpt-5.4-mini"));
        assert_eq!(successor("claude-haiku-5-5"), None);
        assert_eq!(successor("mistral-large"), None);
    }
}
