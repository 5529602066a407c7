//! `[watches]`: the settings of this capability.

use std::time::Duration;

use countersign_config::{Problem, Section, SectionSpec, between};
use secrecy::SecretString;
use serde::Deserialize;

/// `[watches]`: looks at the things that people follow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchSettings {
    /// The time between two looks at a thing, such as `"1min"`.
    #[serde(with = "humantime_serde")]
    pub every: Duration,
    /// The time after which people are told that a thing cannot be read, such as `"1h"`.
    #[serde(with = "humantime_serde")]
    pub tell_after: Duration,
}

/// The section, for the reader of the settings.
pub const SECTION: SectionSpec = SectionSpec {
    name: "watches",
    defaults: include_str!("default.toml"),
    secrets: &[],
    entry_secret: None,
    usual_names: &[],
    optional: &[],
    lists: &[],
    read: |values| Ok(Box::new(serde_json::from_value::<WatchSettings>(values)?)),
};

impl Section for WatchSettings {
    fn add_secrets(&mut self, _: &dyn Fn(&str) -> Option<SecretString>) {}

    fn problems(&self) -> Vec<Problem> {
        let times = [("every", self.every, 3600), ("tell_after", self.tell_after, 24 * 3600)];
        let wrong = |(key, time, most)| Some(Problem { key: format!("watches.{key}"), what: between(time, 1, most)? });
        times.into_iter().filter_map(wrong).collect()
    }

    fn boxed(&self) -> Box<dyn Section> {
        Box::new(self.clone())
    }
}
