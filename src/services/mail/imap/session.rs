//! Signing in to an IMAP server, and the errors of the library.

use async_imap::{Authenticator, Client, error::Error};
use countersign_core::cause::chain;
use countersign_wire::capped::TooLong;
use secrecy::ExposeSecret as _;
use tokio::time::timeout;

use super::{
    ImapSettings,
    connection::{Allowance, Io, Limited, Security},
};
use crate::{account::MailError, mail::MAX_MAIL_BYTES};

/// The maximum size of the answers to a call, in bytes.
pub(super) const MAX_ANSWER_BYTES: u64 = 4 * 1024 * 1024;
/// The maximum size of the answers when a mail is read, in bytes.
pub(super) const MAX_BODY_ANSWER_BYTES: u64 = MAX_MAIL_BYTES + MAX_ANSWER_BYTES;
/// The maximum length of a server's own words in an error, in characters.
const MAX_REASON_CHARS: usize = 200;

/// A session after signing in.
pub(super) type Session = async_imap::Session<Limited>;

/// A session with the limit on its answers.
#[derive(Debug)]
pub(super) struct Connected {
    /// The session.
    pub(super) session: Session,
    allowance: Allowance,
}

impl Connected {
    /// Sets the maximum size of the following answers.
    pub(super) fn allow(&self, most: u64) {
        self.allowance.renew(most);
    }
}

/// Connects and signs in.
pub(super) async fn connect(settings: &ImapSettings) -> Result<Connected, MailError> {
    let server = &settings.imap;
    let tcp: Box<dyn Io> = Box::new(server.connect(settings.timeout).await?);
    let greeted = async {
        let io = match server.security {
            Security::Tls => server.encrypt(tcp).await?,
            Security::StartTls | Security::None => tcp,
        };
        let (limited, mut allowance) = Limited::new(io, MAX_ANSWER_BYTES);
        let mut client = Client::new(limited);
        let greeting = client.read_response().await.map_err(|error| failed(&Error::Io(error)))?;
        greeting.ok_or_else(|| failed(&Error::ConnectionLost))?;
        if server.security == Security::StartTls {
            client.run_command_and_check_ok("STARTTLS", None).await.map_err(|error| failed(&error))?;
            // Data that arrived before encryption is dropped with the client.
            let (limited, renewed) =
                Limited::new(server.encrypt(client.into_inner().into_inner()).await?, MAX_ANSWER_BYTES);
            (client, allowance) = (Client::new(limited), renewed);
        }
        let session = sign_in(client, settings).await?;
        Ok(Connected { session, allowance })
    };
    timeout(settings.timeout, greeted).await.unwrap_or_else(|_| {
        let reason = format!("{} did not complete the sign-in within {} s", server.host, settings.timeout.as_secs());
        Err(MailError::Unavailable { reason, retry_after: None })
    })
}

async fn sign_in(client: Client<Limited>, settings: &ImapSettings) -> Result<Session, MailError> {
    let (user, password) = (settings.user.as_str(), settings.password.expose_secret());
    let signed_in = if user.is_ascii() && password.is_ascii() {
        client.login(user, password).await
    } else {
        // The command LOGIN only allows ASCII.
        client.authenticate("PLAIN", Plain(format!("\0{user}\0{password}"))).await
    };
    signed_in.map_err(|(error, _)| match error {
        Error::No(reason) | Error::Bad(reason) => MailError::SignIn { reason: shortened(&reason) },
        error => failed(&error),
    })
}

/// The authentication PLAIN: name and password in one response.
struct Plain(String);

impl Authenticator for Plain {
    type Response = String;

    fn process(&mut self, _challenge: &[u8]) -> String {
        std::mem::take(&mut self.0)
    }
}

/// Converts an error of the library. What it quotes from an answer, which can be a mail, is left out.
pub(super) fn failed(error: &Error) -> MailError {
    let unavailable = |reason: String| MailError::Unavailable { reason, retry_after: None };
    match error {
        Error::Io(io) => match TooLong::in_chain(io) {
            Some(_) => MailError::Decode { reason: "the answer is too long".to_owned() },
            None if io.kind() == std::io::ErrorKind::Other => {
                MailError::Decode { reason: "it isn't valid IMAP".to_owned() }
            }
            None => unavailable(format!("the connection failed: {}", io.kind())),
        },
        Error::ConnectionLost => unavailable("the connection was lost".to_owned()),
        Error::No(reason) | Error::Bad(reason) => MailError::Refused { status: None, reason: shortened(reason) },
        Error::Append => MailError::Refused { status: None, reason: "the mailbox does not accept emails".to_owned() },
        Error::Validate(error) => MailError::Refused { status: None, reason: chain(error) },
        Error::Parse(_) => MailError::Decode { reason: "it isn't valid IMAP".to_owned() },
        _ => unavailable("the call failed".to_owned()),
    }
}

/// Returns the beginning of a server's own words, without addresses.
pub(super) fn shortened(reason: &str) -> String {
    let words = reason.split_whitespace().map(|word| if word.contains('@') { "…" } else { word });
    words.collect::<Vec<_>>().join(" ").chars().filter(|char| !char.is_control()).take(MAX_REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_does_not_quote_addresses_or_mails() {
        assert_eq!(shortened("550 <ana@example.com> is\r\nunknown"), "550 … is unknown");
        let quoting = Error::Io(std::io::Error::other("Error during parsing of \"Dear Ana\""));
        assert_eq!(failed(&quoting), MailError::Decode { reason: "it isn't valid IMAP".to_owned() });
    }
}
