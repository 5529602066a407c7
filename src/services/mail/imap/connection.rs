//! Connections to mail servers: with or without TLS, and with a limit on what is read.

use std::{
    fmt, io,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use countersign_wire::{
    capped::TooLong,
    tls::{self, Authorities},
};
use rustls::pki_types::ServerName;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::account::MailError;

/// The way in which a connection is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// TLS from the beginning, as on the ports 993 and 465.
    #[default]
    Tls,
    /// TLS after a command, as on the ports 143 and 587. Without TLS, nothing is sent.
    StartTls,
    /// No encryption. Only for servers on this machine.
    None,
}

/// A mail server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The name or address of the machine.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The encryption.
    pub security: Security,
    /// The authorities that are trusted in addition to those of the machine.
    pub authorities: Authorities,
}

/// A connection of any kind.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Sync + Unpin + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin + fmt::Debug> Io for T {}

/// A connection that fails when more than the allowed number of bytes was read.
#[derive(Debug)]
pub(super) struct Limited {
    inner: Box<dyn Io>,
    allowance: Allowance,
}

/// The number of bytes that may still be read from a connection. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Allowance(Arc<AtomicU64>);

impl Server {
    /// Checks that a password is not sent without encryption to another machine.
    pub(super) fn validate(&self) -> Result<(), MailError> {
        let is_here = self.host == "localhost" || self.host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        if self.security == Security::None && !is_here {
            let reason = format!("{} would get the password without encryption; use tls or starttls", self.host);
            return Err(MailError::SignIn { reason });
        }
        Ok(())
    }

    /// Connects to the server, without encryption.
    pub(super) async fn connect(&self, within: Duration) -> Result<TcpStream, MailError> {
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let error = match timeout(within, connecting).await {
            Ok(Ok(connection)) => {
                connection.set_nodelay(true).ok();
                return Ok(connection);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", within.as_secs()),
        };
        let reason = format!("cannot connect to {}:{}: {error}", self.host, self.port);
        Err(MailError::Unavailable { reason, retry_after: None })
    }

    /// Encrypts a connection. The certificate has to be valid for the host.
    pub(super) async fn encrypt(&self, connection: Box<dyn Io>) -> Result<Box<dyn Io>, MailError> {
        let unavailable = |error: &dyn fmt::Display| {
            let reason = format!("no encrypted connection to {}:{}: {error}", self.host, self.port);
            MailError::Unavailable { reason, retry_after: None }
        };
        let config = tls::client_trusting(&self.authorities).map_err(|error| unavailable(&error))?;
        let name = ServerName::try_from(self.host.clone()).map_err(|error| unavailable(&error))?;
        let encrypting = TlsConnector::from(Arc::new(config)).connect(name, connection);
        Ok(Box::new(encrypting.await.map_err(|error| unavailable(&error))?))
    }
}

impl Limited {
    /// Limits what is read from a connection to `most` bytes.
    pub(super) fn new(inner: Box<dyn Io>, most: u64) -> (Self, Allowance) {
        let allowance = Allowance(Arc::new(AtomicU64::new(most)));
        (Self { inner, allowance: allowance.clone() }, allowance)
    }

    /// Returns the connection without its limit.
    pub(super) fn into_inner(self) -> Box<dyn Io> {
        self.inner
    }
}

impl Allowance {
    /// Allows `most` more bytes from now on.
    pub(super) fn renew(&self, most: u64) {
        self.0.store(most, Ordering::Relaxed);
    }
}

impl AsyncRead for Limited {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = (buf.filled().len() - before) as u64;
        let left = self.allowance.0.load(Ordering::Relaxed);
        Poll::Ready(match left.checked_sub(read) {
            Some(left) => {
                self.allowance.0.store(left, Ordering::Relaxed);
                Ok(())
            }
            None => Err(io::Error::other(TooLong { most: usize::try_from(left).unwrap_or(usize::MAX) })),
        })
    }
}

impl AsyncWrite for Limited {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[test]
    fn a_password_is_only_sent_encrypted_or_to_this_machine() {
        let server = |host: &str, security| {
            let authorities = Authorities::default();
            Server { host: host.to_owned(), port: 1, security, authorities }.validate().is_ok()
        };
        assert!(server("mail.example.com", Security::Tls));
        assert!(server("mail.example.com", Security::StartTls));
        assert!(!server("mail.example.com", Security::None));
        assert!(server("127.0.0.1", Security::None) && server("localhost", Security::None));
    }

    #[tokio::test]
    async fn a_connection_that_sends_too_much_fails() {
        let (ours, mut theirs) = duplex(100);
        let (mut limited, allowance) = Limited::new(Box::new(ours), 5);
        let mut buffer = [0; 5];
        theirs.write_all(b"12345").await.expect("writes");
        limited.read_exact(&mut buffer).await.expect("reads");
        theirs.write_all(b"6").await.expect("writes");
        assert!(limited.read_u8().await.is_err());
        allowance.renew(10);
        theirs.write_all(b"7").await.expect("writes");
        assert_eq!(limited.read_u8().await.expect("reads"), b'7');
    }
}
