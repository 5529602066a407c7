//! The judge finds what is wrong: each test breaks a good thread in one way.

use countersign::{clock::Timestamp, ids::MessageTs};

use super::harness::{
    case::{Card, Case, Change, Effect, Line, PEOPLE, Press, Said, Stands, To, Verb},
    judge::{Kind, judge},
};

fn change() -> Change {
    Change { experiment: "Nemesis 1".to_owned(), to: To::Started }
}

fn ts(second: u32) -> MessageTs {
    MessageTs::new(format!("{second}.000000"))
}

fn press(by: usize, second: u32) -> Press {
    let entitled = PEOPLE[by].approver;
    let (at, verb) = (Timestamp(i64::from(second) * 1000), Verb::Approve);
    Press { at, by: &PEOPLE[by], verb, card: ts(2), change: change(), entitled, acknowledged: true }
}

fn effect(second: u32) -> Effect {
    Effect { at: Timestamp(i64::from(second) * 1000), change: change(), entry: String::new() }
}

fn card(second: u32, stands: Stands) -> Said {
    let buttons = if stands == Stands::Open { vec!["approve".to_owned()] } else { Vec::new() };
    let words = "*Start “Nemesis 1”?*\nApproved by <@U2>".to_owned();
    let card = Some(Card { change: change(), stands });
    Said { ts: ts(second), words, buttons, only_to: None, nonce: Some(format!("n{second}")), card }
}

fn word(second: u32, words: &str) -> Said {
    let nonce = Some(format!("n{second}"));
    Said { ts: ts(second), words: words.to_owned(), buttons: Vec::new(), only_to: None, nonce, card: None }
}

/// Asked for, approved by bo, made once, told once.
fn good() -> (Case, Vec<Said>) {
    let case = Case {
        number: 1,
        root: ts(1),
        began: Timestamp(1000),
        asker: &PEOPLE[0],
        asked: vec![change()],
        presses: vec![press(1, 3)],
        lines: Vec::new(),
        effects: vec![effect(4)],
        notes: Vec::new(),
        missing: Vec::new(),
        late: Vec::new(),
    };
    (case, vec![card(2, Stands::Done), word(5, "Started “Nemesis 1”: it is running now. Approved by bo. What next?")])
}

fn kinds(case: &Case, said: &[Said]) -> Vec<Kind> {
    judge(case, said).into_iter().map(|violation| violation.kind).collect()
}

#[test]
fn a_good_thread_is_left_alone() {
    let (case, said) = good();
    assert_eq!(judge(&case, &said), []);
}

#[test]
fn a_change_that_was_made_twice() {
    let (mut case, said) = good();
    case.effects.push(effect(6));
    assert_eq!(kinds(&case, &said), [Kind::DoubleChange]);
}

#[test]
fn a_change_that_nobody_entitled_approved() {
    let (mut case, said) = good();
    case.presses = vec![press(2, 3)];
    assert!(kinds(&case, &said).contains(&Kind::NotEntitled));
    case.presses = vec![press(1, 5)];
    assert!(kinds(&case, &said).contains(&Kind::NotEntitled), "the press came after the change");
}

#[test]
fn a_card_that_stands_there_twice() {
    let (case, mut said) = good();
    said.push(card(6, Stands::Open));
    let found = kinds(&case, &said);
    assert!(found.contains(&Kind::Twin) && found.contains(&Kind::LiveButton), "{found:?}");
}

#[test]
fn an_outcome_that_stands_there_twice() {
    let (case, mut said) = good();
    said.push(word(6, "Started “Nemesis 1”: it is running now. Approved by bo. What next?"));
    assert_eq!(kinds(&case, &said), [Kind::Twin]);
    said[2] = word(6, "something else");
    said[2].nonce = said[1].nonce.clone();
    assert_eq!(kinds(&case, &said), [Kind::Twin], "the same post, by its key");
}

#[test]
fn a_button_that_outlasts_the_decision() {
    let (case, mut said) = good();
    said[0] = card(2, Stands::Open);
    assert!(kinds(&case, &said).contains(&Kind::LiveButton));
    said[0] = card(2, Stands::Done);
    said[0].buttons.push("reject".to_owned());
    assert_eq!(kinds(&case, &said), [Kind::LiveButton]);
}

#[test]
fn a_success_that_is_none() {
    let (mut case, said) = good();
    case.effects.clear();
    assert_eq!(kinds(&case, &said), [Kind::FalseSuccess]);
}

#[test]
fn a_failure_that_is_none() {
    let (case, mut said) = good();
    for stands in [Stands::Failed { denies: true }, Stands::Closed] {
        said[0] = card(2, stands);
        assert_eq!(kinds(&case, &said), [Kind::FalseFailure]);
    }
    for stands in [Stands::Failed { denies: false }, Stands::Unknown] {
        said[0] = card(2, stands);
        assert_eq!(kinds(&case, &said), []);
    }
}

#[test]
fn a_change_that_never_ends() {
    let (case, mut said) = good();
    said[0] = card(2, Stands::Running);
    assert!(kinds(&case, &said).contains(&Kind::Lost));
}

#[test]
fn a_request_that_led_to_nothing_and_one_that_took_too_long() {
    let (mut case, said) = good();
    case.missing.push("a card".to_owned());
    case.late.push("a card".to_owned());
    assert_eq!(kinds(&case, &said), [Kind::Lost, Kind::Stuck]);
}

#[test]
fn a_question_without_an_answer() {
    let (mut case, mut said) = good();
    case.lines.push(Line { ts: ts(3), words: "What is A/B testing?".to_owned(), expects: "A/B testing" });
    assert_eq!(kinds(&case, &said), [Kind::SilentDrop]);
    said.push(word(6, "*A/B testing* shows …"));
    assert_eq!(kinds(&case, &said), []);
}

#[test]
fn a_press_without_an_answer() {
    let (mut case, mut said) = good();
    case.presses.push(press(2, 3));
    assert_eq!(kinds(&case, &said), [Kind::SilentDrop]);
    case.presses[1].acknowledged = false;
    assert_eq!(kinds(&case, &said), [], "there was a warning sign");
    case.presses[1].acknowledged = true;
    said.push(Said { only_to: Some("U3".to_owned()), ..word(4, "You can't approve or reject this.") });
    assert_eq!(kinds(&case, &said), []);
}
