//! The Home tab: what waits for somebody, what they asked for, what is running and what was decided.
//!
//! | room | does |
//! | --- | --- |
//! | [`content`] | reads what one person may see |
//! | [`view`] | draws it |
//!
//! It is drawn when it is opened and when a button in it was pressed. Whoever opened it lately gets it again when what
//! it shows has changed, whichever process changed it: this one looks regularly, and at once after a decision of its
//! own. Who looks is kept in memory only; after a restart a tab is drawn anew when it is opened.
//!
//! A press on a button in here is the same click as on the card, only without a message. What became of it is said at
//! the top of the tab.

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
    clock::{Clock, Timestamp},
    ids::{ActionId, ApprovalId, UserId},
    reply::{Reply, Text},
};
use countersign_graph::{
    engine::PolicyFor,
    store::{Error, Store},
};
use countersign_slack::client::SlackClient;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use self::{
    content::{Content, Pages, Reader},
    view::Health,
};
use crate::{
    approvals::groups::Groups,
    presentation::{links::Links, names::Names},
};

/// How the action ids of the buttons that turn pages begin; their value says which page.
pub const PAGE: &str = "home:page:";

/// For how long after it was opened a tab is kept up to date.
const RECENT: Duration = Duration::from_secs(600);

/// How many tabs are kept up to date at a time; the one opened longest ago makes room.
const VIEWERS: usize = 50;

/// How often it is looked whether anything changed.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// For how long what became of a press is said.
const NOTICE_FOR: Duration = Duration::from_secs(60);

/// How many requests are shown as examples.
const INVITATIONS: usize = 3;

/// How old what is said of the platforms may be where a tab is drawn again; who opens one has it asked.
const HEALTH_GOOD_FOR: Duration = Duration::from_secs(60);

/// Draws Home tabs.
#[derive(Clone)]
pub struct Home(Arc<Inner>);

/// What a [`Home`] needs.
pub struct HomeDeps {
    /// Where actions are.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where tabs are.
    pub slack: SlackClient,
    /// What the platforms say of themselves, and the capabilities' sections.
    pub facts: Facts,
    /// The language model.
    pub model: WatchedModel,
    /// Who may decide.
    pub policy_for: PolicyFor,
    /// Who is in which user group.
    pub groups: Groups,
    /// What those are called who are named.
    pub names: Names,
    /// Where cards are.
    pub links: Links,
    /// What is going on, for draining.
    pub tasks: TaskTracker,
}

struct Inner {
    deps: HomeDeps,
    viewers: Mutex<HashMap<UserId, Viewer>>,
    looked_at: Mutex<Option<Instant>>,
    looking: AtomicBool,
    /// What the platforms said, and when they were asked.
    said: Mutex<Option<(Said, Timestamp)>>,
}

/// What the platforms said.
#[derive(Clone)]
struct Said {
    services: Vec<facts::Health>,
    sections: Vec<Reply>,
}

/// Somebody whose tab is kept up to date.
#[derive(Clone, Default)]
struct Viewer {
    opened_at: Timestamp,
    pages: Pages,
    /// What it shows: drawn again only if this changes.
    shown: Vec<(ActionId, u64)>,
    /// What became of their last press, and when: said for a while.
    notice: Option<(Reply, Timestamp)>,
    /// One drawing at a time, or an older one could come last.
    drawing: Arc<tokio::sync::Mutex<()>>,
}

impl Home {
    /// Draws with these dependencies.
    pub fn new(deps: HomeDeps) -> Self {
        Self(Arc::new(Inner {
            deps,
            viewers: Mutex::default(),
            looked_at: Mutex::default(),
            looking: AtomicBool::new(false),
            said: Mutex::default(),
        }))
    }

    /// Draws the tab of somebody who opened it, or turned a page.
    ///
    /// # Errors
    ///
    /// If the store does not answer. A refusal by Slack is logged: the tab is drawn again at the next visit.
    pub async fn open(&self, user: &UserId, pages: Pages) -> Result<(), Error> {
        self.note(user, |viewer| (viewer.pages, viewer.notice) = (pages, None));
        self.draw(user, None, Duration::ZERO).await
    }

    /// Says what became of a press in somebody's tab: what they were refused, or how the card stands.
    ///
    /// # Errors
    ///
    /// As [`Home::open`].
    pub async fn answer(&self, user: &UserId, key: &str, refused: Option<&Reply>) -> Result<(), Error> {
        let notice = match refused {
            Some(reply) => reply.clone(),
            None => self.counted(key).await?,
        };
        let now = self.0.deps.clock.now();
        self.note(user, |viewer| viewer.notice = Some((notice, now)));
        self.draw(user, None, HEALTH_GOOD_FOR).await
    }

    /// Notes what somebody looks at.
    fn note(&self, user: &UserId, change: impl FnOnce(&mut Viewer)) {
        let now = self.0.deps.clock.now();
        let Ok(mut viewers) = self.0.viewers.lock() else { return };
        let viewer = viewers.entry(user.clone()).or_default();
        viewer.opened_at = now;
        change(viewer);
        make_room(&mut viewers, now);
    }

    async fn counted(&self, key: &str) -> Result<Reply, Error> {
        let record = match ApprovalId::try_from(key.to_owned()) {
            Ok(approval) => self.0.deps.store.action_by_approval(&approval).await?,
            Err(_) => None,
        };
        Ok(match record {
            Some(record) => Reply::text(Text::new().bold(record.act()).plain(": ").join(record.decision_line())),
            None => Reply::text("That counts."),
        })
    }

    /// Looks at the tabs that were opened lately the next time somebody says [`Home::look`].
    pub fn something_changed(&self) {
        if let Ok(mut looked_at) = self.0.looked_at.lock() {
            *looked_at = None;
        }
    }

    /// Looks from time to time whether tabs that were opened lately show what is no longer so, and draws those again.
    /// Returns at once.
    pub fn look(&self) {
        let due = match self.0.looked_at.lock() {
            Ok(mut at) if at.is_none_or(|at| at.elapsed() >= LOOK_EVERY) => {
                *at = Some(Instant::now());
                true
            }
            _ => false,
        };
        if !due || self.recent().is_empty() || self.0.looking.swap(true, Ordering::SeqCst) {
            return;
        }
        let home = self.clone();
        self.0.deps.tasks.spawn(async move {
            for (user, viewer) in home.recent() {
                if let Err(error) = home.draw(&user, Some(&viewer.shown), HEALTH_GOOD_FOR).await {
                    tracing::warn!(
                        error = countersign_core::cause::chain(&error),
                        "A Home tab was not brought up to date"
                    );
                }
            }
            home.0.looking.store(false, Ordering::SeqCst);
        });
    }

    /// Draws a tab; if `unless` is what it would show anyway, leaves it. The platform is asked how it is, unless that was
    /// done less than `good_for` ago.
    async fn draw(&self, user: &UserId, unless: Option<&[(ActionId, u64)]>, good_for: Duration) -> Result<(), Error> {
        let drawing = self.viewer(user).unwrap_or_default().drawing;
        let _one_at_a_time = drawing.lock().await;
        let Viewer { pages, notice, .. } = self.viewer(user).unwrap_or_default();
        let HomeDeps { store, clock, slack, policy_for, groups, names, links, .. } = &self.0.deps;
        let (theirs, now) = (groups.of(user).await, clock.now());
        let is_named = groups.names(user, &theirs);
        let reader = Reader { store: &**store, links, policy_for, user, groups: theirs, is_named, now };
        let content: Content = reader.read(pages).await?;
        let shown = content.fingerprint();
        if unless == Some(&*shown) {
            return Ok(());
        }
        let health = self.health(good_for).await;
        let notice = notice.filter(|(_, at)| health.now.since(*at) < NOTICE_FOR).map(|(reply, _)| reply);
        let notice = match &notice {
            Some(notice) => Some(names.in_reply(notice).await),
            None => None,
        };
        let open = content.waiting.items.iter().chain(&content.asked.items);
        let called = names.of_approvers(open.map(|item| &item.record)).await;
        match slack.publish_home(user, &view::draw(&content, &called, &health, notice.as_deref())).await {
            Ok(()) => self.remember(user, shown),
            Err(error) => tracing::warn!(error = countersign_core::cause::chain(&error), "A Home tab was not drawn"),
        }
        Ok(())
    }

    /// How the systems are. That a platform did not answer is kept for as long as that it did.
    async fn health(&self, good_for: Duration) -> Health {
        let HomeDeps { clock, facts, model, .. } = &self.0.deps;
        let known = self.0.said.lock().ok().and_then(|known| known.clone());
        let said = match known {
            Some((said, asked_at)) if clock.now().since(asked_at) < good_for => said,
            _ => {
                let (services, sections) = tokio::join!(facts.health(), facts.home());
                let said = Said { services, sections };
                if let Ok(mut known) = self.0.said.lock() {
                    *known = Some((said.clone(), clock.now()));
                }
                said
            }
        };
        let Said { services, sections } = said;
        let invitations = facts.registry().invitations().map(|(_, says)| says).take(INVITATIONS).collect();
        Health { services, sections, invitations, model: model.health(), now: clock.now() }
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

    /// Who opened their tab lately.
    fn recent(&self) -> Vec<(UserId, Viewer)> {
        let now = self.0.deps.clock.now();
        let Ok(mut viewers) = self.0.viewers.lock() else { return Vec::new() };
        make_room(&mut viewers, now);
        viewers.iter().map(|(user, viewer)| (user.clone(), viewer.clone())).collect()
    }
}

/// Forgets who opened their tab long ago.
fn make_room(viewers: &mut HashMap<UserId, Viewer>, now: Timestamp) {
    viewers.retain(|_, viewer| now.since(viewer.opened_at) < RECENT);
    while viewers.len() > VIEWERS {
        let Some(oldest) = viewers.iter().min_by_key(|(_, viewer)| viewer.opened_at).map(|(user, _)| user.clone())
        else {
            return;
        };
        viewers.remove(&oldest);
    }
}
