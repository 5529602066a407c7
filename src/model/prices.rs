//! What models cost.
//!
//! The table is `prices.txt`, with its date and sources. The settings can replace a row or add one.

use std::{collections::BTreeMap, sync::LazyLock};

use super::Usage;

/// Billionths of a US dollar, in which costs are counted, in one dollar.
pub const NANO: f64 = 1e9;

/// The price of a model, in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Input that is not read from the cache.
    pub input: f64,
    /// Input that is read from the cache.
    pub cached: f64,
    /// Output.
    pub output: f64,
}

impl Price {
    /// Returns the cost of a call, in billionths of a US dollar.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let parts =
            [(usage.input_tokens, self.input), (usage.cached_tokens, self.cached), (usage.output_tokens, self.output)];
        // A dollar for a million tokens is a thousand billionths for each.
        parts.map(|(tokens, price)| (tokens as f64 * price * 1e3).round() as u64).iter().sum()
    }
}

/// Returns the price of a model: that in `own`, or else that in the table. A row also holds for the model's name with a
/// date or `latest` at its end, and for its preview.
pub fn price_of(model: &str, own: &BTreeMap<String, Price>) -> Option<Price> {
    let of = |table: &BTreeMap<String, Price>| {
        let longest = table.iter().filter(|(name, _)| is_edition_of(model, name)).max_by_key(|(name, _)| name.len());
        longest.map(|(_, price)| *price)
    };
    of(own).or_else(|| of(&TABLE))
}

/// Returns true if `model` is this name, or this name with an edition.
fn is_edition_of(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return false };
    let edition = rest.strip_prefix(['-', '@']);
    rest.is_empty()
        || edition.is_some_and(|edition| {
            edition.starts_with("latest") || edition.starts_with("preview") || edition.starts_with("20")
        })
}

/// Writes an amount of billionths of a US dollar for people, such as `$0.042`.
pub fn dollars(nano_usd: u64) -> String {
    match nano_usd as f64 / NANO {
        0.0 => "$0.00".to_owned(),
        usd if usd < 0.001 => "less than $0.001".to_owned(),
        usd if usd < 0.1 => format!("${usd:.3}"),
        usd => format!("${usd:.2}"),
    }
}

/// Returns the date of the table, such as `2026-11-05`.
pub fn table_date() -> &'static str {
    let date = TEXT.lines().find_map(|line| line.strip_prefix("# As of ")?.split(':').next());
    date.expect("a test reads the date")
}

/// The table.
const TEXT: &str = include_str!("prices.txt");

static TABLE: LazyLock<BTreeMap<String, Price>> = LazyLock::new(|| {
    TEXT.lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| row(line).expect("a test reads the table"))
        .collect()
});

fn row(line: &str) -> Option<(String, Price)> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let mut price = || words.next()?.parse().ok();
    let price = Price { input: price()?, cached: price()?, output: price()? };
    words.next().is_none().then_some((name, price))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(model: &str) -> Option<Price> {
        price_of(model, &BTreeMap::new())
    }

    #[test]
    fn every_row_is_a_price() {
        assert!(TABLE.len() > 20);
        for (name, Price { input, cached, output }) in &*TABLE {
            assert!(0.0 < *cached && cached < input && input < output, "{name}");
        }
        let parts: Vec<_> = table_date().split('-').map(|part| part.parse::<u16>().is_ok()).collect();
        assert_eq!((parts, table_date().len()), (vec![true; 3], 10), "{}", table_date());
    }

    #[test]
    fn a_row_holds_for_editions_and_for_no_other_model() {
        let mini = Price { input: 0.4, cached: 0.1, output: 1.6 };
        for name in ["gpt-4.1-mini", "gpt-4.1-mini-2025-04-14", "gpt-4.1-mini-latest"] {
            assert_eq!(found(name), Some(mini), "{name}");
        }
        assert_eq!(found("claude-sonnet-5-5-20260901").map(|price| price.cached), Some(0.1));
        assert_eq!(found("claude-sonnet-5@20260301").map(|price| price.cached), Some(0.2));
        for name in ["gpt-4.1-huge", "claude-sonnet-5-9", "claude", "my-model"] {
            assert_eq!(found(name), None, "{name}");
        }
    }

    #[test]
    fn the_settings_come_first() {
        let own = Price { input: 1.0, cached: 1.0, output: 1.0 };
        let own = BTreeMap::from([("gpt-4.1".to_owned(), own), ("my-model".to_owned(), own)]);
        assert_eq!(price_of("gpt-4.1", &own).map(|price| price.output), Some(1.0));
        assert_eq!(price_of("my-model", &own).map(|price| price.output), Some(1.0));
        assert_eq!(price_of("gpt-4.1-mini", &own).map(|price| price.output), Some(1.6));
    }

    #[test]
    fn a_call_costs_the_sum_of_its_tokens() {
        let usage = Usage { input_tokens: 900, cached_tokens: 4_000, output_tokens: 120, ..Usage::default() };
        // 0.0018 + 0.0004 + 0.0012 dollars.
        assert_eq!(found("claude-sonnet-5-5").map(|price| price.cost(&usage)), Some(3_400_000));
    }

    #[test]
    fn amounts_are_written_for_people() {
        let written = [0, 400_000, 3_400_000, 120_000_000, 12_345_000_000].map(dollars);
        assert_eq!(written, ["$0.00", "less than $0.001", "$0.003", "$0.12", "$12.35"]);
    }
}
