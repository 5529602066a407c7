//! The team's mail: its account, its context, its graph and its synchronization, as the settings say.
//!
//! The parts know nothing of each other: the graph ([`countersign_email`]) looks things up through a trait that
//! [`lookup`] joins with the context ([`countersign_context`]), and what people see ([`countersign_team_inbox`]) reads
//! the mails through one that [`shown_mails`] joins with the graph's list. [`account`] and [`context`] create the clients.
//!
//! Start at [`Mail::open`], which is called before the registry of capabilities is complete, then [`Mail::ready`], which
//! needs the rest of the bot.

pub mod account;
pub mod announcer;
mod channels;
pub mod context;
mod lookup;
pub(super) mod probe;
pub mod report;
mod retention;
mod shown_mails;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use countersign_config::{Config, Email};
use countersign_conversation::{
    presentation::{links::Links, names::Names},
    runtime::outbox::channel::Channel,
};
use countersign_core::{
    clock::Clock,
    ids::{ChannelId, TeamId, ThreadId, UserId, WorkerId},
};
use countersign_email::{
    automatic::AutomaticAnswers,
    deps::Deps,
    graph::{actions, mail_graph},
    register::MailRegister,
    rules::{AutomaticSettings, Class},
    state::MailState,
    sync::{MailSync, SyncControl, SyncDeps},
};
use countersign_graph::{action::ActionKind, definition::Graph, store::Store};
use countersign_mail::MailAccount;
use countersign_model::Model;
use countersign_slack::client::SlackClient;
use countersign_team_inbox::{
    TeamInbox,
    digest::{Digest, Schedule},
};
use jiff::{civil::Time, tz::TimeZone};

use self::{
    announcer::{ChannelAnnouncer, ChannelRoots},
    channels::{Carries, OrderChannel},
    context::Sources,
    lookup::ContextLookup,
    probe::MailProbe,
    report::MailMetrics,
    retention::MailRetention,
    shown_mails::ShownMails,
};
use super::supervision::{Task, task};

/// Returns the time after which a request to the mail account can no longer arrive. In the first half of it, requests may
/// be sent; the second half is the time limit of the last one.
fn in_flight(settings: &Email) -> Duration {
    settings.timeout * 2
}

/// Returns the time during which an answer without a response is looked for: as long as the request may still arrive,
/// twice.
pub fn settle_within(settings: &Email) -> Duration {
    in_flight(settings) * 2
}

/// The mail of the team: the parts that need nothing else of the bot.
pub struct Mail {
    account: Arc<dyn MailAccount>,
    sources: Sources,
    shown: Arc<ShownMails>,
    zone: TimeZone,
}

/// The mail of the team with its graph.
pub struct ReadyMail {
    mail: Mail,
    deps: Arc<Deps>,
}

/// The components of the bot that the tasks of mail need.
pub(super) struct TaskDeps {
    /// The workspace.
    pub(super) team: TeamId,
    /// The client that posts in the channel.
    pub(super) slack: SlackClient,
    /// The names of people.
    pub(super) names: Names,
    /// The name of this process.
    pub(super) holder: WorkerId,
    /// The function that wakes a thread.
    pub(super) wake: Arc<dyn Fn(ThreadId) + Send + Sync>,
}

/// Checks that the settings of mail are there as a whole, or not at all.
///
/// # Errors
///
/// The error lists what is missing.
pub fn ensure_complete(config: &Config) -> anyhow::Result<()> {
    let missing: Vec<String> = config.email.missing().iter().map(ToString::to_string).collect();
    if !missing.is_empty() {
        bail!("{}", missing.join("\n"));
    }
    Ok(())
}

/// Returns true if mail is set up.
pub fn is_set(config: &Config) -> bool {
    config.email.channel.is_some() && config.email.provider().is_some()
}

/// Returns the settings for automatic answers.
pub fn automatic(settings: &Email) -> AutomaticSettings {
    AutomaticSettings {
        is_on: settings.automatic,
        threshold: settings.threshold,
        thresholds: settings.thresholds.iter().map(|(class, threshold)| (Class::parse(class), *threshold)).collect(),
        answers_a_day: settings.answers_a_day,
        answers_to_one_address: settings.answers_to_one_address,
    }
}

impl Mail {
    /// Opens the mail account and its context; `None` if mail is not set up.
    ///
    /// # Errors
    ///
    /// Fails if settings are missing, or a client cannot be set up.
    pub async fn open(
        config: &Config,
        store: &Arc<dyn Store>,
        clock: &Arc<dyn Clock>,
        links: &Links,
    ) -> anyhow::Result<Option<Self>> {
        ensure_complete(config)?;
        let settings = &config.email;
        let Some(channel) = settings.channel.as_deref().filter(|_| is_set(config)) else { return Ok(None) };
        let tokens = account::tokens(settings, clock)?;
        let account = account::open(config, tokens.as_ref(), clock).await?;
        let address = account.address().address.clone();
        let sources = context::open(config, tokens.as_ref(), &address)?;
        let zone = TimeZone::get(&settings.time_zone).context("email.time_zone is not known on this machine")?;
        let book = MailRegister::new(store.clone(), address.clone());
        let automatic = automatic(settings);
        let shown = ShownMails {
            control: SyncControl::new(book.clone()),
            account: address,
            channel: ChannelId::from(channel),
            automatic: Arc::new(AutomaticAnswers::new(book.clone(), clock.clone(), automatic.clone(), zone.clone())),
            settings: automatic,
            links: links.clone(),
            clock: clock.clone(),
            book,
        };
        Ok(Some(Self { account, sources, shown: Arc::new(shown), zone }))
    }

    /// Returns the capability that shows mails.
    pub fn capability(&self) -> TeamInbox {
        TeamInbox::new(self.shown.clone(), self.shown.clock.clone())
    }

    /// Adds the models that classify and write, and the bot itself, `us`. Without a language model, mails are classified
    /// by their words, and drafts are made from templates.
    pub fn ready(
        self,
        settings: &Email,
        classifier: Option<Arc<dyn Model>>,
        writer: Option<Arc<dyn Model>>,
        us: UserId,
    ) -> ReadyMail {
        let shown = &self.shown;
        let lookup = ContextLookup::new(self.sources.context.clone(), self.zone.clone(), shown.clock.clone());
        let deps = Deps {
            account: self.account.clone(),
            lookup: Arc::new(lookup),
            classifier,
            writer,
            settings: shown.settings.clone(),
            automatic: shown.automatic.clone(),
            book: shown.book.clone(),
            time_zone: self.zone.clone(),
            clock: shown.clock.clone(),
            in_flight: in_flight(settings),
            us,
        };
        ReadyMail { mail: self, deps: Arc::new(deps) }
    }
}

impl ReadyMail {
    /// Returns the mail graph.
    ///
    /// # Errors
    ///
    /// Fails if the graph is invalid, which is a fault in the program.
    pub fn graph(&self) -> anyhow::Result<Graph<MailState>> {
        mail_graph(self.deps.clone()).context("the mail graph is invalid")
    }

    /// Returns the actions of the mail graph.
    pub fn actions(&self) -> BTreeMap<&'static str, Arc<dyn ActionKind>> {
        actions(&self.deps)
    }

    /// Returns the channels that carry orders about mails, to the account and to Slack.
    pub(super) fn channels(&self, slack: &SlackClient, names: &Names) -> Vec<Arc<dyn Channel>> {
        let roots = self.roots(ChannelAnnouncer::new(slack.clone(), names.clone()));
        let channel = |carries| -> Arc<dyn Channel> {
            let Deps { account, book, clock, .. } = &*self.deps;
            let (account, book, store, clock) = (account.clone(), book.clone(), book.store().clone(), clock.clone());
            Arc::new(OrderChannel { carries, account, book, store, clock })
        };
        [Carries::Labels, Carries::Drafts, Carries::Headings(Box::new(roots))].map(channel).into()
    }

    fn roots(&self, announcer: ChannelAnnouncer) -> ChannelRoots {
        let shown = &self.mail.shown;
        ChannelRoots { announcer, channel: shown.channel.clone(), links: shown.links.clone() }
    }

    /// Returns the automatic answers, which decide in place of a person where the settings allow it.
    pub fn automatic(&self) -> Arc<AutomaticAnswers> {
        self.deps.automatic.clone()
    }

    /// Returns the probe for `/readyz` and `/metrics`.
    pub(super) fn probe(&self, config: &Config) -> MailProbe {
        let shown = &self.mail.shown;
        let metrics = MailMetrics::new(shown.book.clone());
        MailProbe::new(shown.clone(), metrics, shown.clock.clone(), config.email.sync_every)
    }

    /// Returns the tasks that run as long as the bot does.
    ///
    /// # Errors
    ///
    /// Fails if the time of the digest is no time, which the check of the settings finds first.
    pub(super) fn tasks(&self, config: &Config, deps: TaskDeps) -> anyhow::Result<Vec<Task>> {
        let TaskDeps { team, slack, names, holder, wake } = deps;
        let (shown, settings) = (&self.mail.shown, &config.email);
        let announcer = ChannelAnnouncer::new(slack, names);
        let roots = self.roots(announcer.clone());
        let sync = MailSync::new(SyncDeps {
            account: self.mail.account.clone(),
            book: shown.book.clone(),
            control: shown.control.clone(),
            roots: Arc::new(roots),
            team,
            channel: shown.channel.clone(),
            wake,
            clock: shown.clock.clone(),
            holder: holder.to_string(),
            every: settings.sync_every,
            term: config.workers.lease,
        });
        let digest = settings.digest.as_deref().map(|at| {
            let at = Time::strptime("%H:%M", at).context("email.digest isn't a valid time")?;
            anyhow::Ok(Digest {
                book: shown.clone(),
                store: shown.book.store().clone(),
                clock: shown.clock.clone(),
                announcer: Arc::new(announcer.clone()),
                schedule: Schedule { at, zone: self.mail.zone.clone() },
            })
        });
        let retention = MailRetention::new(
            shown.book.clone(),
            self.mail.sources.context.clone(),
            shown.clock.clone(),
            &config.record,
        );
        let mut tasks = vec![task("mail", |stop| sync.run(stop)), task("mail retention", |stop| retention.run(stop))];
        tasks.extend(digest.transpose()?.map(|digest| task("mail digest", |stop| digest.run(stop))));
        Ok(tasks)
    }
}
