//! The dialogues that crashes interrupt. Each is a few lines: what is asked for, what people do then, and what must be
//! seen before the next of it. How it must come out is not written here: a run without a crash tells that.

use countersign::ids::MessageTs;
use countersign_sandbox::slack::world::message::Message;

use super::{
    beside::Beside,
    script::{Outcome, World},
};

/// What somebody does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Says something in the thread.
    Says(&'static str, &'static str),
    /// Presses the newest button of this action id on a message with these words.
    Presses(&'static str, &'static str, &'static str),
    /// Opens a form with the newest button of this action id, and enters this under this label.
    FillsIn(&'static str, &'static str, &'static str, &'static str),
    /// Sets the state of an experiment, on the platform itself.
    Elsewhere(&'static str, &'static str),
    /// Nobody does anything; this happens in the world.
    Beside(fn(&World)),
}

/// One thing that happens, and what is to be seen before the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) act: Act,
    pub(super) then: fn(&Seen) -> bool,
}

/// What can be seen.
#[derive(Debug)]
pub(super) struct Seen {
    /// The messages of the bot in the thread.
    pub(super) messages: Vec<Message>,
    /// How often the platform, or what stands beside it, was changed.
    pub(super) effects: usize,
    /// Of how many jobs the event stream was opened, or how often a mailbox that is known was asked for news.
    pub(super) follows: usize,
}

impl Seen {
    /// Whether a message has a button that decides.
    pub(super) fn is_open(message: &Message) -> bool {
        message.buttons().iter().any(|button| button.action_id == "approve")
    }

    /// How many cards wait.
    pub(super) fn cards(&self) -> usize {
        self.messages.iter().filter(|message| Self::is_open(message)).count()
    }

    /// The newest message with this button and these words.
    pub(super) fn newest_with(&self, button: &str, words: &str) -> Option<MessageTs> {
        let has = |message: &&Message| {
            message.buttons().iter().any(|other| other.action_id == button) && message.words().contains(words)
        };
        self.messages.iter().rev().find(has).map(|message| message.ts.clone())
    }

    /// Whether a button of this action id is there.
    pub(super) fn offers(&self, button: &str) -> bool {
        self.newest_with(button, "").is_some()
    }

    /// Whether a message has these words.
    pub(super) fn has(&self, words: &str) -> bool {
        self.messages.iter().any(|message| message.words().contains(words))
    }

    /// So many messages, and so many cards that wait.
    pub(super) fn shows(&self, messages: usize, cards: usize) -> bool {
        self.messages.len() >= messages && self.cards() == cards
    }
}

/// A dialogue.
pub(super) struct Dialogue {
    pub(super) name: &'static str,
    /// What is there before.
    pub(super) before: fn(&World),
    /// Who asks for what, and what is to be seen then. Where there is mail, nobody asks.
    pub(super) request: (&'static str, &'static str),
    pub(super) asked: fn(&Seen) -> bool,
    pub(super) turns: &'static [Turn],
    /// What the platform was made to do in the end.
    pub(super) effects: fn(&World) -> Vec<String>,
    /// Whether what is said depends on chance, such as the order in which two requests arrive.
    pub(super) by_chance: bool,
    /// The system that stands beside Slack and the platform.
    pub(super) beside: Beside,
    /// Whether an interrupted dialogue came out as it may, by how it comes out undisturbed.
    pub(super) agrees: fn(&Outcome, &Outcome) -> bool,
}

pub(super) const fn says(who: &'static str, text: &'static str, then: fn(&Seen) -> bool) -> Turn {
    Turn { act: Act::Says(who, text), then }
}

pub(super) const fn presses(
    who: &'static str,
    button: &'static str,
    on: &'static str,
    then: fn(&Seen) -> bool,
) -> Turn {
    Turn { act: Act::Presses(who, button, on), then }
}

pub(super) const fn approves(then: fn(&Seen) -> bool) -> Turn {
    presses("bo", "approve", "", then)
}

/// Each change, in order.
fn changes(world: &World) -> Vec<String> {
    world.upgrade.effects().iter().map(|entry| format!("{} {}", entry.method, entry.path)).collect()
}

/// Changes of different threads of work come in any order.
fn in_any_order(world: &World) -> Vec<String> {
    let mut all = changes(world);
    all.sort();
    all
}

/// How many took part, and how often anybody did twice: never, whoever they were.
fn marks(world: &World) -> Vec<String> {
    let marks = world.upgrade.effects().into_iter().filter(|entry| entry.path.ends_with("/mark"));
    let mut users: Vec<_> = marks.filter_map(|entry| entry.user_id).collect();
    let all = users.len();
    users.sort();
    users.dedup();
    vec![format!("{} took part, {} of them twice", users.len(), all - users.len())]
}

fn nothing(_: &World) {}

fn with_a_trial(world: &World) {
    world.upgrade.has("Trial", "enrolling");
}

pub(super) const PLAIN: Dialogue = Dialogue {
    name: "",
    before: nothing,
    request: ("ana", "start the Math Hints experiment"),
    asked: |seen| seen.shows(1, 1),
    turns: &[],
    effects: changes,
    by_chance: false,
    beside: Beside::Nothing,
    agrees: |undisturbed, interrupted| undisturbed == interrupted,
};

/// All of them. The first is the one of which pairs of crashes are played.
pub(super) const DIALOGUES: &[Dialogue] = &[
    Dialogue { name: "start", turns: &[approves(|seen| seen.shows(2, 0) && seen.effects == 1)], ..PLAIN },
    Dialogue {
        name: "supersede",
        request: ("ana", "schedule Math Hints for 2099-01-15"),
        turns: &[
            says("ana", "at 9:00", |seen| seen.shows(2, 1)),
            approves(|seen| seen.shows(3, 0) && seen.effects == 1),
        ],
        ..PLAIN
    },
    Dialogue {
        name: "edit",
        turns: &[
            Turn { act: Act::FillsIn("ana", "edit", "Status", "cancelled"), then: |seen| seen.shows(2, 1) },
            approves(|seen| seen.shows(3, 0) && seen.effects == 1),
        ],
        ..PLAIN
    },
    Dialogue {
        name: "several at once",
        request: ("ana", "stop “Trial”, “Lesson Video Hints” and “Another Trial”"),
        before: |world| ["Trial", "Another Trial"].iter().for_each(|name| drop(world.upgrade.has(name, "enrolling"))),
        turns: &[approves(|seen| seen.shows(2, 0) && seen.effects == 3)],
        ..PLAIN
    },
    Dialogue {
        name: "two requests at once",
        asked: |_| true,
        turns: &[
            says("ana", "@countersign stop Lesson Video Hints", |seen| seen.cards() == 2),
            presses("bo", "approve", "Start “Math Hints”", |seen| seen.cards() == 1 && seen.effects == 1),
            presses("bo", "approve", "Lesson Video Hints", |seen| seen.shows(4, 0) && seen.effects == 2),
        ],
        effects: in_any_order,
        by_chance: true,
        ..PLAIN
    },
    Dialogue {
        name: "undo",
        turns: &[
            approves(|seen| seen.shows(2, 0) && seen.offers("undo")),
            presses("ana", "undo", "", |seen| seen.shows(3, 1)),
            approves(|seen| seen.shows(4, 0) && seen.effects == 2),
        ],
        ..PLAIN
    },
    Dialogue {
        name: "try again",
        turns: &[
            Turn { act: Act::Elsewhere("Math Hints", "enrollmentComplete"), then: |seen| seen.effects == 1 },
            approves(|seen| seen.shows(2, 0) && seen.offers("again")),
            presses("ana", "again", "", |seen| seen.shows(3, 1)),
            approves(|seen| seen.shows(4, 0) && seen.effects == 2),
        ],
        ..PLAIN
    },
    Dialogue {
        // Said to the bot: a bare yes to a card that was posted, but is not known to be since the bot died right then, is
        // taken for talk among people, and whoever said it is told to press the button.
        name: "typed consent",
        turns: &[says("bo", "@countersign yes", |seen| seen.shows(2, 0) && seen.effects == 1)],
        ..PLAIN
    },
    Dialogue {
        name: "plan of two steps",
        request: ("ana", "1. start Math Hints\n2. stop it"),
        turns: &[
            approves(|seen| seen.shows(2, 1) && seen.effects == 1),
            approves(|seen| seen.shows(3, 0) && seen.effects == 2),
        ],
        ..PLAIN
    },
    Dialogue {
        // The message has the time of the look, so only the number of messages is compared: none is lost or sent twice.
        name: "watch",
        request: ("ana", "tell me when Math Hints starts"),
        asked: |seen| seen.has("I'll tell you here"),
        turns: &[Turn {
            act: Act::Elsewhere("Math Hints", "enrolling"),
            then: |seen| seen.shows(2, 0) && seen.has(" has started"),
        }],
        by_chance: true,
        ..PLAIN
    },
    Dialogue {
        name: "standing approval",
        before: with_a_trial,
        request: ("ana", "allow up to 60 simulated users in Trial until Friday"),
        turns: &[
            approves(|seen| seen.shows(2, 0)),
            says("ana", "enrol 5 users in Trial", |seen| seen.shows(4, 0) && seen.effects >= 5),
        ],
        effects: marks,
        by_chance: true,
        ..PLAIN
    },
    Dialogue {
        name: "batches",
        before: with_a_trial,
        request: ("ana", "test the balance of Trial with 40 users"),
        turns: &[approves(|seen| seen.shows(2, 0) && seen.effects >= 40)],
        effects: marks,
        by_chance: true,
        ..PLAIN
    },
];
