//! The rights of people by the kind of their account, looked up in Slack when it matters.
//!
//! Full members of the workspace may decide and ask. Guests, people of other workspaces, bots and deactivated accounts
//! may not, unless the settings say so (`approvals.outsiders`, `slack.outsiders`). Slack's answer is good for seconds.
//! Where it gives none, nothing counts.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use countersign_config as config;
use countersign_core::{
    clock::{Clock, Timestamp},
    ids::{MessageTs, ThreadId, UserId},
    reply::Reply,
};
use countersign_graph::admission::{Admission, Admits};
use countersign_slack::{Identity, account, client::SlackClient, client_error::Error};
use tokio::time::timeout;

use crate::presentation::render;

/// The age of an answer on which a decision may rest.
const MAX_AGE_FOR_DECISION: Duration = Duration::from_secs(10);

/// The age of an answer that is good enough for a question.
const MAX_AGE_FOR_QUESTION: Duration = Duration::from_secs(60);

/// The time a person who decides waits; a submitted window is answered within two seconds.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(1500);

/// The time a request waits for Slack to identify the person before they are told that it does not.
const SILENT_WAIT: Duration = Duration::from_secs(30);

/// The time a request waits while even that reply does not arrive.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// The number of accounts that are remembered.
const MAX_ACCOUNTS: usize = 1000;

/// The user that posts for Slack itself.
const SLACKBOT: &str = "USLACKBOT";

/// The rights that a person may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Make a decision count: approve, reject, edit, withdraw, settle.
    Decide,
    /// Ask for something, or look something up.
    Ask,
    /// See everything on a card, or stop an action in progress; either of the other two gives this right.
    Participate,
}

/// The reasons why a person has no rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountDenial {
    /// The person is a guest.
    Guest,
    /// The person belongs to another workspace.
    External,
    /// The account is an app's.
    Bot,
    /// The account is deactivated.
    Deactivated,
    /// Slack does not give the kind of account, and will not.
    NotLookedUp,
    /// Slack did not answer, but may later.
    Unanswered,
}

impl AccountDenial {
    /// Returns the word for the record.
    pub fn word(self) -> &'static str {
        match self {
            Self::Guest => "guest account",
            Self::External => "another workspace",
            Self::Bot => "bot account",
            Self::Deactivated => "deactivated account",
            Self::NotLookedUp | Self::Unanswered => "account not looked up",
        }
    }

    /// Returns true if Slack did not give the kind of account.
    pub fn is_unknown(self) -> bool {
        matches!(self, Self::NotLookedUp | Self::Unanswered)
    }

    /// Returns the word in the settings; `None` if no setting allows it.
    fn setting(self) -> Option<&'static str> {
        match self {
            Self::Guest => Some("guests"),
            Self::External => Some("external"),
            Self::Bot => Some("bots"),
            Self::Deactivated => Some("deactivated"),
            Self::NotLookedUp | Self::Unanswered => None,
        }
    }

    /// Returns the reply to a person whose decision does not count.
    pub fn may_not_decide(self) -> Reply {
        let who = match self {
            Self::NotLookedUp | Self::Unanswered => {
                return Reply::text(
                    "I couldn't check your account with Slack, so this didn't count. Nothing was changed.",
                )
                .hint("Try again in a moment.");
            }
            Self::Guest => "You're a guest here",
            Self::External => "You belong to another workspace",
            Self::Bot => "This is a bot's account",
            Self::Deactivated => "This account is deactivated",
        };
        Reply::text(format!("{who}. Only full members of this workspace can decide, so this didn't count."))
            .hint("Ask a member to decide.")
    }

    /// Returns the reply to a person whose question is turned away.
    pub fn may_not_ask(self) -> Reply {
        let who = match self {
            Self::NotLookedUp | Self::Unanswered => {
                return Reply::text("I couldn't check your account with Slack, so I did nothing.")
                    .hint("Ask again in a moment.");
            }
            Self::Guest => "You're a guest here",
            Self::External => "You belong to another workspace",
            Self::Bot => "This is a bot's account",
            Self::Deactivated => "This account is deactivated",
        };
        Reply::text(format!("{who}. I only work for full members of this workspace, so I did nothing."))
            .hint("Ask a member to do this for you.")
    }
}

/// The lookup of people's accounts and rights.
#[derive(Clone)]
pub struct People(Arc<Inner>);

struct Inner {
    slack: SlackClient,
    clock: Arc<dyn Clock>,
    us: Identity,
    deciding: Vec<String>,
    asking: Vec<String>,
    known: Mutex<HashMap<UserId, (Option<AccountDenial>, Timestamp)>>,
}

impl fmt::Debug for People {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("People").field("us", &self.0.us).finish_non_exhaustive()
    }
}

impl People {
    /// Creates the lookup for the bot's workspace, with the rights that the settings give to others than its members.
    pub fn new(slack: SlackClient, clock: Arc<dyn Clock>, us: Identity, settings: &config::Config) -> Self {
        let (deciding, asking) = (settings.approvals.outsiders.clone(), settings.slack.outsiders.clone());
        Self(Arc::new(Inner { slack, clock, us, deciding, asking, known: Mutex::default() }))
    }

    /// Returns `Ok` if a person has a right.
    ///
    /// # Errors
    ///
    /// The reason why not.
    pub async fn may(&self, user: &UserId, right: Right) -> Result<(), AccountDenial> {
        let inner = &self.0;
        if *user == inner.us.user {
            return Err(AccountDenial::Bot); // whatever the settings say, it does not answer itself
        }
        let outside = match right {
            Right::Decide => self.account_denial(user, MAX_AGE_FOR_DECISION).await,
            Right::Ask | Right::Participate => self.account_denial(user, MAX_AGE_FOR_QUESTION).await,
        };
        let Some(outside) = outside else { return Ok(()) };
        let named = |list: &[String]| outside.setting().is_some_and(|word| list.iter().any(|named| named == word));
        let allowed = match right {
            Right::Decide => named(&inner.deciding),
            Right::Ask => named(&inner.asking),
            Right::Participate => named(&inner.deciding) || named(&inner.asking),
        };
        if allowed { Ok(()) } else { Err(outside) }
    }

    /// Returns the reason why a person is no full member; `None` if they are.
    async fn account_denial(&self, user: &UserId, max_age: Duration) -> Option<AccountDenial> {
        let inner = &self.0;
        if user.as_str() == SLACKBOT {
            return Some(AccountDenial::Bot);
        }
        let asked = inner.clock.now();
        let known = inner.known.lock().expect("no holder panics").get(user).copied();
        if let Some((outside, at)) = known
            && asked.since(at) < max_age
        {
            return outside;
        }
        let looked_up =
            timeout(LOOKUP_TIMEOUT, inner.slack.user_info(user)).await.unwrap_or(Err(Error::NoAnswer("too slow")));
        let outside = match looked_up {
            Ok(person) => self.denial_for(&person),
            // Whom Slack does not show to us is nobody of this workspace.
            Err(Error::Gone { code } | Error::Refused { code })
                if matches!(code.as_str(), "user_not_found" | "user_not_visible" | "users_not_found") =>
            {
                Some(AccountDenial::External)
            }
            Err(error) => {
                tracing::warn!(
                    error = countersign_core::cause::chain(&error),
                    "Cannot look up what kind of account somebody has"
                );
                return Some(if error.is_final() { AccountDenial::NotLookedUp } else { AccountDenial::Unanswered });
            }
        };
        if outside != Some(AccountDenial::NotLookedUp) {
            let mut known = inner.known.lock().expect("no holder panics");
            if known.len() >= MAX_ACCOUNTS {
                known.clear();
            }
            known.insert(user.clone(), (outside, asked));
        }
        outside
    }

    /// Returns the kind of an account that is no full member's; `None` for a full member's.
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
    async fn admits(&self, thread: &ThreadId, by: &UserId, said: &MessageTs) -> Admits {
        let Err(outside) = self.may(by, Right::Ask).await else { return Admits::Yes };
        let waited = said.sent_at().map_or(MAX_WAIT, |said| self.0.clock.now().since(said));
        if outside == AccountDenial::Unanswered && waited < SILENT_WAIT {
            return Admits::Later;
        }
        let message = render::reply(&outside.may_not_ask());
        match self.0.slack.post_ephemeral(&thread.channel, Some(&thread.root), by, &message).await {
            Err(error) if !error.is_final() && waited < MAX_WAIT => Admits::Later,
            Err(error) => {
                tracing::warn!(error = countersign_core::cause::chain(&error), "A private answer was not delivered");
                Admits::No(outside.word())
            }
            Ok(()) => Admits::No(outside.word()),
        }
    }
}
