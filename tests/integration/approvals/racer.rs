//! One of two who press at the same instant: as a task, or as a process of its own (this test binary, started again).

use std::{fmt::Write as _, path::Path, process::Command, sync::Arc, time::Duration};

use countersign::{
    clock::{Clock, SystemClock, Timestamp},
    config::{Config, environment},
    conversation::{
        approvals::{
            clicks::{CardButton, Click},
            groups::Groups,
            inbox::{Approvals, ApprovalsDeps, InboxAnswer},
            people::People,
        },
        presentation::{links::Links, names::Names, render},
    },
    graph::{
        action::{ActionRecord, Policy},
        keyring::Keyring,
        request::Times,
        store::{Changes, Store},
    },
    ids::CommitId,
    slack::client::SlackClient,
    store::{
        redis::RedisStore,
        sealed::{SealScope, SealedStore},
    },
};
use countersign_sandbox::slack::{self, SandboxSlack};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::race::ROUNDS;
use crate::{stores::fixture, support::redis::LOSSY};

/// Where Redis is. Without it the process is none.
const URL: &str = "RACER_URL";
/// Which of the two it is.
const SIDE: &str = "RACER_SIDE";
/// Where what it heard goes.
const FILE: &str = "RACER_FILE";

/// Who presses what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Press {
    BoApproves,
    CyApproves,
    CyRejects,
    AnaWithdraws,
}

impl Press {
    /// The two of a round; who stands on which side changes.
    pub(super) fn of_round(round: u32) -> [Self; 2] {
        let other = [Self::CyApproves, Self::CyRejects, Self::AnaWithdraws][round as usize % 3];
        if round.is_multiple_of(2) { [Self::BoApproves, other] } else { [other, Self::BoApproves] }
    }

    pub(super) fn by(self) -> &'static str {
        match self {
            Self::BoApproves => "U2",
            Self::CyApproves | Self::CyRejects => "U3",
            Self::AnaWithdraws => "U1",
        }
    }

    fn pressed(self) -> CardButton {
        match self {
            Self::BoApproves | Self::CyApproves => CardButton::Approve,
            Self::CyRejects => CardButton::Reject,
            Self::AnaWithdraws => CardButton::Withdraw,
        }
    }
}

/// What somebody heard of their press.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Heard {
    pub(super) press: Press,
    /// Why it did not count, as it is sent; nothing if it counted.
    pub(super) told: Option<String>,
}

/// The card of a round: anybody in the channel may decide.
pub(super) fn card(round: u32) -> ActionRecord {
    let mut record = fixture::action(&fixture::thread(round), &format!("a{round}"), Timestamp(1_700_000_000_000));
    record.requested_by = Press::AnaWithdraws.by().into();
    record.expires_at = Timestamp(9_000_000_000_000);
    keys().sign(&mut record);
    record
}

/// Puts the card of a round into the store.
pub(super) async fn publish(store: Arc<dyn Store>, round: u32) {
    let record = card(round);
    let mut changes = Changes::new(CommitId::fresh(), record.thread.clone());
    record.publish(&mut changes, &times());
    sealed(store, &keys()).apply(&changes).await.unwrap();
}

/// The key of everybody who presses here.
fn keys() -> Arc<Keyring> {
    Arc::new(Keyring::new(vec![vec![7; 32]]).unwrap())
}

/// A store as somebody with these keys has it.
fn sealed(store: Arc<dyn Store>, keys: &Arc<Keyring>) -> Arc<SealedStore> {
    Arc::new(SealedStore::new(store, keys.clone(), SealScope { registers: &[], register_families: &[] }))
}

fn times() -> Times {
    Times { open_for: Duration::from_secs(86_400), ..Times::default() }
}

/// What decides, over a store. Slack says who these people are, and nothing else.
pub(super) async fn approvals(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Approvals {
    approvals_under(store, clock, card(0).policy.into_inner(), keys()).await
}

/// The same where this is the policy.
pub(super) async fn approvals_under(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    policy: Policy,
    keys: Arc<Keyring>,
) -> Approvals {
    let store = sealed(store, &keys);
    rustls::crypto::ring::default_provider().install_default().ok();
    let workspace = SandboxSlack::start(slack::Options::default()).await.unwrap();
    let token = SecretString::from(workspace.bot_token());
    let slack = SlackClient::new(&workspace.api_url(), &token, Duration::from_secs(10)).unwrap();
    let us = slack.auth_test().await.unwrap().identity;
    let settings = Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap();
    let people = People::new(slack.clone(), clock.clone(), us, &settings);
    Approvals::new(ApprovalsDeps {
        groups: Groups::new(slack.clone(), clock.clone(), Vec::new(), people.clone()),
        people,
        names: Names::new(slack.clone(), clock.clone()),
        links: Links::new(store.clone(), None),
        cards: store.cards(),
        store,
        clock,
        memories: Default::default(),
        slack,
        actions: Default::default(),
        policy_for: Arc::new(move |_| policy.clone()),
        keys,
        times: times(),
    })
}

/// A press on *approve*, in the thread of the card.
pub(super) fn click(record: &ActionRecord) -> Click {
    Click {
        key: record.approval.as_str().to_owned(),
        button: CardButton::Approve,
        by: Press::BoApproves.by().into(),
        elsewhere: false,
        channel: Some(record.thread.channel.clone()),
        message: None,
        thread: Some(record.thread.root.clone()),
        response_url: None,
        trigger_id: None,
    }
}

/// Presses.
pub(super) async fn press(inbox: &Approvals, round: u32, press: Press) -> Heard {
    let record = card(round);
    let click = Click { button: press.pressed(), by: press.by().into(), ..click(&record) };
    let told = match inbox.on_click(&click, 0).await.unwrap() {
        InboxAnswer::Counted(thread) => {
            assert_eq!(thread, record.thread);
            None
        }
        InboxAnswer::Refused(reply) => Some(render::reply(&reply).text),
        other => panic!("round {round}: {press:?} is told nothing: {other:?}"),
    };
    Heard { press, told }
}

/// A process that presses on one side in each round.
pub(super) fn command(url: &str, side: usize, file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "--nocapture", "approvals::racer::the_process_that_presses"])
        .env_clear()
        .env(URL, url)
        .env(SIDE, side.to_string())
        .env(FILE, file);
    command
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "no test: the process that the race starts twice"]
async fn the_process_that_presses() {
    let environment = environment();
    let Some(url) = environment.get(URL) else { return };
    let side: usize = environment[SIDE].parse().unwrap();
    let store = RedisStore::open(url, &LOSSY).await.unwrap();
    let inbox = approvals(Arc::new(store), Arc::new(SystemClock)).await;
    let client = redis::Client::open(url.as_str()).unwrap();
    let mut meeting = client.get_multiplexed_async_connection().await.unwrap();
    let mut heard = String::new();
    for round in 0..ROUNDS {
        // Both wait until both are there, without sleeping: then they go.
        let place = format!("race:{round}");
        let mut there: u32 = redis::cmd("INCR").arg(&place).query_async(&mut meeting).await.unwrap();
        while there < 2 {
            there = redis::cmd("GET").arg(&place).query_async(&mut meeting).await.unwrap();
        }
        let line = serde_json::to_string(&press(&inbox, round, Press::of_round(round)[side]).await).unwrap();
        writeln!(heard, "{line}").unwrap();
    }
    std::fs::write(&environment[FILE], heard).unwrap();
}
