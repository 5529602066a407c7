//! The rights of people, which depend on the kind of their account in Slack.
//!
//! Full members of the workspace may decide and ask. Guests, people of other workspaces, bots and
//! deactivated accounts may not, unless the settings allow it (`approvals.outsiders`,
//! `slack.outsiders`). Slack's answers are cached for seconds. Without an answer, no decision
//! counts.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_config as config;
use countersign_core::{
    cause,
    clock::{Clock, Timestamp},
    ids::{MessageTs, ThreadId, UserId},
    recent::Recent,
    reply::Reply,
};
use countersign_graph::admission::{Admission, Admits};
use countersign_slack::{Identity, account, client::SlackClient, client_error::Error};
use tokio::time::timeout;

use crate::presentation::render;

/// The maximum age of an answer that is used for a decision.
const MAX_AGE_FOR_DECISION: Duration = Duration::from_secs(10);

/// The maximum age of an answer that is used for a question.
const MAX_AGE_FOR_QUESTION: Duration = Duration::from_secs(60);

/// The time-out of a lookup. It must be less than two seconds, in which a submitted window has to
/// be answered.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(1500);

/// The time for which a request waits for Slack to identify the person, before they get a reply
/// that this failed.
const IDENTIFICATION_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum time for which a request waits if even this reply cannot be delivered.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// The maximum number of accounts that are cached. If there are more, all are removed.
const MAX_ACCOUNTS: usize = 1000;

/// The user that posts for Slack itself.
const SLACKBOT: &str = "USLACKBOT";

/// The rights that a person may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Decide: approve, reject, edit, withdraw, settle.
    Decide,
    /// Ask for something, or look something up.
    Ask,
    /// See everything on a card, or stop an action in progress. Each of the other two rights
    /// includes this one.
    Participate,
}

/// The reasons why a person has no rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountDenial {
    /// The person is a guest.
    Guest,
    /// The person belongs to another workspace.
    External,
    /// The account belongs to an app.
    Bot,
    /// The account is deactivated.
    Deactivated,
    /// Slack does not return the kind of account, and a retry would not help.
    NotLookedUp,
    /// Slack did not answer, and a retry may help.
    Unanswered,
}

impl AccountDenial {
    /// Returns the phrase that is stored in the audit trail.
    pub fn word(self) -> &'static str {
        match self {
            Self::Guest => "guest account",
            Self::External => "another workspace",
            Self::Bot => "bot account",
            Self::Deactivated => "deactivated account",
            Self::NotLookedUp | Self::Unanswered => "account not looked up",
        }
    }

    /// Returns true if Slack did not return the kind of account.
    pub fn is_unknown(self) -> bool {
        matches!(self, Self::NotLookedUp | Self::Unanswered)
    }

    /// Returns the word that allows this account in the settings; `None` if no setting does.
    fn setting(self) -> Option<&'static str> {
        match self {
            Self::Guest => Some("guests"),
            Self::External => Some("external"),
            Self::Bot => Some("bots"),
            Self::Deactivated => Some("deactivated"),
            Self::NotLookedUp | Self::Unanswered => None,
        }
    }

    /// Describes the account to its owner; `None` if Slack did not return its kind.
    fn in_words(self) -> Option<&'static str> {
        match self {
            Self::Guest => Some("You're a guest here"),
            Self::External => Some("You belong to another workspace"),
            Self::Bot => Some("This is a bot's account"),
            Self::Deactivated => Some("This account is deactivated"),
            Self::NotLookedUp | Self::Unanswered => None,
        }
    }

    /// Returns the reply to a person whose decision does not count.
    pub fn may_not_decide(self) -> Reply {
        let Some(who) = self.in_words() else {
            let text = "I couldn't check your account with Slack, so this didn't count. Nothing was changed.";
            return Reply::text(text).hint("Try again in a moment.");
        };
        Reply::text(format!("{who}. Only full members of this workspace can decide, so this didn't count."))
            .hint("Ask a member to decide.")
    }

    /// Returns the reply to a person whose request is refused.
    pub fn may_not_ask(self) -> Reply {
        let Some(who) = self.in_words() else {
            return Reply::text("I couldn't check your account with Slack. Nothing was changed.")
                .hint("Ask again in a moment.");
        };
        Reply::text(format!("{who}. I only work for full members of this workspace, so nothing was changed."))
            .hint("Ask a member to do this for you.")
    }

    /// Returns the reply to a person who does not have this right.
    pub fn refusal(self, right: Right) -> Reply {
        match right {
            Right::Ask => self.may_not_ask(),
            Right::Decide | Right::Participate => self.may_not_decide(),
        }
    }
}

/// A cached lookup of people's accounts and rights.
#[derive(Clone)]
pub struct People(Arc<Inner>);

struct Inner {
    slack: SlackClient,
    clock: Arc<dyn Clock>,
    us: Identity,
    deciding: Vec<String>,
    asking: Vec<String>,
    /// The known accounts, with the times of the lookups.
    known: Recent<UserId, (KnownAccount, Timestamp)>,
}

/// A cached account.
#[derive(Clone, Debug)]
struct KnownAccount {
    /// The reason why the person is not a full member; `None` if they are.
    denial: Option<AccountDenial>,
    /// The person's time zone.
    zone: Option<String>,
}

impl fmt::Debug for People {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("People").field("us", &self.0.us).finish_non_exhaustive()
    }
}

impl People {
    /// Creates the lookup for the bot's workspace, with the rights that the settings grant to
    /// people who are not members.
    pub fn new(slack: SlackClient, clock: Arc<dyn Clock>, us: Identity, settings: &config::Config) -> Self {
        let (deciding, asking) = (settings.approvals.outsiders.clone(), settings.slack.outsiders.clone());
        Self(Arc::new(Inner { slack, clock, us, deciding, asking, known: Recent::new(MAX_ACCOUNTS) }))
    }

    /// Returns true for the bot itself.
    pub fn is_us(&self, user: &UserId) -> bool {
        *user == self.0.us.user
    }

    /// Returns `Ok` if the person has the right.
    ///
    /// # Errors
    ///
    /// The reason why they do not have it.
    pub async fn may(&self, user: &UserId, right: Right) -> Result<(), AccountDenial> {
        match self.known_right(user, right) {
            Some(known) => known,
            None => self.judge(self.look_up(user).await, right),
        }
    }

    /// Returns the answer of [`Self::may`] if the account need not be looked up.
    pub fn known_right(&self, user: &UserId, right: Right) -> Option<Result<(), AccountDenial>> {
        let inner = &self.0;
        if self.is_us(user) {
            return Some(Err(AccountDenial::Bot)); // the bot does not answer itself, whatever the settings are
        }
        if user.as_str() == SLACKBOT {
            return Some(self.judge(Some(AccountDenial::Bot), right));
        }
        let max_age = match right {
            Right::Decide => MAX_AGE_FOR_DECISION,
            Right::Ask | Right::Participate => MAX_AGE_FOR_QUESTION,
        };
        let known = inner.known.younger(user, max_age, inner.clock.now());
        known.map(|KnownAccount { denial, .. }| self.judge(denial, right))
    }

    /// Returns `Ok` if an account that is not a full member's for this reason has the right; without a reason, it is a
    /// full member's.
    fn judge(&self, denial: Option<AccountDenial>, right: Right) -> Result<(), AccountDenial> {
        let inner = &self.0;
        let Some(denial) = denial else { return Ok(()) };
        let named = |list: &[String]| denial.setting().is_some_and(|word| list.iter().any(|named| named == word));
        let allowed = match right {
            Right::Decide => named(&inner.deciding),
            Right::Ask => named(&inner.asking),
            Right::Participate => named(&inner.deciding) || named(&inner.asking),
        };
        if allowed { Ok(()) } else { Err(denial) }
    }

    /// Looks up the reason why a person is not a full member; `None` if they are.
    async fn look_up(&self, user: &UserId) -> Option<AccountDenial> {
        let inner = &self.0;
        let asked = inner.clock.now();
        let looked_up =
            timeout(LOOKUP_TIMEOUT, inner.slack.user_info(user)).await.unwrap_or(Err(Error::NoAnswer("too slow")));
        let zone = looked_up.as_ref().ok().and_then(|person| person.tz.clone());
        let denial = match looked_up {
            Ok(person) => self.denial_for(&person),
            // Slack does not show this person to the bot, so they are not a member of this workspace.
            Err(Error::Gone { code } | Error::Refused { code })
                if matches!(code.as_str(), "user_not_found" | "user_not_visible" | "users_not_found") =>
            {
                Some(AccountDenial::External)
            }
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), "Cannot look up the kind of a person's account");
                return Some(if error.is_final() { AccountDenial::NotLookedUp } else { AccountDenial::Unanswered });
            }
        };
        // What could not be found out is not remembered, so that the next press asks again.
        if denial != Some(AccountDenial::NotLookedUp) {
            inner.known.set(user.clone(), (KnownAccount { denial, zone }, asked));
        }
        denial
    }

    /// Returns the kind of an account if it is not a full member's; `None` for a full member's.
    fn denial_for(&self, person: &account::Person) -> Option<AccountDenial> {
        let us = &self.0.us;
        let in_team = us.team.as_ref().map(|team| person.teams.contains(team));
        let in_enterprise = us.enterprise.as_ref().map(|ours| person.enterprise.as_ref() == Some(ours));
        match in_team.or(in_enterprise) {
            _ if person.deleted => Some(AccountDenial::Deactivated),
            _ if person.is_bot => Some(AccountDenial::Bot),
            _ if person.is_stranger => Some(AccountDenial::External),
            Some(false) if person.teams.is_empty() => Some(AccountDenial::NotLookedUp),
            Some(false) => Some(AccountDenial::External),
            _ if person.is_guest => Some(AccountDenial::Guest),
            Some(true) => None,
            None => Some(AccountDenial::NotLookedUp),
        }
    }
}

#[async_trait]
impl Admission for People {
    /// Returns the time zone from the last lookup of the account, without another one.
    async fn zone(&self, by: &UserId) -> Option<String> {
        self.0.known.get(by)?.0.zone
    }

    async fn admits(&self, thread: &ThreadId, by: &UserId, said: &MessageTs) -> Admits {
        let Err(denial) = self.may(by, Right::Ask).await else { return Admits::Yes };
        // Otherwise a request would wait as long as Slack is away, and the person would not know.
        let waited = said.sent_at().map_or(MAX_WAIT, |said| self.0.clock.now().since(said));
        if denial == AccountDenial::Unanswered && waited < IDENTIFICATION_TIMEOUT {
            return Admits::Later;
        }
        let message = render::reply(&denial.may_not_ask());
        match self.0.slack.post_ephemeral(&thread.channel, Some(&thread.root), by, &message).await {
            Err(error) if !error.is_final() && waited < MAX_WAIT => Admits::Later,
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), "A private answer was not delivered");
                Admits::No(denial.word())
            }
            Ok(()) => Admits::No(denial.word()),
        }
    }
}
