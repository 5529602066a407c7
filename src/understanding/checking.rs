//! Tables for tests of phrases: a row for each sentence and its meaning.

use serde_json::json;

use super::{
    book::Book,
    situation::Situation,
    wish::{Understood, Wish},
};

/// Returns the meaning in one line.
fn line(understood: &Understood) -> String {
    match &understood.wish {
        Wish::Talk(talk) => format!("talk {talk:?}").to_lowercase(),
        Wish::Term { name, .. } => format!("term {name}"),
        Wish::Read { tool, arguments } if arguments.is_empty() => format!("read {tool}"),
        Wish::Read { tool, arguments } => format!("read {tool} {}", json!(arguments)),
        Wish::Change { action, params } => format!("{action} {}", json!(params)),
        Wish::Update(params) => format!("update {}", json!(params)),
        Wish::Drop => "drop".to_owned(),
        Wish::Unsupported => "unsupported".to_owned(),
        Wish::Unclear { options, .. } if options.is_empty() => "unclear".to_owned(),
        Wish::Unclear { options, .. } => format!("unclear: {}", options.join(" | ")),
    }
}

/// Checks rows of a sentence and its meaning, and panics with all rows that are understood otherwise.
#[track_caller]
pub fn check(book: &Book, situation: &Situation, table: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (said, expected) in table {
        let found = line(&book.understand(&Situation { said: (*said).to_owned(), ..situation.clone() }));
        if found != *expected {
            wrong.push(format!("{said:?}\n  is       {found}\n  should be {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}
