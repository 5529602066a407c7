//! `countersign key`: makes keys, and shows what to put into the settings. The settings are the operator's file, so no
//! command writes it. A running bot reads it again, so a key works or ends at once.

use clap::Subcommand;

use crate::{
    keys,
    settings::{Api, Key},
};

/// Makes and lists keys.
#[derive(Clone, Debug, Subcommand)]
pub enum KeyCommand {
    /// Makes a key, prints it once, and shows what to put into the settings.
    Create {
        /// The name of the key.
        name: String,
    },
    /// Makes a second secret for a key, so that both work until the old one is removed.
    Rotate {
        /// The name of the key.
        name: String,
    },
    /// Lists the keys in the settings.
    List,
    /// Shows what to change in the settings so that a key ends.
    Revoke {
        /// The name of the key.
        name: String,
    },
}

/// What a command prints: lines for standard output, and lines for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The lines on standard output: a new key, or the list.
    pub out: Vec<String>,
    /// The lines for people.
    pub told: Vec<String>,
}

/// Runs a command on keys.
///
/// # Errors
///
/// A sentence, if there is no such key, or there is one already.
pub fn run(command: &KeyCommand, api: &Api) -> Result<Printed, String> {
    let known = |name: &String| {
        api.keys
            .get(name)
            .ok_or_else(|| format!("there is no key `{name}` in the settings; `countersign key list` shows them"))
    };
    match command {
        KeyCommand::List => {
            Ok(Printed { out: api.keys.iter().map(|(name, key)| line(name, key)).collect(), told: Vec::new() })
        }
        KeyCommand::Create { name } => {
            if let Some(what) = crate::settings::wrong_name(name) {
                return Err(what);
            }
            if api.keys.contains_key(name) {
                return Err(format!(
                    "there is a key `{name}`; `countersign key rotate {name}` makes a new secret for it"
                ));
            }
            let (key, hash) = keys::create(name);
            let told = vec![
                "This key is shown once. Put this into the settings, with the policies that it may name:".to_owned(),
                format!("[api.keys.{name}]"),
                format!("hashes = [\"{hash}\"]"),
                "scopes = [\"create\", \"read\", \"cancel\", \"claim\", \"report\"]".to_owned(),
                "policies = []".to_owned(),
            ];
            Ok(Printed { out: vec![key], told })
        }
        KeyCommand::Rotate { name } => {
            let old = known(name)?;
            let (key, hash) = keys::create(name);
            let hashes: Vec<_> =
                std::iter::once(&hash).chain(old.hashes.first()).map(|hash| format!("\"{hash}\"")).collect();
            let told = vec![
                format!("This key is shown once. Put this into [api.keys.{name}]; the old key works as well:"),
                format!("hashes = [{}]", hashes.join(", ")),
                "Once all programs have the new key, put this:".to_owned(),
                format!("hashes = [\"{hash}\"]"),
            ];
            Ok(Printed { out: vec![key], told })
        }
        KeyCommand::Revoke { name } => {
            known(name)?;
            let told = vec![
                format!("To revoke the key at once, put this into [api.keys.{name}]:"),
                "hashes = []".to_owned(),
                "Its open requests stay on their cards. People can reject them.".to_owned(),
            ];
            Ok(Printed { out: Vec::new(), told })
        }
    }
}

fn line(name: &str, key: &Key) -> String {
    let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.name()).collect();
    let state = match key.hashes.len() {
        0 => "revoked",
        1 => "1 secret",
        _ => "2 secrets",
    };
    let expires = key.expires.as_deref().map(|day| format!(", until {day}")).unwrap_or_default();
    format!("{name}: {state}{expires}; may {}; for {}", scopes.join(", "), key.policies.join(", "))
}
