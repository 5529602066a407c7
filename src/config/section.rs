//! The settings that capabilities add: their own sections, and the measures that envelopes can limit.

use std::{any::Any, collections::BTreeMap, fmt};

use secrecy::SecretString;
use serde_json::Value;

use super::{Problem, measure::Measure};

/// Everything that capabilities add to the settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Additions {
    /// The sections of the capabilities.
    pub sections: &'static [SectionSpec],
    /// The measures that envelopes can limit.
    pub measures: &'static [&'static [Measure]],
}

/// A section of a capability.
#[derive(Clone, Copy, Debug)]
pub struct SectionSpec {
    /// The name of the section in the settings.
    pub name: &'static str,
    /// The default settings in TOML, each with an explanation; a part of `config/default.toml`.
    pub defaults: &'static str,
    /// The secrets, as pairs of the key and the only variable that may contain it.
    pub secrets: &'static [(&'static str, &'static str)],
    /// The secret of each entry, for a section whose keys are names chosen by operators: the key within the entry, and
    /// the parts of the variable before and after the name, such as `("token", "MCP_", "_TOKEN")`.
    pub entry_secret: Option<(&'static str, &'static str, &'static str)>,
    /// The conventional variables of some settings, as pairs of variable and key.
    pub usual_names: &'static [(&'static str, &'static str)],
    /// The keys that appear only in comments of the default settings.
    pub optional: &'static [&'static str],
    /// The keys, of the section or of its entries, whose values are lists.
    pub lists: &'static [&'static str],
    /// Reads the values. The error describes a wrong value.
    pub read: fn(Value) -> Result<Box<dyn Section>, serde_json::Error>,
}

impl SectionSpec {
    /// Returns the only variable that may contain the secret with this key, such as `files.token`.
    pub(super) fn variable_of(&self, key: &str) -> Option<String> {
        let own = self.secrets.iter().find(|secret| secret.0 == key).map(|(_, variable)| (*variable).to_owned());
        own.or_else(|| {
            let (secret, before, after) = self.entry_secret?;
            let (name, _) = key.split_once('.').filter(|(_, last)| *last == secret)?;
            let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
            Some(format!("{before}{}{after}", name.chars().map(plain).collect::<String>()))
        })
    }
}

/// The values of a section.
pub trait Section: Any + fmt::Debug + Send + Sync {
    /// Adds the secrets, which `secret` returns by key. The secret of an entry has the key `<entry>.<key>`.
    fn add_secrets(&mut self, secret: &dyn Fn(&str) -> Option<SecretString>);

    /// Puts the values of environment variables, which `variable` returns by name, where the settings name them. The
    /// default is for a section whose settings name none.
    fn add_variables(&mut self, variable: &dyn Fn(&str) -> Option<SecretString>) {
        let _ = variable;
    }

    /// Describes each wrong value and what would be right.
    fn problems(&self) -> Vec<Problem>;

    /// Returns a boxed copy.
    fn boxed(&self) -> Box<dyn Section>;
}

/// The sections of the capabilities, by name.
#[derive(Debug, Default)]
pub struct Sections(pub(super) BTreeMap<&'static str, Box<dyn Section>>);

impl Sections {
    /// Returns the section of this type.
    ///
    /// # Panics
    ///
    /// If no capability adds such a section.
    pub fn get<T: Section>(&self) -> &T {
        let all = self.0.values().map(|section| &**section as &dyn Any);
        all.into_iter().find_map(|section| section.downcast_ref()).expect("the capability's section is registered")
    }

    /// Returns the section of this type for modification.
    ///
    /// # Panics
    ///
    /// If no capability adds such a section.
    pub fn get_mut<T: Section>(&mut self) -> &mut T {
        let all = self.0.values_mut().map(|section| &mut **section as &mut dyn Any);
        all.into_iter().find_map(|section| section.downcast_mut()).expect("the capability's section is registered")
    }
}

impl Clone for Sections {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|(name, section)| (*name, section.boxed())).collect())
    }
}
