//! Two people press at the same instant, a thousand times: one decision each, and the other is told whose.

use std::{collections::HashMap, path::Path, process::Command, sync::Arc, time::Duration};

use countersign::{
    clock::ManualClock,
    graph::{
        action::{ActionRecord, Status, Verdict},
        store::{ActionKey, AuditKind, Store},
    },
    store::{redis::RedisStore, sqlite::SqliteStore},
};
use tokio::sync::Barrier;

use super::racer::{self, Heard, Press, approvals, card, press};
use crate::support::redis::{LOSSY, RedisServer};

/// How often two press.
pub(super) const ROUNDS: u32 = 1_000;

/// How long a thousand rounds may take in all, on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// What the card, the record and the two people say of a round.
async fn judge(store: &dyn Store, round: u32, heard: &[Heard; 2]) -> Press {
    let record = store.action(ActionKey::ByApproval(&card(round).approval)).await.unwrap().unwrap();
    let [counted, told] = match heard {
        [Heard { told: None, .. }, Heard { told: Some(_), .. }] => [&heard[0], &heard[1]],
        [Heard { told: Some(_), .. }, Heard { told: None, .. }] => [&heard[1], &heard[0]],
        both => panic!("round {round}: exactly one counts, not {both:?}"),
    };
    let winner = counted.press;
    let [decision] = record.decisions.as_slice() else { panic!("round {round}: {:?}", record.decisions) };
    assert_eq!(decision.by, Some(winner.by().into()), "round {round}: the record names whose press counted");
    let (verdict, status, words) = match winner {
        Press::BoApproves | Press::CyApproves => (Verdict::Approved, Status::Approved, "approved this"),
        Press::CyRejects => (Verdict::Rejected { reason: None }, Status::Rejected, "rejected this"),
        Press::AnaWithdraws => (Verdict::Cancelled, Status::Cancelled, "was withdrawn"),
    };
    assert_eq!((&decision.verdict, record.status), (&verdict, status), "round {round}");
    let words = if winner == Press::AnaWithdraws { words.to_owned() } else { format!("<@{}> {words}", winner.by()) };
    let said = told.told.as_deref().unwrap_or_default();
    assert!(said.contains(&words), "round {round}: {:?} is told that {words}, not: {said}", told.press);
    audited(store, &record, winner, told.press).await;
    winner
}

/// The audit has one decision, of the one whose press counted, and the other's press that did not.
async fn audited(store: &dyn Store, record: &ActionRecord, winner: Press, loser: Press) {
    let audit = store.audit(&record.thread).await.unwrap().entries;
    let by = |kind: AuditKind| -> Vec<String> {
        let of_kind = audit.iter().filter(|entry| entry.event.kind == kind);
        of_kind.map(|entry| entry.event.by.as_ref().map(ToString::to_string).unwrap_or_default()).collect()
    };
    assert_eq!(by(AuditKind::Decided), [winner.by()], "{}", record.id);
    assert_eq!(by(AuditKind::ClickRefused), [loser.by()], "{}", record.id);
}

/// Neither side always wins: they do press at the same instant.
fn both_won(won: &HashMap<Press, u32>) {
    println!("counted: {won:?}");
    assert!(won.len() > 2, "one side always wins, so nobody raced: {won:?}");
    assert_eq!(won.values().sum::<u32>(), ROUNDS);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite_one_of_two_presses_counts() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(folder.path().join("race.sqlite"), Arc::new(clock.clone())).unwrap());
    let inbox = || approvals(store.clone(), Arc::new(clock.clone()));
    let inboxes = [inbox().await, inbox().await];
    let mut won: HashMap<Press, u32> = HashMap::new();
    tokio::time::timeout(LIMIT, async {
        for round in 0..ROUNDS {
            racer::publish(store.clone(), round).await;
            let start = Arc::new(Barrier::new(2));
            let presses = Press::of_round(round);
            let [one, other] = [0, 1].map(|side| {
                let (inbox, start, pressed) = (inboxes[side].clone(), start.clone(), presses[side]);
                tokio::spawn(async move {
                    start.wait().await;
                    press(&inbox, round, pressed).await
                })
            });
            let heard = [one.await.unwrap(), other.await.unwrap()];
            *won.entry(judge(&*store, round, &heard).await).or_default() += 1;
        }
    })
    .await
    .expect("a thousand rounds are quick");
    both_won(&won);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_redis_one_of_two_processes_counts() {
    // Nothing crashes here, so nothing has to wait for the disk.
    let server = RedisServer::start_with(&["--appendfsync", "everysec"]).await;
    let store: Arc<dyn Store> = Arc::new(RedisStore::open(&server.url(), &LOSSY).await.unwrap());
    for round in 0..ROUNDS {
        racer::publish(store.clone(), round).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = ["one", "other"].map(|name| folder.path().join(name));
    let command = |side: usize| -> Command { racer::command(&server.url(), side, &files[side]) };
    let mut racers =
        [0, 1].map(|side| tokio::process::Command::from(command(side)).kill_on_drop(true).spawn().unwrap());
    tokio::time::timeout(LIMIT, async {
        for racer in &mut racers {
            assert!(racer.wait().await.unwrap().success(), "a process did not come to its end");
        }
    })
    .await
    .expect("a thousand rounds are quick");
    let read = |file: &Path| -> Vec<Heard> {
        let lines = std::fs::read_to_string(file).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let [one, other] = [read(&files[0]), read(&files[1])];
    assert_eq!([one.len(), other.len()], [ROUNDS as usize; 2]);
    let mut won: HashMap<Press, u32> = HashMap::new();
    for (round, heard) in (0..ROUNDS).zip(one.into_iter().zip(other)) {
        *won.entry(judge(&*store, round, &heard.into()).await).or_default() += 1;
    }
    both_won(&won);
}
