//! All capabilities together, by the names of their tools and actions.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::Value;

use super::{Capability, Tool};
use crate::graph::action::ActionKind;

/// All tools and actions by name.
#[derive(Clone, Default)]
pub struct Registry {
    /// The capabilities, in the order in which they are told.
    pub capabilities: Vec<Arc<dyn Capability>>,
    /// What reads.
    pub tools: BTreeMap<&'static str, Arc<dyn Tool>>,
    /// What changes.
    pub actions: BTreeMap<&'static str, Arc<dyn ActionKind>>,
    /// The place of each action's capability.
    owners: BTreeMap<&'static str, usize>,
}

/// Why capabilities do not fit together: a fault of the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two capabilities have one name.
    #[error("there are two capabilities called `{0}`")]
    Capability(&'static str),
    /// Two tools or actions have one name. A model calls both by name alone.
    #[error("`{name}` of {capability} has a name that is taken")]
    Taken {
        /// The tool or action.
        name: &'static str,
        /// The capability that came second.
        capability: &'static str,
    },
    /// Arguments cannot be checked against it.
    #[error("the schema of `{name}` cannot be used: {reason}")]
    Schema {
        /// The tool or action.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl Registry {
    /// All of these together.
    ///
    /// # Errors
    ///
    /// [`RegistryError`], if a name is there twice or a schema is none.
    pub fn build(capabilities: Vec<Arc<dyn Capability>>) -> Result<Self, RegistryError> {
        let mut registry = Self::default();
        for capability in capabilities {
            if registry.capabilities.iter().any(|known| known.name() == capability.name()) {
                return Err(RegistryError::Capability(capability.name()));
            }
            for tool in capability.tools() {
                registry.admits(tool.name(), &tool.schema(), &*capability)?;
                registry.tools.insert(tool.name(), tool);
            }
            for action in capability.actions() {
                registry.admits(action.name(), &action.schema(), &*capability)?;
                registry.owners.insert(action.name(), registry.capabilities.len());
                registry.actions.insert(action.name(), action);
            }
            registry.capabilities.push(capability);
        }
        Ok(registry)
    }

    /// The capability that an action belongs to.
    pub fn of_action(&self, action: &str) -> Option<&dyn Capability> {
        self.owners.get(action).map(|at| &*self.capabilities[*at])
    }

    /// The name of the thing that a change is about, as [`Capability::subject`].
    pub fn subject(&self, action: &str, parameters: &Value, result: &Value) -> Option<String> {
        self.of_action(action)?.subject(parameters, result)
    }

    /// What somebody can begin with, of all capabilities: a label, and the request.
    pub fn suggestions(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.capabilities.iter().flat_map(|capability| capability.suggestions().iter().copied())
    }

    fn admits(&self, name: &'static str, schema: &Value, capability: &dyn Capability) -> Result<(), RegistryError> {
        if self.tools.contains_key(name) || self.actions.contains_key(name) {
            return Err(RegistryError::Taken { name, capability: capability.name() });
        }
        let reason = |error: jsonschema::ValidationError<'_>| error.to_string();
        let usable = jsonschema::validator_for(schema).map_err(reason);
        usable.map(drop).map_err(|reason| RegistryError::Schema { name, reason })
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("tools", &self.tools.keys()).field("actions", &self.actions.keys()).finish()
    }
}
