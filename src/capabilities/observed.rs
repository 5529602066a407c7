//! The state of things that people can watch, as their capability reads it.

use async_trait::async_trait;

use super::ToolError;

/// A reader of the things of one capability, for those who follow them over time.
#[async_trait]
pub trait Observer: Send + Sync {
    /// Returns the plural word for its things, such as `documents`.
    fn things(&self) -> &'static str;

    /// Finds a thing by the name that a person gave, and reads it. `request_with` returns the corrected request for a
    /// name, which the buttons of a refusal send.
    ///
    /// # Errors
    ///
    /// [`ToolError`] that suggests similar names, or says that the platform cannot be reached.
    async fn find(
        &self,
        name: &str,
        request_with: &(dyn for<'n> Fn(&'n str) -> String + Send + Sync),
    ) -> Result<Observed, ToolError>;

    /// Reads a thing by its id; `None` if it no longer exists.
    ///
    /// # Errors
    ///
    /// [`ToolError`] if it cannot be read at the moment.
    async fn observe(&self, id: &str) -> Result<Option<Observed>, ToolError>;

    /// Reads all things that are in progress.
    ///
    /// # Errors
    ///
    /// [`ToolError`] if they cannot be read at the moment.
    async fn in_progress(&self) -> Result<Vec<Observed>, ToolError>;
}

/// The state of a thing at the moment it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The id, which stays when the thing is renamed.
    pub id: String,
    /// The name.
    pub name: String,
    /// The phase.
    pub phase: Phase,
    /// The number of participants.
    pub enrolled: u64,
    /// The number of simulated participants of tests, who are not among the others.
    pub simulated: u64,
    /// The plural word for its participants, such as `users`.
    pub participants: String,
    /// The parts between which participants are drawn at random, each one independently; empty if they are drawn in
    /// another way.
    pub parts: Vec<ObservedPart>,
}

/// The phase of a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has not started.
    NotStarted,
    /// It is in progress.
    Running,
    /// It takes no new participants and may go on.
    Paused,
    /// It is over.
    Ended,
}

/// A part of a thing that is drawn at random.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedPart {
    /// The name.
    pub name: String,
    /// The share that it should have, between 0 and 1.
    pub share: f64,
    /// The number of those who were drawn into it.
    pub count: u64,
}
