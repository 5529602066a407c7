//! The dialogues in which something goes on elsewhere: a job at the simulation bridge, the portions of a sweep, a plan over
//! two domains, a question of an MCP server in the middle of a call.

use countersign::sandbox::bridge::Version;

use super::{
    beside::Beside,
    dialogues::{Act, Dialogue, PLAIN, Seen, Turn, approves, says},
    script::World,
};

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
    calls.chain(changes).chain([format!("{} runs", world.bridge().jobs().len())]).collect()
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

/// A job runs, and its stream stands.
fn runs(seen: &Seen) -> bool {
    seen.has("Running at the bridge since") && seen.follows > 0 && seen.cards() == 0
}

const ENDS: Turn = happens(|world| world.bridge().finish_jobs(), |seen| seen.has("Cmax"));

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
        turns: &[approves(runs), happens(restarts, |seen| seen.has("the bridge restarted before it ended"))],
        effects: simulated,
        ..PLAIN
    },
    Dialogue {
        name: "sweep",
        beside: Beside::Bridge(Version::V05),
        before: loaded,
        request: ("ana", "run it at 1.5, 2 and 3 L liver volume and compare cmax"),
        turns: &[approves(|seen| seen.has("Compared"))],
        effects: simulated,
        ..PLAIN
    },
    Dialogue {
        name: "plan over two domains",
        beside: Beside::Bridge(Version::V05),
        request: ("ana", "1. load the demo model as demo\n2. run demo\n3. only if cmax is above 1, start Math Hints"),
        turns: &[
            approves(|seen| seen.shows(2, 1)),
            approves(|seen| seen.shows(3, 1)),
            approves(|seen| seen.shows(4, 0)),
        ],
        effects: simulated,
        ..PLAIN
    },
    Dialogue {
        name: "elicitation",
        beside: Beside::Notes,
        request: ("ana", "call sign-board on notes"),
        turns: &[
            approves(|seen| seen.offers("answer") || seen.shows(2, 0)),
            Turn { act: Act::FillsIn("ana", "answer", "Name", "Ada"), then: |seen| seen.shows(3, 0) },
        ],
        effects: |world| world.notes().notes(),
        ..PLAIN
    },
];

/// The bridge restarts while nobody can see it do so, as far as this process goes.
fn restarts(world: &World) {
    let bridge = world.bridge();
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(bridge.restart()));
}
