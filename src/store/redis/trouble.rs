//! What operators can do about an error of a server.

use std::io;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use rustls::{CertificateError, Error as TlsError};

/// An error with what can be done about it.
#[derive(Debug, thiserror::Error)]
#[error("{remedy}")]
pub(super) struct Trouble {
    remedy: String,
    source: RedisError,
}

impl Trouble {
    /// Adds what can be done about an error of the first call to a server.
    pub(super) fn of_first_call(source: RedisError, is_encrypted: bool) -> Result<Self, RedisError> {
        // A server that expects TLS resets other connections.
        if !is_encrypted && source.is_connection_dropped() && !source.is_connection_refusal() {
            let remedy = "the server ended the connection; if it expects TLS, the address begins with rediss://";
            return Ok(Self { remedy: remedy.to_owned(), source });
        }
        Self::of(source)
    }

    /// Adds what can be done about an error, if that is known.
    pub(super) fn of(source: RedisError) -> Result<Self, RedisError> {
        match remedy(&source) {
            Some(remedy) => Ok(Self { remedy, source }),
            None => Err(source),
        }
    }
}

/// Returns what an error means and what can be done about it, if that is known.
pub(super) fn remedy(error: &RedisError) -> Option<String> {
    let text = error.to_string();
    Some(match (error.kind(), error.code().unwrap_or_default()) {
        _ if text.contains("WRONGPASS") || error.kind() == ErrorKind::AuthenticationFailed => {
            "the server refuses the user name or the password in REDIS_URL".to_owned()
        }
        (_, "NOAUTH") => {
            "the server asks for a password; write it in REDIS_URL, as in redis://user:password@host:6379".to_owned()
        }
        (_, "NOPERM") => {
            "the user in REDIS_URL lacks a right; docs/managed-redis.md lists the rights that are needed".to_owned()
        }
        (ErrorKind::Server(ServerErrorKind::ClusterDown), _) if text.contains("cluster is down") => {
            "the cluster refuses everything, as it does while a master is missing; with \
             `cluster-require-full-coverage no` the others go on"
                .to_owned()
        }
        (ErrorKind::Server(ServerErrorKind::ClusterDown), _) => {
            "no master has the slot; `redis-cli --cluster check` tells which slots are missing".to_owned()
        }
        _ if text.contains("CertificateRequired") => {
            "the server asks for a client certificate; name it and its key in store.cert_file and store.key_file"
                .to_owned()
        }
        (ErrorKind::Parse, _) => {
            "the server doesn't speak Redis's protocol; if it expects TLS, the address begins with rediss://".to_owned()
        }
        _ => return None,
    })
}

/// Converts an error while an encrypted connection is made.
pub(super) fn of_handshake(error: io::Error, host: &str) -> RedisError {
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) else {
        let ended = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset].contains(&error.kind());
        if !ended {
            return error.into();
        }
        return told("the server ended the connection instead of encrypting it", without_tls(), error);
    };
    let (what, remedy) = match tls {
        // Of two authorities with the same name, the one that is known didn't sign it.
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => (
            "the certificate of the server was issued by an authority that isn't trusted here".to_owned(),
            "name the certificate of that authority in store.ca_file".to_owned(),
        ),
        TlsError::InvalidCertificate(CertificateError::NotValidForName) => (
            format!("the certificate of the server isn't for {host}"),
            "name the server in REDIS_URL as its certificate does".to_owned(),
        ),
        TlsError::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) => (
            format!("the certificate of the server isn't for {host} but for {}", presented.join(", ")),
            "name the server in REDIS_URL as its certificate does".to_owned(),
        ),
        TlsError::InvalidMessage(_) => ("the server doesn't encrypt".to_owned(), without_tls()),
        TlsError::AlertReceived(alert) => (
            format!("the server refuses to encrypt ({alert:?})"),
            "if it asks for a client certificate, name it and its key in store.cert_file and store.key_file".to_owned(),
        ),
        _ => return error.into(),
    };
    told(&what, remedy, error)
}

/// Returns the error of a server that does not answer a handshake, as one without TLS does not.
pub(super) fn no_handshake() -> RedisError {
    (ErrorKind::Io, "the server doesn't begin to encrypt in time", without_tls()).into()
}

fn without_tls() -> String {
    "an address without TLS begins with redis://".to_owned()
}

fn told(what: &str, remedy: String, error: io::Error) -> RedisError {
    io::Error::new(error.kind(), format!("{what}; {remedy} ({error})")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_operators_can_end_have_a_remedy() {
        for (line, what) in [
            ("WRONGPASS invalid username-password pair or user is disabled.", Some("the password in REDIS_URL")),
            ("NOAUTH Authentication required.", Some("redis://user:password@host")),
            ("NOPERM this user has no permissions to run the 'info' command", Some("docs/managed-redis.md")),
            ("CLUSTERDOWN The cluster is down", Some("`cluster-require-full-coverage no`")),
            ("CLUSTERDOWN Hash slot not served", Some("`redis-cli --cluster check`")),
            ("LOADING Redis is loading the dataset in memory", None),
        ] {
            let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
            let told = remedy(&answer.extract_error().unwrap_err());
            assert_eq!(told.is_some(), what.is_some(), "{line}: {told:?}");
            assert!(told.unwrap_or_default().contains(what.unwrap_or_default()), "{line}");
        }
    }
}
