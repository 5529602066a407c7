//! The transitions of the contract, on the production graph.

use countersign_core::reply::{Span, Text};
use countersign_graph::{
    action::{Status, Verdict},
    store::Usage,
};
use countersign_mail::Handled;

use super::support::*;
use crate::{
    lookup::{Found, FreeSlot, KnownContact},
    register::MailStatus,
    rules::AutomaticSettings,
};

const DRAFT: &str = "Hello Dana,\n\nThe small plan costs 5 a month.\n\nSupport";

/// Returns the answers of a model for a mail of this class without tools to choose.
fn plain(class: &str, confidence: f64) -> Vec<Result<String, countersign_model::Error>> {
    vec![classifies(class, confidence), drafts(DRAFT)]
}

#[tokio::test]
async fn a_sure_inquiry_is_sent_by_the_setting() {
    let world = World::automatic(plain("inquiry", 0.8));
    let thread = world.arrives(raw("m1", "Prices", "How much is the small plan?")).await;
    insta::assert_snapshot!(world.way(&thread).await.join("\n"), @r"
    start → classify
    classify → retrieve
    retrieve → decide
    decide → execute_tools
    execute_tools → generate
    generate → review
    review → execute
    intent → execute
    execute → close
    close → end
    ");
    assert_eq!(world.sent(), [DRAFT]);
    let record = world.card(&thread).await;
    assert_eq!(record.status, Status::Done);
    assert!(record.approved_by().is_empty(), "no person was asked");
    let decision = record.decision_line().words();
    assert!(decision.starts_with("Approved by the operator's setting email.automatic · "), "{decision}");
    let entry = world.entry("m1").await;
    assert_eq!((entry.status, entry.is_automatic), (MailStatus::Sent, true));
    assert!(world.account.sent.lock().unwrap()[0].is_automatic, "its header says so");
    let state = world.state(&thread).await;
    assert!(!state.requires_approval);
    assert_eq!(state.final_response.as_deref(), Some(DRAFT));
}

#[tokio::test]
async fn the_line_asks_just_below_it() {
    let world = World::automatic(plain("inquiry", 0.79999));
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    assert_eq!(world.card(&thread).await.status, Status::Pending);
    assert!(world.sent().is_empty());
    assert_eq!(world.way(&thread).await.last().unwrap(), "review → await");
}

#[tokio::test]
async fn a_mail_that_waits_needs_review() {
    let world = World::with(plain("inquiry", 0.95));
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    assert_eq!(world.card(&thread).await.status, Status::Pending, "automatic answers are off");
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview);
    assert!(world.state(&thread).await.final_response.is_none());
    world.decide(&thread, Verdict::Approved).await;
    assert_eq!(world.sent(), [DRAFT]);
    let entry = world.entry("m1").await;
    assert_eq!((entry.status, entry.is_automatic), (MailStatus::Sent, false));
    assert!(!world.account.sent.lock().unwrap()[0].is_automatic);
}

#[tokio::test]
async fn a_complaint_always_asks() {
    let answers = vec![classifies("complaint", 0.99), chooses(&["get_contact", "create_draft"]), drafts(DRAFT)];
    let world = World::automatic(answers);
    let thread = world.arrives(raw("m1", "Order 7", "I want a refund.")).await;
    assert_eq!(world.card(&thread).await.status, Status::Pending);
    assert!(world.sent().is_empty());
    assert_eq!(world.asked()[2]["tone"], "empathetic");
}

#[tokio::test]
async fn a_tool_outside_the_rules_never_runs() {
    let tools = ["send_email", "get_contact", "create_event", "run_shell", "get_contact"];
    let answers = vec![classifies("complaint", 0.99), chooses(&tools), drafts(DRAFT)];
    let world = World::automatic(answers);
    let thread = world.arrives(raw("m1", "Order 7", "I want a refund.")).await;
    let state = world.state(&thread).await;
    assert_eq!(state.selected_tools, ["get_contact"]);
    assert_eq!(state.tool_results["send_email"]["error"], "not allowed for the class complaint");
    assert_eq!(state.tool_results["create_event"]["error"], "not allowed for the class complaint");
    assert_eq!(state.tool_results["run_shell"]["error"], "there is no such tool");
    assert!(world.sent().is_empty() && world.account.drafts.lock().unwrap().is_empty());
}

#[tokio::test]
async fn sure_spam_ends_at_once() {
    let world = World::automatic(vec![classifies("spam", 0.8)]);
    let thread = world.arrives(raw("m1", "Lucky", "You have won.")).await;
    assert_eq!(world.way(&thread).await, ["start → classify", "classify → end"]);
    assert!(world.cards(&thread).await.is_empty());
    let entry = world.entry("m1").await;
    assert_eq!((entry.status, entry.is_spam), (MailStatus::Rejected, true));
    let posted = world.posted(&thread).await;
    let labels: Vec<_> = posted.iter().filter_map(|message| message.strip_prefix("mail-labels: ")).collect();
    assert_eq!(labels, [r#"{"handled":"spam","mail":"m1"}"#]);
}

#[tokio::test]
async fn unsure_spam_is_drafted_without_tools_and_asks() {
    let world = World::automatic(plain("spam", 0.6));
    let thread = world.arrives(raw("m1", "Lucky", "You have won.")).await;
    let way = world.way(&thread).await;
    assert!(way.contains(&"decide → generate".to_owned()), "{way:?}");
    assert!(
        !world.lookup.asked.lock().unwrap().contains(&"remember m1".to_owned()),
        "it is no example for other mails"
    );
    assert_eq!(world.card(&thread).await.status, Status::Pending);
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview);
}

#[tokio::test]
async fn an_unknown_label_is_other_and_a_wild_confidence_is_clamped() {
    let world = World::automatic(plain("invoice", 7.0));
    let thread = world.arrives(raw("m1", "Invoice", "Attached.")).await;
    let state = world.state(&thread).await;
    assert_eq!((state.class().as_str(), state.confidence), ("other", 1.0));
    assert_eq!(world.sent(), [DRAFT], "other may be sent as well");
}

#[tokio::test]
async fn a_rejected_mail_is_rejected() {
    let world = World::with(plain("inquiry", 0.9));
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    world.decide(&thread, Verdict::Rejected { reason: None }).await;
    assert!(world.sent().is_empty());
    assert_eq!(world.entry("m1").await.status, MailStatus::Rejected);
    let posted = world.posted(&thread).await;
    let label = posted.iter().find(|message| message.starts_with("mail-labels")).unwrap();
    assert_eq!(label, r#"mail-labels: {"handled":"rejected","mail":"m1"}"#);
}

#[tokio::test]
async fn a_rejected_mail_can_be_drafted_again_and_asks() {
    let mut answers = plain("inquiry", 0.5);
    answers.push(drafts("Another one."));
    let world = World::automatic(answers);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    world.decide(&thread, Verdict::Rejected { reason: None }).await;
    world.says(&thread, "shorter").await;
    assert_eq!(world.card(&thread).await.status, Status::Pending);
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview);
    world.decide(&thread, Verdict::Approved).await;
    assert_eq!(world.sent(), ["Another one."]);
}

#[tokio::test]
async fn an_answered_mail_is_not_answered_again() {
    let mut answers = plain("inquiry", 0.9);
    answers.push(drafts("Another one."));
    let world = World::automatic(answers);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    assert_eq!(world.sent().len(), 1);
    world.says(&thread, "shorter").await;
    assert!(world.posted(&thread).await.iter().any(|reply| reply.contains("already answered")));
    assert_eq!(world.sent().len(), 1);
    assert_eq!(world.entry("m1").await.status, MailStatus::Sent);
}

#[tokio::test]
async fn nobody_decides_in_time() {
    let world = World::with(plain("inquiry", 0.9));
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    world.decide(&thread, Verdict::Expired).await;
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview, "it still waits");
    assert!(world.sent().is_empty());
}

#[tokio::test]
async fn a_meeting_request_reads_the_calendar() {
    let answers = vec![classifies("meeting_request", 0.9), chooses(&["check_calendar", "create_draft"]), drafts(DRAFT)];
    let world = World::automatic(answers);
    let slot = FreeSlot { start: "2025-03-04T09:00".into(), end: "2025-03-04T10:00".into(), duration_minutes: 60 };
    *world.lookup.slots.lock().unwrap() = Some(Ok(vec![slot]));
    let thread = world.arrives(raw("m1", "Call", "Can we have a call?")).await;
    let asked = world.lookup.asked.lock().unwrap().clone();
    assert!(asked.contains(&"gather, events: true".to_owned()) && asked.contains(&"free slots of 5 days".to_owned()));
    assert_eq!(world.asked()[2]["tool_results"]["check_calendar"]["free_slots"][0]["start"], "2025-03-04T09:00");
    assert_eq!(world.card(&thread).await.status, Status::Done);
}

#[tokio::test]
async fn what_was_looked_up_is_shown_in_words_for_people() {
    let answers = vec![classifies("meeting_request", 0.9), chooses(&["check_calendar"]), drafts(DRAFT)];
    let world = World::with(answers);
    let at = countersign_core::clock::Timestamp(1_741_078_800_000);
    *world.lookup.found.lock().unwrap() = Found {
        context: vec!["Similar email (similarity 0.83): Prices …".into()],
        shown: vec![Text::from("similar email “Prices”, ").moment(at)],
        contact: Some(KnownContact { line: "Tags: auto-synced".into(), shown: "Buyer at Acme".into() }),
        ..Found::default()
    };
    let slot = |hour| FreeSlot {
        start: format!("2025-03-04T{hour}:00:00+01:00"),
        end: format!("2025-03-04T{hour}:30:00+01:00"),
        duration_minutes: 30,
    };
    *world.lookup.slots.lock().unwrap() = Some(Ok(vec![slot("10"), slot("14")]));
    let thread = world.arrives(raw("m1", "Call", "Can we have a call?")).await;
    let card = world.card(&thread).await.card;
    let fact = card.facts.iter().find(|fact| fact.label == "Looked up").unwrap();
    let moments = fact.after.0.iter().filter(|span| matches!(span, Span::Moment(_))).count();
    assert_eq!(moments, 5, "each reader sees them in their time zone");
    assert_eq!(
        fact.after.words(),
        "similar email “Prices”, 2025-03-04T09:00:00.000Z; contact: Buyer at Acme; free times: \
         2025-03-04T09:00:00.000Z to 2025-03-04T09:30:00.000Z and 2025-03-04T13:00:00.000Z to 2025-03-04T13:30:00.000Z"
    );
}

#[tokio::test]
async fn the_contact_is_looked_up_by_the_address() {
    let answers = vec![classifies("follow_up", 0.9), chooses(&["get_contact", "create_draft"]), drafts(DRAFT)];
    let world = World::automatic(answers);
    *world.lookup.contact.lock().unwrap() = Some(Ok(Some("Dana Fields, Acme Corp".into())));
    let thread = world.arrives(raw("m1", "Re: Prices", "Any news?")).await;
    assert!(world.lookup.asked.lock().unwrap().contains(&"contact dana@example.org".to_owned()));
    assert_eq!(world.state(&thread).await.contact.as_deref(), Some("Dana Fields, Acme Corp"));
}

#[tokio::test]
async fn an_inquiry_of_a_known_sender_reads_the_contact() {
    let answers = vec![classifies("inquiry", 0.9), chooses(&["get_contact"]), drafts(DRAFT)];
    let world = World::automatic(answers);
    *world.lookup.found.lock().unwrap() = Found {
        context: vec!["CRM Contact — Name: Dana".into(), "  ".into()],
        contact: Some("Name: Dana".into()),
        ..Found::default()
    };
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let state = world.state(&thread).await;
    assert_eq!(state.context, ["CRM Contact — Name: Dana"], "no empty entries");
    assert_eq!(state.selected_tools, ["get_contact"]);
}

#[tokio::test]
async fn two_automatic_answers_follow_each_other() {
    let answers = [plain("inquiry", 0.9), plain("inquiry", 0.9)].concat_results();
    let world = World::automatic(answers);
    world.arrives(raw("m1", "Prices", "How much is it?")).await;
    world.arrives(raw("m2", "Sizes", "How big is it?")).await;
    assert_eq!(world.sent().len(), 2);
}

#[tokio::test]
async fn the_limit_of_a_day_asks() {
    let answers = [plain("inquiry", 0.9), plain("inquiry", 0.9)].concat_results();
    let settings = AutomaticSettings { answers_a_day: 1, ..automatic() };
    let world = World::made(Making { settings, answers: Some(answers), ..Making::default() });
    world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let thread = world.arrives(raw("m2", "Sizes", "How big is it?")).await;
    assert_eq!(world.sent().len(), 1);
    let card = world.card(&thread).await;
    assert_eq!(card.status, Status::Pending);
    let why = card.card.facts.iter().find(|fact| fact.label == "Waiting because").unwrap();
    assert_eq!(why.after.words(), "Today's limit on automatic replies has been reached (1).");
}

#[tokio::test]
async fn an_answered_mail_is_labelled_and_remembered() {
    let world = World::with(plain("inquiry", 0.9));
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    world.decide(&thread, Verdict::Approved).await;
    let posted = world.posted(&thread).await;
    let label = posted.iter().find_map(|message| message.strip_prefix("mail-labels: ")).unwrap();
    let label = serde_json::from_str(label).unwrap();
    assert_eq!(crate::labels::deliver(&*world.account, &world.book, &label).await, crate::labels::Delivered::Done);
    assert_eq!(*world.account.marks.lock().unwrap(), [("m1".to_owned(), Handled::Answered)]);
    let answers = world.book.answers_to("dana@example.org").await.unwrap();
    assert_eq!(answers[0].text, DRAFT);
    assert!(world.lookup.asked.lock().unwrap().contains(&"remember m1 with its answer".to_owned()));
}

#[tokio::test]
async fn a_stranger_is_looked_up_before_being_remembered() {
    let answers = vec![classifies("complaint", 0.9), chooses(&["get_contact", "create_draft"]), drafts(DRAFT)];
    let world = World::with(answers);
    world.arrives(raw("m1", "Order 7", "I want a refund.")).await;
    let asked = world.lookup.asked.lock().unwrap().clone();
    let kinds = asked.iter().filter_map(|asked| asked.split([' ', ',']).next());
    let kinds: Vec<_> = kinds.filter(|kind| ["gather", "contact", "seen"].contains(kind)).collect();
    assert_eq!(kinds, ["gather", "contact", "seen"], "{asked:?}");
}

#[tokio::test]
async fn a_mail_is_shown_once() {
    let world = World::with(plain("inquiry", 0.9));
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let posted = world.posted(&thread).await;
    assert!(!posted.iter().any(|posted| posted.contains("How much is it?")), "it is on the card: {posted:?}");
    let world = World::with(vec![classifies("spam", 0.95)]);
    let thread = world.arrives(raw("m1", "Lucky", "You have won.")).await;
    let posted = world.posted(&thread).await.join("\n");
    assert_eq!(posted.matches("You have won.").count(), 1, "there is no card: {posted}");
}

#[tokio::test]
async fn mails_of_machines_are_not_answered() {
    let world = World::automatic(plain("inquiry", 0.99));
    let mut machine = raw("m1", "Away", "I am away until Monday.");
    let text = String::from_utf8(machine.bytes.clone()).unwrap();
    machine.bytes = text.replacen("Message-ID", "Auto-Submitted: auto-replied\r\nMessage-ID", 1).into_bytes();
    let thread = world.arrives(machine).await;
    assert!(world.sent().is_empty() && world.cards(&thread).await.is_empty() && world.asked().is_empty());
}

/// Joins the answers for several mails.
trait Concat {
    fn concat_results(self) -> Vec<Result<String, countersign_model::Error>>;
}

impl<const N: usize> Concat for [Vec<Result<String, countersign_model::Error>>; N] {
    fn concat_results(self) -> Vec<Result<String, countersign_model::Error>> {
        self.into_iter().flatten().collect()
    }
}

#[tokio::test]
async fn the_embeddings_are_on_the_bill() {
    let world = World::with(plain("inquiry", 0.9));
    let used = |tokens| Some(Usage { model: "embed".into(), calls: 1, input_tokens: tokens, ..Usage::default() });
    *world.lookup.embedding.lock().unwrap() = used(7);
    world.lookup.found.lock().unwrap().usage = used(5);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let steps = world.steps(&thread).await;
    let retrieve = steps.iter().find(|step| step.node == "retrieve").unwrap().usage.clone().unwrap();
    assert_eq!((retrieve.model.as_str(), retrieve.calls, retrieve.input_tokens), ("embed", 2, 12));
    world.decide(&thread, Verdict::Approved).await;
    let steps = world.steps(&thread).await;
    let close = steps.iter().find(|step| step.node == "close").unwrap().usage.clone().unwrap();
    assert_eq!((close.calls, close.input_tokens), (1, 7));
}
