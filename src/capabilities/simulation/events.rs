//! The ends of jobs and of analyses, for the actions that wait for them.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_capabilities::EventSource;
use serde_json::{Value, json};

use super::{
    Deps, SOURCE, analyses,
    bridge::{error::Error, follow::forgotten},
};

/// The follower of jobs.
#[derive(Debug)]
pub struct Jobs(pub Deps);

impl Jobs {
    /// Creates the follower of the jobs of this bridge.
    pub fn of(deps: &Deps) -> Arc<dyn EventSource> {
        Arc::new(Self(deps.clone()))
    }
}

#[async_trait]
impl EventSource for Jobs {
    fn source(&self) -> &'static str {
        SOURCE
    }

    async fn follow(&self, key: &str, _: bool) -> Option<Value> {
        if let Some(action) = analyses::action_of(key) {
            return self.0.analyses.ended(&action).await.map(|outcome| json!(outcome));
        }
        match self.0.client.followed(key, &|_| ()).await {
            Ok(ended) => Some(json!(ended)),
            Err(Error::NotFound { .. }) => Some(json!(forgotten(key))),
            Err(error) => {
                tracing::warn!(job.id = key, %error, "Cannot follow a job; its state is read again at the deadline");
                None
            }
        }
    }
}
