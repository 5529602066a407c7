//! Table-driven tests of phrases: each row is a sentence and its meaning.

use serde_json::json;

use super::{
    phrase_book::PhraseBook,
    situation::Situation,
    user_request::{Interpretation, UserRequest},
};

/// Formats an interpretation as one line.
fn line(interpretation: &Interpretation) -> String {
    match &interpretation.user_request {
        UserRequest::Talk(talk) => format!("talk {talk:?}").to_lowercase(),
        UserRequest::Term { name, .. } => format!("term {name}"),
        UserRequest::Read { tool, arguments } if arguments.is_empty() => format!("read {tool}"),
        UserRequest::Read { tool, arguments } => format!("read {tool} {}", json!(arguments)),
        UserRequest::Change { action, params } => format!("{action} {}", json!(params)),
        UserRequest::Update(params) => format!("update {}", json!(params)),
        UserRequest::Drop => "drop".to_owned(),
        UserRequest::Unsupported => "unsupported".to_owned(),
        UserRequest::Unclear { options, .. } if options.is_empty() => "unclear".to_owned(),
        UserRequest::Unclear { options, .. } => format!("unclear: {}", options.join(" | ")),
    }
}

/// Checks each row of a table. Panics with a list of the rows whose meaning is not the expected
/// one.
#[track_caller]
pub fn check(book: &PhraseBook, situation: &Situation, table: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (said, expected) in table {
        let found = line(&book.understand(&Situation { said: (*said).to_owned(), ..situation.clone() }));
        if found != *expected {
            wrong.push(format!("{said:?}\n  is       {found}\n  should be {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}
