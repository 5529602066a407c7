//! The failure rules of the contract.

use std::time::Duration;

use countersign_graph::{action::Status, store::Handling};
use countersign_mail::{MailError, Warning};

use super::support::*;
use crate::{
    lookup::{Found, LookupError},
    register::MailStatus,
    rules::Source,
    state::Arrival,
};

const DRAFT: &str = "The small plan costs 5 a month.";

#[tokio::test]
async fn without_a_class_nothing_is_sent() {
    let world = World::automatic(vec![is_away(), drafts(DRAFT)]);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let state = world.state(&thread).await;
    assert_eq!((state.class().as_str(), state.confidence, state.classified_by), ("other", 0.0, Source::Nothing));
    assert!(state.error.as_deref().unwrap().starts_with("classify: the language model is not available"));
    assert_eq!(world.card(&thread).await.status, Status::Pending);
    assert!(world.sent().is_empty());
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview);
}

#[tokio::test]
async fn a_class_that_is_not_json_is_other_with_half_the_confidence() {
    let world = World::automatic(vec![says("I think it is an inquiry."), drafts(DRAFT)]);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let state = world.state(&thread).await;
    assert_eq!((state.class().as_str(), state.confidence), ("other", 0.5));
    assert!(world.sent().is_empty());
}

#[tokio::test]
async fn code_fences_are_removed_from_answers() {
    let fenced = format!("```json\n{}\n```", classifies("inquiry", 0.9).unwrap());
    let world = World::automatic(vec![says(&fenced), drafts(DRAFT)]);
    world.arrives(raw("m1", "Prices", "How much is it?")).await;
    assert_eq!(world.sent(), [DRAFT]);
}

#[tokio::test]
async fn an_empty_draft_is_never_sent() {
    for draft in [drafts(" \n"), says("Sorry, I can't."), is_away(), drafts(&"x".repeat(3_000))] {
        let world = World::automatic(vec![classifies("inquiry", 0.99), draft]);
        let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
        let record = world.card(&thread).await;
        assert_eq!(record.status, Status::Pending);
        assert!(world.sent().is_empty());
        assert_eq!(world.state(&thread).await.drafted_by, Source::Rules, "a template to start from");
        let notes: Vec<_> = record.card.notes.iter().map(|note| note.words()).collect();
        assert!(
            notes.contains(&"This draft comes from a template, not from a language model.".to_owned()),
            "{notes:?}"
        );
    }
}

#[tokio::test]
async fn a_source_that_fails_stops_nothing() {
    let world = World::automatic(vec![classifies("inquiry", 0.9), drafts(DRAFT)]);
    *world.lookup.found.lock().unwrap() = Found {
        context: vec!["Similar mail (0.81): the small plan".into()],
        failures: vec!["The calendar doesn't answer.".into()],
        ..Found::default()
    };
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let state = world.state(&thread).await;
    assert_eq!(state.context.len(), 1, "the other sources count");
    let retrieve = state.steps.iter().find(|step| step.step == "retrieve").unwrap();
    assert_eq!(retrieve.error.as_deref(), Some("The calendar doesn't answer."));
    assert_eq!(world.sent(), [DRAFT]);
}

#[tokio::test]
async fn a_choice_that_fails_falls_back_to_the_rules() {
    let world = World::automatic(vec![classifies("meeting_request", 0.9), is_away(), drafts(DRAFT)]);
    let thread = world.arrives(raw("m1", "Call", "Can we talk?")).await;
    let state = world.state(&thread).await;
    assert_eq!(state.selected_tools, ["check_calendar", "create_draft"]);
    let decide = state.steps.iter().find(|step| step.step == "decide").unwrap();
    assert_eq!(decide.facts["fallback"], true);
    assert_eq!(world.sent(), [DRAFT]);
}

#[tokio::test]
async fn a_tool_that_fails_does_not_stop_the_others() {
    let tools = ["check_calendar", "create_draft"];
    let world = World::automatic(vec![classifies("meeting_request", 0.9), chooses(&tools), drafts(DRAFT)]);
    *world.lookup.slots.lock().unwrap() = Some(Err(LookupError("No calendar is set up.".into())));
    let thread = world.arrives(raw("m1", "Call", "Can we talk?")).await;
    let state = world.state(&thread).await;
    assert_eq!(state.tool_results["check_calendar"]["error"], "No calendar is set up.");
    assert_eq!(state.tool_results["create_draft"]["deferred"], true);
    assert_eq!(world.sent(), [DRAFT]);
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_recorded_and_asks() {
    let answers = Some(vec![classifies("inquiry", 0.99)]);
    let answer_takes = Duration::from_secs(61);
    let world = World::made(Making { answers, answer_takes, settings: automatic() });
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let state = world.state(&thread).await;
    let steps: Vec<_> = state.steps.iter().map(|step| step.step.as_str()).collect();
    assert_eq!(steps, ["classify", "retrieve", "decide", "execute", "generate", "review", "human_queue"]);
    assert!(state.failures.contains(&"generate: the run took longer than 60 s".to_owned()), "{:?}", state.failures);
    assert_eq!(world.card(&thread).await.status, Status::Pending);
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview);
}

#[tokio::test]
async fn a_run_without_a_result_is_reviewed_by_a_person() {
    let world = World::automatic(Vec::new());
    let mail = mail();
    world.account.inbox.lock().unwrap().push(raw("m1", "Prices", "How much is the small plan?"));
    let entry = world.book.add(crate::register::Entry::new(&mail, world.now())).await.unwrap();
    world.book.update(&entry.mail, |entry| entry.move_to(MailStatus::Processing, entry.updated_at)).await.unwrap();
    world.event(&thread(), "m1#1", &Arrival::new(&mail, None, true)).await;
    assert_eq!(world.card(&thread()).await.status, Status::Pending);
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview);
    world.event(&thread(), "m1#2", &Arrival::new(&mail, None, true)).await;
    assert_eq!(world.cards(&thread()).await.len(), 1, "it is not stuck any more");
}

#[tokio::test]
async fn an_account_that_does_not_answer_is_tried_again() {
    let world = World::with(vec![classifies("inquiry", 0.9), drafts(DRAFT)]);
    *world.account.failure.lock().unwrap() = Some(MailError::Unavailable { reason: "503".into(), retry_after: None });
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    assert!(world.cards(&thread).await.is_empty());
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview, "the mail is not lost");
    let posted = world.posted(&thread).await;
    assert!(posted.iter().any(|reply| reply.contains("The mail server isn't answering.")), "{posted:?}");
    *world.account.failure.lock().unwrap() = None;
    assert!(world.state(&thread).await.draft_response.contains("5 a month"), "and neither is the draft");
}

#[tokio::test]
async fn a_mail_without_a_sender_is_a_message_that_says_so() {
    let world = World::automatic(vec![classifies("inquiry", 0.99), drafts(DRAFT)]);
    let mut nobody = raw("m1", "Prices", "How much is it?");
    let text = String::from_utf8(nobody.bytes.clone()).unwrap();
    nobody.bytes = text.replacen("From: Dana Fields <dana@example.org>\r\n", "", 1).into_bytes();
    assert!(countersign_mail::Mail::read(&nobody).warnings.contains(&Warning::NoSender));
    let thread = world.arrives(nobody).await;
    assert!(world.sent().is_empty() && world.cards(&thread).await.is_empty());
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview);
    let posted = world.posted(&thread).await;
    assert!(posted.iter().any(|reply| reply.starts_with("No reply can be sent to this email.")), "{posted:?}");
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_a_message_that_says_so() {
    let world = World::automatic(Vec::new());
    let event =
        countersign_graph::store::External::new(crate::SOURCE, "m1", serde_json::json!({ "newer": 1 })).unwrap();
    let message = countersign_graph::store::ThreadMessage::External(event);
    let to = countersign_graph::store::Destination::Mailbox {
        thread: thread(),
        addressed: true,
        message,
        graph: countersign_core::ids::GraphName::new(crate::MAIL),
    };
    let delivery = countersign_graph::store::Delivery { to, dedup: Vec::new(), at: world.now() };
    world.store.store.ingest(&delivery, Handling::Later).await.unwrap();
    world.work(&thread()).await;
    assert!(world.posted(&thread()).await[0].starts_with("I couldn't read this email"));
}

#[tokio::test]
async fn without_a_model_a_template_waits_for_a_person() {
    let world = World::without_model(automatic());
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    assert!(world.sent().is_empty());
    let state = world.state(&thread).await;
    assert_eq!((state.classified_by, state.drafted_by), (Source::Rules, Source::Rules));
    assert!(state.draft_response.starts_with("Hello Dana Fields,"));
    assert_eq!(world.card(&thread).await.status, Status::Pending);
}
