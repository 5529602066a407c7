//! What waits in the inbox: entries that are handled without leasing a thread. Stored, so each shape must stay readable.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, ChannelId, MessageTs, ThreadId, UserId},
};
use serde::{Deserialize, Serialize};

use super::{outbox::twins::Twins, stopping::Stop};
use crate::{
    approvals::clicks::{Click, Reason, Typed},
    commands::{Command, in_thread::Here},
    record::rating::Rated,
    surfaces::{
        creation::Wanted,
        home::content::Pages,
        shortcuts::{Asked, Shortcut},
    },
};

/// Whether an interaction decides nothing, whoever wrote it: the timers of a card, which only close it or speak of it.
pub fn decides_nothing(entry: &serde_json::Value) -> bool {
    matches!(entry["kind"].as_str(), Some("expire" | "remind" | "tell"))
}

/// One thing to handle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Interaction {
    /// Somebody pressed a button of a card.
    Click(Click),
    /// Somebody typed a plain yes, no or never mind in a thread.
    Typed(Typed),
    /// A card's time is over.
    Expire {
        /// Which.
        approval: ApprovalId,
    },
    /// A card's time is nearly over.
    Remind {
        /// Which.
        approval: ApprovalId,
    },
    /// Nobody decided for so long that more people are asked.
    Escalate {
        /// Which.
        approval: ApprovalId,
    },
    /// The time is over until which an action waits for an event.
    Overdue {
        /// Where.
        thread: ThreadId,
        /// Which.
        action: ActionId,
        /// The time.
        until: Timestamp,
    },
    /// Somebody gave a reason for their rejection.
    Reason(Reason),
    /// Somebody told the bot “status” or “cancel” in a thread.
    Here(Here),
    /// Somebody asks about a message with the shortcut: the window is to be opened.
    Ask(Shortcut),
    /// What somebody asked in that window.
    Asked(Asked),
    /// Somebody wants the notebook of a message's thread.
    Export(Shortcut),
    /// Somebody wants to propose something new: the window is to be opened.
    New {
        /// Who.
        by: UserId,
        /// The callback id of the shortcut; empty in what earlier versions stored.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        shortcut: String,
        /// Opens a window, for three seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger_id: Option<String>,
    },
    /// What somebody proposed in that window.
    Wanted(Wanted),
    /// A slash command.
    Command(Command),
    /// Somebody opened the App Home.
    Home {
        /// Who.
        user: UserId,
        /// Which pages they look at.
        #[serde(default, skip_serializing_if = "Pages::is_first")]
        pages: Pages,
    },
    /// People who are named by a card's policy are to be told that it waits.
    Tell {
        /// Which card.
        approval: ApprovalId,
    },
    /// Somebody wants what is being done in a thread to end.
    Stop(Stop),
    /// Somebody wants a thread exported, in it.
    Notebook {
        /// The thread.
        thread: ThreadId,
        /// Who.
        by: UserId,
        /// Whether it was said to the bot.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        addressed: bool,
    },
    /// Somebody said whether an answer helped.
    Rated(Rated),
    /// Somebody wants something sent once more that could not be delivered.
    SendAgain(SendAgain),
    /// A message that may be there twice is to be looked for.
    Twins(Twins),
    /// Somebody begins to talk with the bot for the first time: what can be asked.
    Prompts {
        /// Where.
        channel: ChannelId,
        /// In which thread, where Slack has made one for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<MessageTs>,
    },
}

/// A request that something is sent once more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendAgain {
    /// What: the nonce of the message.
    pub key: String,
    /// Who.
    pub by: UserId,
    /// Where it was pressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelId>,
    /// In which thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<MessageTs>,
    /// Where to answer, for 30 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_url: Option<String>,
}

impl SendAgain {
    /// The conversation where it was pressed, and the thread in it.
    pub fn place(&self) -> Option<(&ChannelId, Option<&MessageTs>)> {
        self.channel.as_ref().map(|channel| (channel, self.thread.as_ref()))
    }
}

/// Orders of which it was not kept were all said to the bot.
fn yes() -> bool {
    true
}

fn is_yes(addressed: &bool) -> bool {
    *addressed
}

impl Interaction {
    /// As it is stored.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("an interaction is plain data")
    }
}
