//! The additions of capabilities to the settings: sections of their own, and measures that envelopes can limit.

use std::{any::Any, collections::BTreeMap, fmt};

use secrecy::SecretString;
use serde_json::Value;

use super::{Problem, measure::Measure};

/// Everything that capabilities add to the settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Additions {
    /// Their sections.
    pub sections: &'static [SectionSpec],
    /// The measures that envelopes can limit.
    pub measures: &'static [&'static [Measure]],
}

/// A section of a capability.
#[derive(Clone, Copy, Debug)]
pub struct SectionSpec {
    /// Its name in the settings.
    pub name: &'static str,
    /// Its secrets: key, and the variable that alone may hold it.
    pub secrets: &'static [(&'static str, &'static str)],
    /// The secret of each entry, for a section whose keys are names that operators choose: its key in the entry, and
    /// the variable's parts before and after the name, such as `("token", "MCP_", "_TOKEN")`.
    pub entry_secret: Option<(&'static str, &'static str, &'static str)>,
    /// The usual names of some settings: variable, and key.
    pub usual_names: &'static [(&'static str, &'static str)],
    /// The keys that the default settings only show in a comment.
    pub optional: &'static [&'static str],
    /// Reads the values. The error says what is wrong with one of them.
    pub read: fn(Value) -> Result<Box<dyn Section>, serde_json::Error>,
}

impl SectionSpec {
    /// Returns the variable that alone may hold the secret with this key, such as `files.token`.
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
    /// Adds the secrets, by key; that of an entry by the entry's name and its key, with a dot between them.
    fn add_secrets(&mut self, secret: &dyn Fn(&str) -> Option<SecretString>);

    /// Returns the wrong values, each with what would be right.
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
    /// If no capability brings it.
    pub fn get<T: Section>(&self) -> &T {
        let all = self.0.values().map(|section| &**section as &dyn Any);
        all.into_iter().find_map(|section| section.downcast_ref()).expect("the capability's section is registered")
    }

    /// Returns the section of this type, to be changed.
    ///
    /// # Panics
    ///
    /// If no capability brings it.
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
