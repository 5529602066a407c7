//! A model of which it is known when it answered last, for people who wonder.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use countersign_core::clock::{Clock, Timestamp};

use super::{Error, Model, Request, Response};

/// When a model was asked last, and whether it answered.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Mutex<Option<(Timestamp, bool)>>>);

impl Pulse {
    /// When, and whether it answered; `None`: it was not asked yet.
    pub fn last(&self) -> Option<(Timestamp, bool)> {
        self.0.lock().ok().and_then(|last| *last)
    }
}

/// A model that keeps its pulse.
#[derive(Debug)]
pub struct Watched {
    model: Arc<dyn Model>,
    clock: Arc<dyn Clock>,
    pulse: Pulse,
}

impl Watched {
    /// This model, with the pulse to read.
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
        if let Ok(mut last) = self.pulse.0.lock() {
            *last = Some((self.clock.now(), answer.is_ok()));
        }
        answer
    }
}
