//! Endless and broken answers, for tests that clients stop reading them.

use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio_util::sync::CancellationToken;

/// The size of a chunk, in bytes.
const CHUNK_SIZE: usize = 64 * 1024;

/// Returns a body of spaces that does not end before the server stops. There is a pause before each
/// chunk.
pub(crate) fn body(pause: Duration, stop: CancellationToken) -> Body {
    let chunk = Bytes::from(vec![b' '; CHUNK_SIZE]);
    Body::from_stream(stream::unfold((chunk, stop), move |(chunk, stop)| async move {
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(pause) => {}
        }
        Some((Ok::<_, std::io::Error>(chunk.clone()), (chunk, stop)))
    }))
}

/// Returns a body that fails before its first byte, which closes the connection without an answer.
pub(crate) fn broken() -> Body {
    Body::from_stream(stream::once(async { Err::<Bytes, _>(std::io::Error::other("the answer is lost")) }))
}
