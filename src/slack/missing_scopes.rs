//! The scopes that have turned out to be missing. Each is logged once, and shown by `/readyz` as long as the process
//! runs.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// The scopes that the app lacks, each with the first method that was refused for it.
#[derive(Debug, Default)]
pub struct MissingScopes {
    found: Mutex<BTreeMap<String, &'static str>>,
}

impl MissingScopes {
    /// Records that Slack refused `method` because `scope` is missing. Logs an error the first time.
    pub(super) fn note(&self, scope: &str, method: &'static str) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.contains_key(scope) {
            return;
        }
        found.insert(scope.to_owned(), method);
        tracing::error!(
            scope,
            method,
            "The Slack app lacks a scope: add it under OAuth & Permissions (or take the manifest in deploy/), then install \
             the app again"
        );
    }

    /// Returns a line for each missing scope: `files:write (for files.getUploadURLExternal)`.
    pub fn lines(&self) -> Vec<String> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.iter().map(|(scope, method)| format!("{scope} (for {method})")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_is_listed_once() {
        let missing = MissingScopes::default();
        missing.note("files:write", "files.getUploadURLExternal");
        missing.note("files:write", "files.completeUploadExternal");
        missing.note("im:write", "conversations.open");
        assert_eq!(
            missing.lines(),
            ["files:write (for files.getUploadURLExternal)", "im:write (for conversations.open)"]
        );
    }
}
