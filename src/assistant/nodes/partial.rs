//! Changes that are understood or accepted only in part: the rest is kept as a draft.

use countersign_graph::action::{PrepareError, Reader, Refusal};
use countersign_understanding::situation::Draft;
use serde_json::Value;

use super::{
    super::{
        exchange::{self, Call},
        tools,
    },
    round::Rounds,
};

impl Rounds {
    /// Returns the change that a response proposes together with a question about a part of it.
    pub(super) fn begun_draft(&self, calls: &[Call]) -> Option<Draft> {
        let proposed = |call: &Call| {
            let action = tools::proposed_action(&call.name)?;
            let schema = self.registry.schema_of(action).filter(|_| self.registry.book.makes_new(action))?;
            let Value::Object(params) = exchange::validate(&call.input, &schema).ok()? else { return None };
            Some(Draft::begun(action, params))
        };
        calls.iter().find_map(proposed)
    }

    /// Returns the parameter whose value is the reason why a new thing is refused: without it, the rest is accepted or
    /// something else is missing. Otherwise, if it was added to what was `known` and is the only one without which
    /// nothing is refused, it is that one.
    pub(super) async fn wrong_parameter(
        &self,
        change: &Draft,
        known: Option<&Draft>,
        reader: &Reader,
    ) -> Option<String> {
        let action = self.registry.actions.get(change.action.as_str())?;
        if !self.registry.book.makes_new(&change.action) || change.params.len() < 2 {
            return None;
        }
        let is_new = |key: &&String| known.is_none_or(|known| known.params.get(*key) != change.params.get(*key));
        let mut needed = Vec::new();
        for key in change.params.keys().filter(is_new) {
            let mut rest = change.params.clone();
            rest.remove(key);
            let prepared = action.prepare_for(&Value::Object(rest), reader).await;
            let is_accepted = match prepared {
                Ok(_) => true,
                Err(PrepareError::Refusal(Refusal::Missing(missing))) => {
                    let is_needed = missing.iter().any(|missing| missing.name == *key);
                    needed.extend(is_needed.then_some(key));
                    !is_needed
                }
                Err(_) => false,
            };
            if is_accepted {
                return Some(key.clone());
            }
        }
        match needed.as_slice() {
            [only] if known.is_some() => Some((*only).clone()),
            _ => None,
        }
    }
}
