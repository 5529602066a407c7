//! Whatever a question quotes of a message was typed in it.

use std::sync::LazyLock;

use countersign_understanding::{
    lexicon::{Name, Names},
    phrase_book::PhraseBook,
};
use proptest::{prelude::*, sample::select};
use serde_json::Value;

use super::{book, situation::Situation, user_request::UserRequest};

static BOOK: LazyLock<PhraseBook> = LazyLock::new(book);

/// The utterances of the test fixtures.
fn utterances() -> Vec<String> {
    let sets = [
        include_str!("../../../../tests/fixtures/words/dev.json"),
        include_str!("../../../../tests/fixtures/words/second.json"),
    ];
    let rows = sets.iter().flat_map(|set| serde_json::from_str::<Vec<Value>>(set).unwrap());
    rows.map(|row| row["said"].as_str().unwrap().to_owned()).collect()
}

/// Returns the texts in quotation marks, each with the quotations in it.
fn quotations(text: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '“' => {
                depth += 1;
                if depth == 1 {
                    start = at + letter.len_utf8();
                }
            }
            '”' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    found.push(&text[start..at]);
                }
            }
            _ => {}
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_quoted_was_typed(
        first in select(utterances()),
        second in select(utterances()),
        joint in select(vec!["", ", and then ", " but not ", " unless ", " and ", "  ,  for the weekend and then "]),
    ) {
        let said = if joint.is_empty() { first } else { format!("{first}{joint}{second}") };
        let known = ["Math Hints", "Running Test", "Lesson Video Hints", "Class Hint Rollout", "Chat Tone"];
        let named = |name: &str| Name {
            kind: "experiment".to_owned(),
            name: name.to_owned(),
            id: None,
            owner: super::OWNER.to_owned(),
            subject: true,
        };
        let names = Names::new(known.map(named)).find(&said);
        let situation = Situation { said: said.clone(), names, ..Situation::default() };
        if let UserRequest::Unclear { question, options } = BOOK.understand(&situation).user_request {
            for quoted in quotations(&question) {
                let is_offered = options.iter().any(|option| option.contains(quoted)) || known.contains(&quoted);
                prop_assert!(said.contains(quoted) || is_offered, "{said:?}\n  {question}\n  quotes “{quoted}”");
            }
        }
    }
}
