//! A model that records the time and success of its last call.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use countersign_core::clock::{Clock, Timestamp};

use super::{Error, Model, Request, Response};

/// The time of a model's last call, and true if it was answered.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Mutex<Option<(Timestamp, bool)>>>);

impl Pulse {
    /// Returns the time of the last call, and true if it was answered; `None` if there was no call yet.
    pub fn last(&self) -> Option<(Timestamp, bool)> {
        self.0.lock().ok().and_then(|last| *last)
    }
}

/// A model that records its calls in a [`Pulse`].
#[derive(Debug)]
pub struct Watched {
    model: Arc<dyn Model>,
    clock: Arc<dyn Clock>,
    pulse: Pulse,
}

impl Watched {
    /// Wraps a model, and returns it with its pulse.
    pub fn new(model: Arc<dyn Model>, clock: Arc<dyn Clock>) -> (Self, Pulse) {
        let pulse = Pulse::default();
        (Self { model, clock, pulse: pulse.clone() }, pulse)
    }
}

#[async_trait]
impl Model for Watched {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn is_remote(&self) -> bool {
        self.model.is_remote()
    }

    async fn respond(&self, request: &Request) -> Result<Response, Error> {
        let answer = self.model.respond(request).await;
        let was_sent = !matches!(answer, Err(Error::OverLimit(_)));
        if was_sent && let Ok(mut last) = self.pulse.0.lock() {
            *last = Some((self.clock.now(), answer.is_ok()));
        }
        answer
    }
}
