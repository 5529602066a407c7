//! Answers without an end, for clients that should not read them.

use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio_util::sync::CancellationToken;

/// The size of a piece, in bytes.
const PIECE: usize = 64 * 1024;

/// Returns a body that never ends while the server lives: a piece of blanks, again and again, with a pause before each.
pub(crate) fn body(pause: Duration, stop: CancellationToken) -> Body {
    let piece = Bytes::from(vec![b' '; PIECE]);
    Body::from_stream(stream::unfold((piece, stop), move |(piece, stop)| async move {
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(pause) => {}
        }
        Some((Ok::<_, std::io::Error>(piece.clone()), (piece, stop)))
    }))
}
