//! The cheapest way to send a signed request: HTTP/1.1 over connections that are kept, and no more of it than the bot
//! answers with. The load shares its processors with the bot, so what is spent here is missing there.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use hmac::{Hmac, KeyInit as _, Mac as _};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// The secret with which requests are signed.
pub(crate) const SIGNING_SECRET: &str = "bench-signing-secret";

/// Connections to the bot, which may be several processes.
#[derive(Clone)]
pub(crate) struct Wire {
    servers: Arc<[Server]>,
    turn: Arc<AtomicUsize>,
}

struct Server {
    address: SocketAddr,
    idle: Mutex<Vec<TcpStream>>,
}

impl Wire {
    /// To a server at this address.
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::to_each([address])
    }

    /// To the servers at these addresses in turn, as a load balancer does it.
    pub(crate) fn to_each(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let servers = addresses.into_iter().map(|address| Server { address, idle: Mutex::default() });
        Self { servers: servers.collect(), turn: Arc::default() }
    }

    /// Posts a body as Slack does, signed, and returns the status of the answer.
    pub(crate) async fn post(&self, path: &str, kind: &str, body: &str) -> io::Result<u16> {
        let at = now();
        let signature = sign(at, body);
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: bot\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
             x-slack-request-timestamp: {at}\r\nx-slack-signature: {signature}\r\n\r\n{body}",
            body.len()
        );
        let server = &self.servers[self.turn.fetch_add(1, Ordering::Relaxed) % self.servers.len()];
        // The bot closes a connection that was idle for long; then the request goes over a new one.
        if let Some(kept) = server.take_idle()
            && let Ok(status) = server.send(kept, &request).await
        {
            return Ok(status);
        }
        let stream = TcpStream::connect(server.address).await?;
        stream.set_nodelay(true)?;
        server.send(stream, &request).await
    }
}

impl Server {
    fn take_idle(&self) -> Option<TcpStream> {
        self.idle.lock().expect("nobody panics with the lock").pop()
    }

    async fn send(&self, mut stream: TcpStream, request: &str) -> io::Result<u16> {
        stream.write_all(request.as_bytes()).await?;
        let status = read_answer(&mut stream).await?;
        self.idle.lock().expect("nobody panics with the lock").push(stream);
        Ok(status)
    }
}

/// Reads one answer to its end.
async fn read_answer(stream: &mut TcpStream) -> io::Result<u16> {
    let mut answer = Vec::with_capacity(512);
    loop {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")).map(str::trim);
        let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        while answer.len() < head + 4 + length {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        return status.ok_or_else(|| io::ErrorKind::InvalidData.into());
    }
}

fn sign(at: u64, body: &str) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SIGNING_SECRET.as_bytes()).expect("any length will do");
    mac.update(format!("v0:{at}:").as_bytes());
    mac.update(body.as_bytes());
    format!("v0={}", hex::encode(mac.finalize().into_bytes()))
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the bot compares signatures with the machine's clock")]
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_secs()
}
