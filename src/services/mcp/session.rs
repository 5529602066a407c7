//! A session with a server, which is used until it is lost.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use countersign_core::{clock::Clock, send_permit::SendPermit};
use countersign_services::{changes::Changes, http};
use rmcp::{
    ClientLifecycleMode, ClientServiceExt as _,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientRequest, ErrorCode, GetExtensions as _,
        ProtocolVersion, RequestId, ServerResult,
    },
    service::{ClientInitializeError, PeerRequestOptions, RoleClient, RunningService},
    transport::{
        async_rw::AsyncRwTransport,
        streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig},
    },
};
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    client::{Program, Remote, Settings, Way},
    error::{self, Error},
    event_stream::EventStream,
    handler::{Handler, Listeners},
    http::Http,
    process::{LimitedLines, Process},
    sign_in::SignIn,
    tasks_only::TasksOnly,
    tool::ServerInfo,
};

/// A session with a server. Dropping it closes the connection and ends the process that was started for it.
#[derive(Debug)]
pub(crate) struct Session {
    running: RunningService<RoleClient, Handler>,
    pub(crate) handler: Handler,
    /// The process at the other end of the pipes.
    process: Mutex<Option<Process>>,
    /// The processes that are being ended.
    endings: TaskTracker,
    /// The maximum size of an answer, in bytes.
    longest: usize,
}

/// The handshakes of the protocol, from the one that nearly every server speaks to that of the newest version alone.
fn handshakes() -> [ClientLifecycleMode; 2] {
    let newest = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
    [ClientLifecycleMode::Initialize, newest]
}

/// The parts of a client that its session uses.
pub(crate) struct Begins<'a> {
    pub(crate) sign_in: Option<Arc<SignIn>>,
    pub(crate) tasks_only: Arc<TasksOnly>,
    pub(crate) endings: &'a TaskTracker,
}

impl Session {
    /// Connects, and negotiates the version of the protocol.
    pub(crate) async fn begin(settings: &Settings, clock: Arc<dyn Clock>, begins: Begins<'_>) -> Result<Self, Error> {
        match &settings.way {
            Way::Http(remote) => {
                let begun = Self::over_http(settings, remote, clock, begins);
                let late = || Error::NotSent { reason: "no connection in time".to_owned() };
                tokio::time::timeout(settings.timeout, begun).await.unwrap_or_else(|_| Err(late()))
            }
            Way::Process(program) => {
                let [usual, newest] = handshakes();
                match Self::over_pipes(settings, program, usual, &begins).await {
                    Err(Begun::OtherVersion) => Self::over_pipes(settings, program, newest, &begins).await,
                    begun => begun,
                }
                .map_err(Begun::into_error)
            }
        }
    }

    /// Connects over streamable HTTP. A server that refuses its handshakes is tried over the older transport with a
    /// stream of events, as the protocol recommends.
    async fn over_http(
        settings: &Settings,
        remote: &Remote,
        clock: Arc<dyn Clock>,
        Begins { sign_in, tasks_only, endings }: Begins<'_>,
    ) -> Result<Self, Error> {
        let no_client = |error: &dyn std::error::Error| Error::NotSent { reason: error.to_string() };
        let url = &remote.url;
        let changes =
            Changes::to("mcp", url, settings.timeout, settings.most_read()).map_err(|error| no_client(&error))?;
        let requests = http::client(url, settings.timeout).map_err(|error| no_client(&error))?;
        let handler = Handler::default();
        let client = Http {
            changes: Arc::new(changes),
            requests,
            clock,
            timeout: settings.timeout,
            longest: settings.longest,
            most_read: settings.most_read(),
            headers: Arc::new(remote.headers.clone()),
            token: settings.token.clone(),
            sign_in,
            too_long: handler.too_long.clone(),
            tasks_only,
        };
        let mut refused = None;
        for handshake in handshakes() {
            // A lost session is not renewed by the library, which would send the call a second time.
            let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).reinit_on_expired_session(false);
            let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
            match handler.clone().serve_with_lifecycle(transport, handshake).await {
                Ok(running) => return Ok(Self::new(running, handler, None, settings, endings)),
                Err(error) if is_refused(&error) => refused = refused.or(Some(error)),
                Err(error) => return Err(error.into()),
            }
        }
        match EventStream::open(client, url).await {
            Ok(transport) => {
                let running = handler.clone().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await?;
                Ok(Self::new(running, handler, None, settings, endings))
            }
            Err(_) => Err(refused.map_or_else(error::unreadable, Error::from)),
        }
    }

    async fn over_pipes(
        settings: &Settings,
        program: &Program,
        handshake: ClientLifecycleMode,
        Begins { tasks_only, endings, .. }: &Begins<'_>,
    ) -> Result<Self, Begun> {
        let failed = |why: String| Begun::Failed(Error::NotSent { reason: why });
        let mut program = program.clone();
        if let Some(token) = &settings.token {
            program.variables.push(("MCP_TOKEN".to_owned(), token.clone()));
        }
        let started = Process::start(&program);
        let cannot = |error| failed(format!("`{}` cannot be started: {error}", program.command));
        let (mut process, output, input) = started.map_err(cannot)?;
        let handler = Handler::default();
        let too_long = handler.too_long.clone();
        let tasks_only = tasks_only.clone();
        let note = move |line: &[u8]| tasks_only.note(line);
        let output = LimitedLines::new(output, settings.most_read(), move || too_long.report(None), note);
        let transport = AsyncRwTransport::new_client(output, input).with_max_line_length(settings.most_read());
        let serving = handler.clone().serve_with_lifecycle(transport, handshake);
        let reason = match tokio::time::timeout(settings.timeout, serving).await {
            Ok(Ok(running)) => return Ok(Self::new(running, handler, Some(process), settings, endings)),
            Ok(Err(error)) if is_of_other_version(&error) => {
                endings.spawn(process.end());
                return Err(Begun::OtherVersion);
            }
            Ok(Err(ClientInitializeError::JsonRpcError(said))) => format!("it answered with “{}”", said.message),
            Ok(Err(_)) | Err(_) => process.why_silent().await,
        };
        endings.spawn(process.end());
        Err(failed(reason))
    }

    fn new(
        running: RunningService<RoleClient, Handler>,
        handler: Handler,
        process: Option<Process>,
        settings: &Settings,
        endings: &TaskTracker,
    ) -> Self {
        let (process, endings, longest) = (Mutex::new(process), endings.clone(), settings.longest);
        Self { running, handler, process, endings, longest }
    }

    /// Returns true if nothing more can be sent.
    pub(crate) fn is_over(&self) -> bool {
        self.running.peer().is_transport_closed()
    }

    /// Closes the connection and begins to end the process.
    pub(crate) fn close(&self) {
        self.running.cancellation_token().cancel();
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Without a runtime, the process is killed when it is dropped.
        if let (Some(process), Ok(runtime)) = (process, tokio::runtime::Handle::try_current()) {
            self.endings.spawn_on(process.end(), &runtime);
        }
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
        permit: Option<SendPermit>,
        listeners: Listeners,
        wait: &Wait,
    ) -> Result<ServerResult, Error> {
        if let Some(permit) = permit {
            permit.check().map_err(|_| Error::RunOut)?;
            request.extensions_mut().insert(permit);
        }
        request.extensions_mut().insert(tracing::Span::current());
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
        let error = loop {
            let until = (listeners.last_sign_of_life() + wait.timeout).min(began + wait.longest.max(wait.timeout));
            if until <= Instant::now() {
                break Error::NoAnswer { reason: "no answer in time".to_owned() };
            }
            tokio::select! {
                biased;
                answer = &mut answer => return answer.map_err(|error| self.explained(error.into())),
                () = self.handler.too_long.reported(&entry.id) => break Error::TooLong { most: self.longest },
                () = wait.stop.cancelled() => break Error::NoAnswer { reason: "it was stopped".to_owned() },
                () = tokio::time::sleep_until(until) => {}
            }
        };
        let reason = error.to_string();
        let params = CancelledNotificationParam::new(Some(entry.id.clone()), Some(reason));
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, peer.send_notification(CancelledNotification::new(params).into()))
            .await;
        Err(error)
    }

    /// Returns an error as it is; if the connection to a process was lost, its last words are logged.
    fn explained(&self, error: Error) -> Error {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(process), true) = (&*process, self.is_over()) {
            process.log_last_words();
        }
        error
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

/// The reason why a session over pipes did not begin.
enum Begun {
    /// The server wants another version of the protocol.
    OtherVersion,
    /// It failed.
    Failed(Error),
}

impl Begun {
    fn into_error(self) -> Error {
        match self {
            Self::OtherVersion => {
                Error::NotSent { reason: "it speaks no version of the protocol known here".to_owned() }
            }
            Self::Failed(error) => error,
        }
    }
}

/// Returns true if a server answered a handshake with an error which may mean that it knows another one.
fn is_of_other_version(error: &ClientInitializeError) -> bool {
    let codes = [ErrorCode::METHOD_NOT_FOUND, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, ErrorCode::INVALID_REQUEST];
    matches!(error, ClientInitializeError::JsonRpcError(said) if codes.contains(&said.code))
}

/// Returns true if a server refused a handshake over HTTP, but not for want of a sign-in.
fn is_refused(error: &ClientInitializeError) -> bool {
    let is_known = is_of_other_version(error)
        || matches!(
            error,
            ClientInitializeError::JsonRpcError(_) | ClientInitializeError::NoCompatibleProtocolVersion { .. }
        );
    is_known
        || error::status_of(error).is_some_and(|status| (400..500).contains(&status) && !matches!(status, 401 | 403))
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
