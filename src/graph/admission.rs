//! Who may ask. Looked at before a turn begins, so that nobody's words cost anything who may not.

use std::fmt;

use async_trait::async_trait;
use countersign_core::ids::{MessageTs, ThreadId, UserId};

/// Who may ask.
#[async_trait]
pub trait Admission: Send + Sync + fmt::Debug {
    /// Whether what somebody said in a thread is taken up.
    async fn admits(&self, thread: &ThreadId, by: &UserId, said: &MessageTs) -> Admits;
}

/// Whether words are taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admits {
    /// They are.
    Yes,
    /// They are not, and whoever said them has been told; why not, in a word for the record.
    No(&'static str),
    /// It cannot be told at the moment: the words stay in the mailbox.
    Later,
}
