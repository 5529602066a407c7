//! Table-driven tests of phrases: each row is a sentence and its meaning.

use serde_json::json;

use super::{
    lexicon::Mention,
    phrase_book::PhraseBook,
    situation::{OpenCard, Situation},
    suggestions,
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

/// Checks that the rules read each request that may be suggested, with values for what it leaves open. Panics with a list of
/// those that they do not.
#[track_caller]
pub fn check_offers(book: &PhraseBook, situation: &Situation) {
    // Names may contain the words of requests.
    const NAMES: &[&str] = &["Math Hints", "What If", "Set the Tone", "Help in Class", "Ask Me for a Change"];
    let mut unread = Vec::new();
    for ((owner, request), name) in
        book.offers().requests(book).flat_map(|offer| NAMES.iter().map(move |name| (offer, *name)))
    {
        let takes_name = request.contains("<thing>");
        if !takes_name && name != NAMES[0] {
            continue;
        }
        let values =
            [("<thing>", name), ("<number>", "3"), ("<weights>", "70/30"), ("<when>", "on Friday"), ("<text>", "tea")];
        let said = values.iter().fold(request.to_owned(), |said, (open, value)| said.replace(open, value));
        let thing = Mention {
            kind: owner.to_owned(),
            name: name.to_owned(),
            said: name.to_owned(),
            owner: owner.to_owned(),
            subject: true,
            unsure: false,
        };
        let open_cards = vec![OpenCard { title: format!("Start “{name}”?"), typed: true, ..OpenCard::default() }];
        let pressed = Situation { said, names: vec![thing], open_cards, ..situation.clone() };
        let found = book.understand(&pressed);
        let is_about_it = !takes_name || book.unknown_name(&found.user_request, &pressed).is_none();
        if !suggestions::is_read(&found.user_request) || !is_about_it {
            unread.push(format!("{request:?} with {name:?} is {}", line(&found)));
        }
    }
    assert!(unread.is_empty(), "{} offers:\n{}", unread.len(), unread.join("\n"));
}
