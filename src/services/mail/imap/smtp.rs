//! Sending by SMTP: one message on one connection, and no byte without a permit.
//!
//! A server accepts a message when it has read the line with a single dot after it. So a failure before the message is
//! sent means that nothing was accepted, and so does a permit that runs out on the way: the rest, with that line, is
//! never sent. Only a response that is missing after that leaves it open.

use std::{net::SocketAddr, sync::Arc};

use countersign_core::send_permit::SendPermit;
use countersign_wire::permitted::{Permitted, Sending};
use lettre::{
    Address as Mailbox,
    transport::smtp::{
        Error,
        authentication::{Credentials, DEFAULT_MECHANISMS},
        client::{AsyncSmtpConnection, AsyncTokioStream, Certificate, TlsParameters},
        commands::{Data, Mail, Rcpt},
        extension::{ClientId, Extension, MailParameter},
    },
};
use secrecy::ExposeSecret as _;
use tokio::time::timeout;

use super::{
    ImapSettings,
    connection::{Io, Limited, Security},
    session::shortened,
};
use crate::{
    account::{MailError, SendError},
    reply::Outgoing,
};

/// The maximum size of all responses on a connection, in bytes.
const MAX_RESPONSES_BYTES: u64 = 1024 * 1024;

impl AsyncTokioStream for Limited {
    fn peer_addr(&self) -> std::io::Result<SocketAddr> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Sends a message under a permit.
pub(super) async fn send(settings: &ImapSettings, out: &Outgoing, permit: &SendPermit) -> Result<(), SendError> {
    permit.check().map_err(|run_out| SendError::NotSent(run_out.into()))?;
    let sending = Sending::under(permit.clone());
    let mut connection = match timeout(settings.timeout, begin(settings, out, &sending)).await {
        Ok(begun) => {
            begun.map_err(|error| if sending.was_refused() { SendError::NotSent(MailError::RunOut) } else { error })?
        }
        Err(_) => return Err(SendError::NotSent(no_answer(settings))),
    };
    // The last line end is sent together with the dot.
    let message = out.to_mime();
    let message = message.strip_suffix(b"\r\n").unwrap_or(&message);
    permit.check().map_err(|run_out| SendError::NotSent(run_out.into()))?;
    let sent = match timeout(settings.timeout, connection.message(message)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) if sending.was_refused() => Err(SendError::NotSent(MailError::RunOut)),
        Ok(Err(error)) if error.status().is_some() => Err(refused(&error)),
        Ok(Err(error)) => Err(SendError::Unknown { detail: described(&error) }),
        Err(_) => Err(SendError::Unknown { detail: no_answer(settings).to_string() }),
    };
    if sent.is_ok() {
        // The mail is sent, whether or not the server answers this.
        timeout(settings.timeout, connection.quit()).await.ok();
    }
    sent
}

/// Signs in without sending anything.
pub(super) async fn check(settings: &ImapSettings) -> Result<(), MailError> {
    let checking = async {
        let tcp = settings.smtp.connect(settings.timeout).await?;
        let mut connection = sign_in(settings, Box::new(tcp)).await?;
        connection.quit().await.ok();
        Ok(())
    };
    timeout(settings.timeout, checking).await.unwrap_or_else(|_| Err(no_answer(settings)))
}

/// Connects, signs in, and names sender and recipient, so that the message can follow.
async fn begin(
    settings: &ImapSettings,
    out: &Outgoing,
    sending: &Arc<Sending>,
) -> Result<AsyncSmtpConnection, SendError> {
    let (from, to) = (mailbox(&out.from.address)?, mailbox(&out.to.address)?);
    let tcp = settings.smtp.connect(settings.timeout).await.map_err(SendError::NotSent)?;
    let permitted = Permitted::new(tcp, sending.clone());
    let mut connection = sign_in(settings, Box::new(permitted)).await.map_err(SendError::NotSent)?;
    let mut parameters = Vec::new();
    if !out.from.address.is_ascii() || !out.to.address.is_ascii() {
        if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
            let reason = "the address is not ASCII, and the server does not support that".to_owned();
            return Err(SendError::Refused(MailError::Refused { status: None, reason }));
        }
        parameters.push(MailParameter::SmtpUtfEight);
    }
    connection.command(Mail::new(Some(from), parameters)).await.map_err(|error| refused(&error))?;
    connection.command(Rcpt::new(to, Vec::new())).await.map_err(|error| refused(&error))?;
    connection.command(Data).await.map_err(|error| refused(&error))?;
    Ok(connection)
}

/// Greets the server, encrypts the connection and signs in, as far as the settings say.
async fn sign_in(settings: &ImapSettings, io: Box<dyn Io>) -> Result<AsyncSmtpConnection, MailError> {
    let server = &settings.smtp;
    let io = if server.security == Security::Tls { server.encrypt(io).await? } else { io };
    let (limited, _allowance) = Limited::new(io, MAX_RESPONSES_BYTES);
    let hello = ClientId::Domain(domain(settings));
    let connecting = AsyncSmtpConnection::connect_with_transport(Box::new(limited), &hello);
    let mut connection = connecting.await.map_err(|error| failed(&error))?;
    if server.security == Security::StartTls {
        let mut tls = TlsParameters::builder(server.host.clone());
        if let Some(pem) = server.authorities.pem() {
            tls = tls.add_root_certificate(Certificate::from_pem(pem).map_err(|error| failed(&error))?);
        }
        let tls = tls.build_rustls().map_err(|error| failed(&error))?;
        connection.starttls(tls, &hello).await.map_err(|error| failed(&error))?;
    }
    if !settings.user.is_empty() {
        let credentials = Credentials::new(settings.user.clone(), settings.password.expose_secret().to_owned());
        let signed_in = connection.auth(DEFAULT_MECHANISMS, &credentials).await;
        signed_in.map_err(|error| match error.status() {
            Some(_) if error.is_permanent() => MailError::SignIn { reason: described(&error) },
            _ => failed(&error),
        })?;
    }
    Ok(connection)
}

/// Returns the name with which this machine greets the server.
fn domain(settings: &ImapSettings) -> String {
    let domain = settings.address.domain();
    if domain.is_ascii() { domain.to_owned() } else { "localhost".to_owned() }
}

fn mailbox(address: &str) -> Result<Mailbox, SendError> {
    address.parse().map_err(|_| {
        let reason = "the address is not valid".to_owned();
        SendError::Refused(MailError::Refused { status: None, reason })
    })
}

/// Converts the failure of a command that is not the message itself, or a refusal of the message.
fn refused(error: &Error) -> SendError {
    match failed(error) {
        refused @ MailError::Refused { .. } => SendError::Refused(refused),
        other => SendError::NotSent(other),
    }
}

fn failed(error: &Error) -> MailError {
    let reason = described(error);
    if error.is_permanent() {
        MailError::Refused { status: error.status().map(u16::from), reason }
    } else if error.is_response() && !reason.contains("incomplete") {
        MailError::Decode { reason }
    } else {
        MailError::Unavailable { reason, retry_after: None }
    }
}

fn described(error: &Error) -> String {
    shortened(&error.to_string())
}

fn no_answer(settings: &ImapSettings) -> MailError {
    let reason = format!("{} did not answer within {} s", settings.smtp.host, settings.timeout.as_secs());
    MailError::Unavailable { reason, retry_after: None }
}
