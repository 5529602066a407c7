//! `countersign request`: asks or attaches, waits by long poll, and claims.

use std::time::Duration;

use countersign_core::private_file;
use serde_json::{Value, json};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};

use super::{
    End, Failure, RequestArgs, Variables, body,
    http::{Answer, Http, refused},
    read_payload, say, write_out,
};
use crate::asked::payload_digest;

/// The longest wait of one call: proxies may end a connection after a minute without an answer.
const ONE_WAIT: Duration = Duration::from_secs(50);

/// The time for which a call is repeated that does not wait.
const PERSIST: Duration = Duration::from_secs(30);

pub(super) async fn run(arguments: &RequestArgs, variables: &Variables) -> Result<End, Failure> {
    let payload = read_payload(&arguments.payload)?;
    let http = Http::new(&arguments.connection, variables)?;
    let deadline = Instant::now() + arguments.wait.unwrap_or_default();
    let persist = PERSIST.max(arguments.wait.unwrap_or_default());
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|error| Failure::usage(format!("cannot listen for Ctrl-C: {error}")))?;
    let key = arguments.key.clone().unwrap_or_else(|| format!("{:032x}", rand::random::<u128>()));
    let asked = async {
        match &arguments.attach {
            Some(id) => {
                let path = format!("/v1/approvals/{id}");
                http.persist(persist, || http.get(&path, Duration::ZERO)).await
            }
            None => {
                let body = body(arguments, &payload)?;
                http.persist(persist, || http.post("/v1/approvals", &body, Some(&key))).await
            }
        }
    };
    // An answer that is there counts: it has the id of what may have to be withdrawn.
    let asked = tokio::select! {
        biased;
        asked = asked => asked?,
        _ = interrupts.recv(), if !arguments.cancel_on_interrupt => {
            say(&format!("interrupted before the server answered; to attach, ask again with --key {key}"));
            return Ok(End::StillOpen);
        }
    };
    let id = asked["id"].as_str().unwrap_or_default().to_owned();
    let place = asked["url"].as_str().map(|url| format!(" {url}")).unwrap_or_default();
    say(&format!("{id} is {}.{place}", state(&asked)));
    let waited = tokio::select! {
        waited = wait(&http, asked, deadline) => waited?,
        _ = interrupts.recv() => return interrupted(&http, &id, arguments).await,
    };
    match state(&waited) {
        "approved" => claim(&http, &id, &payload, arguments).await,
        other => {
            let end = end_of(other);
            say(&describe(&id, &waited, end, arguments));
            if arguments.json {
                write_out(&waited)?;
            }
            Ok(end)
        }
    }
}

/// Waits until the request is decided, through restarts of the server and of the network.
async fn wait(http: &Http, mut seen: Value, deadline: Instant) -> Result<Value, Failure> {
    let id = seen["id"].as_str().unwrap_or_default().to_owned();
    let mut pause = Duration::from_millis(500);
    while matches!(state(&seen), "proposed" | "pending") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let one = left.min(ONE_WAIT).max(Duration::from_secs(1));
        let (began, path) = (Instant::now(), format!("/v1/approvals/{id}?wait={}", one.as_secs()));
        let after = match http.get(&path, one).await {
            Answer::Good(now) => {
                seen = now;
                // A server that shuts down, or has too many connections, answers before the time is over.
                if began.elapsed() < one / 2 { Duration::from_millis(500) } else { Duration::ZERO }
            }
            Answer::Refused(problem) => return Err(refused(&problem)),
            Answer::Later(after, _) => {
                pause = (pause * 2).min(Duration::from_secs(10));
                after.unwrap_or(pause)
            }
        };
        if matches!(state(&seen), "proposed" | "pending") {
            let left = deadline.saturating_duration_since(Instant::now());
            tokio::time::sleep(after.min(left)).await;
        }
    }
    Ok(seen)
}

/// Claims an approval with the digest of the payload in the file.
async fn claim(http: &Http, id: &str, payload: &Value, arguments: &RequestArgs) -> Result<End, Failure> {
    let digest = payload_digest(payload).ok_or_else(|| Failure::usage("the payload has no canonical form"))?;
    let body = json!({ "payload_digest": digest });
    // If the answer is lost, the same claim is made again.
    let key = format!("{:032x}", rand::random::<u128>());
    let path = format!("/v1/approvals/{id}/claim");
    let mut claimed = http.persist(PERSIST, || http.post(&path, &body, Some(&key))).await?;
    if let (Some(file), Some(token)) = (&arguments.token_out, claimed["token"].as_str()) {
        let written = private_file::write(file, token.as_bytes());
        written.map_err(|error| Failure::usage(format!("cannot write {}: {error}", file.display())))?;
    }
    let by = claimed["approval"]["decisions"].as_array().into_iter().flatten();
    let by: Vec<_> = by.filter_map(|decision| decision["by"]["slack_user"].as_str()).collect();
    say(&format!("{id} was approved by {} and claimed.", by.join(", ")));
    if arguments.json {
        write_out(&claimed["approval"].take())?;
    }
    Ok(End::Good)
}

async fn interrupted(http: &Http, id: &str, arguments: &RequestArgs) -> Result<End, Failure> {
    if !arguments.cancel_on_interrupt {
        say(&format!("{id} stays open. To wait again: countersign request --attach {id} --payload FILE --wait 30m"));
        return Ok(End::StillOpen);
    }
    let path = format!("/v1/approvals/{id}/cancel");
    let body = json!({});
    http.persist(PERSIST, || http.post(&path, &body, None)).await?;
    say(&format!("{id} was withdrawn."));
    Ok(End::Withdrawn)
}

fn state(seen: &Value) -> &str {
    seen["state"].as_str().unwrap_or_default()
}

fn end_of(state: &str) -> End {
    match state {
        "rejected" => End::Rejected,
        "expired" | "failed" => End::Expired,
        "cancelled" | "superseded" => End::Withdrawn,
        "proposed" | "pending" => End::StillOpen,
        _ => End::Refused, // it was claimed before
    }
}

fn describe(id: &str, seen: &Value, end: End, arguments: &RequestArgs) -> String {
    let last = seen["decisions"].as_array().and_then(|decisions| decisions.last());
    let by = last.and_then(|last| last["by"]["slack_user"].as_str()).map(|by| format!(" by {by}")).unwrap_or_default();
    let reason = last.and_then(|last| last["reason"].as_str()).map(|reason| format!(": {reason}")).unwrap_or_default();
    match end {
        End::Rejected => format!("{id} was rejected{by}{reason}"),
        End::Expired if state(seen) == "failed" => {
            format!("{id} must not be carried out: {}", seen["outcome"]["summary"].as_str().unwrap_or("it is over"))
        }
        End::Expired => format!("{id} expired: nobody decided in time."),
        End::Withdrawn => match seen["replaced_by"].as_str() {
            Some(newer) => format!("{id} was replaced by {newer}."),
            None => format!("{id} was withdrawn{by}."),
        },
        End::StillOpen => {
            let file = arguments.payload.display();
            format!("{id} is still open. To wait again: countersign request --attach {id} --payload {file} --wait 30m")
        }
        _ => format!("{id} is {}: its approval was claimed before, and can be used once.", state(seen)),
    }
}
