//! Serves a single HTTP connection.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    Router,
    extract::{ConnectInfo, Request},
    http::{StatusCode, header::CONNECTION},
    response::IntoResponse as _,
};
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
    watched::{RequestBody, ResponseBody, Stream},
};

/// The maximum size of the head of a request, in bytes, and of the read buffer, with the part of a body that is read ahead.
/// The buffer is filled in steps, so a somewhat larger head can be in it.
const MAX_BUFFER: usize = 64 << 10;

/// Returns the size of the head of a request as it was sent, up to white space.
fn head_bytes<B>(request: &axum::http::Request<B>) -> usize {
    const OF_LINE: usize = ": \r\n".len();
    let address = request.uri().path_and_query().map_or(0, |address| address.as_str().len());
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + OF_LINE);
    request.method().as_str().len() + address + OF_LINE + headers.sum::<usize>()
}

/// Serves the requests of a connection until it is closed, exceeds a deadline or has to make room
/// for another connection. After `stop`, it completes only the requests in progress.
pub(super) async fn serve(stream: TcpStream, router: Router, room: Room, stop: CancellationToken) {
    let room = Arc::new(room);
    let (evicted, stopped) = (room.eviction(), stop);
    let peer = stream.peer_addr().map(|peer| ConnectInfo(peer.ip())).ok();
    let router = TowerToHyperService::new(router);
    let answer = service_fn(|request: hyper::Request<Incoming>| {
        let (router, room) = (router.clone(), room.clone());
        let mut request: Request = request.map(|body| axum::body::Body::new(RequestBody::new(body, room.clone())));
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        async move {
            if head_bytes(&request) > MAX_BUFFER {
                let refusal = (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, [(CONNECTION, "close")]).into_response();
                return Ok(refusal.map(|body| ResponseBody::new(body, room)));
            }
            let answer = router.call(request).await?;
            Ok::<_, Infallible>(answer.map(|body| ResponseBody::new(body, room)))
        }
    });
    let io = TokioIo::new(Stream { stream, room: room.clone() });
    let connection = http1::Builder::new().max_buf_size(MAX_BUFFER).serve_connection(io, answer);

    let (mut connection, mut evicted) = (pin!(connection), pin!(evicted.cancelled()));
    let mut stopped = pin!(stopped.cancelled());
    let mut shutting_down = false;
    let mut limit = pin!(sleep_until(room.deadline()));
    poll_fn(|cx: &mut Context<'_>| {
        if evicted.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if !shutting_down && stopped.as_mut().poll(cx).is_ready() {
            shutting_down = true;
            connection.as_mut().graceful_shutdown();
        }
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(()); // an error means that the client is gone or does not speak HTTP
        }
        loop {
            let deadline = room.deadline(); // changes with the phase of the connection
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
