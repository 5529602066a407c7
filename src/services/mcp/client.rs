//! The client of one server.

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use countersign_core::{clock::Clock, http_log, send_permit::SendPermit};
use hyper::header::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ElicitResult, ElicitationAction, InputRequest,
    InputResponses, ListResourcesRequest, ListToolsRequest, PaginatedRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, ResourceContents, ServerResult,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};
use tokio::{sync::Mutex, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use crate::{
    error::{Error, unreadable},
    handler::{Asks, Listeners, Watch},
    session::{Begins, Session, Wait},
    sign_in::{OAuth, SignIn},
    tasks_only::TasksOnly,
    tool::{Answer, ServerInfo, ToolDefinition},
};

/// The maximum number of pages that are read of a list.
const MAX_PAGES: usize = 50;

/// The maximum number of times that a server may answer one call with questions.
const MAX_ROUNDS: usize = 10;

/// The time for which the list of tools is reused.
const MAX_TOOLS_AGE: Duration = Duration::from_secs(60);

/// The transport to a server.
#[derive(Clone, Debug)]
pub enum Way {
    /// HTTP: the streamable one, or the older one with a stream of events.
    Http(Remote),
    /// The pipes of a process that the client starts.
    Process(Program),
}

/// A server that is reached over HTTP.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The address.
    pub url: Url,
    /// The headers that every request gets, for which there is nothing in [`wrong_header`].
    pub headers: Vec<(String, SecretString)>,
    /// The sign-in of an operator, in place of a token.
    pub oauth: Option<OAuth>,
}

/// Returns what is wrong with a header that every request is to get.
pub fn wrong_header(name: &str, value: &SecretString) -> Option<&'static str> {
    const OWN: [&str; 8] = [
        "accept",
        "connection",
        "content-length",
        "content-type",
        "host",
        "mcp-protocol-version",
        "mcp-session-id",
        "transfer-encoding",
    ];
    let Ok(name) = HeaderName::try_from(name) else { return Some("it isn't the name of an HTTP header") };
    if OWN.contains(&name.as_str()) {
        return Some("the protocol sets this header itself");
    }
    HeaderValue::from_str(value.expose_secret()).is_err().then_some("its value can't be sent in a header")
}

impl From<Url> for Remote {
    fn from(url: Url) -> Self {
        Self { url, headers: Vec::new(), oauth: None }
    }
}

/// A program that the client starts.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The program.
    pub command: String,
    /// The arguments of the program.
    pub arguments: Vec<String>,
    /// The environment variables that it gets beside the usual ones.
    pub variables: Vec<(String, SecretString)>,
    /// The folder in which it is started.
    pub folder: Option<PathBuf>,
}

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The transport to the server.
    pub way: Way,
    /// The token for the server. A process gets it in the variable `MCP_TOKEN`.
    pub token: Option<SecretString>,
    /// The time limit of a call that reports no progress.
    pub timeout: Duration,
    /// The maximum size of a tool's answer, in bytes. Structured data that repeats the content does not count.
    pub longest: usize,
}

impl Settings {
    /// Returns the number of bytes after which no more is read of an answer, which may say everything twice.
    pub(crate) fn most_read(&self) -> usize {
        self.longest.saturating_mul(2)
    }
}

/// The options of a tool call.
#[derive(Clone, Default)]
pub struct Call {
    /// The permit under which the call is sent; `None` for a call that only reads.
    pub permit: Option<SendPermit>,
    /// Answers the server's questions. Without it, questions are cancelled.
    pub asks: Option<Arc<dyn Asks>>,
    /// Receives the progress of the call.
    pub watch: Option<Watch>,
    /// The time limit of a call that reports progress or asks questions, but at least the usual time limit.
    pub longest: Duration,
    /// Ends the wait for the answer. The server is notified.
    pub stop: CancellationToken,
}

/// A client of one server. It connects when it is first used, and reconnects after the connection is lost.
pub struct McpClient {
    settings: Settings,
    clock: Arc<dyn Clock>,
    session: Mutex<Option<Arc<Session>>>,
    /// The tools as last read, and the time of that read.
    tools: Mutex<Option<(Instant, Arc<Vec<ToolDefinition>>)>>,
    /// The processes of earlier sessions that are being ended.
    endings: TaskTracker,
    sign_in: Option<Arc<SignIn>>,
    tasks_only: Arc<TasksOnly>,
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClient").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl McpClient {
    /// Creates a client, without connecting yet.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>) -> Self {
        let sign_in = match &settings.way {
            Way::Http(Remote { url, oauth: Some(oauth), .. }) => {
                Some(Arc::new(SignIn::new(url.clone(), oauth.clone(), settings.timeout)))
            }
            Way::Http(_) | Way::Process(_) => None,
        };
        let (session, tools, endings) = (Mutex::default(), Mutex::default(), TaskTracker::new());
        Self { settings, clock, session, tools, endings, sign_in, tasks_only: Arc::default() }
    }

    /// Returns the sign-in of an operator, if the server wants one.
    pub fn sign_in(&self) -> Option<&SignIn> {
        self.sign_in.as_deref()
    }

    /// Closes the session, and waits until the processes that were started have ended. A later call connects again.
    pub async fn close(&self) {
        if let Some(session) = self.session.lock().await.take() {
            session.close();
        }
        self.endings.close();
        self.endings.wait().await;
    }

    /// Returns the server's description of itself.
    ///
    /// # Errors
    ///
    /// If the connection fails.
    pub async fn server(&self) -> Result<ServerInfo, Error> {
        Ok(self.session().await?.server())
    }

    /// Reads and returns all tools of the server.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub async fn tools(&self) -> Result<Arc<Vec<ToolDefinition>>, Error> {
        let mut found: HashMap<String, ToolDefinition> = HashMap::new();
        let mut order = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ListToolsRequest::with_param(page);
            let answer = self.read(ClientRequest::ListToolsRequest(request)).await?;
            let ServerResult::ListToolsResult(page) = answer else { return Err(unreadable()) };
            for tool in &page.tools {
                let mut tool = ToolDefinition::from(tool);
                tool.needs_task = self.tasks_only.contains(&tool.name);
                if !found.contains_key(&tool.name) {
                    order.push(tool.name.clone());
                    found.insert(tool.name.clone(), tool);
                }
            }
            cursor = page.next_cursor.filter(|next| !next.is_empty());
            if cursor.is_none() {
                break;
            }
        }
        let tools: Arc<Vec<_>> = Arc::new(order.into_iter().filter_map(|name| found.remove(&name)).collect());
        *self.tools.lock().await = Some((Instant::now(), tools.clone()));
        Ok(tools)
    }

    /// Returns the tools, read again if the last read is not recent or the server has reported since that they changed.
    /// Not every server reports changes.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub async fn known_tools(&self) -> Result<Arc<Vec<ToolDefinition>>, Error> {
        let session = self.session.lock().await.clone();
        let changed =
            session.is_none_or(|session| session.is_over() || session.handler.changed.swap(false, Ordering::SeqCst));
        let known = self.tools.lock().await.clone().filter(|(at, _)| !changed && at.elapsed() < MAX_TOOLS_AGE);
        match known {
            Some((_, known)) => Ok(known),
            None => self.tools().await,
        }
    }

    /// Returns the addresses and names of the server's resources.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub async fn resources(&self) -> Result<Vec<(String, String)>, Error> {
        let request = ClientRequest::ListResourcesRequest(ListResourcesRequest::default());
        let ServerResult::ListResourcesResult(page) = self.read(request).await? else { return Err(unreadable()) };
        Ok(page.resources.iter().map(|resource| (resource.uri.clone(), resource.name.clone())).collect())
    }

    /// Returns the text of a resource.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub async fn resource(&self, uri: &str) -> Result<String, Error> {
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        let answer = self.read(ClientRequest::ReadResourceRequest(request)).await?;
        let ServerResult::ReadResourceResult(found) = answer else { return Err(unreadable()) };
        let texts = found.contents.iter().filter_map(|content| match content {
            ResourceContents::TextResourceContents { text, .. } => Some(text.as_str()),
            _ => None,
        });
        Ok(texts.collect::<Vec<_>>().join("\n"))
    }

    /// Calls a tool. A call that only reads is repeated once if the session was lost; a call under a permit is sent
    /// only once.
    ///
    /// # Errors
    ///
    /// [`Error`], which says whether the call can have arrived. An answer that reports a failure of the tool is not an
    /// error.
    pub async fn call(&self, tool: &str, arguments: &Map<String, Value>, call: Call) -> Result<Answer, Error> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        let wait = Wait { timeout: self.settings.timeout, longest: call.longest, stop: call.stop.clone() };
        let listeners = || Listeners::new(call.asks.clone(), call.watch.clone());
        let request =
            |params: &CallToolRequestParams| ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
        let mut sent = self.send(request(&params), call.permit.clone(), listeners(), &wait).await;
        if call.permit.is_none() && matches!(sent, Err(Error::SessionLost | Error::NotSent { .. })) {
            sent = self.send(request(&params), None, listeners(), &wait).await;
        }
        // A server of the newest version answers with its questions, and is called again with the answers to them.
        for _ in 0..MAX_ROUNDS {
            let Ok(ServerResult::InputRequiredResult(required)) = sent else { break };
            let mut given = InputResponses::new();
            for (name, asked) in required.input_requests.into_iter().flatten() {
                let answer = match asked {
                    InputRequest::Elicitation(asked) => json!(listeners().ask(asked.params).await),
                    _ => json!(ElicitResult::new(ElicitationAction::Cancel)),
                };
                given.insert(name, answer);
            }
            params.input_responses = Some(given);
            params.request_state = required.request_state;
            sent = self.send(request(&params), None, listeners(), &wait).await;
            if let Err(error) = sent {
                // It has begun with the call before, so an error says nothing about its effect.
                sent = Err(Error::NoAnswer { reason: error.to_string() });
            }
        }
        let status = match &sent {
            Ok(_) => Some(200),
            Err(Error::Auth { status }) => Some(*status),
            Err(Error::NotSent { .. } | Error::RunOut | Error::NotSignedIn { .. }) => {
                return Err(sent.err().unwrap_or_else(unreadable));
            }
            Err(Error::Refused { .. } | Error::SessionLost) => Some(400),
            Err(Error::NoAnswer { .. } | Error::TooLong { .. }) => None,
        };
        http_log::note("tools/call", tool, status);
        match sent? {
            ServerResult::CallToolResult(result) => Answer::within(self.settings.longest, result),
            ServerResult::EmptyResult(_) => Ok(Answer::default()),
            _ => Err(unreadable()),
        }
    }

    /// Sends a request that only reads, and repeats it once if the session was lost.
    async fn read(&self, request: ClientRequest) -> Result<ServerResult, Error> {
        let stop = CancellationToken::new();
        let wait = Wait { timeout: self.settings.timeout, longest: Duration::ZERO, stop };
        let listeners = || Listeners::new(None, None);
        match self.send(request.clone(), None, listeners(), &wait).await {
            Err(Error::SessionLost | Error::NotSent { .. } | Error::NoAnswer { .. }) => {
                self.send(request, None, listeners(), &wait).await
            }
            sent => sent,
        }
    }

    async fn send(
        &self,
        request: ClientRequest,
        permit: Option<SendPermit>,
        listeners: Listeners,
        wait: &Wait,
    ) -> Result<ServerResult, Error> {
        let session = self.session().await?;
        let sent = session.send(request, permit, listeners, wait).await;
        if sent.as_ref().is_err_and(Error::ends_session) {
            let mut current = self.session.lock().await;
            if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, &session)) {
                *current = None;
            }
        }
        sent
    }

    /// Returns the session. If there is none, a new one begins.
    async fn session(&self) -> Result<Arc<Session>, Error> {
        let mut current = self.session.lock().await;
        if let Some(session) = current.as_ref().filter(|session| !session.is_over()) {
            return Ok(session.clone());
        }
        let begins =
            Begins { sign_in: self.sign_in.clone(), tasks_only: self.tasks_only.clone(), endings: &self.endings };
        let session = Arc::new(Session::begin(&self.settings, self.clock.clone(), begins).await?);
        *current = Some(session.clone());
        Ok(session)
    }
}
