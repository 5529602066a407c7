//! The tools that a server runs only as tasks, which this client does not start. The library drops what a definition says
//! of that, so it is read from the messages beside it.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

/// The names of the tools that can only be called as tasks, as last listed.
#[derive(Debug, Default)]
pub(crate) struct TasksOnly(Mutex<HashSet<String>>);

impl TasksOnly {
    /// Reads a message of the server. A page of the list of its tools replaces what is known of these.
    pub(crate) fn note(&self, message: &[u8]) {
        let holds = |words: &[u8]| message.windows(words.len()).any(|part| part == words);
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !holds(b"taskSupport") && (names.is_empty() || !holds(b"inputSchema")) {
            return;
        }
        let Ok(message) = serde_json::from_slice::<Value>(message) else { return };
        for tool in message["result"]["tools"].as_array().into_iter().flatten() {
            let name = tool["name"].as_str().unwrap_or_default();
            match tool["execution"]["taskSupport"] == "required" {
                true => drop(names.insert(name.to_owned())),
                false => drop(names.remove(name)),
            }
        }
    }

    /// Returns true if a tool can only be called as a task.
    pub(crate) fn contains(&self, tool: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(tool)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(support: &str) -> Vec<u8> {
        let research = json!({ "name": "research", "inputSchema": {}, "execution": { "taskSupport": support } });
        let tools = json!([research, { "name": "echo", "inputSchema": {} }]);
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": tools } }).to_string().into_bytes()
    }

    #[test]
    fn only_a_tool_that_requires_a_task_is_noted_until_it_is_listed_without() {
        let known = TasksOnly::default();
        known.note(&list("optional"));
        assert!(!known.contains("research"));
        known.note(&list("required"));
        known.note(b"{\"result\": \"taskSupport");
        assert!(known.contains("research") && !known.contains("echo"));
        let plain = json!({ "result": { "tools": [{ "name": "research", "inputSchema": {} }] } });
        known.note(plain.to_string().as_bytes());
        assert!(!known.contains("research"));
    }
}
