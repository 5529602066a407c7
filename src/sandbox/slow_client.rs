//! Clients that keep a server waiting: they connect and send nothing, or never complete a request.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// The way in which a client keeps the server waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slow {
    /// It sends nothing.
    Silent,
    /// It sends the head of a request, byte by byte, and never completes it.
    Head,
    /// It sends a complete head and then a body, byte by byte.
    Body,
    /// It requests `/healthz`, reads the response, and keeps the connection open.
    Idle,
}

/// A slow client.
#[derive(Debug)]
pub struct SlowClient {
    stream: TcpStream,
    how: Slow,
}

impl SlowClient {
    /// Connects and sends the beginning of its request, if any.
    ///
    /// # Errors
    ///
    /// If the server does not accept the connection, or closes it.
    pub async fn connect(address: SocketAddr, how: Slow) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        let opening = match how {
            Slow::Silent => "",
            Slow::Head => "POST /slack/events HTTP/1.1\r\nhost: bot\r\nx-slow: ",
            Slow::Body => {
                "POST /slack/events HTTP/1.1\r\nhost: bot\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n"
            }
            Slow::Idle => "GET /healthz HTTP/1.1\r\nhost: bot\r\n\r\n",
        };
        stream.write_all(opening.as_bytes()).await?;
        if how == Slow::Idle {
            let mut response = Vec::new();
            while !response.ends_with(b"ok\n") {
                if stream.read_buf(&mut response).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        Ok(Self { stream, how })
    }

    /// Sends one more byte of the unfinished request.
    ///
    /// # Errors
    ///
    /// If the server has closed the connection.
    pub async fn drips(&mut self) -> io::Result<()> {
        match self.how {
            Slow::Silent | Slow::Idle => Ok(()),
            Slow::Head | Slow::Body => self.stream.write_all(b"x").await,
        }
    }

    /// Waits until the server has closed the connection.
    pub async fn closed(&mut self) {
        let mut rest = [0; 512];
        while self.stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    }
}
