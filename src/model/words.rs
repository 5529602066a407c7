//! The words of an answer, while it is written.

use std::{fmt, sync::Arc};

/// Receives the text of an answer while it is written.
///
/// Each time, it is the whole text so far. If an attempt fails in the middle, the text of the next one begins anew. The
/// answer is what is returned in the end, also if the model was not streamed, or less or something else was received here.
#[derive(Clone)]
pub struct Words(Arc<dyn Fn(&str) + Send + Sync>);

impl Words {
    /// Creates a receiver, which must return at once.
    pub fn to(receive: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    /// Passes on the text so far.
    pub fn write(&self, so_far: &str) {
        (self.0)(so_far);
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Words").finish_non_exhaustive()
    }
}
