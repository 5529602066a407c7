//! The server: one table of routes, which also is the documentation; signing in; and limits.

mod act;
mod ask;
mod limits;
mod look;
pub mod openapi;

use std::{fmt, net::IpAddr, sync::Arc};

use axum::{
    Router,
    body::to_bytes,
    extract::{ConnectInfo, Request, State},
    http::{Extensions, HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use countersign_config as config;
use countersign_conversation::presentation::links::Links;
use countersign_core::{
    clock::{Clock, Timestamp},
    ids::{ThreadId, UserId},
};
use countersign_graph::{engine::PolicyFor, standing::Entitled};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::{
    limits::{Limits, Waiters},
    look::Elsewhere,
    openapi::document,
};
use super::{
    asked::{CLAIM, NOTHING, OUTCOME, REQUEST, TOKEN},
    keys::{self, CurrentKeys},
    mcp::{self, OverHttp},
    poster::Poster,
    problem::Problem,
    register::{Entry, Requests},
    settings::{Api, Key, Scope},
    shape::{self, Member},
    token::TokenKeys,
    view::Seen,
};

pub(crate) use self::ask::WHILE_OPEN;

/// The largest body, in bytes.
pub(crate) const MAX_BODY: usize = 64 << 10;

/// What a route does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Asks.
    Ask,
    /// Lists the requests of the key.
    List,
    /// Looks at a request, or waits for it.
    Look,
    /// Withdraws a request.
    Cancel,
    /// Takes an approval.
    Claim,
    /// Reports an outcome.
    Report,
    /// Checks a token.
    Introspect,
    /// Lists the policies of the key.
    Policies,
    /// Returns the public keys of tokens.
    KeySet,
    /// Returns the documentation.
    Document,
}

/// A route.
#[derive(Debug)]
pub struct Route {
    /// What it does.
    pub op: Op,
    /// The method.
    pub method: &'static str,
    /// The path, in which `{id}` stands for the id of a request.
    pub path: &'static str,
    /// The scope that a key needs; `None` if no key is needed.
    pub scope: Option<Scope>,
    /// The shape of the body, if there is one.
    pub body: Option<&'static [Member]>,
    /// What it does, in a sentence.
    pub what: &'static str,
}

const fn route(
    op: Op,
    method: &'static str,
    path: &'static str,
    scope: Option<Scope>,
    body: Option<&'static [Member]>,
    what: &'static str,
) -> Route {
    Route { op, method, path, scope, body, what }
}

/// All routes.
pub const ROUTES: &[Route] = &[
    route(
        Op::Ask,
        "POST",
        "/v1/approvals",
        Some(Scope::Create),
        Some(REQUEST),
        "Asks for an approval. Needs an Idempotency-Key.",
    ),
    route(Op::List, "GET", "/v1/approvals", Some(Scope::Read), None, "Lists the key's requests, the oldest first."),
    route(
        Op::Look,
        "GET",
        "/v1/approvals/{id}",
        Some(Scope::Read),
        None,
        "Returns a request, or waits until it is decided or changes.",
    ),
    route(
        Op::Cancel,
        "POST",
        "/v1/approvals/{id}/cancel",
        Some(Scope::Cancel),
        Some(NOTHING),
        "Withdraws a request that nobody has decided.",
    ),
    route(
        Op::Claim,
        "POST",
        "/v1/approvals/{id}/claim",
        Some(Scope::Claim),
        Some(CLAIM),
        "Takes an approval, once, and returns a token of five minutes.",
    ),
    route(Op::Report, "POST", "/v1/approvals/{id}/outcome", Some(Scope::Report), Some(OUTCOME), "Reports how it went."),
    route(
        Op::Introspect,
        "POST",
        "/v1/tokens/introspect",
        Some(Scope::Claim),
        Some(TOKEN),
        "Tells whether a token is good now.",
    ),
    route(Op::Policies, "GET", "/v1/policies", Some(Scope::Read), None, "Lists the policies that the key may name."),
    route(Op::KeySet, "GET", "/.well-known/jwks.json", None, None, "Returns the public keys of tokens (RFC 7517)."),
    route(Op::Document, "GET", "/v1/openapi.json", None, None, "Returns this description."),
];

/// The dependencies of a [`Server`].
#[expect(missing_debug_implementations, reason = "a function has none")]
pub struct ServerDeps {
    /// The requests.
    pub requests: Requests,
    /// The settings.
    pub settings: Arc<Api>,
    /// The keys, as they are now.
    pub keys: CurrentKeys,
    /// The settings of approvals, for what the policies leave out.
    pub approvals: config::Approvals,
    /// The loop that posts requests.
    pub poster: Arc<Poster>,
    /// The keys of tokens.
    pub tokens: TokenKeys,
    /// The policy of each change, as it is now.
    pub policy_for: PolicyFor,
    /// Who may approve a change.
    pub entitled: Arc<dyn Entitled>,
    /// The addresses of messages.
    pub links: Links,
    /// The function that goes on with a thread and sends its messages.
    pub wake: Arc<dyn Fn(ThreadId) + Send + Sync>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The signal that the process shuts down: nobody waits any longer.
    pub stop: CancellationToken,
}

/// The server.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    deps: ServerDeps,
    limits: Limits,
    waiters: Waiters,
    elsewhere: Elsewhere,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}

/// The program that makes a request, by its key.
#[derive(Clone, Debug)]
struct Caller {
    name: String,
    key: Key,
    address: IpAddr,
}

impl Caller {
    /// Returns the id under which it asks.
    fn id(&self) -> UserId {
        UserId::of_key(&self.name)
    }
}

impl Server {
    /// Creates a server; [`Self::router`] returns its routes.
    pub fn new(deps: ServerDeps) -> Self {
        let limits = Limits::new(deps.settings.requests_a_minute, deps.clock.clone());
        let waiters = Waiters::new(deps.settings.waiting);
        Self(Arc::new(Inner { deps, limits, waiters, elsewhere: Elsewhere::default() }))
    }

    /// Returns the routes.
    pub fn router(&self) -> Router {
        let Inner { deps, .. } = &*self.0;
        let mcp = deps.settings.mcp.then(|| mcp::over_http(self, &deps.settings, deps.stop.clone()));
        Router::new().fallback(serve).with_state((self.clone(), mcp))
    }

    fn now(&self) -> Timestamp {
        self.0.deps.clock.now()
    }

    /// Returns the program whose key the request has.
    fn sign_in(&self, headers: &HeaderMap, address: IpAddr) -> Result<Caller, Problem> {
        let refused = |why: &str| Problem::new("unauthorized", why);
        if let Some(wait) = self.0.limits.is_locked_out(address) {
            return Err(
                Problem::new("rate-limited", "Too many requests with a wrong key came from this address.").after(wait)
            );
        }
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given =
            given.and_then(|value| value.split_once(' ')).filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        let Some((_, given)) = given else { return Err(refused("Send the key as Authorization: Bearer csk_…")) };
        let today = jiff::Timestamp::from_millisecond(self.now().millis()).unwrap_or_default();
        let today = today.to_zoned(TimeZone::UTC).date();
        match keys::find(&self.0.deps.keys.now(), given.trim(), today) {
            Some((name, key)) => Ok(Caller { name: name.to_owned(), key: key.clone(), address }),
            None => {
                metrics::counter!("countersign_api_refused_sign_ins_total").increment(1);
                self.0.limits.note_failure(address);
                Err(refused("The key is not valid: it is unknown, revoked or over."))
            }
        }
    }

    /// Returns the address that a request came from.
    fn address(extensions: &Extensions) -> IpAddr {
        extensions.get::<ConnectInfo<IpAddr>>().map_or(IpAddr::from([0, 0, 0, 0]), |info| info.0)
    }

    /// Answers a request.
    ///
    /// # Errors
    ///
    /// The problem.
    pub(crate) async fn answer(&self, request: Request) -> Result<Response, Problem> {
        let (parts, body) = request.into_parts();
        let (route, id) = find(&parts.method, parts.uri.path())
            .ok_or_else(|| Problem::new("not-found", "There is no such address, or not with this method."))?;
        let Some(scope) = route.scope else {
            return Ok(json_answer(
                StatusCode::OK,
                &match route.op {
                    Op::KeySet => self.0.deps.tokens.set().clone(),
                    _ => document(&self.0.deps.settings.url()),
                },
            ));
        };
        let caller = self.sign_in(&parts.headers, Self::address(&parts.extensions))?;
        if let Some(wait) = self.0.limits.take(&caller.name) {
            return Err(Problem::new("rate-limited", "The key makes too many requests.").after(wait));
        }
        if !caller.key.may(scope) {
            return Err(scope.into());
        }
        let body = match route.body {
            Some(members) => read(&parts.headers, body, route.op, members).await?,
            None => Value::Null,
        };
        let query = parts.uri.query().unwrap_or_default();
        let id = id.unwrap_or_default();
        match route.op {
            Op::Ask => self.ask(&caller, &parts.headers, body).await,
            Op::List => self.list(&caller, query).await,
            Op::Look => self.look(&caller, id, query).await,
            Op::Cancel => self.cancel(&caller, id).await,
            Op::Claim => self.claim(&caller, id, &parts.headers, &body).await,
            Op::Report => self.report(&caller, id, &body).await,
            Op::Introspect => self.introspect(&caller, &body).await,
            Op::Policies => Ok(self.policies(&caller)),
            Op::KeySet | Op::Document => unreachable!("they need no key, and were answered"),
        }
    }

    /// Returns the request with this id, if it is one of the key's.
    async fn entry(&self, caller: &Caller, id: &str) -> Result<Entry, Problem> {
        let missing = || Problem::new("not-found", "The key has no request with this id.");
        if !is_id(id) {
            return Err(missing());
        }
        let entry = self.0.deps.requests.entry(id).await?.filter(|entry| entry.key == caller.name);
        entry.ok_or_else(missing)
    }

    /// Returns the request with this id, if it is one of the key's, with its action.
    async fn seen(&self, caller: &Caller, id: &str) -> Result<Seen, Problem> {
        let entry = self.entry(caller, id).await?;
        let record = self.0.deps.requests.record(&entry).await?;
        Ok(Seen { entry, record })
    }

    /// Returns a request as it is shown to its program.
    fn shown(&self, seen: &Seen) -> Value {
        let deps = &self.0.deps;
        let policy = deps.settings.policies.get(&seen.entry.asked.policy);
        let needed = policy.map_or(1, |policy| deps.settings.needed(policy, &deps.approvals));
        let url = seen.entry.thread.as_ref();
        let url = url.and_then(|thread| deps.links.message(&thread.channel, &thread.root, &thread.root));
        seen.as_json(needed, url)
    }

    /// Returns the answer that shows a request.
    fn show(&self, status: StatusCode, seen: &Seen) -> Response {
        let mut answer = json_answer(status, &self.shown(seen));
        if let Ok(tag) = format!("\"{}\"", seen.revision()).parse() {
            answer.headers_mut().insert(header::ETAG, tag);
        }
        answer
    }

    fn policies(&self, caller: &Caller) -> Response {
        let deps = &self.0.deps;
        let named = caller.key.policies.iter().filter_map(|name| Some((name, deps.settings.policies.get(name)?)));
        let policies = named.map(|(name, policy)| {
            let for_tools = caller.key.tool_policy.as_ref() == Some(name);
            json!({ "name": name, "tool_use": for_tools, "channel": policy.channel, "needed": deps.settings.needed(policy, &deps.approvals),
                "expires_after": policy.expires_after.as_secs(), "claim_within": policy.claim_within.as_secs() })
        });
        json_answer(StatusCode::OK, &json!({ "object": "list", "data": policies.collect::<Vec<_>>() }))
    }
}

async fn serve(State((server, mcp)): State<(Server, Option<OverHttp>)>, request: Request) -> Response {
    let answered = match mcp.filter(|_| request.uri().path() == "/mcp") {
        // Each call of a tool signs in again, as a call of the API.
        Some(mcp) => match server.sign_in(request.headers(), Server::address(request.extensions())) {
            Ok(_) => Ok(mcp::serve(&mcp, request).await),
            Err(problem) => Err(problem),
        },
        None => server.answer(request).await,
    };
    let result = answered.as_ref().err().map_or("ok", Problem::slug);
    metrics::counter!("countersign_api_requests_total", "result" => result).increment(1);
    answered.unwrap_or_else(IntoResponse::into_response)
}

/// Returns the route of a request, with the id in its path.
fn find<'p>(method: &Method, path: &'p str) -> Option<(&'static Route, Option<&'p str>)> {
    ROUTES.iter().filter(|route| method == route.method).find_map(|route| {
        let mut id = None;
        let mut given = path.split('/');
        for part in route.path.split('/') {
            match given.next()? {
                found if part == "{id}" => id = Some(found),
                found if found == part => {}
                _ => return None,
            }
        }
        given.next().is_none().then_some((route, id))
    })
}

/// Reads a body of the right shape. That of a request is checked where it is read.
async fn read(headers: &HeaderMap, body: axum::body::Body, op: Op, members: &[Member]) -> Result<Value, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_json = kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json");
    let too_large = || Problem::new("too-large", format!("A body has at most {MAX_BODY} bytes."));
    let bytes = to_bytes(body, MAX_BODY).await.map_err(|_| too_large())?;
    if bytes.is_empty() && members.is_empty() {
        return Ok(json!({}));
    }
    if !is_json {
        return Err(Problem::new("unsupported-media-type", "Send application/json."));
    }
    let fault = |detail: String| Problem::invalid(&[shape::Fault { pointer: String::new(), detail }]);
    let value = shape::parse(&bytes).map_err(|error| fault(format!("This is not JSON that can be used: {error}.")))?;
    let mut faults = Vec::new();
    if op != Op::Ask {
        shape::check(&value, members, "", &mut faults);
    }
    if faults.is_empty() { Ok(value) } else { Err(Problem::invalid(&faults)) }
}

fn json_answer(status: StatusCode, body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.to_string()).into_response()
}

/// The beginning of the ids of requests.
const ID: &str = "apr_";

/// Returns a new id, with 128 random bits.
fn fresh_id() -> String {
    format!("{ID}{:032x}", rand::random::<u128>())
}

fn is_id(id: &str) -> bool {
    id.strip_prefix(ID).is_some_and(|rest| rest.len() == 32 && rest.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Returns the values of a query, if it names only these.
fn query<'q, const N: usize>(
    query: &'q str,
    names: [&str; N],
) -> Result<[Option<std::borrow::Cow<'q, str>>; N], Problem> {
    let mut found = [const { None }; N];
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match names.iter().position(|known| *known == name) {
            Some(at) => found[at] = Some(value),
            None => {
                let detail = format!("There is no parameter `{name}`. Known are {}.", names.join(", "));
                return Err(Problem::invalid(&[shape::Fault { pointer: String::new(), detail }]));
            }
        }
    }
    Ok(found)
}

/// Returns a number of a query between these bounds.
fn number(name: &str, given: Option<&str>, least: u64, most: u64) -> Result<Option<u64>, Problem> {
    let Some(given) = given else { return Ok(None) };
    let number = given.parse().ok().filter(|number| (least..=most).contains(number));
    let detail = format!("{name}: expected a number from {least} to {most}.");
    number.map(Some).ok_or_else(|| Problem::invalid(&[shape::Fault { pointer: String::new(), detail }]))
}
