//! The vectors of the contract, played against the real server.

use serde_json::Value;

use super::{Answered, Programs};

impl Programs {
    /// Plays one request of a vector. `id` is that of the first answer.
    async fn plays(&self, request: &Value, id: &str) -> Answered {
        let headers: Vec<(&str, &str)> = request["headers"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        let path = request["path"].as_str().unwrap().replace("{id}", id);
        let method = request["method"].as_str().unwrap();
        self.call(request["as"].as_str(), method, &path, &headers, request.get("body")).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_vectors_of_requests_hold() {
    let programs = Programs::start().await;
    let vectors = include_str!("../../fixtures/approval-api/vectors.json");
    let vectors: Value = serde_json::from_str(vectors).unwrap();
    let cases = vectors["requests"].as_array().unwrap();
    assert_eq!(cases.len(), 24);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let mut id = String::new();
        for before in case["before"].as_array().into_iter().flatten() {
            let played = programs.plays(before, &id).await;
            assert!(played.status < 300, "{name}, before: {played:?}");
            if id.is_empty() {
                id = played.id();
            }
        }
        let answered = programs.plays(&case["request"], &id).await;
        let expected = &case["expect"];
        assert_eq!(u64::from(answered.status), expected["status"].as_u64().unwrap(), "{name}: {answered:?}");
        if let Some(header) = expected["header"].as_str() {
            assert!(answered.headers.contains_key(header), "{name}: {answered:?}");
        }
        if let Some(kind) = expected["content_type"].as_str() {
            assert_eq!(answered.headers["content-type"], kind, "{name}");
        }
        if let Some(problem) = expected["problem"].as_str() {
            assert_eq!(answered.problem(), problem, "{name}: {answered:?}");
        }
        if let Some(pointer) = expected["pointer"].as_str() {
            let errors = answered.body["errors"].as_array().unwrap_or_else(|| panic!("{name}: {answered:?}"));
            assert!(errors.iter().any(|error| error["pointer"] == pointer), "{name}: {answered:?}");
        }
        for (member, value) in expected["body"].as_object().into_iter().flatten() {
            let found = &answered.body[member];
            match value.as_object() {
                Some(parts) => assert!(parts.iter().all(|(part, value)| found[part] == *value), "{name}: {answered:?}"),
                None => assert_eq!(found, value, "{name}: {answered:?}"),
            }
        }
        if expected["same_id_as_before"] == true {
            assert_eq!(answered.id(), id, "{name}");
        }
        programs.bot.settled().await;
        let cards = || {
            let thread = programs.thread(&answered.body);
            thread.messages().into_iter().filter(|message| message.button("Approve").is_some()).collect::<Vec<_>>()
        };
        if let Some(count) = expected["cards"].as_u64() {
            assert_eq!(cards().len() as u64, count, "{name}");
        }
        if let Some(title) = expected["card"]["plain_title"].as_str() {
            let card = cards().pop().unwrap().words();
            assert!(card.contains(title), "{name}: {card}");
        }
        if let Some(count) = expected["card"]["not_shown"].as_u64() {
            let card = cards().pop().unwrap().words();
            assert!(card.contains(&format!("{count} more value is not listed")), "{name}: {card}");
        }
    }
}
