//! Tests of calls and of answers to questions about missing arguments, beside a capability that takes everything.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use countersign_core::clock::SystemClock;
use countersign_mcp_client::ToolDefinition;
use countersign_understanding::{
    phrase_book::PhraseBook,
    situation::{Draft, DraftQuestion, Situation},
};
use serde_json::json;

use super::*;
use crate::{accepted::Accepted, settings};

/// A capability that takes any answer and any correction for its own.
struct Greedy;

fn taken(words: &[Word]) -> Option<Interpretation> {
    Some(UserRequest::Update(Map::from_iter([("greedy".to_owned(), text(words).into())])).into())
}

impl Phrases for Greedy {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary::new(&["thing", "things"])
    }

    fn read(&self, stage: Stage, utterance: Utterance<'_>) -> Option<Interpretation> {
        match stage {
            // Before all answers, as a line of another capability is.
            Stage::Correction if utterance.words.first()?.any(&["use", "change", "no", "note"]) => {
                taken(&utterance.words[1..])
            }
            Stage::Answer => taken(utterance.words),
            _ => None,
        }
    }
}

fn tool(name: &str, reads: bool) -> ToolDefinition {
    let schema = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string" },
            "color": { "enum": ["yellow", "blue"] },
            "where": { "type": "object" },
            "tags": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["text", "color"],
    });
    ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        schema,
        reads,
        destroys: false,
        idempotent: false,
        needs_task: false,
    }
}

/// Returns a book with a server whose tools are accepted, behind the other capability.
fn book(name: &str) -> PhraseBook {
    let folder = std::env::temp_dir().join(format!("countersign-phrases-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path: PathBuf = folder.join("notes.json");
    let mut accepted = Accepted::default();
    [tool("add-note", false), tool("find-note", true)].into_iter().for_each(|tool| accepted.accept(tool));
    accepted.write(&path).unwrap();
    let settings = settings::Server {
        command: vec!["notes".to_owned()],
        tools: vec!["add-note".to_owned(), "find-note".to_owned()],
        accepted: Some(path),
        ..settings::Server::default()
    };
    let server = Server::new("notes", &settings, Arc::new(SystemClock), &mut BTreeSet::new()).unwrap();
    let phrases: &'static ServerPhrases = Box::leak(Box::new(ServerPhrases::new(Arc::new(server))));
    PhraseBook::default().with("greedy", &Greedy).unwrap().with("mcp:notes", phrases).unwrap()
}

/// Returns the request of an answer to the question about an argument of `add-note`.
fn answered(book: &PhraseBook, parameter: &str, said: &str) -> UserRequest {
    let asked = DraftQuestion { parameter: parameter.to_owned(), ..DraftQuestion::default() };
    let draft = Draft { asked: Some(asked), ..Draft::begun("notes_add_note", Map::new()) };
    book.understand(&Situation { said: said.to_owned(), draft: Some(draft), ..Situation::default() }).user_request
}

fn update(values: Value) -> UserRequest {
    UserRequest::Update(values.as_object().unwrap().clone())
}

#[test]
fn an_answer_is_taken_as_it_was_typed() {
    let book = book("typed");
    let same = [
        "Water the plants",
        "note: “buy” milk, please",
        "{\"a\": {\"b\": [1, 2]}}",
        "one\n\n  two: three\nfour",
        "feature/x-1",
        "70/30",
        "use the blue pen",
        "change nothing",
        "https://example.com/a?b=c",
        "a=b",
    ];
    for said in same {
        assert_eq!(answered(&book, "text", said), update(json!({ "text": said })));
    }
    assert_eq!(answered(&book, "text", "\"use it\""), update(json!({ "text": "use it" })));
    assert_eq!(answered(&book, "text", "`a b`"), update(json!({ "text": "a b" })));
    assert_eq!(answered(&book, "text", "``"), update(json!({ "text": "" })));
    let object = "```json\n{\"x\":\n 1}\n```";
    assert_eq!(answered(&book, "where", object), update(json!({ "where": "{\"x\":\n 1}" })));
    assert_eq!(answered(&book, "tags", "one\ntwo"), update(json!({ "tags": "one\ntwo" })));
}

#[test]
fn an_answer_may_have_several_arguments_or_words_around_it() {
    let book = book("several");
    let both = update(json!({ "text": "Buy milk", "color": "blue" }));
    assert_eq!(answered(&book, "text", "text=\"Buy milk\" color=blue"), both);
    assert_eq!(answered(&book, "color", "blue please"), update(json!({ "color": "blue" })));
    assert_eq!(answered(&book, "color", "it should be blue"), update(json!({ "color": "blue" })));
    assert_eq!(answered(&book, "color", "red"), update(json!({ "color": "red" })), "the validator complains");
}

#[test]
fn another_request_or_no_answer_is_not_taken_for_the_value() {
    let book = book("others");
    assert_eq!(answered(&book, "text", "never mind"), UserRequest::Drop);
    let call = answered(&book, "text", "use find-note on notes with text=x color=blue");
    assert!(matches!(&call, UserRequest::Read { tool, .. } if tool == "notes_find_note"), "{call:?}");
    let listed = answered(&book, "text", "what can notes do?");
    assert!(matches!(&listed, UserRequest::Read { tool, .. } if tool == "notes_tools"), "{listed:?}");
    let unsure = answered(&book, "text", "I don't know");
    assert_ne!(unsure, update(json!({ "text": "I don't know" })));
    let draft = Draft { asked: None, ..Draft::begun("thing_change", Map::new()) };
    let other = Situation { said: "a/b".to_owned(), draft: Some(draft), ..Situation::default() };
    assert_eq!(book.understand(&other).user_request, update(json!({ "greedy": "a/b" })));
}

#[test]
fn a_call_is_read_with_a_json_object_and_backticks() {
    let book = book("calls");
    let read = |said: &str| {
        let situation = Situation { said: said.to_owned(), ..Situation::default() };
        book.understand(&situation).user_request
    };
    let params = json!({ "text": "a=b: \"c\"", "color": "blue" });
    let wanted = UserRequest::change("notes_add_note", params.as_object().unwrap().clone());
    assert_eq!(read(&format!("call add-note on notes with {params}")), wanted);
    assert_eq!(read(r#"call `add-note` on `notes` with `text`="a=b: \"c\"" `color`=blue"#), wanted);
    let empty = json!({ "text": "", "color": "blue" });
    let wanted = UserRequest::change("notes_add_note", empty.as_object().unwrap().clone());
    assert_eq!(read("call add-note on notes with text=\"\" color=blue"), wanted);
}

#[test]
fn a_call_is_read_by_the_words_of_the_tools_name() {
    let book = book("spoken");
    let read = |said: &str| {
        let situation = Situation { said: said.to_owned(), ..Situation::default() };
        book.understand(&situation).user_request
    };
    let call = |params: Value| UserRequest::change("notes_add_note", params.as_object().unwrap().clone());
    let whole = call(json!({ "text": "buy reagents: 5 ml", "color": "blue" }));
    assert_eq!(read("please add a blue note: buy reagents: 5 ml"), whole);
    assert_eq!(read("add a note on notes: buy reagents"), call(json!({ "text": "buy reagents" })));
    let quoted = "add a note saying \"order pizza for the lab meeting\"";
    assert_eq!(read(quoted), call(json!({ "text": "order pizza for the lab meeting" })));
    for said in ["add a large note: buy reagents", "don't add a note: x", "add note about Bo", "note add: x"] {
        let is_call = matches!(read(said), UserRequest::Change { action, .. } if action == "notes_add_note");
        assert!(!is_call, "{said}");
    }
}
