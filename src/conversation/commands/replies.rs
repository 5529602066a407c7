//! The replies to commands.

use countersign_capabilities::{Registry, Takes, facts::Health};
use countersign_config::{Envelope, Measure};
use countersign_core::{
    clock::{Timestamp, ago},
    ids::ChannelId,
    reply::{Part, Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Policy},
    store::Error,
};

use super::{
    grammar::{self, CommandError, CommandWord},
    settings::{ActionPolicies, Settings, grouped_by_policy},
};
use crate::{presentation::links::linked, record::status::words};

/// The visibility of an open action's card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardVisibility {
    /// The card is posted, or was requested only recently.
    Shown,
    /// The card is not posted yet.
    NotYet,
    /// Slack refused the card.
    Refused,
}

/// Returns the line of an open action: `Start “Math Hints” · asked by Ana · open until …`
pub fn waiting(record: &ActionRecord, visibility: CardVisibility, now: Timestamp) -> Text {
    let line = Text::new().bold(record.act()).plain(" · asked by ").person(record.requested_by.clone());
    let line = match (record.policy.needed, record.approved_by().len()) {
        (needed, so_far) if needed > 1 => line.plain(format!(" · {so_far} of {needed} have approved")),
        _ => line,
    };
    let line = match visibility {
        CardVisibility::Shown => line,
        CardVisibility::NotYet => line.plain(" · its card is not in the thread yet"),
        CardVisibility::Refused => line.plain(" · its card could not be shown"),
    };
    if now >= record.expires_at {
        line.plain(" · its time is over")
    } else {
        line.plain(" · open until ").moment(record.expires_at)
    }
}

/// Returns the line of a past action: `Start “Math Hints” was done · asked by Ana …`
pub fn run(record: &ActionRecord) -> Text {
    Text::new()
        .bold(record.act())
        .plain(format!(" {} · asked by ", words(record)))
        .person(record.requested_by.clone())
        .plain(" ")
        .moment(record.requested_at)
}

/// Returns the line of an action that is being done or has no known outcome, with its progress:
/// `Compare 3 values is being done · asked by Ana … · began … · 1 of 3`.
pub fn in_progress(record: &ActionRecord) -> Text {
    let line = run(record);
    let line = match record.intent_at {
        Some(at) => line.plain(" · began ").moment(at),
        None => line,
    };
    match &record.progress {
        Some(progress) if progress.total > 1 => line.plain(format!(" · {} of {}", progress.done, progress.total)),
        _ => line,
    }
}

/// Returns the line of the reader's own request: `Start “Math Hints” was done · asked …`
pub fn own(record: &ActionRecord) -> Text {
    Text::new().bold(record.act()).plain(format!(" {} · asked ", words(record))).moment(record.requested_at)
}

/// Returns the reply with the open actions.
pub fn pending(lines: Vec<Text>, more: bool, now: Timestamp) -> Reply {
    if lines.is_empty() {
        return Reply::text("Nothing is waiting for a decision here, and nothing of yours elsewhere.");
    }
    listed("Waiting for a decision:", lines, more, now)
}

/// Returns the reply with the latest changes.
pub fn runs(lines: Vec<Text>, more: bool, now: Timestamp) -> Reply {
    if lines.is_empty() {
        return Reply::text("No change has been asked for here yet, and none by you elsewhere.");
    }
    listed("The latest changes:", lines, more, now)
}

/// Returns the reply with the reader's own requests.
pub fn mine(lines: Vec<Text>, more: bool, now: Timestamp) -> Reply {
    if lines.is_empty() {
        return Reply::text("You have not asked for a change yet.");
    }
    listed("You asked for:", lines, more, now)
}

fn listed(title: &str, lines: Vec<Text>, more: bool, now: Timestamp) -> Reply {
    let shown = lines.len();
    let age = Text::from("As of ").moment(now).plain(".");
    let age = if more { age.plain(format!(" Older ones than these {shown} are not listed.")) } else { age };
    Reply::text(title).and(Part::List(lines)).hint(age)
}

/// Returns the line on an outside system: its name, its version and the age of both.
fn health_line(health: &Health, now: Timestamp) -> Text {
    let Some(fact) = &health.fact else { return Text::from("does not answer at the moment") };
    let name = fact.answer["name"].as_str().unwrap_or(health.service.name);
    let version = fact.answer["version"].as_str().unwrap_or("unknown");
    let before = if fact.fresh { "" } else { "it does not answer now; this is from " };
    Text::from(name).plain(", version ").code(version).plain(format!(" ({before}{})", ago(now, fact.at)))
}

/// Returns the reply with the settings: the approvers of actions, the model, the platforms and the
/// limits.
pub fn settings(settings: &Settings, services: &[Health], now: Timestamp) -> Reply {
    let model = match &settings.model {
        Some(name) => Text::new().code(name),
        None => Text::from("none; the documented phrases are understood without one"),
    };
    let mut reply = Reply::default()
        .and(Part::Heading("Who may decide here".to_owned()))
        .and(Part::List(policy_lines(&settings.policies)));
    for (context, policies) in
        settings.contexts.iter().take(MAX_SETTINGS_LISTED).filter(|(_, policies)| !policies.is_empty())
    {
        let heading = Text::new().plain("What is different in ").code(context).plain(":");
        reply = reply.and(Part::Text(heading)).and(Part::List(policy_lines(policies)));
    }
    if settings.contexts.len() > MAX_SETTINGS_LISTED {
        reply = reply.and(Part::Text(
            format!("{} more contexts have rules of their own.", settings.contexts.len() - MAX_SETTINGS_LISTED).into(),
        ));
    }
    if !settings.envelopes.is_empty() {
        let lines = settings
            .envelopes
            .iter()
            .take(MAX_SETTINGS_LISTED)
            .map(|(name, envelope)| envelope_line(name, envelope, settings.measures));
        let how = "Outside of these limits two people have to approve, and the one who asked is neither:";
        reply = reply.and(Part::Text(how.into())).and(Part::List(lines.collect()));
        if settings.envelopes.len() > MAX_SETTINGS_LISTED {
            reply = reply.and(Part::Text(
                format!("There are {} more of these.", settings.envelopes.len() - MAX_SETTINGS_LISTED).into(),
            ));
        }
    }
    let one = services.len() == 1;
    let label = |health: &Health| if one { "Platform" } else { health.service.name }.to_owned();
    let call = |health: &Health| {
        let to = if one { "the platform" } else { health.service.name };
        (format!("One call to {to} may take"), Text::from(time(health.service.timeout)))
    };
    let platforms = services.iter().map(|health| (label(health), health_line(health, now)));
    let facts = platforms
        .chain([
            ("Language model".to_owned(), model),
            ("A card is open for".to_owned(), Text::from(time(settings.expires_after))),
            ("One step may take".to_owned(), Text::from(time(settings.step_timeout))),
        ])
        .chain(services.iter().map(call))
        .chain([("Threads worked on at a time".to_owned(), Text::from(settings.threads.to_string()))]);
    reply
        .and(Part::Heading("How I am set up".to_owned()))
        .and(Part::Facts(facts.collect()))
        .hint("These are settings of whoever runs me; nothing can be changed here.")
}

/// The maximum number of contexts, and of envelopes, that are listed.
const MAX_SETTINGS_LISTED: usize = 8;

/// Returns one line for each policy: `By anyone in this channel: …`
fn policy_lines(policies: &[ActionPolicies]) -> Vec<Text> {
    let lines =
        grouped_by_policy(policies).into_iter().map(|(ActionPolicies { policy, irreversible, .. }, actions)| {
            let mut line = Text::new().plain("By ").join(policy.deciders()).plain(how_many(policy));
            if policy.own_request && !irreversible.own_request && !policy.approvers.is_empty() {
                line = line.plain(", but not by the person who asked where it cannot be undone");
            }
            if let Some(escalation) = &policy.escalation {
                let after = time(std::time::Duration::from_millis(escalation.after_ms));
                line =
                    line.plain(", and after ").plain(after).plain(" by ").join(escalation.deciders()).plain(" as well");
            }
            line.plain(": ").join(codes(&actions))
        });
    lines.collect()
}

/// Returns the line of an envelope: `pilot, for Math Hints: weights from 10 % to 90 %; …`
fn envelope_line(name: &str, envelope: &Envelope, measures: &[&[Measure]]) -> Text {
    let named: Vec<_> = envelope.contexts.iter().chain(&envelope.subjects).map(String::as_str).collect();
    let limits: Vec<_> =
        measures.iter().copied().flatten().filter_map(|measure| measure.describe(&envelope.limits)).collect();
    let limits = if limits.is_empty() { "no limits".to_owned() } else { limits.join("; ") };
    Text::new().code(name).plain(format!(", for {}: {limits}", named.join(", ")))
}

fn how_many(policy: &Policy) -> String {
    if policy.needed > 1 { format!(", {} different people", policy.needed) } else { String::new() }
}

fn codes(actions: &[&str]) -> Text {
    actions.iter().enumerate().fold(Text::new(), |line, (nth, action)| {
        let line = if nth > 0 { line.plain(", ") } else { line };
        line.plain(action.replace('_', " "))
    })
}

fn time(duration: std::time::Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        s if s >= 7200 && s.is_multiple_of(3600) => format!("{} hours", s / 3600),
        s if s >= 120 && s.is_multiple_of(60) => format!("{} minutes", s / 60),
        s => format!("{s} seconds"),
    }
}

/// Returns the reply with all words of a command.
pub fn help(registry: &Registry, command: &str) -> Reply {
    let words = grammar::words(registry);
    let lines = words.iter().filter(|known| known.command == command).map(|CommandWord { word, .. }| {
        let takes = match word.takes {
            Takes::Nothing => String::new(),
            Takes::Optional(what) => format!(" [{what}]"),
            Takes::Required(what) => format!(" <{what}>"),
        };
        Text::new().code(format!("{command} {}{takes}", word.word)).plain(format!("  {}", word.what))
    });
    Reply::text("You can ask me:")
        .and(Part::List(lines.collect()))
        .hint("For everything else, mention me in a channel or write to me directly, in your own words. In a thread, where Slack allows no commands, mention me with “status” or “cancel”.")
}

/// The maximum length of an unknown word that the reply repeats, in characters.
const MAX_WORD_CHARS: usize = 40;

/// Returns the reply to a command that is not understood, with a suggestion.
pub fn wrong(command: &str, wrong: &CommandError) -> Reply {
    let (text, word) = match wrong {
        CommandError::UnknownWord { word, nearest } => {
            let word: String = match word.chars().count() {
                0..=MAX_WORD_CHARS => word.clone(),
                _ => word.chars().take(MAX_WORD_CHARS).chain(['…']).collect(),
            };
            let text = Text::from("I don't know ").code(format!("{command} {word}")).plain(".");
            match nearest {
                Some(known) => (text.plain(" Did you mean ").code(full_name(known)).plain("?"), known),
                None => return Reply::text(text).hint(Text::from("Try ").code(format!("{command} help")).plain(".")),
            }
        }
        CommandError::MissingText(known) => {
            let what = match known.word.takes {
                Takes::Required(what) | Takes::Optional(what) => what,
                Takes::Nothing => "more",
            };
            (Text::new().code(full_name(known)).plain(format!(" needs a {what} after it.")), known)
        }
        CommandError::UnexpectedText(known) => {
            (Text::new().code(full_name(known)).plain(" takes nothing after it."), known)
        }
    };
    Reply::text(text).hint(Text::from("For example: ").code(format!("{} {}", word.command, word.word.example)))
}

fn full_name(known: &CommandWord) -> String {
    format!("{} {}", known.command, known.word.word)
}

/// Returns the reply that a notebook is being posted in its thread, which is identified by its
/// title and channel.
pub fn exported(title: Option<&str>, channel: &ChannelId, url: Option<String>) -> Reply {
    let text = Text::from("The notebook of the thread ");
    let text = match title {
        Some(title) => text.plain("“").plain(title).plain("” "),
        None => text,
    };
    let text = match channel.is_direct() {
        true => text.plain("in our direct messages"),
        false => text.plain("in ").channel(channel.clone()),
    };
    let text = text.plain(" is on its way into it: one file to read, one to check.");
    Reply::text(linked(text, url, "open the thread"))
}

/// Returns the reply if the text after the word is not a link to a message.
pub fn no_link() -> Reply {
    Reply::text("That is no link to a message. Use “Copy link” in the menu of any message of the thread.")
        .hint(Text::from("For example: ").code("/countersign notebook https://…/archives/C…/p…"))
}

/// Returns the reply if the person has never requested a change.
pub fn no_thread() -> Reply {
    Reply::text("You have not asked for a change yet, so I don't know which thread you mean.")
        .hint("Put the link to a message of the thread after the word, or use “Export this thread” in its menu.")
}

/// Returns the reply if the person may not be able to read the thread.
pub fn not_your_thread() -> Reply {
    Reply::text("I can't see from here whether you are in that thread.")
        .hint("Type the command in its channel, or use “Export this thread” in the menu of one of its messages.")
}

/// Returns the reply if the store does not answer.
pub fn unavailable(error: &Error) -> Reply {
    tracing::warn!(error = countersign_core::cause::chain(&error), "A command could not be answered");
    Reply::text("I can't reach my own memory at the moment.").hint("Try again in a minute, or tell whoever runs me.")
}

/// Returns the reply with the running and waiting actions of a thread.
pub fn thread_status(records: Vec<Text>, is_asking: bool, last: Option<Text>) -> Reply {
    let reply = match (records.is_empty(), is_asking) {
        (true, true) => {
            Reply::text("I am waiting for the answer to my last question here. Nothing else is running or waiting.")
        }
        (true, false) => Reply::text("Nothing is running or waiting in this thread."),
        (false, is_asking) => {
            let reply = Reply::text("In this thread:").and(Part::List(records));
            if is_asking {
                reply.and(Part::Text("I am also waiting for the answer to my last question.".into()))
            } else {
                reply
            }
        }
    };
    match last {
        Some(last) => reply.hint(Text::from("Last: ").join(last)),
        None => reply,
    }
}

/// Appends the steps of the plan that is being carried out in a thread. `place` is the position of the current step.
pub fn with_plan(reply: Reply, place: Option<&str>, lines: &[String]) -> Reply {
    let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
    match lines {
        [] => reply,
        lines => reply
            .and(Part::Text(format!("The plan here{place}:").into()))
            .and(Part::List(lines.iter().map(|line| Text::from(line.as_str())).collect())),
    }
}

/// Returns the reply about the requests that were withdrawn in a thread.
pub fn withdrawn_in_thread(withdrawn: Vec<Text>, running: bool) -> Reply {
    match (withdrawn.as_slice(), running) {
        ([], true) => Reply::text(
            "What you asked for here is being done already. The Stop button on its card ends it, where it can be ended.",
        ),
        ([], false) => Reply::text("Nothing that you asked for is waiting in this thread."),
        ([one], _) => Reply::text(Text::from("Withdrawn: ").join(one.clone()).plain(". Nothing was changed.")),
        (several, _) => Reply::text("Withdrawn, and nothing was changed:").and(Part::List(several.to_vec())),
    }
}
