//! Faults drawn from a seed, judged from outside: `cargo bench --bench nemesis` for an hour, here for a minute.

use std::{path::PathBuf, time::Duration};

use tokio_util::sync::CancellationToken;

use self::harness::{By, Options, Report, Store, run, storms::kinds};

pub(crate) mod harness;
mod judge_tests;

fn options(store: Store, by: By, processes: usize, seed: u64) -> Options {
    Options {
        store,
        by,
        processes,
        length: Duration::from_secs(50),
        seed,
        rate: 3.0,
        people: 12,
        faults: Vec::new(),
        out: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("nemesis"),
        program: PathBuf::from(env!("CARGO_BIN_EXE_countersign")),
        log: "warn".to_owned(),
    }
}

fn is_clean(report: &Report) {
    let table = report.table();
    assert!(report.broken_off.is_none() && report.violations() == 0, "{table}\nTimelines: {:#?}", report.files);
    assert!(report.approvals > 0, "nothing was done:\n{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_on_sqlite_keeps_its_promises() {
    is_clean(&run(&options(Store::Sqlite, By::Socket, 1, 1), CancellationToken::new()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn three_processes_on_redis_keep_their_promises() {
    is_clean(&run(&options(Store::Redis, By::Http, 3, 2), CancellationToken::new()).await.unwrap());
}

#[test]
fn no_kind_of_fault_is_named_twice() {
    let mut names = kinds();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}
