//! The node that answers people who talk about the mail in its thread.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::{
    cause::chain,
    ids::UserId,
    reply::{Reply, Text},
};
use countersign_graph::{
    action::ActionRecord,
    node::{Context, Node, NodeError, Step},
    store::{ActionFilter, Usage},
};
use countersign_mail::Mail;
use countersign_model::Purpose;
use countersign_understanding::{asked::AskedWords, claims::claims};
use serde_json::{Value, json};

use super::{
    super::{
        ask_model::{Question, ask},
        card::shown_text,
        deps::Deps,
        heading::{self, HeadingOrder},
        register::{EarlierAnswer, Entry, MailStatus},
        replies::{self, Possible},
        rules::{Class, cut},
        send, spam,
        state::{Cause, MailState},
        talk::{Nearest, Wish, names_spam, nearest, parse_about},
    },
    data_of,
    generate::Generate,
    not_spam,
    review::Review,
    update_entry,
};

/// The maximum duration of a question to the model.
const MAX_DURATION: Duration = Duration::from_secs(30);

/// The maximum duration of the lookup of a contact.
const MAX_LOOKUP: Duration = Duration::from_secs(10);

/// The number of newest mails among which the earlier ones of a sender are looked for.
const MAX_EARLIER: usize = 1_000;

/// The maximum number of actions of a thread that are read.
const MAX_SENDS: usize = 50;

/// The maximum length of an answer, in characters.
const MAX_ANSWER_CHARS: usize = 2_000;

/// The node that talks.
pub(in super::super) struct Talk(Arc<Deps>);

/// The meaning of a message, or an answer to it.
enum Meaning {
    Wish(Wish),
    Answer(Reply),
}

impl Talk {
    /// The name of the node.
    pub(in super::super) const NAME: &'static str = "talk";

    /// Creates the node.
    pub(in super::super) fn new(deps: Arc<Deps>) -> Self {
        Self(deps)
    }

    async fn answers(&self, mail: &Mail) -> Vec<EarlierAnswer> {
        let Some(sender) = mail.sender() else { return Vec::new() };
        let answers = self.0.book.answers_to(&sender.address).await;
        answers.unwrap_or_else(|error| {
            tracing::warn!(error = chain(&error), "Cannot read the earlier answers");
            Vec::new()
        })
    }

    /// Returns the other mails of the sender that came before, the newest first.
    async fn earlier(&self, mail: &Mail) -> Vec<Entry> {
        let newest = self.0.book.newest(MAX_EARLIER).await.unwrap_or_else(|error| {
            tracing::warn!(error = chain(&error), "Cannot read the list of mails");
            Vec::new()
        });
        let sender = mail.sender().map(|sender| sender.address.as_str());
        let is_earlier = |entry: &Entry| {
            let is_theirs =
                entry.sender.as_deref().zip(sender).is_some_and(|(one, other)| one.eq_ignore_ascii_case(other));
            is_theirs && entry.mail != mail.id && entry.received_at <= mail.received_at
        };
        newest.into_iter().filter(is_earlier).collect()
    }

    /// Returns the replies of the thread that were proposed, the newest first.
    async fn sends(&self, context: &Context) -> Vec<ActionRecord> {
        let filter = ActionFilter::of(&context.thread, &[], MAX_SENDS);
        let mut records = self.0.book.store().actions(&filter).await.unwrap_or_else(|error| {
            tracing::warn!(error = chain(&error), "Cannot read the replies of a thread");
            Vec::new()
        });
        records.retain(|record| record.name == send::NAME);
        records
    }

    /// Returns the contact of the sender as it is now; if that cannot be read, as it was when the mail arrived. A sender
    /// who was a stranger stays one: the contact that the mail itself made says nothing about them.
    async fn contact(&self, state: &MailState, mail: &Mail) -> Option<Text> {
        let earlier = state.shown_contact.clone()?;
        let Some(sender) = mail.sender() else { return Some(earlier) };
        match tokio::time::timeout(MAX_LOOKUP, self.0.lookup.contact(sender)).await {
            Ok(Ok(contact)) => contact.map(|contact| contact.shown),
            Ok(Err(error)) => {
                tracing::warn!(error = chain(&error), "Cannot read the contact of a sender");
                Some(earlier)
            }
            Err(_) => {
                tracing::warn!("The contact of a sender was not read in time");
                Some(earlier)
            }
        }
    }

    fn possible(&self, state: &MailState, context: &Context) -> Possible {
        Possible {
            has_writer: self.0.writer.is_some(),
            is_answered: state.is_answered,
            is_on_card: send::on_card(&context.open).is_some(),
        }
    }

    /// Asks the model what a message means that is none of the documented phrases.
    async fn meaning(&self, state: &MailState, mail: &Mail, said: &str, context: &Context) -> (Meaning, Option<Usage>) {
        let not_understood = || Meaning::Answer(replies::not_understood(self.possible(state, context)));
        let Some(model) = &self.0.writer else {
            let near = match nearest(said) {
                Some(Nearest::Wish(wish)) => Meaning::Wish(wish),
                Some(Nearest::Asked { question, options }) => {
                    Meaning::Answer(replies::which_is_meant(question, &options))
                }
                None => not_understood(),
            };
            return (near, None);
        };
        let question = Question {
            purpose: Purpose::Generate,
            instructions: include_str!("../prompts/talk.md"),
            situation: json!({
                "colleague_says": said, "mail": data_of(mail), "draft": state.draft_response, "class": state.class(),
                "contact": state.contact, "context": state.context,
            }),
            name: "meaning",
            schema: schema(),
            max_tokens: 800,
        };
        let answer = match ask(&**model, question, MAX_DURATION).await {
            Ok(answer) => answer,
            Err(_) => return (not_understood(), None),
        };
        let value = answer.value.unwrap_or_default();
        let meaning = match value["meaning"].as_str() {
            // Mail can ask the model for anything; only the colleague's own words ask for a change.
            Some("another_draft") if !AskedWords::of(said).is_look() => {
                Meaning::Wish(Wish::AnotherDraft(Some(said.to_owned())))
            }
            Some("who") => Meaning::Wish(Wish::Who),
            Some("last_answer") => Meaning::Wish(Wish::LastAnswer),
            Some("spam") if names_spam(said) => Meaning::Wish(Wish::Spam),
            Some("not_spam") if names_spam(said) => Meaning::Wish(Wish::NotSpam),
            Some("question") if value["answer"].as_str().is_some_and(|answer| !answer.trim().is_empty()) => {
                let words = cut(value["answer"].as_str().unwrap_or_default(), MAX_ANSWER_CHARS);
                // Only the thread's own messages tell what was done.
                match claims(&words).iter().any(|claim| claim.is_own) {
                    true => Meaning::Answer(replies::nothing_was_changed()),
                    false => Meaning::Answer(Reply::markdown(words)),
                }
            }
            _ => not_understood(),
        };
        (meaning, Some(answer.usage))
    }

    async fn fulfil(
        &self,
        mut state: MailState,
        mail: &Mail,
        wish: Wish,
        (by, context): (&UserId, &Context),
    ) -> Step<MailState> {
        match wish {
            Wish::AnotherDraft(changes) => self.another_draft(state, mail, changes, (by, context)).await,
            Wish::Who if let Some(us) = mail.sender().filter(|sender| self.0.account.is_us(&sender.address)) => {
                Step::end(state).say(replies::who_is_us(us))
            }
            Wish::Who => {
                let contact = self.contact(&state, mail).await;
                let reply = replies::who(mail, contact, &self.answers(mail).await);
                Step::end(state).say(reply)
            }
            Wish::LastAnswer => {
                let reply = replies::last_answer(mail.sender(), &self.answers(mail).await);
                Step::end(state).say(reply)
            }
            Wish::Earlier => Step::end(state).say(replies::earlier_mails(mail.sender(), &self.earlier(mail).await)),
            Wish::Sent => {
                let reply = replies::sent(mail, &self.sends(context).await, self.entry(mail).await.as_ref());
                Step::end(state).say(reply)
            }
            Wish::Recipients => Step::end(state).say(replies::recipients(mail, &self.sends(context).await)),
            Wish::Class => {
                let is_spam = self.entry(mail).await.is_some_and(|entry| entry.is_spam);
                let reply = replies::classified(state.class(), state.confidence, state.classified_by, is_spam);
                Step::end(state).say(reply)
            }
            Wish::NotSpam => self.not_spam(state, mail, context).await,
            Wish::Why => {
                let why = self.entry(mail).await.and_then(|entry| entry.why);
                Step::end(state).say(replies::why_waiting(why.as_deref()))
            }
            Wish::Content => Step::end(state).say(replies::content(mail)),
            Wish::Say(text) => Step::end(state).say(Reply::text(text)),
            Wish::Inbox => Step::end(state).say(replies::other_mails()),
            Wish::Sending => {
                let reply = replies::sending(self.possible(&state, context));
                Step::end(state).say(reply)
            }
            Wish::Spam if self.entry(mail).await.is_some_and(|entry| entry.is_spam) => {
                Step::end(state).say(replies::already_spam())
            }
            Wish::Help => {
                let reply = replies::help(self.possible(&state, context));
                Step::end(state).say(reply)
            }
            Wish::Spam => {
                let sender = mail.sender().map(ToString::to_string).unwrap_or_default();
                let text = shown_text(mail);
                let parameters = json!({ "mail": mail.id, "subject": mail.subject, "sender": sender, "email": text });
                state.turn.cause = Cause::Request { action: spam::NAME.to_owned(), parameters };
                Step::go(state, Review::NAME)
            }
        }
    }

    /// Answers the statement that the mail is no spam. An answered mail gets no new card.
    async fn not_spam(&self, mut state: MailState, mail: &Mail, context: &Context) -> Step<MailState> {
        let is_marked = self.entry(mail).await.is_some_and(|entry| entry.is_spam);
        let is_asked = context.open.iter().any(|record| record.name == spam::NAME);
        if !is_marked && !is_asked && state.class() != Class::Spam {
            let reply = replies::classified(state.class(), state.confidence, state.classified_by, false);
            return Step::end(state).say(reply.hint("It isn't marked as spam."));
        }
        let next = not_spam(&self.0, &mut state, context.now).await;
        match state.is_answered {
            true => {
                let reply = replies::classified(state.class(), state.confidence, state.classified_by, false);
                Step::end(state).say(reply).post(heading::CHANNEL, HeadingOrder::body(&mail.id))
            }
            false => Step::go(state, next),
        }
    }

    async fn entry(&self, mail: &Mail) -> Option<Entry> {
        self.0.book.entry(&mail.id).await.unwrap_or_else(|error| {
            tracing::warn!(error = chain(&error), "Cannot read the list of mails");
            None
        })
    }

    /// Answers a request for another draft. Without a model there is none, but the last one can be shown again.
    async fn another_draft(
        &self,
        mut state: MailState,
        mail: &Mail,
        changes: Option<String>,
        (by, context): (&UserId, &Context),
    ) -> Step<MailState> {
        let has_draft = !state.draft_response.is_empty();
        let is_on_a_card = context.open.iter().any(|record| record.name == send::NAME);
        if self.entry(mail).await.is_some_and(|entry| entry.status == MailStatus::Sent) {
            return Step::end(state).say(replies::already_answered());
        }
        match (changes, self.0.writer.is_some()) {
            (None, true) if has_draft => {
                state.asked_for_changes = Some(by.clone());
                Step::end(state).say(replies::which_changes(by))
            }
            (changes, true) => self.redraft(state, changes, Generate::NAME).await,
            (_, false) if is_on_a_card => Step::end(state).say(replies::no_writer()),
            (Some(_), false) => Step::end(state).say(replies::no_writer_and_no_card()),
            (None, false) if has_draft => self.redraft(state, None, Review::NAME).await,
            // After spam that was not drafted, there is no draft to show.
            (None, false) => self.redraft(state, None, Generate::NAME).await,
        }
    }

    async fn redraft(&self, mut state: MailState, changes: Option<String>, node: &'static str) -> Step<MailState> {
        let now = self.0.clock.now();
        update_entry(&self.0, &state, |entry| entry.move_to(MailStatus::Processing, now)).await;
        state.turn.instruction = changes;
        Step::go(state, node)
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "meaning": {
                "type": "string",
                "enum": ["another_draft", "who", "last_answer", "spam", "not_spam", "question", "none"],
            },
            "answer": { "type": "string", "description": "The answer to a question; otherwise empty." },
        },
        "required": ["meaning", "answer"],
        "additionalProperties": false,
    })
}

#[async_trait]
impl Node<MailState> for Talk {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn status(&self) -> Option<&'static str> {
        Some("Reading your message…")
    }

    fn targets(&self) -> &'static [&'static str] {
        &[Generate::NAME, Review::NAME]
    }

    async fn run(&self, mut state: MailState, context: &Context) -> Result<Step<MailState>, NodeError> {
        let (Cause::Said(said), Some(by)) = (state.turn.cause.clone(), state.turn.by.clone()) else {
            return Ok(Step::end(state));
        };
        let Some(mail) = state.email.clone() else {
            return Ok(Step::end(state).say(replies::no_mail()));
        };
        let was_asked = state.asked_for_changes.take().is_some_and(|asked| asked == by);
        let (meaning, usage) = match parse_about(mail.sender(), &said) {
            Some(wish) => (Meaning::Wish(wish), None),
            None if was_asked => (Meaning::Wish(Wish::AnotherDraft(Some(said))), None),
            None => self.meaning(&state, &mail, &said, context).await,
        };
        Ok(match meaning {
            Meaning::Answer(reply) => Step::end(state).say(reply).cost(usage),
            Meaning::Wish(wish) => self.fulfil(state, &mail, wish, (&by, context)).await.cost(usage),
        })
    }
}
