//! Long-lived event streams with few events, read with little memory.
//!
//! An ordinary client's connection holds many kilobytes of buffers while it is open, which is wasteful for thousands of
//! streams that are idle for hours. Here each stream has its own connection, and only the event being received is kept
//! in memory. Only HTTP/1.1 is supported, and all fields of an event except its data are ignored.
//!
//! Streams are read-only, so they can be reopened at any time.

use std::{io, time::Duration};

use hyper::{Uri, header::HeaderValue};
use hyper_util::rt::TokioIo;
use reqwest::RequestBuilder;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    time::timeout,
};
use url::Url;

use super::connector::{Connection, Connector, Io, to_wire};

/// The size of the read buffer in bytes.
const BUFFER: usize = 512;
/// The maximum length of a response head, in bytes.
const MAX_HEAD: u64 = 16 << 10;
/// The maximum length of a line, and of the data of an event, in bytes.
const MAX_EVENT: usize = 64 << 10;

/// A client for the event streams of one service.
#[derive(Debug)]
pub struct Streams {
    connector: Connector,
    timeout: Duration,
}

/// An open stream. Dropping it closes its connection.
pub struct Stream {
    reader: BufReader<TokioIo<Box<dyn Io>>>,
    body: Body,
}

/// The framing of a response body, and the amount of it that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// A chunked body. `left` is the number of bytes left in the current chunk. `started` is true once the first chunk
    /// size has been read; after that, the line break at the end of a chunk is skipped before the next size is read.
    Chunks { left: u64, started: bool },
    /// A body of known length, with this number of bytes left.
    Length(u64),
    /// A body that ends when the connection is closed.
    UntilClose,
}

/// Returns the error for an invalid response.
fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_owned())
}

impl Streams {
    /// Creates a client for the service at `base`. The timeout is for opening a stream.
    ///
    /// # Errors
    ///
    /// Fails if the service needs TLS and the TLS library finds no trusted certificates.
    pub fn of(base: &Url, timeout: Duration) -> io::Result<Self> {
        Ok(Self { connector: Connector::to(base, timeout)?, timeout })
    }

    /// Opens a stream: sends the request, which must have no body, and reads the head of the response.
    ///
    /// # Errors
    ///
    /// Fails if there is no response in time, or its status is not a success.
    pub async fn open(&self, request: RequestBuilder) -> io::Result<Stream> {
        let request = request.build().map_err(|error| io::Error::other(error.without_url()))?;
        timeout(self.timeout, self.send(request)).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    async fn send(&self, request: reqwest::Request) -> io::Result<Stream> {
        let uri: Uri = request.url().as_str().parse().map_err(|_| invalid("no address"))?;
        let plain = self.connector.plain();
        let Connection { io, through } = self.connector.connect(&uri, plain).await.map_err(io::Error::other)?;
        let request = to_wire(request, &uri, through.as_ref());
        let mut head = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri()).into_bytes();
        for (name, value) in request.headers() {
            head.extend([name.as_str().as_bytes(), b": ", HeaderValue::as_bytes(value), b"\r\n"].concat());
        }
        head.extend(b"\r\n");
        let mut io = TokioIo::new(io);
        io.write_all(&head).await?;
        io.flush().await?;
        let mut reader = BufReader::with_capacity(BUFFER, io);
        let body = read_head(&mut reader).await?;
        Ok(Stream { reader, body })
    }
}

/// Reads the head of a response. Returns the framing of its body.
async fn read_head(reader: &mut BufReader<TokioIo<Box<dyn Io>>>) -> io::Result<Body> {
    let mut head = reader.take(MAX_HEAD);
    let mut line = String::new();
    head.read_line(&mut line).await?;
    let status = line.split(' ').nth(1).and_then(|status| status.trim().parse::<u16>().ok());
    if !status.is_some_and(|status| (200..300).contains(&status)) {
        let status = status.map_or_else(|| "oddly".to_owned(), |status| status.to_string());
        return Err(invalid(&format!("it answered {status}")));
    }
    let mut body = Body::UntilClose;
    loop {
        line.clear();
        if head.read_line(&mut line).await? == 0 {
            return Err(invalid("its answer has no end of its head"));
        }
        let lower = line.trim_end().to_ascii_lowercase();
        match lower.split_once(':').map(|(name, value)| (name, value.trim())) {
            None if lower.is_empty() => return Ok(body),
            Some(("transfer-encoding", coding)) if coding.ends_with("chunked") => {
                body = Body::Chunks { left: 0, started: false };
            }
            Some(("content-length", length)) if body == Body::UntilClose => {
                body = Body::Length(length.parse().map_err(|_| invalid("its length isn't a number"))?);
            }
            _ => {}
        }
    }
}

impl Stream {
    /// Returns the data of the next event, or `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// Fails if the connection is lost, or an event is too long.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: if this future is dropped before it completes, the stream must not be used again.
    pub async fn next(&mut self) -> io::Result<Option<String>> {
        let mut data: Option<String> = None;
        loop {
            let Some(line) = self.next_line().await? else { return Ok(None) };
            if line.is_empty() {
                if data.is_some() {
                    return Ok(data);
                }
            } else if let Some(more) = line.strip_prefix("data:") {
                let more = more.strip_prefix(' ').unwrap_or(more);
                match &mut data {
                    Some(data) if data.len() + more.len() > MAX_EVENT => return Err(invalid("an event is too long")),
                    Some(data) => data.extend(["\n", more]),
                    None => data = Some(more.to_owned()),
                }
            }
        }
    }

    /// Returns the next line of the body without its line break, or `None` at the end of the body, where an incomplete
    /// line is discarded.
    async fn next_line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        loop {
            let left = match self.left().await? {
                0 => return Ok(None),
                left => left,
            };
            let buffer = self.reader.fill_buf().await?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let buffer = &buffer[..buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(buffer.len(), |at| at + 1);
            line.extend_from_slice(&buffer[..taken]);
            self.reader.consume(taken);
            match &mut self.body {
                Body::Chunks { left, .. } | Body::Length(left) => *left -= taken as u64,
                Body::UntilClose => {}
            }
            if end.is_some() {
                while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
                    line.pop();
                }
                return String::from_utf8(line).map(Some).map_err(|_| invalid("an event isn't text"));
            }
            if line.len() > MAX_EVENT {
                return Err(invalid("a line is too long"));
            }
        }
    }

    /// Returns the number of bytes that may be read before the next chunk, or 0 at the end of the body.
    async fn left(&mut self) -> io::Result<u64> {
        match &mut self.body {
            Body::UntilClose => Ok(u64::MAX),
            Body::Length(left) => Ok(*left),
            Body::Chunks { left: 0, started } => {
                let mut size = String::new();
                let mut limited = (&mut self.reader).take(BUFFER as u64);
                if std::mem::replace(started, true) {
                    limited.read_line(&mut size).await?; // the end of the previous chunk
                    size.clear();
                }
                limited.read_line(&mut size).await?;
                let digits = size.split(';').next().unwrap_or_default().trim();
                let left = match digits.is_empty() {
                    true => return Err(io::ErrorKind::UnexpectedEof.into()),
                    false => u64::from_str_radix(digits, 16).map_err(|_| invalid("a chunk has no size"))?,
                };
                self.body = Body::Chunks { left, started: true };
                Ok(left)
            }
            Body::Chunks { left, .. } => Ok(*left),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncReadExt as _, net::TcpListener};

    use super::*;

    /// Reads all events of a response that is sent in these pieces. The last entry is the reason that the stream ended.
    async fn read(pieces: &'static [&'static str]) -> Vec<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base: Url = format!("http://{}/api", listener.local_addr().unwrap()).parse().unwrap();
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 1024];
            let read = socket.read(&mut request).await.unwrap();
            for piece in pieces {
                socket.write_all(piece.as_bytes()).await.unwrap();
                socket.flush().await.unwrap();
                tokio::task::yield_now().await;
            }
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        let streams = Streams::of(&base, Duration::from_secs(30)).unwrap();
        let request = reqwest::Client::new().get(format!("{base}/events")).bearer_auth("secret");
        let mut events = Vec::new();
        let ended = match streams.open(request).await {
            Ok(mut stream) => loop {
                match stream.next().await {
                    Ok(Some(data)) => events.push(data),
                    Ok(None) => break "end".to_owned(),
                    Err(error) => break error.to_string(),
                }
            },
            Err(error) => error.to_string(),
        };
        events.push(ended);
        let sent = server.await.unwrap();
        assert!(sent.starts_with("GET /api/events HTTP/1.1\r\n") && sent.ends_with("\r\n\r\n"), "{sent}");
        assert!(sent.contains("authorization: Bearer secret\r\n") && sent.contains("host: 127.0.0.1:"), "{sent}");
        events
    }

    #[tokio::test]
    async fn events_are_read_regardless_of_how_they_are_split() {
        let chunked = &[
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chun",
            "ked\r\n\r\n9\r\ndata: {\"a",
            "\r\nc;x=y\r\n\":1}\n\ndata: \r\n3\r\nb\n\n\r\n",
            "e\r\n: a comment\r\n\r\n0\r\n\r\n",
        ];
        assert_eq!(read(chunked).await, [r#"{"a":1}"#, "b", "end"]);
        let counted = &["HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\ndata:a\r\ndata: b\r\n\r\nda", "ta: what follows"];
        assert_eq!(read(counted).await, ["a\nb", "end"]);
        assert_eq!(read(&["HTTP/1.0 200 OK\r\n\r\nevent: x\ndata: a\n\n", "data: half"]).await, ["a", "end"]);
    }

    #[tokio::test]
    async fn an_invalid_response_is_an_error() {
        assert_eq!(read(&["HTTP/1.1 503 Unavailable\r\n\r\n"]).await, ["it answered 503"]);
        assert_eq!(read(&["HTTP/1.1 200 OK\r\nA: b"]).await, ["its answer has no end of its head"]);
        let cut = &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n"];
        assert_eq!(read(cut).await, ["a", "unexpected end of file"]);
        let odd = &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n"];
        assert_eq!(read(odd).await, ["a chunk has no size"]);
    }
}
