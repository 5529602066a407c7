//! The definitions of tools that an operator accepted, in a file, and the differences since.
//!
//! A server can change its tools after an operator has reviewed them. So the whole definition is kept, not just a
//! digest: a tool is offered as it was accepted, and refused while the server defines it differently.

use std::{collections::BTreeMap, io, path::Path};

use countersign_graph::digest::Digest;
use countersign_mcp_client::ToolDefinition;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The maximum length of a shown value, in characters.
const MAX_CHARS: usize = 120;

/// The accepted definitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// The definitions by the names of their tools.
    pub tools: BTreeMap<String, Pinned>,
}

/// An accepted definition with its digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pinned {
    /// The digest of the definition.
    pub digest: Digest,
    /// The definition.
    pub definition: ToolDefinition,
}

/// Returns the digest of a whole definition.
pub fn digest(definition: &ToolDefinition) -> Digest {
    Digest::of(&[&json!(definition)])
}

impl Accepted {
    /// Reads the file. A missing file has no definitions.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or a definition in it does not match its digest.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let accepted: Self = serde_json::from_str(&text)?;
        let changed = accepted.tools.iter().find(|(_, pinned)| digest(&pinned.definition) != pinned.digest);
        match changed {
            Some((name, _)) => {
                anyhow::bail!("the entry for {name} was edited by hand; remove the file and accept the tools again")
            }
            None => Ok(accepted),
        }
    }

    /// Replaces the file as a whole: a running bot may read it at any moment.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let new = path.with_extension("new");
        std::fs::write(&new, format!("{:#}\n", json!(self)))?;
        std::fs::rename(&new, path)
    }

    /// Accepts a definition.
    pub fn accept(&mut self, definition: ToolDefinition) {
        let pinned = Pinned { digest: digest(&definition), definition };
        self.tools.insert(pinned.definition.name.clone(), pinned);
    }
}

/// Returns the differences between the accepted definition and the present one: each place with both values.
pub fn differences(accepted: &ToolDefinition, present: &ToolDefinition) -> Vec<String> {
    let mut found = Vec::new();
    compare("", &json!(accepted), &json!(present), &mut found);
    found
}

fn compare(place: &str, accepted: &Value, present: &Value, found: &mut Vec<String>) {
    if accepted == present {
        return;
    }
    if let (Value::Object(before), Value::Object(after)) = (accepted, present) {
        for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
            let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
            let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
            compare(&place, &of(before), &of(after), found);
        }
        return;
    }
    let shown = |value: &Value| match value {
        Value::Null => "nothing".to_owned(),
        value => {
            let text: String = value.to_string().chars().filter(|c| !c.is_control()).collect();
            match text.char_indices().nth(MAX_CHARS) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    };
    found.push(format!("{place} was {}, is {}", shown(accepted), shown(present)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(description: &str) -> ToolDefinition {
        ToolDefinition {
            name: "echo".to_owned(),
            description: description.to_owned(),
            schema: json!({ "type": "object", "properties": { "message": { "type": "string" } } }),
            reads: true,
            destroys: false,
            idempotent: true,
            needs_task: false,
        }
    }

    #[test]
    fn a_difference_names_the_place_and_both_values() {
        let mut after = definition("Echoes\nand more");
        after.schema["properties"]["message"]["type"] = json!("number");
        after.reads = false;
        let found = differences(&definition("Echoes"), &after);
        assert_eq!(
            found,
            [
                r#"description was "Echoes", is "Echoes\nand more""#,
                "reads was true, is false",
                r#"schema.properties.message.type was "string", is "number""#,
            ]
        );
        assert!(differences(&after, &after).is_empty());
        assert_ne!(digest(&definition("Echoes")), digest(&after));
    }

    #[test]
    fn what_was_accepted_is_read_back_and_not_edited_by_hand() {
        let folder = std::env::temp_dir().join(format!("countersign-accepted-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("tools.json");
        assert_eq!(Accepted::read(&path).unwrap(), Accepted::default());
        let mut accepted = Accepted::default();
        accepted.accept(definition("Echoes"));
        accepted.write(&path).unwrap();
        assert_eq!(Accepted::read(&path).unwrap(), accepted);
        let text = std::fs::read_to_string(&path).unwrap().replace("Echoes", "Deletes");
        std::fs::write(&path, text).unwrap();
        assert!(Accepted::read(&path).unwrap_err().to_string().contains("edited by hand"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
