//! The calls to the server: sign-in, retries of reads, and interpretation of the answers.

use std::sync::Arc;

use backon::Retryable as _;
use countersign_core::{
    clock::SystemClock,
    send_permit::{self, SendPermit},
    status_line,
};
use countersign_services::http::{self, Lost};
use reqwest::Method;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::{
    answer::{FromAnswer, Kind, unanswered, understand},
    client::UpgradeClient,
    error::Error,
    known::{Confirms, Effect},
};

/// The identity that makes a call.
#[derive(Clone, Copy)]
pub(super) enum As<'a> {
    /// No credentials.
    Anyone,
    /// The bot's own credentials, for the calls that manage experiments.
    Admin,
    /// A participant.
    User(&'a str),
}

impl UpgradeClient {
    /// Makes a read, and retries it if the platform cannot be reached or fails. The status line
    /// reports retries.
    pub(super) async fn read<T: FromAnswer>(
        &self,
        method: Method,
        path: &str,
        who: As<'_>,
        body: Option<&Value>,
    ) -> Result<T, Error> {
        let attempt = || self.send(Kind::Read, method.clone(), path, who, body);
        let mut attempts = 1;
        let answer = attempt.retry(http::waits()).when(may_pass).notify(|_, _| {
            attempts += 1;
            let of = http::MAX_RETRIES + 1;
            status_line::say(format!("UpGrade isn't answering. Asking again ({attempts} of {of})…"));
        });
        Box::pin(answer).await // on the heap, so that the futures of all that wait for a read are small
    }

    /// Sends a change with this effect, once.
    pub(super) async fn write<T: FromAnswer + Confirms>(
        &self,
        effect: Effect,
        method: Method,
        path: &str,
        who: As<'_>,
        body: Option<&Value>,
    ) -> Result<T, Error> {
        let sending = self.known.sending(effect);
        let answer = Box::pin(self.send(Kind::Write, method, path, who, body)).await;
        sending.note(&answer);
        answer
    }

    /// Makes one attempt, signed in if needed.
    async fn send<T: FromAnswer>(
        &self,
        kind: Kind,
        method: Method,
        path: &str,
        who: As<'_>,
        body: Option<&Value>,
    ) -> Result<T, Error> {
        let call = |token| Box::pin(self.call(kind, method.clone(), path, who, token, body));
        if !matches!(who, As::Admin) {
            return call(None).await;
        }
        let signed = async {
            let token = self.sign_in.token().await?;
            match call(token.clone()).await {
                // The next call uses the new token. This one is not sent again, since a refusal does
                // not prove that nothing happened. It is rare: the read before a change uses the same
                // token, and replaces it if it is refused.
                Err(Error::Auth) if kind == Kind::Write => {
                    if let Err(error) = self.sign_in.replacement_for(token.as_ref()).await {
                        tracing::warn!(%error, "Cannot replace a refused token");
                    }
                    Err(Error::Auth)
                }
                Err(Error::Auth) => match self.sign_in.replacement_for(token.as_ref()).await? {
                    None => Err(Error::Auth),
                    other => call(other).await,
                },
                result => result,
            }
        };
        let late = |_| Err(unanswered(kind, Lost::NoAnswer { reason: "no answer in time".into(), timed_out: true }));
        // Slightly longer than the time-out of the call itself, whose error is more precise.
        let limit = self.timeout() + std::time::Duration::from_millis(100);
        tokio::time::timeout(limit, signed).await.unwrap_or_else(late)
    }

    /// Makes one request.
    async fn call<T: FromAnswer>(
        &self,
        kind: Kind,
        method: Method,
        path: &str,
        who: As<'_>,
        token: Option<SecretString>,
        body: Option<&Value>,
    ) -> Result<T, Error> {
        let url = self.base.join(path.trim_start_matches('/'));
        let url = url.map_err(|error| Error::Unavailable { reason: format!("the address of {path}: {error}") })?;
        let mut request = self.client.request(method, url);
        if let As::User(user) = who {
            request = request.header("User-Id", user);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token.expose_secret());
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = match kind {
            Kind::Read => http::send("upgrade", request, self.longest).await,
            Kind::Write => {
                // Outside of an action no other process takes over, so the permit is for this call.
                let for_one_call = || SendPermit::new(Arc::new(SystemClock), self.timeout());
                self.changes.send(request, &send_permit::current().unwrap_or_else(for_one_call)).await
            }
        };
        let result = match answer {
            Ok(answer) => understand(kind, answer),
            Err(lost) => Err(unanswered(kind, lost)),
        };
        if let Err(Error::Unavailable { .. } | Error::NoAnswer { .. }) = &result {
            *self.version.lock().expect("nothing panics while it is held") = None;
        }
        result
    }
}

/// Returns true if a read that failed with this error may succeed when it is repeated.
fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Unavailable { .. } | Error::Faulted { .. })
}
