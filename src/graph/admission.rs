//! Who may ask. Looked at before a turn begins, so that nobody's words cost anything who may not.

use std::fmt;

use async_trait::async_trait;

use crate::ids::{ThreadId, UserId};

/// Who may ask.
#[async_trait]
pub trait Admission: Send + Sync + fmt::Debug {
    /// Whether what somebody said in a thread is taken up. If not, they have been told.
    ///
    /// # Errors
    ///
    /// Why not, in a word for the record.
    async fn admits(&self, thread: &ThreadId, by: &UserId) -> Result<(), &'static str>;
}
