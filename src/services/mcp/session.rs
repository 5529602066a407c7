//! A session with a server, which is used until it is lost.

use std::{process::Stdio, sync::Arc, time::Duration};

use countersign_core::{clock::Clock, permit::Permit};
use countersign_services::{changes::Changes, http};
use rmcp::{
    model::{
        CancelledNotification, CancelledNotificationParam, ClientRequest, GetExtensions as _, RequestId, ServerResult,
    },
    service::{PeerRequestOptions, RoleClient, RunningService, ServiceExt as _},
    transport::{
        async_rw::AsyncRwTransport,
        streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig},
    },
};
use secrecy::ExposeSecret as _;
use tokio::{
    process::{Child, Command},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{
    client::{Settings, Way},
    error::Error,
    handler::{Handler, Listeners},
    http::Http,
    tool::ServerInfo,
};

/// A session with a server. Dropping it closes the connection and kills the process that was started for it.
#[derive(Debug)]
pub(crate) struct Session {
    running: RunningService<RoleClient, Handler>,
    pub(crate) handler: Handler,
    /// The process at the other end of the pipes, which is killed when the session is dropped.
    _child: Option<Child>,
}

/// The environment variables that a server's process inherits. The others may contain secrets.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

impl Session {
    /// Connects, and negotiates the version of the protocol.
    pub(crate) async fn begin(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let begun = async {
            match &settings.way {
                Way::Http(url) => Self::over_http(settings, url, clock).await,
                Way::Process { command, arguments } => Self::over_pipes(settings, command, arguments).await,
            }
        };
        let late = || Error::NotSent { reason: "no connection in time".to_owned() };
        tokio::time::timeout(settings.timeout, begun).await.unwrap_or_else(|_| Err(late()))
    }

    async fn over_http(settings: &Settings, url: &Url, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let no_client = |error: &dyn std::error::Error| Error::NotSent { reason: error.to_string() };
        let changes = Changes::to(url, settings.timeout, settings.longest).map_err(|error| no_client(&error))?;
        let requests = http::client(url, settings.timeout).map_err(|error| no_client(&error))?;
        let (timeout, longest) = (settings.timeout, settings.longest);
        let client = Http { changes: Arc::new(changes), requests, clock, timeout, longest };
        // A lost session is not renewed by the library, which would send the call a second time.
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).reinit_on_expired_session(false);
        config.auth_header = settings.token.as_ref().map(|token| token.expose_secret().to_owned());
        let handler = Handler::default();
        let running = handler.clone().serve(StreamableHttpClientTransport::with_client(client, config)).await?;
        Ok(Self { running, handler, _child: None })
    }

    async fn over_pipes(settings: &Settings, command: &str, arguments: &[String]) -> Result<Self, Error> {
        let mut process = Command::new(command);
        process.args(arguments).env_clear().kill_on_drop(true);
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        process.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        if let Some(token) = &settings.token {
            process.env("MCP_TOKEN", token.expose_secret());
        }
        let failed = |why: String| Error::NotSent { reason: format!("`{command}` cannot be started: {why}") };
        let mut child = process.spawn().map_err(|error| failed(error.to_string()))?;
        let pipes = child.stdout.take().zip(child.stdin.take());
        let (output, input) = pipes.ok_or_else(|| failed("it has no pipes".to_owned()))?;
        let transport = AsyncRwTransport::new_client(output, input).with_max_line_length(settings.longest);
        let handler = Handler::default();
        let running = handler.clone().serve(transport).await?;
        Ok(Self { running, handler, _child: Some(child) })
    }

    /// Returns true if nothing more can be sent.
    pub(crate) fn is_over(&self) -> bool {
        self.running.peer().is_transport_closed()
    }

    /// Returns the server's description of itself.
    pub(crate) fn server(&self) -> ServerInfo {
        let Some(info) = self.running.peer().peer_info() else { return ServerInfo::default() };
        let program = info.server_info.clone();
        ServerInfo {
            name: program.as_ref().map(|program| program.name.clone()).unwrap_or_default(),
            version: program.map(|program| program.version).unwrap_or_default(),
            protocol: info.protocol_version.to_string(),
        }
    }

    /// Sends one request and waits for its answer within the limits of `wait`. If the wait ends without an answer, the
    /// server is notified that the request is cancelled.
    pub(crate) async fn send(
        &self,
        mut request: ClientRequest,
        permit: Option<Permit>,
        listeners: Listeners,
        wait: &Wait,
    ) -> Result<ServerResult, Error> {
        if let Some(permit) = permit {
            permit.check().map_err(|_| Error::RunOut)?;
            request.extensions_mut().insert(permit);
        }
        let began = Instant::now();
        let peer = self.running.peer();
        let handle = {
            let _entering = self.handler.entering.lock().await;
            let handle = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
            self.handler.calls.begin(handle.id.clone(), handle.progress_token.clone(), listeners.clone());
            handle
        };
        let entry = Entry { handler: &self.handler, id: handle.id.clone() };
        let mut answer = std::pin::pin!(handle.await_response());
        let reason = loop {
            let until = (listeners.last_sign_of_life() + wait.timeout).min(began + wait.longest.max(wait.timeout));
            if until <= Instant::now() {
                break "no answer in time";
            }
            tokio::select! {
                answer = &mut answer => return Ok(answer?),
                () = wait.stop.cancelled() => break "it was stopped",
                () = tokio::time::sleep_until(until) => {}
            }
        };
        let params = CancelledNotificationParam::new(Some(entry.id.clone()), Some(reason.to_owned()));
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, peer.send_notification(CancelledNotification::new(params).into()))
            .await;
        Err(Error::NoAnswer { reason: reason.to_owned() })
    }
}

/// The time limit for notifying a server that a call is cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// The limits on the wait for an answer.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// The maximum time without a sign of life.
    pub(crate) timeout: Duration,
    /// The maximum total time, but at least `timeout`.
    pub(crate) longest: Duration,
    /// The signal to end the wait.
    pub(crate) stop: CancellationToken,
}

/// The entry of a call in the list of calls. Dropping it removes the entry.
struct Entry<'a> {
    handler: &'a Handler,
    id: RequestId,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.handler.calls.end(&self.id);
    }
}
