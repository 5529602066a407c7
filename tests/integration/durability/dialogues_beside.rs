//! The dialogues in which something goes on elsewhere: a job at the simulation bridge, the portions of a sweep, a plan over
//! two domains, a question of an MCP server in the middle of a call, a language model that writes an answer.

use countersign_sandbox::{
    bridge::{Bridge, Request, Version},
    slack::world::message::{Message, StreamState},
};

use super::{
    beside::{ANSWER, Beside},
    dialogues::{Act, Dialogue, PLAIN, Seen, Turn, approves, presses, says},
    script::{Outcome, World},
};
use crate::support::bot::wait_for;

/// What happens in the world, and not by a person.
const fn happens(what: fn(&World), then: fn(&Seen) -> bool) -> Turn {
    Turn { act: Act::Beside(what), then }
}

/// The changes of the platform, and the calls with which the bridge did something, each with the person who approved it.
/// A run that is handed in again by its key does nothing.
fn simulated(world: &World) -> Vec<String> {
    let calls = world.bridge().audit().into_iter().filter(|call| call.done).map(|mut call| {
        call.arguments.as_object_mut().unwrap().remove("runId");
        let confirmed = if call.confirmed { "confirmed" } else { "not confirmed" };
        format!("{} {}, {confirmed} by {}", call.tool, call.arguments, call.subject)
    });
    let changes = world.upgrade.effects().into_iter().map(|entry| format!("{} {}", entry.method, entry.path));
    let cancels = |request: &&Request| request.tool.as_deref() == Some("cancel_job") && request.status == Some(200);
    let cancelled = world.bridge().requests().iter().filter(cancels).count();
    let counts = [format!("{} runs", world.bridge().jobs().len()), format!("{cancelled} cancellations")];
    calls.chain(changes).chain(counts).collect()
}

fn holding(world: &World) {
    world.bridge().hold_jobs();
}

fn loaded(world: &World) {
    world.bridge().has_loaded("/data/models/demo.pkml", "demo");
}

fn loaded_and_holding(world: &World) {
    loaded(world);
    holding(world);
}

/// A message that is being written.
fn is_streamed(message: &Message) -> bool {
    message.stream == Some(StreamState::InProgress)
}

/// The second half of an answer is not written before its first words were seen. What became of these does not matter.
fn holding_answer(world: &World) {
    let slack = world.slack.clone();
    world.model().holds_rest_until(move || {
        slack.look(|world| {
            let mut all = world.messages.values().flat_map(|messages| messages.values());
            all.any(|message| message.stream.is_some())
        })
    });
}

/// A job runs, and its stream stands.
fn runs(seen: &Seen) -> bool {
    seen.has("Running at the bridge since") && seen.follows > 0 && seen.cards() == 0
}

const ENDS: Turn = happens(|world| world.bridge().finish_jobs(), |seen| seen.has("Cmax"));

const LIVER: &str = "Organism|Liver|Volume";
const SWEEP: &str = "run it at 1.5, 2 and 3 L liver volume and compare cmax";
const PLAN: &str = "1. load the demo model as demo\n2. run demo\n3. only if cmax is above 1, start Math Hints";

/// All of them.
pub(super) const BESIDE: &[Dialogue] = &[
    Dialogue {
        name: "load, set and run",
        beside: Beside::Bridge(Version::V05),
        before: holding,
        request: ("ana", "load the demo model as demo"),
        turns: &[
            approves(|seen| seen.shows(2, 0) && seen.effects == 1),
            says("ana", "set the dose to 0.5 g", |seen| seen.shows(3, 1)),
            approves(|seen| seen.shows(4, 0) && seen.effects == 2),
            says("ana", "run it", |seen| seen.shows(5, 1)),
            approves(runs),
            ENDS,
        ],
        effects: simulated,
        ..PLAIN
    },
    Dialogue {
        name: "run on the older bridge",
        beside: Beside::Bridge(Version::V01),
        before: loaded_and_holding,
        request: ("ana", "run demo"),
        turns: &[approves(runs), ENDS],
        effects: simulated,
        ..PLAIN
    },
    Dialogue {
        name: "a bridge that restarts",
        beside: Beside::Bridge(Version::V05),
        before: loaded_and_holding,
        request: ("ana", "run demo"),
        turns: &[
            approves(runs),
            happens(|world| restarts(world.bridge()), |seen| seen.has("the bridge restarted before it ended")),
        ],
        effects: simulated,
        ..PLAIN
    },
    Dialogue {
        name: "sweep",
        beside: Beside::Bridge(Version::V05),
        before: |world| {
            loaded(world);
            world.bridge().changes("demo", LIVER, 1.8);
        },
        request: ("ana", SWEEP),
        turns: &[approves(|seen| seen.has("It is 1.8 L again"))],
        effects: simulated,
        ..PLAIN
    },
    Dialogue {
        name: "run that is stopped",
        beside: Beside::Bridge(Version::V05),
        before: loaded_and_holding,
        request: ("ana", "run demo"),
        turns: &[approves(runs), says("ana", "@countersign stop", |seen| seen.has("I asked the bridge to cancel"))],
        effects: simulated,
        ..PLAIN
    },
    Dialogue {
        name: "sweep that is stopped",
        beside: Beside::Bridge(Version::V05),
        before: |world| {
            loaded_and_holding(world);
            world.bridge().changes("demo", LIVER, 1.8);
        },
        request: ("ana", SWEEP),
        turns: &[
            approves(|seen| seen.follows > 0 && seen.cards() == 0 && seen.has("at 1.5 L")),
            happens(|world| drop(world.bridge().finish_next_job()), |seen| seen.has("at 2 L") && seen.follows == 2),
            says("ana", "@countersign stop", |seen| seen.has("after 1 of 3 values")),
        ],
        effects: simulated,
        ..PLAIN
    },
    Dialogue {
        name: "plan over two domains",
        beside: Beside::Bridge(Version::V05),
        before: holding,
        request: ("ana", PLAN),
        turns: &[
            approves(|seen| seen.has("Step 2 of 3") && seen.cards() == 1),
            approves(runs),
            happens(|world| world.bridge().finish_jobs(), |seen| seen.has("Step 3 of 3") && seen.cards() == 1),
            approves(|seen| seen.effects == 3 && seen.has("Started “Math Hints”")),
        ],
        effects: simulated,
        ..PLAIN
    },
    Dialogue {
        name: "plan whose condition fails",
        beside: Beside::Bridge(Version::V05),
        before: loaded_and_holding,
        request: ("ana", "1. run demo\n2. only if cmax is above 1000, start Math Hints"),
        turns: &[approves(runs), happens(|world| world.bridge().finish_jobs(), |seen| seen.has("I stopped here"))],
        effects: simulated,
        ..PLAIN
    },
    Dialogue {
        name: "streamed answer",
        beside: Beside::Model,
        before: holding_answer,
        request: ("ana", "tell me something about the place where it happens"),
        asked: |seen| seen.has(ANSWER) && !seen.messages.iter().any(is_streamed),
        ..PLAIN
    },
    Dialogue {
        name: "elicitation",
        beside: Beside::Notes,
        request: ("ana", "call sign-board on notes"),
        turns: &[
            approves(|seen| seen.offers("answer") || is_over(seen)),
            Turn { act: Act::FillsIn("ana", "answer", "Name", "Ada"), then: is_over },
        ],
        effects: signed,
        agrees: is_honest,
        ..PLAIN
    },
    Dialogue {
        name: "elicitation that is declined",
        beside: Beside::Notes,
        request: ("ana", "call sign-board on notes"),
        turns: &[approves(|seen| seen.offers("decline") || is_over(seen)), presses("ana", "decline", "", is_over)],
        effects: signed,
        agrees: is_honest,
        ..PLAIN
    },
];

/// A call is over: its outcome was told.
fn is_over(seen: &Seen) -> bool {
    seen.has("It answered") || seen.has("It may or may not have happened")
}

/// The notes on the board, and how often the tool was called.
fn signed(world: &World) -> Vec<String> {
    let calls = world.notes().calls().len();
    world.notes().notes().into_iter().chain([format!("{calls} calls")]).collect()
}

/// A question of a server does not outlive the process that made the call. So it comes out as without a crash, or the call
/// is told as one of which nobody knows, once: it was made once at most, and the note is the one that was asked for, if any.
fn is_honest(undisturbed: &Outcome, interrupted: &Outcome) -> bool {
    let told = |outcome: &Outcome, words: &str| outcome.words.iter().filter(|said| said.contains(words)).count();
    let calls = interrupted.effects.iter().all(|effect| undisturbed.effects.contains(effect) || effect == "0 calls");
    undisturbed == interrupted
        || calls
            && interrupted.recorded == undisturbed.recorded
            && told(interrupted, "restarted") == 2 // on the card and in the thread
            && told(interrupted, "It may or may not have happened") == 2
            && told(interrupted, "It answered") == 0
}

/// Restarts a bridge.
pub(super) fn restarts(bridge: &Bridge) {
    wait_for(bridge.restart());
}

/// The end of a change was told, or the request was refused at once.
fn is_told(seen: &Seen) -> bool {
    let is_refused = seen.messages.len() == 1 && !seen.has("Approved by");
    seen.cards() == 0 && (seen.messages.len() > 1 || is_refused)
}

/// A run that is requested, approved, and reported when it ends.
const RUN: Dialogue = Dialogue {
    name: "run",
    beside: Beside::Bridge(Version::V05),
    before: loaded,
    request: ("ana", "run demo"),
    asked: |seen| seen.cards() == 1 || is_told(seen),
    turns: &[approves(is_told)],
    effects: simulated,
    ..PLAIN
};

/// The dialogues that a restart of the bridge interrupts.
pub(super) const RESTARTED: &[Dialogue] = &[
    RUN,
    Dialogue { name: "run on the older bridge", beside: Beside::Bridge(Version::V01), ..RUN },
    Dialogue {
        name: "sweep",
        before: |world| {
            loaded(world);
            world.bridge().changes("demo", LIVER, 1.8);
        },
        request: ("ana", SWEEP),
        ..RUN
    },
];
