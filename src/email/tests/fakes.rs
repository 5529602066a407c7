//! Replacements for the graph's dependencies: a scripted model, an account, sources of context, and messages in Slack.

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use countersign_core::{
    clock::{ManualClock, Timestamp},
    ids::{MessageTs, Nonce, ThreadId, UserId},
    reply::Reply,
};
use countersign_graph::{
    action::{ActionRecord, Lapse},
    admission::{Admission, Admits},
    standing::Entitled,
};
use countersign_mail::{
    Address, AnswerByHand, Batch, Found, Handled, Incoming, Mail, MailAccount, MailError, MailId, Outgoing, Prepared,
    RawMail, SendError, Sent, SyncPoint,
};
use countersign_model::{KnownBlock, Model, Request, Response, Usage};
use serde_json::json;
use url::Url;

use crate::{
    lookup::{About, Found as LookedUp, FreeSlot, KnownContact, LookupError, MailLookup},
    sync::{PostError, Roots},
};

/// A model that gives prepared answers and keeps the requests.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(super) answers: Mutex<VecDeque<Result<String, countersign_model::Error>>>,
    pub(crate) asked: Mutex<Vec<Request>>,
    /// The clock that each answer moves forward, and by how much.
    pub(crate) takes: Option<(ManualClock, Duration)>,
}

#[async_trait]
impl Model for Script {
    fn name(&self) -> &str {
        "script"
    }

    async fn respond(&self, request: &Request) -> Result<Response, countersign_model::Error> {
        self.asked.lock().unwrap().push(request.clone());
        if let Some((clock, by)) = &self.takes {
            clock.advance(*by);
        }
        let answer = self.answers.lock().unwrap().pop_front().expect("the script has an answer for each question");
        let usage =
            Usage { model: "script".into(), input_tokens: 10, cached_tokens: 0, output_tokens: 5, nano_usd: None };
        answer.map(|text| Response {
            content: vec![KnownBlock::Text { text }.into()],
            stop_reason: "end_turn".into(),
            usage,
        })
    }
}

/// Returns an answer that classifies.
pub(crate) fn classifies(class: &str, confidence: f64) -> Result<String, countersign_model::Error> {
    Ok(json!({ "classification": class, "confidence": confidence, "reasoning": "It asks." }).to_string())
}

/// Returns an answer that chooses tools.
pub(crate) fn chooses(tools: &[&str]) -> Result<String, countersign_model::Error> {
    Ok(json!({ "tools": tools, "start": "", "days": 5, "reasoning": "It helps." }).to_string())
}

/// Returns an answer that drafts.
pub(crate) fn drafts(text: &str) -> Result<String, countersign_model::Error> {
    Ok(json!({ "reply": text, "confidence": 0.9 }).to_string())
}

/// Returns an answer that is any text.
pub(crate) fn says(text: &str) -> Result<String, countersign_model::Error> {
    Ok(text.to_owned())
}

/// Returns the error of a model that cannot be reached.
pub(crate) fn is_away() -> Result<String, countersign_model::Error> {
    Err(countersign_model::Error::Unavailable { reason: "529".into() })
}

/// An account that keeps what was sent.
#[derive(Debug)]
pub(crate) struct FakeAccount {
    address: Address,
    pub(crate) inbox: Mutex<Vec<RawMail>>,
    pub(crate) drafts: Mutex<Vec<Outgoing>>,
    pub(crate) sent: Mutex<Vec<Outgoing>>,
    pub(crate) marks: Mutex<Vec<(String, Handled)>>,
    /// The results of the next calls of `send`; without one, the call succeeds.
    pub(crate) sends: Mutex<VecDeque<FakeSend>>,
    /// The failure of the next calls of `sync` and `read`.
    pub(crate) failure: Mutex<Option<MailError>>,
    /// The answers of people, by the `Message-ID` of the answered mail.
    pub(crate) by_hand: Mutex<Vec<(String, AnswerByHand)>>,
    /// True if the next call of `sync` finds that the server has given new ids to all mails.
    pub(crate) is_renumbered: AtomicBool,
    /// True if the server cannot tell what became of an answer.
    pub(crate) cannot_tell: AtomicBool,
    /// The mails that cannot be read.
    pub(crate) unreadable: Mutex<Vec<String>>,
}

/// The result of a call of `send`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FakeSend {
    /// The answer is lost after the mail was sent.
    SentWithoutAnswer,
    /// There is no answer, and the draft is still there.
    LostBefore,
    /// There is no answer, and there is no draft either.
    NeverMade,
    /// The server refuses.
    Refused,
}

impl Default for FakeAccount {
    fn default() -> Self {
        Self {
            address: Address::parse("Support <us@example.com>").unwrap(),
            inbox: Mutex::default(),
            drafts: Mutex::default(),
            sent: Mutex::default(),
            marks: Mutex::default(),
            sends: Mutex::default(),
            failure: Mutex::default(),
            by_hand: Mutex::default(),
            cannot_tell: AtomicBool::default(),
            is_renumbered: AtomicBool::default(),
            unreadable: Mutex::default(),
        }
    }
}

impl FakeAccount {
    fn failed(&self) -> Result<(), MailError> {
        self.failure.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn take_draft(&self, key: &str) -> Option<Outgoing> {
        let mut drafts = self.drafts.lock().unwrap();
        let at = drafts.iter().position(|draft| draft.key == key)?;
        Some(drafts.remove(at))
    }
}

#[async_trait]
impl MailAccount for FakeAccount {
    fn address(&self) -> &Address {
        &self.address
    }

    fn is_us(&self, address: &str) -> bool {
        address == self.address.address
    }

    fn link(&self, mail: &MailId) -> Option<Url> {
        Url::parse(&format!("https://mail.example.com/{mail}")).ok()
    }

    async fn sync(&self, since: Option<&SyncPoint>) -> Result<Batch, MailError> {
        self.failed()?;
        let since = since.filter(|_| !self.is_renumbered.swap(false, Ordering::Relaxed));
        let from = since.and_then(|since| since.as_str().parse().ok()).unwrap_or(0);
        let inbox = self.inbox.lock().unwrap();
        Ok(Batch {
            arrived: inbox.iter().skip(from).map(|raw| raw.id.clone()).collect(),
            next: SyncPoint::new(inbox.len().to_string()),
            is_full: since.is_none(),
            has_more: false,
        })
    }

    async fn read(&self, id: &MailId) -> Result<Option<RawMail>, MailError> {
        self.failed()?;
        if self.unreadable.lock().unwrap().iter().any(|unreadable| unreadable == id.as_str()) {
            return Err(MailError::Decode { reason: "no base64".into() });
        }
        Ok(self.inbox.lock().unwrap().iter().find(|raw| raw.id == *id).cloned())
    }

    async fn prepare(&self, out: &Outgoing) -> Result<Prepared, MailError> {
        assert!(countersign_core::send_permit::current().is_some(), "a change needs a permit");
        let mut drafts = self.drafts.lock().unwrap();
        if !drafts.iter().any(|draft| draft.key == out.key) {
            drafts.push(out.clone());
        }
        Ok(Prepared { draft: Some(out.key.clone()) })
    }

    async fn send(&self, out: &Outgoing, prepared: &Prepared) -> Result<Sent, SendError> {
        assert!(countersign_core::send_permit::current().is_some(), "a change needs a permit");
        let next = self.sends.lock().unwrap().pop_front();
        let key = prepared.draft.as_ref().unwrap();
        let lost = || SendError::Unknown { detail: "no answer in time".into() };
        match next {
            Some(FakeSend::LostBefore) => return Err(lost()),
            Some(FakeSend::NeverMade) => {
                self.take_draft(key);
                return Err(lost());
            }
            Some(FakeSend::Refused) => {
                return Err(SendError::Refused(MailError::Refused { status: Some(400), reason: "bad".into() }));
            }
            Some(FakeSend::SentWithoutAnswer) | None => {}
        }
        let draft = self.take_draft(key).expect("a draft can be sent once");
        assert_eq!(draft.text, out.text);
        self.sent.lock().unwrap().push(out.clone());
        if next.is_some() { Err(lost()) } else { Ok(Sent { id: Some(MailId::new("sent-1")), ..Sent::default() }) }
    }

    async fn find(&self, out: &Outgoing) -> Result<Found, MailError> {
        if self.sent.lock().unwrap().iter().any(|sent| sent.key == out.key) {
            return Ok(match self.cannot_tell.load(Ordering::Relaxed) {
                true => Found::Unknown { why: "there is no copy".into() },
                false => Found::Sent(Sent::default()),
            });
        }
        let is_draft = self.drafts.lock().unwrap().iter().any(|draft| draft.key == out.key);
        Ok(if is_draft { Found::Draft(Prepared { draft: Some(out.key.clone()) }) } else { Found::Nothing })
    }

    async fn discard(&self, out: &Outgoing) -> Result<(), MailError> {
        self.failed()?;
        self.take_draft(&out.key);
        Ok(())
    }

    async fn answered_by_hand(&self, mail: &Incoming) -> Result<Option<AnswerByHand>, MailError> {
        self.failed()?;
        let answers = self.by_hand.lock().unwrap();
        let found = answers.iter().find(|(message_id, _)| mail.message_id.as_ref() == Some(message_id));
        Ok(found.map(|(_, answer)| answer.clone()))
    }

    async fn mark(&self, id: &MailId, handled: Handled) -> Result<(), MailError> {
        self.marks.lock().unwrap().push((id.to_string(), handled));
        Ok(())
    }

    async fn check(&self) -> Result<String, MailError> {
        Ok("fake".into())
    }
}

/// Sources of context that return what the test says.
#[derive(Debug, Default)]
pub(crate) struct FakeLookup {
    pub(crate) found: Mutex<LookedUp>,
    pub(crate) contact: Mutex<Option<Result<Option<KnownContact>, LookupError>>>,
    pub(crate) slots: Mutex<Option<Result<Vec<FreeSlot>, LookupError>>>,
    pub(crate) asked: Mutex<Vec<String>>,
    /// The usage of each text that is remembered.
    pub(crate) embedding: Mutex<Option<countersign_graph::store::Usage>>,
}

#[async_trait]
impl MailLookup for FakeLookup {
    async fn gather(&self, about: &About<'_>) -> LookedUp {
        self.asked.lock().unwrap().push(format!("gather, events: {}", about.with_events));
        self.found.lock().unwrap().clone()
    }

    async fn contact(&self, address: &Address) -> Result<Option<KnownContact>, LookupError> {
        self.asked.lock().unwrap().push(format!("contact {}", address.address));
        self.contact.lock().unwrap().clone().unwrap_or(Ok(None))
    }

    async fn free_slots(&self, _: Timestamp, days: u32) -> Result<Vec<FreeSlot>, LookupError> {
        self.asked.lock().unwrap().push(format!("free slots of {days} days"));
        self.slots.lock().unwrap().clone().unwrap_or(Ok(Vec::new()))
    }

    async fn seen(&self, sender: &Address, _: Timestamp) -> Result<(), LookupError> {
        self.asked.lock().unwrap().push(format!("seen {}", sender.address));
        Ok(())
    }

    async fn remember(
        &self,
        mail: &Mail,
        answer: Option<&str>,
    ) -> Result<Option<countersign_graph::store::Usage>, LookupError> {
        let with = if answer.is_some() { " with its answer" } else { "" };
        self.asked.lock().unwrap().push(format!("remember {}{with}", mail.id));
        Ok(self.embedding.lock().unwrap().clone())
    }

    async fn forget(&self, mail: &MailId) -> Result<(), LookupError> {
        self.asked.lock().unwrap().push(format!("forget {mail}"));
        Ok(())
    }
}

/// A channel that keeps the messages that begin threads.
#[derive(Debug, Default)]
pub(crate) struct FakeRoots {
    pub(crate) posted: Mutex<Vec<(Nonce, String)>>,
    pub(crate) removed: Mutex<Vec<MessageTs>>,
    pub(crate) failure: Mutex<Option<PostError>>,
}

#[async_trait]
impl Roots for FakeRoots {
    async fn post(
        &self,
        message: &Reply,
        nonce: &Nonce,
        _: Timestamp,
        may_exist: bool,
    ) -> Result<MessageTs, PostError> {
        let mut posted = self.posted.lock().unwrap();
        let known = posted.iter().position(|(known, _)| known == nonce);
        assert!(may_exist || known.is_none(), "a message that may exist is searched for");
        let at = known.unwrap_or_else(|| {
            posted.push((nonce.clone(), message.words()));
            posted.len() - 1
        });
        match self.failure.lock().unwrap().take() {
            Some(failure) => Err(failure), // the message was posted, and the answer was lost
            None => Ok(MessageTs::new(format!("17000000{at:02}.000100"))),
        }
    }

    async fn remove(&self, message: &MessageTs) {
        self.removed.lock().unwrap().push(message.clone());
    }

    fn link(&self, thread: &ThreadId) -> Option<String> {
        Some(format!("https://slack.example/{}", thread.root))
    }
}

/// Everybody may ask, and approve.
#[derive(Debug)]
pub(super) struct Everybody;

#[async_trait]
impl Admission for Everybody {
    async fn admits(&self, _: &ThreadId, _: &UserId, _: &MessageTs) -> Admits {
        Admits::Yes
    }
}

#[async_trait]
impl Entitled for Everybody {
    async fn who_may_approve(&self, _: &ActionRecord, people: &[UserId]) -> Vec<UserId> {
        people.to_vec()
    }

    async fn lapses(&self, _: &ActionRecord) -> Vec<Lapse> {
        Vec::new()
    }
}
