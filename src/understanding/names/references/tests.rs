//! References to things of a list: ordinals, "both", "those", and names in links.

use super::*;
use crate::situation::{Draft, DraftQuestion};

fn listing(names: &[&str]) -> Situation {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Situation { listed: Some(Listed { names, is_complete: true, ..Listed::default() }), ..Situation::default() }
}

fn read(situation: &Situation, said: &str) -> String {
    let situation = Situation { said: said.to_owned(), ..situation.clone() };
    match resolve(&situation, std::iter::empty()) {
        Resolution::Nothing => "as it is".to_owned(),
        Resolution::Message(message) => message,
        Resolution::Question(question, _) => format!("? {question}"),
    }
}

#[test]
fn entries_of_the_last_list_are_named() {
    let three = listing(&["Ada", "Bea", "Cleo"]);
    for (said, names) in [
        ("show me the second one", "show me “Bea”"),
        ("the third", "show “Cleo”"),
        ("second one?", "show “Bea”?"),
        ("#2", "show “Bea”"),
        ("stop number 3", "stop “Cleo”"),
        ("start the last one", "start “Cleo”"),
        ("compare the first and the third", "compare “Ada” and “Cleo”"),
        ("archive the first two", "archive “Ada” and “Bea”"),
        ("archive the last two of those", "archive “Bea” and “Cleo”"),
        ("stop all three", "stop “Ada”, “Bea” and “Cleo”"),
        ("stop all of them, please", "stop “Ada”, “Bea” and “Cleo”, please"),
        ("is the 1st one running?", "is “Ada” running?"),
        ("start the second one, then stop the first one", "start “Bea”, then stop “Ada”"),
    ] {
        assert_eq!(read(&three, said), names, "{said}");
    }
}

#[test]
fn other_uses_of_these_words_stay() {
    let two = listing(&["Ada", "Bea"]);
    for said in [
        "start it on the first",
        "rename the first condition to A",
        "show those conditions",
        "test with the first 200 users",
        "show “the second one”",
        "start Ada",
        "for the first time",
    ] {
        assert_eq!(read(&two, said), "as it is", "{said}");
    }
}

#[test]
fn both_needs_two_entries_and_the_other_one_a_subject() {
    let two = Situation { last_subject: Some("Ada".to_owned()), ..listing(&["Ada", "Bea"]) };
    assert_eq!(read(&two, "stop both"), "stop “Ada” and “Bea”");
    assert_eq!(read(&two, "start the other one"), "start “Bea”");
    let three = listing(&["Ada", "Bea", "Cleo"]);
    assert!(read(&three, "stop both").starts_with("? The last list has 3 entries"));
    assert!(read(&three, "show the fifth one").starts_with("? The last list has only 3 entries"));
    assert!(read(&Situation::default(), "show me the second one").starts_with("? I haven't shown a list"));
}

#[test]
fn an_incomplete_list_is_not_taken_for_everything() {
    let mut some = listing(&["Ada", "Bea"]);
    some.listed.as_mut().unwrap().is_complete = false;
    assert_eq!(read(&some, "show the first one"), "show “Ada”");
    assert!(read(&some, "stop all of them").starts_with("? The last list continues"));
    assert!(read(&some, "stop those").starts_with("? The last list continues"));
}

#[test]
fn them_is_a_list_only_if_nothing_came_after_it() {
    let mut two = listing(&["Ada", "Bea"]);
    assert_eq!(read(&two, "stop them"), "stop “Ada” and “Bea”");
    two.listed.as_mut().unwrap().is_passed = true;
    assert_eq!(read(&two, "stop them"), "as it is");
}

#[test]
fn an_open_question_takes_the_words() {
    let asked = DraftQuestion { parameter: "name".to_owned(), ..DraftQuestion::default() };
    let draft = Draft { asked: Some(asked), ..Draft::default() };
    let waiting = Situation { draft: Some(draft), ..listing(&["Ada", "Bea"]) };
    assert_eq!(read(&waiting, "the second one"), "as it is");
}

#[test]
fn a_link_with_an_id_names_the_id() {
    let id = "6bd2a7a8-9b4c-4b7b-a0f8-8f2ffdf1c3c1";
    let none = Situation::default();
    assert_eq!(read(&none, &format!("https://platform.example/#/detail/{id}")), format!("“{id}”"));
    assert_eq!(
        read(&none, &format!("stop <https://platform.example/{id}?tab=1|the study> now")),
        format!("stop “{id}” now")
    );
    assert_eq!(read(&none, "see https://platform.example/help"), "as it is");
}

#[test]
fn a_question_for_something_of_the_list_is_answered_with_both() {
    let asked = |options: &[&str]| {
        let options = options.iter().map(|name| (*name).to_owned()).collect();
        let asked = Some(DraftQuestion { parameter: "thing".to_owned(), options, ..DraftQuestion::default() });
        Situation { draft: Some(Draft { asked, ..Draft::default() }), ..listing(&["Ada", "Bea"]) }
    };
    assert_eq!(read(&asked(&["Ada", "Bea", "Cleo"]), "both"), "“Ada” and “Bea”");
    assert_eq!(read(&asked(&["Ada", "Bea", "Cleo"]), "the second one"), "“Bea”");
    assert_eq!(read(&asked(&["mathstream"]), "the second one"), "as it is");
}
