//! What is told in the end, and the timeline of each violation.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use countersign::clock::Timestamp;
use countersign_sandbox::slack::SandboxSlack;

use super::{
    bots::Slot,
    case::{Case, Said},
    judge::{Kind, Violation},
    weather::Weather,
};

/// So many timelines are written for each kind of violation; the rest is counted.
const TIMELINES: u64 = 25;

/// The result of a run.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) title: String,
    pub(crate) seed: u64,
    pub(crate) took: Duration,
    /// Whether it could not be carried through to its end.
    pub(crate) broken_off: Option<String>,
    pub(crate) threads: u64,
    pub(crate) approvals: u64,
    pub(crate) operations: BTreeMap<&'static str, u64>,
    pub(crate) faults: BTreeMap<String, u64>,
    pub(crate) violations: BTreeMap<Kind, u64>,
    /// One line each, of the first of each kind.
    pub(crate) examples: Vec<String>,
    pub(crate) files: Vec<PathBuf>,
}

impl Report {
    pub(crate) fn violations(&self) -> u64 {
        self.violations.values().sum()
    }

    /// The table.
    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        let mut row = |what: &str, value: &dyn std::fmt::Display| writeln!(out, "| {what} | {value} |").ok();
        row("nemesis", &self.title);
        row("---", &"---:");
        row("seed", &self.seed);
        row("duration", &format!("{:.0} s", self.took.as_secs_f64()));
        row("threads judged", &self.threads);
        row("approved changes, done", &self.approvals);
        row("… a second", &format!("{:.1}", self.approvals as f64 / self.took.as_secs_f64().max(1.0)));
        for (what, times) in &self.operations {
            row(&format!("people: {what}"), times);
        }
        for (what, times) in &self.faults {
            row(&format!("fault: {what}"), times);
        }
        for (kind, times) in &self.violations {
            row(&format!("VIOLATION: {kind:?}"), times);
        }
        row("violations", &self.violations());
        if let Some(why) = &self.broken_off {
            row("BROKEN OFF", why);
        }
        for example in &self.examples {
            writeln!(out, "{example}").ok();
        }
        out
    }

    /// Counts what was found about a thread, and writes its timeline.
    pub(crate) fn finds(&mut self, case: &Case, said: &[Said], found: &[Violation], around: &Around<'_>) {
        let mut worth = false;
        for Violation { kind, what } in found {
            let times = self.violations.entry(*kind).or_default();
            *times += 1;
            if *times <= TIMELINES {
                worth = true;
                self.examples.push(format!("{kind:?} in thread {}: {}", case.number, what.replace('\n', " ⏎ ")));
            }
        }
        if worth {
            let path = around.folder.join(format!("seed-{}-thread-{}.txt", self.seed, case.number));
            match std::fs::write(&path, timeline(self.seed, case, said, found, around)) {
                Ok(()) => self.files.push(path),
                Err(error) => self.examples.push(format!("{} cannot be written: {error}", path.display())),
            }
        }
    }
}

/// Where a timeline is put together from.
pub(crate) struct Around<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) slack: &'a SandboxSlack,
    pub(crate) weather: &'a Weather,
    pub(crate) slots: &'a [std::sync::Arc<Slot>],
}

/// All that is known about a thread, in the order in which it happened.
fn timeline(seed: u64, case: &Case, said: &[Said], found: &[Violation], around: &Around<'_>) -> String {
    let mut out = format!("seed {seed}, thread {} ({}), asked for by {}\n\n", case.number, case.root, case.asker.name);
    for Violation { kind, what } in found {
        writeln!(out, "{kind:?}: {what}").ok();
    }
    let mut lines: Vec<(Timestamp, String)> = case.notes.clone();
    lines.extend(
        around
            .weather
            .since(Timestamp(case.began.millis() - 15_000))
            .into_iter()
            .map(|(at, what)| (at, format!("FAULT {what}"))),
    );
    let crossed = around.slack.ledger().about(case.root.as_str());
    for call in crossed.calls {
        let lost = if call.answer_lost { ", and the answer was lost" } else { "" };
        let answer =
            if call.answer["ok"] == true { format!("ok {}", call.answer["ts"]) } else { call.answer.to_string() };
        let answer: String = answer.chars().take(300).collect();
        let (nonce, text) = (&call.body["metadata"]["event_payload"]["nonce"], &call.body["text"]);
        lines.push((
            call.at,
            format!("slack call {} ts {} nonce {nonce} {text} → {answer}{lost}", call.method, call.body["ts"]),
        ));
    }
    for attempt in crossed.deliveries {
        let end = attempt.acknowledged_after_ms.map_or_else(
            || format!("failed: {}", attempt.failure.unwrap_or_default()),
            |after| format!("acknowledged after {after} ms"),
        );
        let event = &attempt.payload["event"];
        let what = if event.is_null() { &attempt.payload["actions"][0]["action_id"] } else { &event["text"] };
        lines.push((
            attempt.at,
            format!("slack tells {} {} (attempt {}) {what}: {end}", attempt.about, attempt.id, attempt.attempt),
        ));
    }
    lines.sort_by_key(|(at, _)| *at);
    out.push_str("\n== what happened ==\n");
    for (at, line) in lines {
        writeln!(out, "{at} {line}").ok();
    }
    out.push_str("\n== what the thread says ==\n");
    for said in said {
        let only = said.only_to.as_ref().map(|to| format!(" (only to {to})")).unwrap_or_default();
        writeln!(out, "--- {}{only} nonce {:?}\n{}", said.ts, said.nonce, said.words).ok();
    }
    writeln!(out, "\n== what the platform changed ==").ok();
    for effect in &case.effects {
        writeln!(out, "{} {:?}: {}", effect.at, effect.change, effect.entry).ok();
    }
    out.push_str("\n== what the bots logged about it ==\n");
    for slot in around.slots {
        let log = std::fs::read_to_string(&slot.log).unwrap_or_default();
        for line in log.lines().filter(|line| line.contains(case.root.as_str())) {
            writeln!(out, "bot {}: {line}", slot.index).ok();
        }
    }
    out
}
