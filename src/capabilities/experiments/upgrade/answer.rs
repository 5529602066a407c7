//! The interpretation of UpGrade's answers.
//!
//! The status is taken from HTTP, never from the body, since bodies differ between versions. Versions
//! from 6.3 on send errors in one format, which echoes the request. Version 6.2 sends the exception
//! as it is: `{}` for an error in its code, and SQL for an error of its database. A proxy, or an
//! address with a wrong prefix, answers with a web page. Only short texts that are meant for people
//! are passed on.

use countersign_services::http::{Answer, Lost};
use reqwest::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::{Value, error::Category};

use super::{
    error::Error,
    problems::{in_words, rule_broken},
};

/// The reason in the error if the server answers that it is called too often.
const TOO_MANY: &str = "too many requests";

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A read. It may be repeated freely.
    Read,
    /// A change. It is sent once; without an answer its outcome is not known.
    Write,
}

/// A type that the body of an answer can be read as.
pub trait FromAnswer: Sized {
    /// Reads the body.
    ///
    /// # Errors
    ///
    /// If it is not JSON, or not of this kind.
    fn from_answer(body: &[u8]) -> Result<Self, serde_json::Error>;
}

impl<T: DeserializeOwned> FromAnswer for T {
    fn from_answer(body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }
}

/// Parses the answer to a call of `kind`: returns the body of a success as its final type, or the
/// error.
///
/// # Errors
///
/// [`Error`], by status and body.
pub fn understand<T: FromAnswer>(kind: Kind, answer: Answer) -> Result<T, Error> {
    let Answer { status, body, request_id, .. } = answer;
    if status.is_success() {
        return T::from_answer(&body).map_err(|error| unreadable(kind, &fault(&error)));
    }
    let json = serde_json::from_slice::<Value>(&body).ok();
    tracing::info!(
        http.status = status.as_u16(),
        upgrade.request_id = request_id.as_deref().unwrap_or("-"),
        "UpGrade answered with an error"
    );
    // The server may have made the change although the gateway did not get its answer.
    let gateway = || match kind {
        Kind::Read => Error::Unavailable { reason: format!("status {}", status.as_u16()) },
        Kind::Write => Error::NoAnswer { reason: format!("it answered {}", status.as_u16()) },
    };
    let too_many = || match kind {
        Kind::Read => Error::Unavailable { reason: TOO_MANY.into() },
        Kind::Write => Error::Refused { reason: TOO_MANY.into() },
    };
    let Some(body) = json else {
        return Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::Auth,
            StatusCode::TOO_MANY_REQUESTS => too_many(),
            _ if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => gateway(),
            _ => Error::Refused {
                reason: format!("a web page with status {}, not an answer; check the address", status.as_u16()),
            },
        });
    };
    Err(match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::Auth,
        StatusCode::NOT_FOUND => Error::NotFound { reason: reason(&body) },
        StatusCode::BAD_REQUEST => Error::Invalid { problems: problems(&body) },
        StatusCode::TOO_MANY_REQUESTS => too_many(),
        StatusCode::REQUEST_TIMEOUT => gateway(),
        StatusCode::INTERNAL_SERVER_ERROR if body["type"] == "Condition not found" => {
            Error::Refused { reason: reason(&body) }
        }
        StatusCode::INTERNAL_SERVER_ERROR if body.is_object() => Error::Faulted { reason: reason(&body) },
        _ if status.is_server_error() => gateway(),
        _ => Error::Refused { reason: reason(&body) },
    })
}

/// Returns the error of a call of `kind` that was not answered.
pub fn unanswered(kind: Kind, lost: Lost) -> Error {
    match (kind, lost) {
        (_, Lost::NotSent { reason }) | (Kind::Read, Lost::NoAnswer { reason, .. }) => Error::Unavailable { reason },
        (Kind::Write, Lost::NoAnswer { reason, .. } | Lost::TooLong { reason }) => Error::NoAnswer { reason },
        (Kind::Read, Lost::TooLong { reason }) => Error::Decode { reason },
        // This process did not send the change and must not send it any more. The process that
        // continues has to look it up first, as after a crash.
        (_, Lost::RunOut) => Error::NoAnswer { reason: "it wasn't sent in time".to_owned() },
    }
}

/// Returns the error for a success whose body cannot be read. A change then has to be read back.
pub fn unreadable(kind: Kind, why: &str) -> Error {
    match kind {
        Kind::Read => Error::Decode { reason: why.to_owned() },
        Kind::Write => Error::Unclear { reason: format!("its answer couldn't be read ({why})") },
    }
}

/// Describes the fault of a text that cannot be read. It does not name the place in the text, which nobody sees.
pub fn fault(error: &serde_json::Error) -> String {
    let reason = error.to_string();
    match (error.classify(), reason.rsplit_once(" at line ")) {
        (Category::Data, Some((reason, _place))) => reason.to_owned(),
        (Category::Data, None) => reason,
        (Category::Io | Category::Syntax | Category::Eof, _) => "not JSON".to_owned(),
    }
}

/// Returns true if the server only reported that the request is invalid, without details.
pub fn says_nothing(problems: &[String]) -> bool {
    problems.iter().all(|problem| problem.contains("check 'errors' property"))
}

/// Returns the problems that `POST /experiments/validation` lists in one text.
pub fn validation_problems(text: &str) -> Vec<String> {
    let lines = text.split('\n').map(|line| line.trim_matches([' ', ',', '-']));
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let broken = line
                .strip_prefix("property ")
                .and_then(|rest| rest.split_once(" has failed the following constraints:"));
            match broken {
                Some((path, rules)) => rule_broken(path, &rules.split(',').map(str::trim).collect::<Vec<_>>()),
                None => in_words(&shorten(line)),
            }
        })
        .collect()
}

/// Returns all problems of a 400: one by one if 6.2 lists them, otherwise the message.
fn problems(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(&body["errors"], "", &mut found);
    if found.is_empty() {
        found.push(reason(body));
    }
    found
}

/// Flattens the nested lists of 6.2: `{property, children, constraints: {rule: sentence}}`.
fn collect(errors: &Value, prefix: &str, found: &mut Vec<String>) {
    for error in errors.as_array().into_iter().flatten() {
        let property = format!("{prefix}{}", error["property"].as_str().unwrap_or("?"));
        let rules: Vec<&str> =
            error["constraints"].as_object().into_iter().flat_map(|rules| rules.keys()).map(String::as_str).collect();
        if !rules.is_empty() {
            found.push(shorten(&rule_broken(&property, &rules)));
        }
        collect(&error["children"], &format!("{property}."), found);
    }
}

/// Returns the part of an error body that is meant for people: never the request, never SQL.
fn reason(body: &Value) -> String {
    if body.get("query").is_some() || body["name"] == "QueryFailedError" {
        return "a database error".to_owned();
    }
    let words = ["message", "type", "details"].into_iter().filter_map(|key| body[key].as_str());
    let words = words.filter(|words| !words.trim().is_empty()).map(|words| shorten(&in_words(words)));
    words.into_iter().next().unwrap_or_else(|| "an internal error".to_owned())
}

/// Returns the first line, at most 200 characters.
fn shorten(words: &str) -> String {
    words.trim().lines().next().unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests {

    use super::*;

    /// Returns the interpretation of a recorded answer.
    fn meaning(kind: Kind, recording: &str) -> Result<Value, Error> {
        let path = format!("{}/../../../tests/fixtures/upgrade/{recording}.json", env!("CARGO_MANIFEST_DIR"));
        let recorded: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let status = u16::try_from(recorded["response"]["status"].as_u64().unwrap()).unwrap();
        let body = &recorded["response"]["body"];
        let page = body.as_str().is_some_and(|text| text.starts_with('<'));
        let body = if page { b"<html>".to_vec() } else { body.to_string().into() };
        understand(
            kind,
            Answer { status: StatusCode::from_u16(status).unwrap(), body, request_id: None, retry_after: None },
        )
    }

    #[test]
    fn an_unknown_experiment_is_not_found_on_read_and_delete() {
        for recording in ["6.5/104-single-unknown-uuid", "6.5/255-delete-again", "6.2/039-delete-again"] {
            assert!(matches!(meaning(Kind::Read, recording), Err(Error::NotFound { .. })), "{recording}");
        }
        assert_eq!(
            meaning(Kind::Write, "6.5/424-v6-assign-unknown-user"),
            Err(Error::NotFound { reason: "there is no user “never-seen”".into() })
        );
        assert_eq!(
            meaning(Kind::Write, "6.2/030-v6-assign-unknown-user"),
            Err(Error::NotFound { reason: "there is no such user".into() })
        );
    }

    #[test]
    fn a_wrong_token_looks_the_same_in_every_version() {
        for recording in ["6.5/011-auth-missing", "6.5/012-auth-bad-token", "6.2/040-auth-missing"] {
            assert_eq!(meaning(Kind::Read, recording), Err(Error::Auth), "{recording}");
        }
    }

    #[test]
    fn an_error_in_the_servers_code_is_a_fault() {
        let fault = |reason: &str| Err(Error::Faulted { reason: reason.into() });
        assert_eq!(meaning(Kind::Write, "6.5/310-state-unknown-id"), fault("an internal error"));
        assert_eq!(meaning(Kind::Write, "6.2/035-state-unknown-id"), fault("an internal error"));
    }

    #[test]
    fn an_unknown_condition_is_a_refusal_although_it_is_500() {
        assert_eq!(
            meaning(Kind::Write, "6.5/441-v6-mark-unknown-condition"),
            Err(Error::Refused { reason: "the experiment has no condition “purple”".into() })
        );
    }

    #[test]
    fn neither_sql_nor_the_request_gets_through() {
        assert_eq!(
            meaning(Kind::Write, "6.2/005-create-placeholder-ids"),
            Err(Error::Faulted { reason: "a database error".into() })
        );
        let refused = meaning(Kind::Write, "6.5/077-create-wrong-context").unwrap_err().to_string();
        assert_eq!(refused, "UpGrade says the request is invalid: there is no context “no-such-app”");
    }

    #[test]
    fn the_old_server_lists_what_is_wrong() {
        let Err(Error::Invalid { problems }) = meaning(Kind::Write, "6.2/003-create-without-segments") else {
            panic!("it was refused")
        };
        assert_eq!(problems, ["inclusion list is missing", "exclusion list is missing"]);
    }

    #[test]
    fn the_new_server_explains_problems_only_on_request() {
        let Err(Error::Invalid { problems }) = meaning(Kind::Write, "6.5/053-create-empty-body") else {
            panic!("it was refused")
        };
        assert!(says_nothing(&problems));
        let explained = meaning(Kind::Read, "6.5/099-validation-explains-errors").unwrap();
        let problems = validation_problems(explained[0]["error"].as_str().unwrap());
        assert_eq!(problems[0], "name is missing");
        assert_eq!(problems[4], "weight of condition 1 must be a number");
        assert_eq!(problems.len(), 7, "{problems:?}");
    }

    #[test]
    fn a_web_page_does_not_mean_that_the_experiment_is_missing() {
        let Err(Error::Refused { reason }) = meaning(Kind::Read, "6.5/006-unknown-route") else {
            panic!("a web page is not a valid answer")
        };
        assert!(reason.contains("check the address"));
    }

    #[test]
    fn the_outcome_of_a_change_is_unknown_after_a_gateway_error() {
        let gateway = |kind, body: &[u8]| {
            let answer =
                Answer { status: StatusCode::BAD_GATEWAY, body: body.to_vec(), request_id: None, retry_after: None };
            understand::<Value>(kind, answer)
        };
        assert!(matches!(gateway(Kind::Write, b""), Err(Error::NoAnswer { .. })));
        assert!(matches!(gateway(Kind::Write, b"{}"), Err(Error::NoAnswer { .. })));
        assert!(matches!(gateway(Kind::Read, b""), Err(Error::Unavailable { .. })));
    }

    #[test]
    fn the_outcome_of_a_change_is_unclear_after_an_unreadable_success() {
        let answered = |kind, body: &[u8]| {
            understand::<String>(
                kind,
                Answer { status: StatusCode::OK, body: body.to_vec(), request_id: None, retry_after: None },
            )
        };
        for body in [&b"<html>"[..], b"", b"null", b"{}", b"[]"] {
            assert!(matches!(answered(Kind::Write, body), Err(Error::Unclear { .. })));
        }
        let Err(Error::Decode { reason }) = answered(Kind::Read, b"<html>") else { panic!("a web page") };
        assert_eq!(reason, "not JSON");
        let Err(Error::Decode { reason }) = answered(Kind::Read, b"[1]") else { panic!("not a string") };
        assert!(reason.contains("expected a string"), "{reason}");
    }
}
