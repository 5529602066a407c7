//! The memory of a mail's thread.
//!
//! | name in the contract | lives in | how long |
//! | --- | --- | --- |
//! | `email` | [`MailState::email`], shortened; the complete mail is stored under [`MailState::stored`] | the thread |
//! | `classification`, `confidence` | the fields of the same names | the thread |
//! | `context` | [`MailState::context`] | the thread |
//! | `selected_tools`, `tool_params`, `tool_results` | the fields of the same names | the thread |
//! | `draft_response`, `generation_confidence` | the fields of the same names; an edited draft is in the action's record | the thread |
//! | `requires_approval`, `final_response` | the fields of the same names | the thread |
//! | `error` | [`MailState::error`]; all failures of the run are in [`MailState::failures`] | the run |
//! | `steps` | [`MailState::steps`], the newest; the full trace with the state before and after each step is the engine's | the thread |
//! | `trace_id` | the run ([`countersign_graph::node::Context::run`]), one for each run | the run |

use std::collections::BTreeMap;

use countersign_core::{
    clock::Timestamp,
    ids::UserId,
    reply::{Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Status},
    conversing::Conversing,
    node::{Said, State},
    store::External,
};
use countersign_mail::{AnswerByHand, Mail, MailId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    SOURCE,
    card::digest_of,
    lookup::KnownContact,
    replies,
    rules::{Class, MAX_MODEL_CHARS, Source, cut},
    send::{self, SendParameters},
    spam,
};

/// The maximum number of step entries that are kept.
const MAX_STEPS: usize = 60;

/// The maximum number of failures that are kept for a run.
const MAX_FAILURES: usize = 10;

/// The maximum length of a failure, in characters.
const MAX_FAILURE_CHARS: usize = 300;

/// The maximum length of a text that was looked up, in characters.
pub(super) const MAX_TEXT_CHARS: usize = 1_500;

/// The maximum length of a person's message, in characters.
const MAX_SAID_CHARS: usize = 4_000;

/// The maximum size of an arrival, in bytes of JSON; an event takes a little more.
const MAX_ARRIVAL_BYTES: usize = 60 << 10;

/// The state of a mail's thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MailState {
    /// The mail, shortened; `None` before it has arrived, or if it could not be read from its event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<Mail>,
    /// The hash under which the complete mail is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<String>,
    /// The class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classification: Option<Class>,
    /// The confidence of the class, from 0 to 1.
    pub confidence: f64,
    /// The source of the class.
    pub classified_by: Source,
    /// The reason for the class, in a model's words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The texts that were found, the most relevant first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    /// The texts that were found, in words for people; without the contact.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown_context: Vec<Text>,
    /// The contact of the sender, in one line for a model, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// The contact of the sender in words for people, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_contact: Option<Text>,
    /// The tools to run, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selected_tools: Vec<String>,
    /// The parameters of the tools, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_params: BTreeMap<String, Value>,
    /// The results of the tools, by name; a failure is an object with `error`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_results: BTreeMap<String, Value>,
    /// The draft.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub draft_response: String,
    /// The source of the draft.
    pub drafted_by: Source,
    /// The confidence of the draft. It decides nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation_confidence: Option<f64>,
    /// True if a person decides.
    pub requires_approval: bool,
    /// The answer that was or may be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_response: Option<String>,
    /// The last failure of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The failures of the run, each with its step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// The steps, the newest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepEntry>,
    /// The person who was asked what another draft should say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_for_changes: Option<UserId>,
    /// True once the thread has what the card cannot show of the mail.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_shown: bool,
    /// True once the mail was answered, by this program or by a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_answered: bool,
    /// True while the mail is marked as spam.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_spam: bool,
    /// The data of the current run.
    pub turn: Turn,
}

impl Default for MailState {
    fn default() -> Self {
        Self {
            email: None,
            stored: None,
            classification: None,
            confidence: 0.0,
            classified_by: Source::Nothing,
            reasoning: String::new(),
            context: Vec::new(),
            shown_context: Vec::new(),
            contact: None,
            shown_contact: None,
            selected_tools: Vec::new(),
            tool_params: BTreeMap::new(),
            tool_results: BTreeMap::new(),
            draft_response: String::new(),
            drafted_by: Source::Nothing,
            generation_confidence: None,
            requires_approval: true,
            final_response: None,
            error: None,
            failures: Vec::new(),
            steps: Vec::new(),
            asked_for_changes: None,
            is_shown: false,
            is_answered: false,
            is_spam: false,
            turn: Turn::default(),
        }
    }
}

/// An entry of the trace: one node that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepEntry {
    /// The name of the step.
    pub step: String,
    /// The duration in milliseconds.
    pub latency_ms: u64,
    /// The failure, if the step failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The other facts, such as `classification`.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
}

/// A run: from a mail or a message to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Turn {
    /// The cause of the run.
    pub cause: Cause,
    /// The time at which it began.
    pub began: Timestamp,
    /// The person who caused it; `None` if a mail did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// The changes that a person wants in another draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
}

/// The cause of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Nothing so far.
    #[default]
    Nothing,
    /// The mail arrived.
    Mail,
    /// A mail arrived, and its event could not be read.
    Unreadable,
    /// An earlier run ended without a result.
    Stuck,
    /// A person said this.
    Said(String),
    /// A button or a form asks for an action with these parameters.
    Request {
        /// The name of the action.
        action: String,
        /// The parameters.
        parameters: Value,
    },
    /// The unknown outcome of an action was settled.
    Settled {
        /// The status of the action.
        status: Status,
        /// The text of the answer, if the action sends one.
        text: String,
        /// True if it was sent without a person.
        is_automatic: bool,
        /// True if the action marks the mail as spam instead of answering it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_spam: bool,
    },
    /// A person answered the mail with a mail program.
    Answered(AnswerByHand),
    /// A newer mail came in the same conversation.
    Newer(MailId),
    /// Another copy of the mail arrived, with another text.
    Copied(Box<Mail>),
}

/// The body of the event by which a mail arrives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// The mail, shortened.
    pub mail: Mail,
    /// The hash under which the complete mail is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<String>,
    /// True if an earlier run of this mail ended without a result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stuck: bool,
    /// The answer that a person sent with a mail program, if the event is about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<AnswerByHand>,
    /// The newer mail of the same conversation, if the event is about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer: Option<MailId>,
    /// True if this is another copy of the thread's mail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_copy: bool,
}

impl Arrival {
    /// Creates the arrival of a mail, which is shortened until it fits into an event.
    pub fn new(mail: &Mail, stored: Option<String>, is_stuck: bool) -> Self {
        // Each level keeps less; the last one fits whatever the mail contains.
        let levels = [(MAX_MODEL_CHARS, 10, 20), (MAX_MODEL_CHARS / 2, 1, 5), (500, 0, 0)];
        let shortened = levels.map(|(chars, addresses, others)| Self {
            mail: shortened(mail, chars, addresses, others),
            stored: stored.clone(),
            is_stuck,
            answered: None,
            newer: None,
            is_copy: false,
        });
        let fits = |arrival: &Self| serde_json::to_string(arrival).is_ok_and(|json| json.len() <= MAX_ARRIVAL_BYTES);
        let [first, second, last] = shortened;
        [first, second].into_iter().find(fits).unwrap_or(last)
    }
}

fn shortened(mail: &Mail, chars: usize, addresses: usize, others: usize) -> Mail {
    let text = cut(&mail.text, chars);
    let is_cut = mail.is_cut || text.len() < mail.text.len();
    let mut short = Mail { text, is_cut, ..mail.clone() };
    short.to.truncate(addresses);
    short.cc.truncate(addresses);
    short.attachments.truncate(others);
    short.references = short.references.split_off(short.references.len().saturating_sub(others));
    short.references.retain(|id| id.len() <= 998);
    short.message_id = short.message_id.filter(|id| id.len() <= 998);
    short.warnings.truncate(others.max(5));
    short
}

impl MailState {
    /// Returns the class; [`Class::Other`] before there is one.
    pub fn class(&self) -> Class {
        self.classification.unwrap_or_default()
    }

    /// Notes a failure of the run, which a person then judges.
    pub fn note_failure(&mut self, step: &str, what: &str) {
        let failure = cut(&format!("{step}: {what}"), MAX_FAILURE_CHARS);
        if self.failures.len() < MAX_FAILURES {
            self.failures.push(failure.clone());
        }
        self.error = Some(failure);
    }

    /// Notes an error that does not end the run.
    pub fn note_error(&mut self, step: &str, what: &str) {
        self.error = Some(cut(&format!("{step}: {what}"), MAX_FAILURE_CHARS));
    }

    /// Notes the contact of the sender; `None` if there is none.
    pub(super) fn know_contact(&mut self, contact: Option<KnownContact>) {
        let (line, shown) = contact.map(|contact| (cut(&contact.line, MAX_TEXT_CHARS), contact.shown)).unzip();
        (self.contact, self.shown_contact) = (line, shown);
    }

    /// Takes over the draft of the open card, which a person may have edited, so that it is not lost when another card
    /// takes its place.
    pub(super) fn adopt_draft(&mut self, open: &[ActionRecord]) {
        let Some(SendParameters { text, about, .. }) = send::on_card(open) else { return };
        if about.draft.is_some_and(|draft| !draft.is(&digest_of(&text))) {
            self.drafted_by = Source::Person;
        }
        self.draft_response = text;
    }

    /// Returns true if the run is about marking the mail as spam. Until that is decided, nothing about the mail changes.
    pub(super) fn asks_for_spam(&self) -> bool {
        matches!(&self.turn.cause, Cause::Request { action, .. } if action == spam::NAME)
    }

    /// Begins a run after the unknown outcome of an answer was settled.
    pub(super) fn begin_settled(&mut self, record: &ActionRecord, now: Timestamp) {
        let text = record.parameters["text"].as_str().unwrap_or_default().to_owned();
        let cause = Cause::Settled {
            status: record.status,
            text,
            is_automatic: record.under.is_some(),
            is_spam: record.name == spam::NAME,
        };
        self.begin(Turn { cause, began: now, by: None, instruction: None });
    }

    /// Adds a step to the trace.
    pub fn note_step(&mut self, entry: StepEntry) {
        self.steps.push(entry);
        let excess = self.steps.len().saturating_sub(MAX_STEPS);
        self.steps.drain(..excess);
    }

    /// Begins a run, and forgets the failures of the last one.
    fn begin(&mut self, turn: Turn) {
        self.turn = turn;
        self.error = None;
        self.failures.clear();
    }
}

impl State for MailState {
    fn begin_turn(&mut self, said: &Said) {
        let cause = match &said.request {
            Some(request) => Cause::Request { action: request.action.clone(), parameters: request.parameters.clone() },
            None => Cause::Said(cut(said.text.trim(), MAX_SAID_CHARS)),
        };
        self.begin(Turn { cause, began: said.at, by: Some(said.by.clone()), instruction: None });
    }

    fn begin_with(&mut self, arrived: &External, now: Timestamp) -> bool {
        if arrived.source() != SOURCE {
            return false;
        }
        let turn = |cause| Turn { cause, began: now, by: None, instruction: None };
        match serde_json::from_value::<Arrival>(arrived.body().clone()) {
            Ok(Arrival { answered: Some(answer), .. }) => self.begin(turn(Cause::Answered(answer))),
            Ok(arrival) if arrival.is_stuck => {
                self.email.get_or_insert(arrival.mail);
                self.stored = self.stored.take().or(arrival.stored);
                self.begin(turn(Cause::Stuck));
            }
            Ok(Arrival { newer: Some(newer), .. }) => self.begin(turn(Cause::Newer(newer))),
            Ok(Arrival { is_copy: true, mail, .. }) => {
                let is_same = |known: &Mail| (&known.text, &known.attachments) == (&mail.text, &mail.attachments);
                if self.email.as_ref().is_some_and(is_same) {
                    return false;
                }
                self.begin(turn(Cause::Copied(Box::new(mail))));
            }
            Ok(_) if self.email.is_some() => return false, // the same mail again
            Ok(arrival) => {
                self.email = Some(arrival.mail);
                self.stored = arrival.stored;
                self.begin(turn(Cause::Mail));
            }
            Err(_) => self.begin(turn(Cause::Unreadable)), // the thread says so, and the mail is not lost
        }
        true
    }

    fn stopped(&mut self) -> Option<String> {
        Some(" No reply was sent. Say “another draft” when you want one.".to_owned())
    }

    fn buttons_wait_for(&self, reply: &Reply) -> Option<String> {
        let says = || reply.choices.iter().map(|choice| choice.says.as_str()).collect::<Vec<_>>().join(", ");
        let asks_for_spam = reply.choices.iter().any(|choice| choice.says == replies::SPAM);
        let is_over = self.is_answered || self.is_spam && asks_for_spam;
        (!is_over).then(says)
    }

    fn suspend(&self) -> Value {
        serde_json::to_value(&self.turn).expect("a turn is plain data")
    }

    fn resume(&mut self, turn: Value) -> Result<(), serde_json::Error> {
        self.turn = serde_json::from_value(turn)?;
        Ok(())
    }

    fn superseded(&mut self, _older: &ActionRecord, _now: Timestamp) {}
}

impl Conversing for MailState {
    fn works_for(&self) -> Option<&UserId> {
        self.turn.by.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use countersign_mail::Address;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tests::support::mail;

    fn arrives(arrival: &Arrival) -> External {
        External::new(SOURCE, "m1", serde_json::to_value(arrival).unwrap()).unwrap()
    }

    #[test]
    fn a_mail_begins_a_run_once() {
        let mut state = MailState::default();
        let event = arrives(&Arrival::new(&mail(), Some("hash".into()), false));
        assert!(state.begin_with(&event, Timestamp(5)));
        assert_eq!((state.turn.cause.clone(), state.turn.began), (Cause::Mail, Timestamp(5)));
        assert_eq!(state.stored.as_deref(), Some("hash"));
        assert!(!state.begin_with(&event, Timestamp(6)), "the same mail again");
        assert!(state.begin_with(&arrives(&Arrival::new(&mail(), None, true)), Timestamp(7)));
        assert_eq!((state.turn.cause.clone(), state.stored.as_deref()), (Cause::Stuck, Some("hash")));
    }

    #[test]
    fn a_mail_whose_event_cannot_be_read_is_not_lost() {
        let mut state = MailState::default();
        let event = External::new(SOURCE, "m1", json!({ "newer": true })).unwrap();
        assert!(state.begin_with(&event, Timestamp(5)));
        assert_eq!(state.turn.cause, Cause::Unreadable);
        let other = External::new("jobs", "j1", json!({})).unwrap();
        assert!(!state.begin_with(&other, Timestamp(5)));
    }

    #[test]
    fn a_person_decides_unless_the_rules_say_otherwise() {
        assert!(MailState::default().requires_approval);
        let stored: MailState = serde_json::from_value(json!({})).unwrap();
        assert_eq!(stored, MailState::default());
    }

    proptest! {
        #[test]
        fn every_mail_fits_into_its_event(text in "\\PC{0,200}", times in 1usize..400, people in 0usize..2000) {
            let someone = Address { name: Some("\u{1}".repeat(320)), address: format!("{}@b.c", "a".repeat(310)) };
            let mail = Mail {
                text: text.repeat(times),
                to: vec![someone.clone(); people],
                cc: vec![someone; people],
                references: vec!["\u{2}".repeat(990); people],
                ..mail()
            };
            let arrival = Arrival::new(&mail, None, false);
            prop_assert!(External::new(SOURCE, "m1", serde_json::to_value(&arrival).unwrap()).is_ok());
            prop_assert!(mail.text.starts_with(&arrival.mail.text));
        }
    }
}
