//! The operations that random tests are made of.

use countersign::graph::action::Status;
use proptest::{prelude::*, sample::Index};

/// How many threads there are.
pub(crate) const THREADS: u32 = 3;

/// One thing to do. Small numbers, so that things meet.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Ingest {
        thread: u32,
        addressed: bool,
        event: u8,
        message: u8,
        leases: bool,
    },
    IngestInteraction {
        thread: u32,
        key: u8,
        claimed: bool,
    },
    Acquire {
        thread: Option<u32>,
    },
    Renew {
        lease: Index,
    },
    Messages {
        lease: Index,
        skip: usize,
    },
    Commit {
        lease: Index,
        acks: usize,
        steps: usize,
        snapshot: bool,
        wrong: bool,
        writes: Writes,
        then: u8,
        claims: usize,
    },
    RepeatCommit {
        lease: Index,
        which: Index,
    },
    Apply {
        thread: u32,
        inbox_ack: bool,
        writes: Writes,
    },
    RepeatApply {
        which: Index,
    },
    ClaimOutbox {
        thread: Option<u32>,
    },
    FinishOutbox {
        which: Index,
        sent: u8,
    },
    FinishTogether {
        sent: u8,
    },
    ClaimInteraction,
    FinishInteraction {
        which: Index,
    },
    FireTimers,
    Sweep,
    TimePasses,
    RunOut,
}

/// What a write holds beside steps and messages.
#[derive(Clone, Debug)]
pub(crate) struct Writes {
    pub(crate) message: usize,
    pub(crate) outbox: Vec<(u8, u8)>,
    pub(crate) timer: Option<(u8, u8)>,
    pub(crate) actions: Vec<(u8, Status, bool)>,
    pub(crate) audit: usize,
}

fn any_writes() -> impl Strategy<Value = Writes> {
    let actions =
        prop::collection::vec((0..2_u8, prop::sample::select(Status::ALL.to_vec()), prop::bool::weighted(0.8)), 0..2);
    let outbox = prop::collection::vec((0..3_u8, 0..5_u8), 0..4);
    (0..2_usize, outbox, prop::option::of((0..2_u8, 0..4_u8)), actions, 0..2_usize)
        .prop_map(|(message, outbox, timer, actions, audit)| Writes { message, outbox, timer, actions, audit })
}

pub(crate) fn any_op() -> impl Strategy<Value = Op> {
    let thread = || 0..THREADS;
    let maybe = || prop::option::of(0..THREADS);
    let index = any::<Index>;
    prop_oneof![
        6 => (thread(), any::<bool>(), 0..12_u8, 0..12_u8, prop::bool::weighted(0.2))
            .prop_map(|(thread, addressed, event, message, leases)| {
                Op::Ingest { thread, addressed, event, message, leases }
            }),
        2 => (thread(), 0..6_u8, any::<bool>())
            .prop_map(|(thread, key, claimed)| Op::IngestInteraction { thread, key, claimed }),
        9 => maybe().prop_map(|thread| Op::Acquire { thread }),
        1 => index().prop_map(|lease| Op::Renew { lease }),
        2 => (index(), 0..3_usize).prop_map(|(lease, skip)| Op::Messages { lease, skip }),
        9 => (index(), 0..4_usize, 0..3_usize, any::<bool>(), prop::bool::weighted(0.1), any_writes(), 0..4_u8, 0..4_usize)
            .prop_map(|(lease, acks, steps, snapshot, wrong, writes, then, claims)| {
                Op::Commit { lease, acks, steps, snapshot, wrong, writes, then, claims }
            }),
        1 => (index(), index()).prop_map(|(lease, which)| Op::RepeatCommit { lease, which }),
        5 => (thread(), any::<bool>(), any_writes())
            .prop_map(|(thread, inbox_ack, writes)| Op::Apply { thread, inbox_ack, writes }),
        1 => index().prop_map(|which| Op::RepeatApply { which }),
        5 => maybe().prop_map(|thread| Op::ClaimOutbox { thread }),
        5 => (index(), 0..20_u8).prop_map(|(which, sent)| Op::FinishOutbox { which, sent }),
        2 => (0..20_u8).prop_map(|sent| Op::FinishTogether { sent }),
        2 => Just(Op::ClaimInteraction),
        2 => index().prop_map(|which| Op::FinishInteraction { which }),
        1 => Just(Op::FireTimers),
        1 => Just(Op::Sweep),
        2 => Just(Op::TimePasses),
        2 => Just(Op::RunOut),
    ]
}
