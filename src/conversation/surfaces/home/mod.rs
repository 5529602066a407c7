//! The Home tab: a person's open cards, requests, actions in progress and past decisions.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`content`] | reads the actions that one person may see |
//! | [`view`] | draws them |
//!
//! A tab is drawn when it is opened and when one of its buttons was pressed. A tab that was opened
//! recently is redrawn when its content has changed. This process checks for changes by all
//! processes at regular intervals, and immediately after its own decisions. The viewers are kept in
//! memory only; after a restart, a tab is redrawn when it is opened.
//!
//! A press on a button in the tab is handled like one on the card, but there is no message. The
//! decision and then its outcome are shown at the top of the tab.

pub mod content;
pub mod view;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use countersign_assistant::model_health::WatchedModel;
use countersign_capabilities::facts::{self, Facts};
use countersign_core::{
    cause,
    clock::Timestamp,
    ids::{ActionId, ApprovalId, UserId},
    reply::Reply,
};
use countersign_graph::{
    action::Status,
    store::{ActionKey, Error},
};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use self::{
    content::{Content, Pages, Reader},
    view::Health,
};
use crate::{
    approvals::inbox::{Approvals, ApprovalsDeps},
    record::spending::Spending,
};

/// The time for which a tab is kept up to date after it was opened.
const UPDATE_DURATION: Duration = Duration::from_secs(600);

/// The maximum number of tabs that are kept up to date. If there are more, those opened longest ago
/// are dropped.
const MAX_VIEWERS: usize = 50;

/// The interval between two checks for changes.
const REFRESH_INTERVAL: Duration = Duration::from_secs(3);

/// The time for which a notice is shown.
const NOTICE_DURATION: Duration = Duration::from_secs(60);

/// The notice for a press on a card that is no longer stored.
const COUNTED: &str = "Your decision is recorded.";

/// The maximum number of requests that are shown as examples.
const MAX_INVITATIONS: usize = 3;

/// The maximum age of the platforms' answers when a tab is redrawn. Opening a tab always asks them.
const MAX_HEALTH_AGE: Duration = Duration::from_secs(60);

/// The Home tabs.
#[derive(Clone)]
pub struct Home(Arc<Inner>);

/// The dependencies of [`Home`].
pub struct HomeDeps {
    /// The rules of decisions, with the store and Slack.
    pub approvals: Approvals,
    /// The platforms' health, and the capabilities' sections.
    pub facts: Facts,
    /// The language model.
    pub model: WatchedModel,
    /// What language models cost.
    pub spending: Spending,
    /// The tasks in progress, for draining.
    pub tasks: TaskTracker,
}

struct Inner {
    deps: HomeDeps,
    viewers: Mutex<HashMap<UserId, Viewer>>,
    refreshed_at: Mutex<Option<Instant>>,
    is_refreshing: AtomicBool,
    /// The platforms' answers, and the time of asking.
    answers: Mutex<Option<(PlatformAnswers, Timestamp)>>,
}

/// The platforms' answers.
#[derive(Clone)]
struct PlatformAnswers {
    services: Vec<facts::Health>,
    sections: Vec<Reply>,
}

/// A person whose tab is kept up to date.
#[derive(Clone, Default)]
struct Viewer {
    opened_at: Timestamp,
    pages: Pages,
    /// The fingerprint of the shown content. The tab is redrawn only if it changes.
    shown: Vec<(ActionId, u64)>,
    /// The answer to what the person did last, which is shown for a while.
    notice: Option<Notice>,
    /// Ensures that the tab is drawn by one task at a time. Otherwise an older drawing could be
    /// published last.
    drawing: Arc<tokio::sync::Mutex<()>>,
}

/// The answer to what a person did last.
#[derive(Clone)]
struct Notice {
    said: Said,
    /// The time from which on it is shown for [`NOTICE_DURATION`].
    since: Timestamp,
}

/// The content of a notice.
#[derive(Clone)]
enum Said {
    /// A reply.
    Reply(Reply),
    /// The state of the action that the person decided. It is shown until its outcome has been shown for a while.
    Decided { approval: ApprovalId, is_running: bool },
}

impl Home {
    /// Creates the service from its dependencies.
    pub fn new(deps: HomeDeps) -> Self {
        Self(Arc::new(Inner {
            deps,
            viewers: Mutex::default(),
            refreshed_at: Mutex::default(),
            is_refreshing: AtomicBool::new(false),
            answers: Mutex::default(),
        }))
    }

    /// Draws the tab of a person who opened it or turned a page.
    ///
    /// # Errors
    ///
    /// If the store isn't answering. A refusal by Slack is only logged, since the tab is redrawn at
    /// the next visit.
    pub async fn open(&self, user: &UserId, pages: Pages) -> Result<(), Error> {
        self.update_viewer(user, |viewer| (viewer.pages, viewer.notice) = (pages, None));
        self.draw(user, None, Duration::ZERO).await
    }

    /// Shows the answer to a press in a person's tab: the refusal, or the decision and then its outcome.
    ///
    /// # Errors
    ///
    /// As [`Home::open`].
    pub async fn answer(&self, user: &UserId, key: &str, refused: Option<&Reply>) -> Result<(), Error> {
        let said = match (refused, ApprovalId::try_from(key.to_owned())) {
            (Some(reply), _) => Said::Reply(reply.clone()),
            (None, Ok(approval)) => Said::Decided { approval, is_running: true },
            (None, Err(_)) => Said::Reply(Reply::text(COUNTED)),
        };
        self.show_notice(user, said).await
    }

    /// Shows a reply in a person's tab, if the person opened it recently.
    ///
    /// # Errors
    ///
    /// As [`Home::open`].
    pub async fn tell(&self, user: &UserId, reply: Reply) -> Result<(), Error> {
        match self.recent().iter().any(|(viewer, _)| viewer == user) {
            true => self.show_notice(user, Said::Reply(reply)).await,
            false => Ok(()),
        }
    }

    async fn show_notice(&self, user: &UserId, said: Said) -> Result<(), Error> {
        let since = self.0.deps.approvals.clock.now();
        self.update_viewer(user, |viewer| viewer.notice = Some(Notice { said, since }));
        self.draw(user, None, MAX_HEALTH_AGE).await
    }

    /// Changes the state of a viewer.
    fn update_viewer(&self, user: &UserId, change: impl FnOnce(&mut Viewer)) {
        let now = self.0.deps.approvals.clock.now();
        let Ok(mut viewers) = self.0.viewers.lock() else { return };
        let viewer = viewers.entry(user.clone()).or_default();
        viewer.opened_at = now;
        change(viewer);
        drop_old_viewers(&mut viewers, now);
    }

    /// Returns the notice that a person's tab shows now.
    async fn notice(&self, user: &UserId, now: Timestamp) -> Result<Option<Reply>, Error> {
        let Some(Notice { said, since }) = self.viewer(user).and_then(|viewer| viewer.notice) else { return Ok(None) };
        let is_recent = now.since(since) < NOTICE_DURATION;
        let (approval, was_running) = match said {
            Said::Reply(reply) => return Ok(is_recent.then_some(reply)),
            Said::Decided { approval, is_running } => (approval, is_running),
        };
        let record = self.0.deps.approvals.store.action(ActionKey::ByApproval(&approval)).await?;
        if was_running {
            self.note_state(user, &approval, record.as_ref().is_some_and(|record| is_running(record.status)), now);
        }
        let reply = record.map_or_else(|| Reply::text(COUNTED), |record| Reply::text(view::decided(&record)));
        Ok((was_running || is_recent).then_some(reply))
    }

    /// Notes the state that the notice about a decision shows, unless there is another notice by now.
    fn note_state(&self, user: &UserId, decided: &ApprovalId, runs: bool, now: Timestamp) {
        if let Ok(mut viewers) = self.0.viewers.lock()
            && let Some(Notice { said: Said::Decided { approval, is_running }, since }) =
                viewers.get_mut(user).and_then(|viewer| viewer.notice.as_mut())
            && approval == decided
        {
            (*is_running, *since) = (runs, now);
        }
    }

    /// Makes the next [`Home::refresh`] check the recently opened tabs.
    pub fn mark_changed(&self) {
        if let Ok(mut refreshed_at) = self.0.refreshed_at.lock() {
            *refreshed_at = None;
        }
    }

    /// Starts a check of the recently opened tabs, at most once in an interval, which redraws
    /// outdated ones. Returns immediately.
    pub fn refresh(&self) {
        let due = match self.0.refreshed_at.lock() {
            Ok(mut at) if at.is_none_or(|at| at.elapsed() >= REFRESH_INTERVAL) => {
                *at = Some(Instant::now());
                true
            }
            _ => false,
        };
        if !due || self.recent().is_empty() || self.0.is_refreshing.swap(true, Ordering::SeqCst) {
            return;
        }
        let home = self.clone();
        self.0.deps.tasks.spawn(async move {
            for (user, viewer) in home.recent() {
                if let Err(error) = home.draw(&user, Some(&viewer.shown), MAX_HEALTH_AGE).await {
                    tracing::warn!(error = cause::chain(&error), "A Home tab was not updated");
                }
            }
            home.0.is_refreshing.store(false, Ordering::SeqCst);
        });
    }

    /// Draws a tab, except if its content is `unless`. The platforms are asked for their health if
    /// their last answers are at least `max_age` old.
    async fn draw(&self, user: &UserId, unless: Option<&[(ActionId, u64)]>, max_age: Duration) -> Result<(), Error> {
        // Two drawings at once could be published in the wrong order.
        let drawing = self.viewer(user).unwrap_or_default().drawing;
        let _guard = drawing.lock().await;
        let Viewer { pages, .. } = self.viewer(user).unwrap_or_default();
        let ApprovalsDeps { store, clock, slack, policy_for, groups, names, links, .. } = &*self.0.deps.approvals;
        let (own_groups, now) = (groups.of(user).await, clock.now());
        let is_named = groups.names_approver(user, &own_groups);
        let channels = content::channels_with_cards(&**store, groups, user).await?;
        let reader = Reader { store: &**store, links, policy_for, user, groups: own_groups, is_named, channels, now };
        let content: Content = reader.read(pages).await?;
        let shown = content.fingerprint();
        if unless == Some(&*shown) {
            return Ok(());
        }
        let mut health = self.health(user, max_age).await;
        let facts = &self.0.deps.facts;
        let own_channels = groups.channels_of(user, facts.home_channels()).await;
        health.sections.extend(facts.home_of(user, &own_channels).await);
        let notice = self.notice(user, now).await?;
        let notice = match &notice {
            Some(notice) => Some(names.in_reply(notice).await),
            None => None,
        };
        let open = content.waiting.items.iter().chain(&content.asked.items);
        let resolved = names.of_approvers(open.map(|item| &item.record)).await;
        match slack.publish_home(user, &view::draw(&content, &resolved, &health, notice.as_deref())).await {
            Ok(()) => self.remember(user, shown),
            Err(error) => tracing::warn!(error = cause::chain(&error), "A Home tab was not drawn"),
        }
        Ok(())
    }

    /// Returns the health of the systems, and what models cost. A missing answer is cached for the same time as an
    /// answer.
    async fn health(&self, user: &UserId, max_age: Duration) -> Health {
        let HomeDeps { approvals, facts, model, spending, .. } = &self.0.deps;
        let clock = &approvals.clock;
        let known = self.0.answers.lock().ok().and_then(|known| known.clone());
        let answers = match known {
            Some((answers, asked_at)) if clock.now().since(asked_at) < max_age => answers,
            _ => {
                let (services, sections) = tokio::join!(facts.health(), facts.home());
                let answers = PlatformAnswers { services, sections };
                if let Ok(mut known) = self.0.answers.lock() {
                    *known = Some((answers.clone(), clock.now()));
                }
                answers
            }
        };
        let PlatformAnswers { services, sections } = answers;
        let invitations = facts.registry().invitations().map(|(_, says)| says).take(MAX_INVITATIONS).collect();
        let shortcuts = facts.registry().shortcuts().collect();
        let model = model.health();
        let cost = match &model {
            Some(_) => spending.today(user).await.map(Some).unwrap_or_else(|error| {
                tracing::warn!(error = cause::chain(&error), "Cannot read what models have cost today");
                None
            }),
            None => None,
        };
        Health { services, sections, invitations, shortcuts, model, cost, now: clock.now() }
    }

    fn remember(&self, user: &UserId, shown: Vec<(ActionId, u64)>) {
        if let Ok(mut viewers) = self.0.viewers.lock()
            && let Some(viewer) = viewers.get_mut(user)
        {
            viewer.shown = shown;
        }
    }

    fn viewer(&self, user: &UserId) -> Option<Viewer> {
        self.0.viewers.lock().ok()?.get(user).cloned()
    }

    /// Returns the people who opened their tab recently.
    fn recent(&self) -> Vec<(UserId, Viewer)> {
        let now = self.0.deps.approvals.clock.now();
        let Ok(mut viewers) = self.0.viewers.lock() else { return Vec::new() };
        drop_old_viewers(&mut viewers, now);
        viewers.iter().map(|(user, viewer)| (user.clone(), viewer.clone())).collect()
    }
}

fn is_running(status: Status) -> bool {
    matches!(status, Status::Approved | Status::Intent)
}

/// Removes the people who opened their tab long ago.
fn drop_old_viewers(viewers: &mut HashMap<UserId, Viewer>, now: Timestamp) {
    viewers.retain(|_, viewer| now.since(viewer.opened_at) < UPDATE_DURATION);
    while viewers.len() > MAX_VIEWERS {
        let Some(oldest) = viewers.iter().min_by_key(|(_, viewer)| viewer.opened_at).map(|(user, _)| user.clone())
        else {
            return;
        };
        viewers.remove(&oldest);
    }
}
