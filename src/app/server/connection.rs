//! One connection, from its first byte to its end.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{Router, extract::Request};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{net::TcpStream, time::sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    connections::Room,
    watched::{Arriving, Leaving, Stream},
};

/// The largest head of a request, in bytes; as much of a body is read ahead.
const BUFFER: usize = 64 << 10;

/// Answers the requests of a connection until it is closed, takes too long or has to give way; after `stop` only those
/// in hand.
pub(super) async fn serve(stream: TcpStream, router: Router, room: Room, stop: CancellationToken) {
    let room = Arc::new(room);
    let (must_go, stopped) = (room.must_go(), stop);
    let router = TowerToHyperService::new(router);
    let answer = service_fn(|request: hyper::Request<Incoming>| {
        let (router, room) = (router.clone(), room.clone());
        let request: Request = request.map(|body| axum::body::Body::new(Arriving::new(body, room.clone())));
        async move {
            let answer = router.call(request).await?;
            Ok::<_, Infallible>(answer.map(|body| Leaving::new(body, room)))
        }
    });
    let io = TokioIo::new(Stream { stream, room: room.clone() });
    let connection = http1::Builder::new().max_buf_size(BUFFER).serve_connection(io, answer);

    let (mut connection, mut must_go) = (pin!(connection), pin!(must_go.cancelled()));
    let mut stopped = pin!(stopped.cancelled());
    let mut asked_to_end = false;
    let mut limit = pin!(sleep_until(room.deadline()));
    poll_fn(|cx: &mut Context<'_>| {
        if must_go.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if !asked_to_end && stopped.as_mut().poll(cx).is_ready() {
            asked_to_end = true;
            connection.as_mut().graceful_shutdown();
        }
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(()); // an error means that the client has gone, or speaks no HTTP
        }
        loop {
            let deadline = room.deadline(); // another one, if the connection went on to its next phase
            if limit.deadline() != deadline {
                limit.as_mut().reset(deadline);
            }
            if limit.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if room.deadline() == deadline {
                let phase = room.phase().as_str();
                metrics::counter!("countersign_http_cut_off_total", "phase" => phase, "why" => "time").increment(1);
                return Poll::Ready(());
            }
        }
    })
    .await;
}
