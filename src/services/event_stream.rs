//! Event streams that stay open for long and say little, read with little memory.
//!
//! A client's connection keeps buffers of many kilobytes for as long as it is open, and a thousand streams on which nothing
//! happens for hours would hold them all. So a stream is read here on a connection of its own: of its answer no more is
//! kept than the line that is arriving. It speaks HTTP/1.1, and knows of an event its data alone.
//!
//! It never changes anything: a stream is a read, which may be opened again at any time.

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

/// The bytes that are read at once.
const AT_ONCE: usize = 512;
/// The longest head of an answer.
const LONGEST_HEAD: u64 = 16 << 10;
/// The longest line, and the longest data of an event.
const LONGEST: usize = 64 << 10;

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

/// The rest of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// In chunks; so many bytes are left of the present one, and it ends with a line break.
    Chunks { left: u64, within: bool },
    /// So many bytes.
    Length(u64),
    /// Until the connection ends.
    Rest,
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

impl Streams {
    /// Creates a client for the service at `base`. The time-out is for the head of an answer.
    ///
    /// # Errors
    ///
    /// If the service wants TLS and the TLS library finds no certificates to trust.
    pub fn of(base: &Url, timeout: Duration) -> io::Result<Self> {
        Ok(Self { connector: Connector::to(base, timeout)?, timeout })
    }

    /// Opens a stream: sends the request, which has no body, and reads the head of its answer.
    ///
    /// # Errors
    ///
    /// If there is no answer in time, or it is no success.
    pub async fn open(&self, request: RequestBuilder) -> io::Result<Stream> {
        let request = request.build().map_err(|error| io::Error::other(error.without_url()))?;
        timeout(self.timeout, self.opened(request)).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    async fn opened(&self, request: reqwest::Request) -> io::Result<Stream> {
        let uri: Uri = request.url().as_str().parse().map_err(|_| odd("no address"))?;
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
        let mut reader = BufReader::with_capacity(AT_ONCE, io);
        let body = read_head(&mut reader).await?;
        Ok(Stream { reader, body })
    }
}

/// Reads the head of an answer; returns how its body is to be read.
async fn read_head(reader: &mut BufReader<TokioIo<Box<dyn Io>>>) -> io::Result<Body> {
    let mut head = reader.take(LONGEST_HEAD);
    let mut line = String::new();
    head.read_line(&mut line).await?;
    let status = line.split(' ').nth(1).and_then(|status| status.trim().parse::<u16>().ok());
    if !status.is_some_and(|status| (200..300).contains(&status)) {
        return Err(odd(&format!("it answered {}", status.map_or_else(|| "oddly".to_owned(), |it| it.to_string()))));
    }
    let mut body = Body::Rest;
    loop {
        line.clear();
        if head.read_line(&mut line).await? == 0 {
            return Err(odd("its answer has no end of its head"));
        }
        let lower = line.trim_end().to_ascii_lowercase();
        match lower.split_once(':').map(|(name, value)| (name, value.trim())) {
            None if lower.is_empty() => return Ok(body),
            Some(("transfer-encoding", coding)) if coding.ends_with("chunked") => {
                body = Body::Chunks { left: 0, within: false };
            }
            Some(("content-length", length)) if body == Body::Rest => {
                body = Body::Length(length.parse().map_err(|_| odd("its length is no number"))?);
            }
            _ => {}
        }
    }
}

impl Stream {
    /// Returns the data of the next event; `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// If the connection is lost, or an event is too long.
    ///
    /// # Cancel safety
    ///
    /// None: a stream of which this was dropped is to be dropped as well.
    pub async fn next(&mut self) -> io::Result<Option<String>> {
        let mut data: Option<String> = None;
        loop {
            let Some(line) = self.line().await? else { return Ok(None) };
            if line.is_empty() {
                if data.is_some() {
                    return Ok(data);
                }
            } else if let Some(more) = line.strip_prefix("data:") {
                let more = more.strip_prefix(' ').unwrap_or(more);
                match &mut data {
                    Some(data) if data.len() + more.len() > LONGEST => return Err(odd("an event is too long")),
                    Some(data) => data.extend(["\n", more]),
                    None => data = Some(more.to_owned()),
                }
            }
        }
    }

    /// Returns the next line of the body without its end; `None` where the body ends, whatever stood last.
    async fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        loop {
            let left = match self.left().await? {
                0 => return Ok(None),
                left => left,
            };
            let there = self.reader.fill_buf().await?;
            if there.is_empty() {
                return Ok(None);
            }
            let there = &there[..there.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            let end = there.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(there.len(), |at| at + 1);
            line.extend_from_slice(&there[..taken]);
            self.reader.consume(taken);
            match &mut self.body {
                Body::Chunks { left, .. } | Body::Length(left) => *left -= taken as u64,
                Body::Rest => {}
            }
            if end.is_some() {
                while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
                    line.pop();
                }
                return String::from_utf8(line).map(Some).map_err(|_| odd("an event is no text"));
            }
            if line.len() > LONGEST {
                return Err(odd("a line is too long"));
            }
        }
    }

    /// Returns the bytes that may be read before the next chunk; 0 at the end of the body.
    async fn left(&mut self) -> io::Result<u64> {
        match &mut self.body {
            Body::Rest => Ok(u64::MAX),
            Body::Length(left) => Ok(*left),
            Body::Chunks { left: 0, within } => {
                let mut size = String::new();
                let mut short = (&mut self.reader).take(AT_ONCE as u64);
                if std::mem::replace(within, true) {
                    short.read_line(&mut size).await?; // the end of the chunk before
                    size.clear();
                }
                short.read_line(&mut size).await?;
                let digits = size.split(';').next().unwrap_or_default().trim();
                let left = match digits.is_empty() {
                    true => return Err(io::ErrorKind::UnexpectedEof.into()),
                    false => u64::from_str_radix(digits, 16).map_err(|_| odd("a chunk has no size"))?,
                };
                self.body = Body::Chunks { left, within: true };
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

    /// Reads all events of an answer that is written in these pieces; the last one is the reason why it ended.
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
        let mut heard = Vec::new();
        let ended = match streams.open(request).await {
            Ok(mut stream) => loop {
                match stream.next().await {
                    Ok(Some(data)) => heard.push(data),
                    Ok(None) => break "end".to_owned(),
                    Err(error) => break error.to_string(),
                }
            },
            Err(error) => error.to_string(),
        };
        heard.push(ended);
        let asked = server.await.unwrap();
        assert!(asked.starts_with("GET /api/events HTTP/1.1\r\n") && asked.ends_with("\r\n\r\n"), "{asked}");
        assert!(asked.contains("authorization: Bearer secret\r\n") && asked.contains("host: 127.0.0.1:"), "{asked}");
        heard
    }

    #[tokio::test]
    async fn events_are_read_however_they_are_cut() {
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
    async fn what_is_no_stream_is_an_error() {
        assert_eq!(read(&["HTTP/1.1 503 Unavailable\r\n\r\n"]).await, ["it answered 503"]);
        assert_eq!(read(&["HTTP/1.1 200 OK\r\nA: b"]).await, ["its answer has no end of its head"]);
        let cut = &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n"];
        assert_eq!(read(cut).await, ["a", "unexpected end of file"]);
        let odd = &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n"];
        assert_eq!(read(odd).await, ["a chunk has no size"]);
    }
}
