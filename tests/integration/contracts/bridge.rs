//! The sandbox bridge against recordings of real ones.
//!
//! Every recording of the bridge is played, in the order of its index. [`replay`] says what exactly is compared;
//! [`LEFT_OUT`] are the only parts of answers that are not, each with its reason.

mod behaviour;
mod replay;

use countersign_sandbox::bridge::{Backend, Options, Version};
use countersign_simulation::ranges::Range;
use serde_json::json;

use self::replay::Replay;

/// Parts of answers that are not compared: the folder, the number, the keys on the way to the part, and why.
const LEFT_OUT: &[(&str, u32, &[&str], &str)] = &[
    ("bridge-0.1", 68, &["chunks", "*", "sizeBytes"], "the length of a file that the original spells in its own way"),
    ("bridge-0.1", 91, &["structuredContent", "csv", "path"], "a folder of the recorded machine"),
    ("bridge-0.1-slow-backend", 48, &["structuredContent", "csv", "path"], "a folder of the recorded machine"),
    (
        "bridge-0.1-slow-backend",
        26,
        &["structuredContent", "status"],
        "a race: elsewhere the original answers `running` to the same call",
    ),
    ("bridge-0.1-slow-backend", 26, &["structuredContent", "attempts"], "the same race"),
];

#[tokio::test]
async fn every_recording_of_the_older_version_is_answered() {
    let options = Options { version: Version::V01, backend: Backend::Memory, scheduler: true, ..Options::default() };
    let mut replay = Replay::of("bridge-0.1", options).await;
    replay.bridge.hold_jobs();
    let now = jiff::Timestamp::now().as_second();
    replay.other_token(5, "abc.def.ghi".to_owned());
    let expired = replay.bridge.signed(&json!({ "sub": "alice", "roles": ["viewer"], "exp": now - 3600 }));
    replay.other_token(6, expired);
    let endless = replay.bridge.signed(&json!({ "sub": "alice", "roles": ["viewer"] }));
    replay.other_token(7, endless);
    let once = json!({ "sub": "alice", "roles": ["viewer"], "exp": now + 600, "jti": "once" });
    let once = replay.bridge.signed(&once);
    replay.plays(1..=7).await;
    replay.meanwhile("/mcp/list_tools", &once).await;
    replay.other_token(8, once);
    replay.plays(8..=103).await;
    replay.is_at_the_end();
}

#[tokio::test]
async fn every_recording_of_a_slow_engine_is_answered() {
    let options = Options { version: Version::V01, backend: Backend::Recorded, ..Options::default() };
    let mut replay = Replay::of("bridge-0.1-slow-backend", options).await;
    replay.bridge.hold_jobs();
    replay.plays(1..=48).await;
    replay.is_at_the_end();
}

#[tokio::test]
async fn every_recorded_fault_happens() {
    let older = |backend, scheduler, rate_limit| Options {
        version: Version::V01,
        backend,
        scheduler,
        rate_limit,
        ..Options::default()
    };
    let mut replay = Replay::of("bridge-0.1-faults", older(Backend::Memory, false, 3)).await;
    replay.meanwhile("/health", "").await;
    replay.plays(1..=4).await;

    replay.continues_with(older(Backend::Memory, false, 120)).await;
    replay.bridge.hold_jobs();
    replay.plays(5..=6).await;
    replay.bridge.finish_jobs();
    replay.plays([7]).await;
    replay.bridge.is_down(true);
    replay.plays([8]).await;
    replay.bridge.is_down(false);
    replay.bridge.restart().await;
    replay.plays(9..=12).await;

    replay.continues_with(older(Backend::Recorded, false, 120)).await;
    replay.plays(13..=14).await;
    replay.bridge.restart().await;
    replay.plays(15..=16).await;

    replay.continues_with(older(Backend::Memory, true, 120)).await;
    replay.bridge.hold_jobs();
    replay.plays(17..=21).await;
    replay.is_at_the_end();
}

#[tokio::test]
async fn every_recording_of_the_newer_version_is_answered() {
    let options = Options { version: Version::V05, backend: Backend::Recorded, ..Options::default() };
    let mut replay = Replay::of("bridge-0.5-mcp", options).await;
    replay.bridge.hold_jobs();
    replay.plays(1..=65).await;
    replay.is_at_the_end();
}

#[test]
fn a_range_is_the_one_that_was_recorded() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/simulation-api/bridge-0.5-mcp");
    let recording = std::fs::read_to_string(folder.join("025-call-set-out-of-range.json")).unwrap();
    let ours = Range::of("Organism|Liver|Volume", Some(70.0)).unwrap();
    let said =
        format!("Value 9.9 for parameter outside plausible range [{:.4}, {:.4}] {}", ours.min, ours.max, ours.unit);
    assert!(recording.contains(&said) && !ours.allows(9.9), "{said}");
}
