//! Answers that are sent without a person, because the operator decided so in the settings.
//!
//! It is a decision made in advance, like a standing approval, and it is recorded like one: the record of the action is
//! stored as approved under the setting's name, with its allowance and the part that is used. A node only says that the
//! rules ask for nobody ([`super::rules::reasons`]); the allowance is checked and spent here, when the engine makes the
//! record, in the settings of that moment.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::{
    clock::{Clock, Timestamp},
    ids::RunId,
    reply::Text,
};
use countersign_graph::{
    action::{ActionRecord, Scope},
    digest::Digest,
    standing::{Spent, StandingApprovals, Under},
    store::{Error, TypedRegister},
};
use countersign_mail::MailId;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    register::{MailRegister, MailStatus},
    rules::{AutomaticSettings, Class, Used},
    send::{self, SendParameters},
    why::Why,
};

/// The setting that decides, as it is named in the record.
pub const SETTING: &str = "email.automatic";

/// The measure of a change that the rules let pass without a person: the class and its confidence.
const MEASURE: &str = "automatic_class";

/// An automatic answer that was allowed today.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Spending {
    mail: MailId,
    run: RunId,
    to: String,
}

/// The automatic answers of an account.
#[derive(Debug)]
pub struct AutomaticAnswers {
    book: MailRegister,
    clock: Arc<dyn Clock>,
    settings: AutomaticSettings,
    time_zone: TimeZone,
}

/// Marks a change as one that the rules let pass without a person.
pub(super) fn marked(scope: Scope, class: Class, confidence: f64) -> Scope {
    scope.measure(MEASURE, json!({ "class": class, "confidence": confidence }))
}

impl AutomaticAnswers {
    /// Creates the count of automatic answers. A day begins at midnight in `time_zone`.
    pub fn new(book: MailRegister, clock: Arc<dyn Clock>, settings: AutomaticSettings, time_zone: TimeZone) -> Self {
        Self { book, clock, settings, time_zone }
    }

    /// Returns the automatic answers of today.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering.
    pub async fn used(&self, address: &str, now: Timestamp) -> Result<Used, Error> {
        Ok(count(&self.register(now).load().await?.1, &hidden(address)))
    }

    /// Returns the register with the answers of a day.
    fn register(&self, now: Timestamp) -> TypedRegister<Vec<Spending>> {
        let day = jiff::Timestamp::from_millisecond(now.millis()).unwrap_or_default();
        let day = day.to_zoned(self.time_zone.clone()).date();
        self.book.register(&self.book.key("automatic", &day.to_string()))
    }

    /// Spends one answer. Returns the number used today with it, or the reason why a person decides.
    async fn take(&self, record: &ActionRecord, answer: &SendParameters) -> Result<Result<u32, Why>, Error> {
        let wanted = Spending { mail: answer.mail.clone(), run: record.run.clone(), to: hidden(&answer.to.address) };
        let register = self.register(self.clock.now());
        let AutomaticSettings { answers_a_day, answers_to_one_address, .. } = self.settings;
        let spent = register.change(|spent| {
            let used = count(spent, &wanted.to);
            let is_known = spent.iter().any(|known| known.mail == wanted.mail);
            let is_over = used.today >= answers_a_day || used.to_sender >= answers_to_one_address;
            if !is_known && !is_over {
                spent.push(wanted.clone());
            }
            spent.clone()
        });
        let spent = spent.await?;
        if let Some(at) = spent.iter().position(|known| *known == wanted) {
            return Ok(Ok(u32::try_from(at + 1).unwrap_or(u32::MAX))); // also if this run has spent it before
        }
        let used = count(&spent, &wanted.to);
        Ok(Err(match () {
            () if spent.iter().any(|known| known.mail == wanted.mail) => Why::HadOne,
            () if used.today >= answers_a_day => Why::DayLimit { limit: answers_a_day },
            () => Why::AddressLimit { limit: answers_to_one_address },
        }))
    }

    /// Notes that a person decides after all.
    async fn needs_review(&self, mail: &MailId) {
        let now = self.clock.now();
        if let Err(error) = self.book.update(mail, |entry| entry.move_to(MailStatus::NeedsReview, now)).await {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot note that a mail needs a review");
        }
    }
}

#[async_trait]
impl StandingApprovals for AutomaticAnswers {
    async fn spend(&self, record: &ActionRecord) -> Spent {
        let marked = record.scope.measures.get(MEASURE).and_then(|values| values.first());
        let (Some(marked), true) = (marked, record.name == send::NAME) else { return Spent::Nothing { why: None } };
        let Ok(answer) = SendParameters::deserialize(&*record.parameters) else {
            return Spent::Nothing { why: None };
        };
        let class = Class::parse(marked["class"].as_str().unwrap_or_default());
        let threshold = self.settings.threshold_of(class);
        let is_sure = marked["confidence"].as_f64().is_some_and(|confidence| confidence >= threshold);
        let why = if !self.settings.is_on || !class.may_be_automatic() || !is_sure {
            Why::Off
        } else {
            match self.take(record, &answer).await {
                Ok(Ok(used)) => {
                    metrics::counter!("countersign_mail_automatic_total", "class" => class.as_str()).increment(1);
                    return Spent::Under(Under {
                        id: SETTING.to_owned(),
                        allows: self.allows(class, threshold),
                        granted_by: Vec::new(),
                        used: u64::from(used),
                        limit: u64::from(self.settings.answers_a_day),
                    });
                }
                Ok(Err(why)) => why,
                Err(error) => {
                    let error = countersign_core::cause::chain(&error);
                    tracing::warn!(error, "Cannot count the automatic answers, so a person decides");
                    Why::UsedUnknown
                }
            }
        };
        self.needs_review(&answer.mail).await;
        Spent::Nothing { why: Some(Text::from(format!("Waiting for review: {}", why.sentence()))) }
    }
}

impl AutomaticAnswers {
    fn allows(&self, class: Class, threshold: f64) -> String {
        let AutomaticSettings { answers_a_day, answers_to_one_address, .. } = self.settings;
        format!(
            "replies to emails of the class “{}” with a confidence of at least {threshold}, up to {answers_a_day} a day \
             and {answers_to_one_address} to one address",
            class.name()
        )
    }
}

fn count(spent: &[Spending], to: &str) -> Used {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Used { today: number(spent.len()), to_sender: number(spent.iter().filter(|known| known.to == to).count()) }
}

/// Returns the address as it is counted: not readable in the store.
fn hidden(address: &str) -> String {
    Digest::of(&[&json!(address.to_lowercase())]).as_str()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use countersign_core::clock::ManualClock;

    use super::*;
    use crate::tests::support::{TestStore, send_record};

    fn answers(store: &TestStore, settings: AutomaticSettings) -> AutomaticAnswers {
        let book = MailRegister::new(store.store.clone(), "us@example.com");
        AutomaticAnswers::new(book, Arc::new(ManualClock::default()), settings, TimeZone::UTC)
    }

    fn on() -> AutomaticSettings {
        AutomaticSettings { is_on: true, answers_a_day: 3, answers_to_one_address: 2, ..AutomaticSettings::default() }
    }

    fn record(mail: &str, to: &str, run: &str, class: Class, confidence: f64) -> ActionRecord {
        let mut record = send_record(mail, to, run);
        record.scope = marked(Scope::clone(&record.scope), class, confidence).into();
        record
    }

    fn used(spent: &Spent) -> Option<u64> {
        match spent {
            Spent::Under(under) => Some(under.used),
            Spent::Nothing { .. } => None,
        }
    }

    #[tokio::test]
    async fn the_setting_is_the_decision_in_the_record() {
        let store = TestStore::open();
        let spent = answers(&store, on()).spend(&record("m1", "dana@example.org", "r1", Class::Inquiry, 0.8)).await;
        let Spent::Under(under) = spent else { panic!("{spent:?}") };
        insta::assert_snapshot!(format!("{} {:?} {}/{}\n{}", under.id, under.granted_by, under.used, under.limit, under.allows), @r"
        email.automatic [] 1/3
        replies to emails of the class “inquiry” with a confidence of at least 0.8, up to 3 a day and 2 to one address
        ");
    }

    #[tokio::test]
    async fn a_repeated_step_spends_nothing_more() {
        let store = TestStore::open();
        let answers = answers(&store, on());
        let first = record("m1", "dana@example.org", "r1", Class::Inquiry, 0.9);
        assert_eq!(used(&answers.spend(&first).await), Some(1));
        assert_eq!(used(&answers.spend(&first).await), Some(1));
        let another_draft = record("m1", "dana@example.org", "r2", Class::Inquiry, 0.9);
        assert_eq!(used(&answers.spend(&another_draft).await), None, "one mail has one automatic answer");
    }

    #[tokio::test]
    async fn the_limits_hold() {
        let store = TestStore::open();
        let answers = answers(&store, on());
        let spend = |mail: &'static str, to: &'static str| {
            let answers = &answers;
            async move { used(&answers.spend(&record(mail, to, mail, Class::Inquiry, 0.9)).await) }
        };
        assert_eq!(spend("m1", "dana@example.org").await, Some(1));
        assert_eq!(spend("m2", "dana@example.org").await, Some(2));
        assert_eq!(spend("m3", "DANA@example.org").await, None, "two to one address");
        assert_eq!(spend("m4", "bo@example.org").await, Some(3));
        assert_eq!(spend("m5", "cy@example.org").await, None, "three a day");
    }

    #[tokio::test]
    async fn nothing_passes_that_the_settings_do_not_allow() {
        let store = TestStore::open();
        let off = answers(&store, AutomaticSettings::default());
        assert_eq!(used(&off.spend(&record("m1", "a@b.c", "r1", Class::Inquiry, 1.0)).await), None);
        let on = answers(&store, on());
        for (class, confidence) in [(Class::Complaint, 1.0), (Class::Spam, 1.0), (Class::Inquiry, 0.79999)] {
            assert_eq!(used(&on.spend(&record("m1", "a@b.c", "r1", class, confidence)).await), None, "{class}");
        }
        assert_eq!(on.spend(&send_record("m1", "a@b.c", "r1")).await, Spent::Nothing { why: None }, "not marked");
    }
}
