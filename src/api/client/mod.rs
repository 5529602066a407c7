//! The commands that use the API: `request`, `report`, `token verify`, `mcp`, `hook` and `key`.
//!
//! Everything but an approval that was claimed with this payload ends with another code than 0, so a step of a job that
//! forgets to look fails.

mod hook;
mod http;
pub mod key;
mod request;
mod verify;

use std::{
    collections::{BTreeMap, HashMap},
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Subcommand};
use serde_json::Value;

pub(crate) use self::http::Http;
use crate::mcp;

/// The end of a command: its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Approved, and claimed with this payload; or what was asked for is done.
    Good = 0,
    /// The command was not right.
    Usage = 2,
    /// The server refused.
    Refused = 3,
    /// The server was not reached.
    NotReached = 4,
    /// Rejected.
    Rejected = 10,
    /// Nobody decided, or nobody claimed, in time.
    Expired = 11,
    /// Withdrawn, replaced or stopped.
    Withdrawn = 12,
    /// Still open when the wait ended.
    StillOpen = 13,
}

/// A reason why a command ends, in words.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) end: End,
    pub(crate) why: String,
}

impl Failure {
    pub(crate) fn usage(why: impl Into<String>) -> Self {
        Self { end: End::Usage, why: why.into() }
    }
}

/// The server and the key.
#[derive(Args, Clone, Debug)]
pub struct Connection {
    /// The address of the API; also COUNTERSIGN_URL.
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// A file with the key. Without it, the key is in COUNTERSIGN_KEY.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// Asks for an approval, waits, and claims it.
#[derive(Args, Clone, Debug)]
pub struct RequestArgs {
    #[command(flatten)]
    connection: Connection,
    /// The policy, which says who decides.
    #[arg(long, required_unless_present = "attach", conflicts_with = "attach")]
    policy: Option<String>,
    /// What it is about, on one line.
    #[arg(long, required_unless_present = "attach", conflicts_with = "attach")]
    title: Option<String>,
    /// A file with exactly what is approved, as a JSON object.
    #[arg(long, value_name = "FILE")]
    payload: PathBuf,
    /// Why it is asked for.
    #[arg(long, conflicts_with = "attach")]
    reason: Option<String>,
    /// The kind of change, such as deploy; the policy if it is not given.
    #[arg(long, conflicts_with = "attach")]
    kind: Option<String>,
    /// What is changed; the policy if it is not given.
    #[arg(long, conflicts_with = "attach")]
    target: Option<String>,
    /// A value of the payload that the card shows, such as Version=/version.
    #[arg(long, value_name = "LABEL=POINTER", conflicts_with = "attach")]
    field: Vec<String>,
    /// The value of a field before the change, such as Version=1.4.1.
    #[arg(long, value_name = "LABEL=VALUE", conflicts_with = "attach")]
    before: Vec<String>,
    /// A link on the card, such as "The run=https://…".
    #[arg(long, value_name = "LABEL=URL", conflicts_with = "attach")]
    link: Vec<String>,
    /// The Idempotency-Key: asking again with the same one finds the same request. A new one if it is not given.
    #[arg(long, conflicts_with = "attach")]
    key: Option<String>,
    /// How long the request is open, such as 30m; as the policy says if it is not given.
    #[arg(long, value_parser = duration, conflicts_with = "attach")]
    expires: Option<Duration>,
    /// Takes the place of an open request for the same policy and target.
    #[arg(long, conflicts_with = "attach")]
    supersede: bool,
    /// A request that was made before, by its id, to wait for it again.
    #[arg(long, value_name = "ID")]
    attach: Option<String>,
    /// How long to wait for the decision, such as 30m. Without it, the command does not wait.
    #[arg(long, value_parser = duration)]
    wait: Option<Duration>,
    /// Withdraws the request on Ctrl-C. Otherwise it stays open.
    #[arg(long)]
    cancel_on_interrupt: bool,
    /// Writes the request as JSON on standard output.
    #[arg(long)]
    json: bool,
    /// A file for the token, which only its owner can read.
    #[arg(long, value_name = "FILE")]
    token_out: Option<PathBuf>,
}

/// Asks whether an agent may use a tool.
#[derive(Args, Clone, Debug)]
pub struct HookArgs {
    #[command(flatten)]
    connection: Connection,
    /// How long to wait for the decision, less than the time limit of the hook in the agent's settings.
    #[arg(long, value_parser = duration, default_value = "4m")]
    wait: Duration,
}

/// Reports how a change went that was claimed.
#[derive(Args, Clone, Debug)]
pub struct ReportArgs {
    #[command(flatten)]
    connection: Connection,
    /// The id of the request.
    id: String,
    /// How it went.
    #[arg(value_parser = ["succeeded", "failed", "unknown"])]
    result: String,
    /// A sentence for people.
    #[arg(long)]
    summary: Option<String>,
    /// The address of a log.
    #[arg(long)]
    log: Option<String>,
}

/// Checks tokens.
#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// Checks that a token is valid now, and for this payload.
    Verify(VerifyArgs),
}

/// Checks a token.
#[derive(Args, Clone, Debug)]
pub struct VerifyArgs {
    /// The address of the API, which is the issuer; also COUNTERSIGN_URL.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The file with the token; standard input if it is not given.
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// The file with the payload that is about to be used.
    #[arg(long, value_name = "FILE")]
    payload: PathBuf,
    /// The name of the key that the token is for.
    #[arg(long, value_name = "NAME")]
    audience: String,
    /// A file with the public keys, instead of those that the server has.
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
}

/// The variables of the environment.
pub type Variables = HashMap<String, String>;

/// Runs `request`.
pub async fn request(arguments: RequestArgs, variables: &Variables) -> End {
    told(request::run(&arguments, variables).await)
}

/// Runs `report`.
pub async fn report(arguments: ReportArgs, variables: &Variables) -> End {
    let ReportArgs { connection, id, result, summary, log } = arguments;
    let reported = async {
        let body = serde_json::json!({ "result": result, "summary": summary, "url": log });
        let http = Http::new(&connection, variables)?;
        let path = format!("/v1/approvals/{id}/outcome");
        http.persist(Duration::from_secs(60), || http.post(&path, &body, None)).await?;
        say(&format!("Reported: {result}."));
        Ok(End::Good)
    };
    told(reported.await)
}

/// Runs a command about tokens.
pub async fn token(command: TokenCommand, variables: &Variables) -> End {
    let TokenCommand::Verify(arguments) = command;
    told(verify::run(&arguments, variables).await)
}

/// Runs `mcp`.
pub async fn mcp(connection: Connection, variables: &Variables) -> End {
    let served = async {
        let http = Http::new(&connection, variables)?;
        mcp::over_stdio(http).await.map_err(|why| Failure::usage(format!("the client does not speak MCP: {why}")))?;
        Ok(End::Good)
    };
    told(served.await)
}

/// Runs `hook`.
pub async fn hook(arguments: HookArgs, variables: &Variables) -> End {
    told(hook::run(&arguments, variables).await)
}

/// Tells why a command failed.
fn told(result: Result<End, Failure>) -> End {
    result.unwrap_or_else(|Failure { end, why }| {
        say(&why);
        end
    })
}

/// Writes a line for people.
fn say(line: &str) {
    eprintln!("countersign: {line}");
}

/// Writes data on standard output.
fn write_out(value: &Value) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{value:#}").map_err(|error| Failure::usage(format!("cannot write: {error}")))
}

/// Reads the payload in a file.
fn read_payload(path: &Path) -> Result<Value, Failure> {
    let wrong = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let payload =
        crate::shape::parse(&bytes).map_err(|error| wrong(format!("this is not JSON that can be used: {error}")))?;
    crate::shape::wrong_payload(&payload).map_or(Ok(payload), |why| Err(wrong(why)))
}

/// Splits `Label=value` pairs.
fn pairs(given: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let split = |pair: &String| {
        let (label, value) = pair.split_once('=')?;
        Some((label.to_owned(), value.to_owned()))
    };
    let wrong = |pair: &String| Failure::usage(format!("`{pair}`: expected LABEL=…"));
    given.iter().map(|pair| split(pair).ok_or_else(|| wrong(pair))).collect()
}

/// Parses a duration, such as `30m` or `1h 30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let span: jiff::SignedDuration = text.parse().map_err(|_| format!("`{text}`: expected a duration such as 30m"))?;
    span.try_into().map_err(|_| format!("`{text}`: expected a duration such as 30m"))
}

/// Returns the body of a request.
fn body(arguments: &RequestArgs, payload: &Value) -> Result<Value, Failure> {
    let before: BTreeMap<String, String> = pairs(&arguments.before)?.into_iter().collect();
    let fields = pairs(&arguments.field)?;
    if let Some(label) = before.keys().find(|label| !fields.iter().any(|(known, _)| known == *label)) {
        return Err(Failure::usage(format!("--before {label}=… names no --field")));
    }
    let field = |(label, pointer): &(String, String)| match before.get(label) {
        Some(before) => serde_json::json!({ "label": label, "pointer": pointer, "before": before }),
        None => serde_json::json!({ "label": label, "pointer": pointer }),
    };
    let link = |(label, url): &(String, String)| serde_json::json!({ "label": label, "url": url });
    let policy = arguments.policy.as_deref();
    let mut body = serde_json::json!({
        "policy": policy, "title": arguments.title,
        "change": { "kind": arguments.kind.as_deref().or(policy), "target": arguments.target.as_deref().or(policy),
            "payload": payload, "fields": fields.iter().map(field).collect::<Vec<_>>() },
        "links": pairs(&arguments.link)?.iter().map(link).collect::<Vec<_>>(), "supersede": arguments.supersede,
    });
    if let Some(reason) = &arguments.reason {
        body["reason"] = reason.as_str().into();
    }
    if let Some(expires) = arguments.expires {
        body["expires_in"] = expires.as_secs().into();
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        request: RequestArgs,
    }

    #[test]
    fn the_words_of_a_command_become_a_request() {
        let line = "x --policy deploy-prod --title T --payload p.json --field Version=/version --field A=/b=c \
                    --before Version=1.4.1 --link Run=https://github.com/a --wait 30m --expires 1h";
        let arguments = Line::parse_from(line.split_whitespace()).request;
        assert_eq!(arguments.wait, Some(Duration::from_secs(1800)));
        let payload = serde_json::json!({ "version": "1.4.2", "b=c": 1 });
        let body = body(&arguments, &payload).unwrap();
        let asked = crate::asked::Asked::read(&body).unwrap();
        assert_eq!((&*asked.change.kind, &*asked.change.target), ("deploy-prod", "deploy-prod"));
        assert_eq!(asked.change.fields[0].before.as_deref(), Some("1.4.1"));
        assert_eq!((&*asked.change.fields[1].pointer, asked.expires_in), ("/b=c", Some(3600)));
        let wrong = Line::parse_from("x --policy p --title T --payload p.json --before Version=1".split_whitespace());
        assert_eq!(super::body(&wrong.request, &payload).unwrap_err().end, End::Usage);
        assert!(Line::try_parse_from("x --attach apr_1 --policy p --payload p".split_whitespace()).is_err());
    }
}
