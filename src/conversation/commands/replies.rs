//! The replies to commands.

use countersign_capabilities::{Registry, Takes, facts::Health};
use countersign_config::{CostLimits, Envelope, Measure};
use countersign_core::{
    cause,
    clock::{Timestamp, ago},
    ids::ChannelId,
    reply::{Part, Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Policy, Status},
    store::Error,
};
use countersign_model::prices::dollars;

use super::{
    grammar::{self, CommandError, CommandWord},
    settings::{ActionPolicies, Settings, grouped_by_policy},
};
use crate::{
    presentation::links::linked,
    record::{sight::act_and_status, spending::Limits},
};

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

/// Returns the line of an open action: `Start “Math Hints” · asked by Ana · expires …`
pub fn waiting(record: &ActionRecord, visibility: CardVisibility, now: Timestamp) -> Text {
    let line = Text::new().bold(record.act()).plain(" · ").join(record.asked_by());
    let line = match (record.policy.needed, record.approved_by().len()) {
        (needed, so_far) if needed > 1 => line.plain(format!(" · {so_far} of {needed} approvals")),
        _ => line,
    };
    let line = match visibility {
        CardVisibility::Shown => line,
        CardVisibility::NotYet => line.plain(" · card not posted yet"),
        CardVisibility::Refused => line.plain(" · card couldn't be posted"),
    };
    if now >= record.expires_at { line.plain(" · expired") } else { line.join(record.end_in_words()) }
}

/// Returns the line of a past action: `Started “Math Hints” · asked by Ana …`
pub fn run(record: &ActionRecord) -> Text {
    with_status(record).join(record.asked_by()).plain(" ").moment(record.requested_at)
}

/// Returns the beginning of a line: `Start “Math Hints” was rejected · `
fn with_status(record: &ActionRecord) -> Text {
    let (act, status) = act_and_status(record);
    Text::new().bold(act).plain(format!("{status} · "))
}

/// Returns the line of an action that is being done or has no known outcome, with its progress:
/// `Compare 3 values is being done · asked by Ana … · started … · 1 of 3`.
pub fn in_progress(record: &ActionRecord) -> Text {
    let line = run(record);
    let line = match record.intent_at {
        Some(at) => line.plain(" · started ").moment(at),
        None => line,
    };
    match &record.progress {
        Some(progress) if progress.total > 1 => line.plain(format!(" · {} of {}", progress.done, progress.total)),
        _ => line,
    }
}

/// Returns the line of the reader's own request: `Started “Math Hints” · asked …`
pub fn own(record: &ActionRecord) -> Text {
    let how = if record.is_suggested() { "suggested by the assistant" } else { "asked" };
    with_status(record).plain(format!("{how} ")).moment(record.requested_at)
}

/// Returns the reply with the open actions.
pub fn pending(lines: Vec<Text>, more: bool, now: Timestamp) -> Reply {
    if lines.is_empty() {
        return Reply::text("Nothing is waiting for a decision here, and you have no open requests elsewhere.");
    }
    listed("Waiting for a decision:", lines, more, now)
}

/// Returns the reply with the latest changes.
pub fn runs(lines: Vec<Text>, more: bool, now: Timestamp) -> Reply {
    if lines.is_empty() {
        return Reply::text("No changes have been requested here, and you haven't requested any elsewhere.");
    }
    listed("Recent changes:", lines, more, now)
}

/// Returns the reply with the reader's own requests.
pub fn mine(lines: Vec<Text>, more: bool, now: Timestamp) -> Reply {
    if lines.is_empty() {
        return Reply::text("You haven't asked for any changes yet.");
    }
    listed("You asked for:", lines, more, now)
}

fn listed(title: &str, lines: Vec<Text>, more: bool, now: Timestamp) -> Reply {
    let shown = lines.len();
    let age = Text::from("As of ").moment(now).plain(".");
    let age = if more { age.plain(format!(" Only the latest {shown} are listed.")) } else { age };
    Reply::text(title).and(Part::List(lines)).hint(age)
}

/// Returns the line on an outside system: its name, its version and the age of both.
fn health_line(health: &Health, now: Timestamp) -> Text {
    let Some(fact) = &health.fact else { return Text::from("isn't answering") };
    let name = fact.answer["name"].as_str().unwrap_or(health.service.name);
    let version = fact.answer["version"].as_str().unwrap_or("unknown");
    let before = if fact.fresh { "" } else { "not answering now; as of " };
    Text::from(name).plain(", version ").code(version).plain(format!(" ({before}{})", ago(now, fact.at)))
}

/// Returns the reply with the settings: the approvers of actions, the model, the platforms and the
/// limits.
pub fn settings(settings: &Settings, services: &[Health], now: Timestamp) -> Reply {
    let model = match &settings.model {
        Some(name) => Text::new().code(name),
        None => Text::from("none; documented phrases only"),
    };
    let mut reply = Reply::default()
        .and(Part::Heading("Who can decide here".to_owned()))
        .and(Part::List(policy_lines(&settings.policies)));
    for (context, policies) in
        settings.contexts.iter().take(MAX_SETTINGS_LISTED).filter(|(_, policies)| !policies.is_empty())
    {
        let heading = Text::new().plain("Different rules in ").code(context).plain(":");
        reply = reply.and(Part::Text(heading)).and(Part::List(policy_lines(policies)));
    }
    if settings.contexts.len() > MAX_SETTINGS_LISTED {
        reply = reply.and(Part::Text(
            format!("{} more contexts have their own rules.", settings.contexts.len() - MAX_SETTINGS_LISTED).into(),
        ));
    }
    if !settings.envelopes.is_empty() {
        let lines = settings
            .envelopes
            .iter()
            .take(MAX_SETTINGS_LISTED)
            .map(|(name, envelope)| envelope_line(name, envelope, settings.measures));
        let how = "Outside these limits, two people other than the requester must approve:";
        reply = reply.and(Part::Text(how.into())).and(Part::List(lines.collect()));
        if settings.envelopes.len() > MAX_SETTINGS_LISTED {
            reply = reply.and(Part::Text(
                format!("{} more are not listed.", settings.envelopes.len() - MAX_SETTINGS_LISTED).into(),
            ));
        }
    }
    let one = services.len() == 1;
    let label = |health: &Health| if one { "Platform" } else { health.service.name }.to_owned();
    let call = |health: &Health| {
        let to = if one { "the platform" } else { health.service.name };
        (format!("Time limit for a call to {to}"), Text::from(time(health.service.timeout)))
    };
    let platforms = services.iter().map(|health| (label(health), health_line(health, now)));
    let costs = cost_limits(settings.costs).map(|limits| ("Language models may cost".to_owned(), limits));
    let facts = platforms
        .chain([("Language model".to_owned(), model)])
        .chain(costs)
        .chain([
            ("A card expires after".to_owned(), Text::from(time(settings.expires_after))),
            ("Time limit for a step".to_owned(), Text::from(time(settings.step_timeout))),
        ])
        .chain(services.iter().map(call))
        .chain([("Threads handled at once".to_owned(), Text::from(settings.threads.to_string()))]);
    reply
        .and(Part::Heading("Settings".to_owned()))
        .and(Part::Facts(facts.collect()))
        .hint("These are set by the app's operator and can't be changed here.")
}

/// Returns what language models may cost, such as `$1.00 a day for each person, $20.00 a day in total`; `None` if there is no
/// limit.
fn cost_limits(costs: CostLimits) -> Option<Text> {
    let Limits { thread, person_a_day, day } = Limits::from(&costs);
    let limits = [(thread, "for each thread"), (person_a_day, "a day for each person"), (day, "a day in total")];
    let limits = limits.into_iter().filter_map(|(limit, what)| Some(format!("{} {what}", dollars(limit?))));
    let limits = limits.collect::<Vec<_>>().join(", ");
    (!limits.is_empty()).then(|| Text::from(limits))
}

/// The maximum number of contexts, and of envelopes, that are listed.
const MAX_SETTINGS_LISTED: usize = 8;

/// Returns one line for each policy: `By anyone in this channel: …`
fn policy_lines(policies: &[ActionPolicies]) -> Vec<Text> {
    policy_lines_with(policies, |_, actions| codes(actions))
}

/// Returns one line for each policy. The most common one is for “all other changes”.
fn short_policy_lines(policies: &[ActionPolicies]) -> Vec<Text> {
    let is_one = grouped_by_policy(policies).len() == 1;
    policy_lines_with(policies, |nth, actions| match (nth, is_one) {
        (0, true) => Text::from("all changes"),
        (0, false) => Text::from("all changes but these"),
        _ => codes(actions),
    })
}

fn policy_lines_with(policies: &[ActionPolicies], named: impl Fn(usize, &[&str]) -> Text) -> Vec<Text> {
    let lines = grouped_by_policy(policies).into_iter().enumerate().map(
        |(nth, (ActionPolicies { policy, irreversible, .. }, actions))| {
            let mut line = Text::new().plain("By ").join(policy.deciders()).plain(how_many(policy));
            if policy.own_request && !irreversible.own_request && !policy.approvers.is_empty() {
                line = line.plain(", but not by the requester if it can't be undone");
            }
            if let Some(escalation) = &policy.escalation {
                let after = time(std::time::Duration::from_millis(escalation.after_ms));
                line =
                    line.plain(", and after ").plain(after).plain(" by ").join(escalation.deciders()).plain(" as well");
            }
            line.plain(": ").join(named(nth, &actions))
        },
    );
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

/// Returns the reply that names the people who may approve these actions; true marks one that cannot be undone. Without
/// actions, it names those of all of them.
pub fn approvers(settings: &Settings, actions: &[(String, bool)]) -> Reply {
    let line = |policies: &ActionPolicies, irreversible: bool, place: Text| {
        let policy = if irreversible { &policies.irreversible } else { &policies.policy };
        let line = place.bold(policies.action.replace('_', " ")).plain(" can be approved by ").join(policy.deciders());
        let line = line.plain(how_many(policy));
        match policy.own_request {
            true => line.plain("."),
            false => line.plain(", but not by the person who asked for it."),
        }
    };
    let mut lines = Vec::new();
    for (action, irreversible) in actions {
        let of = |all: &[ActionPolicies]| all.iter().find(|policies| policies.action == *action).cloned();
        lines.extend(of(&settings.policies).map(|policies| line(&policies, *irreversible, Text::new())));
        for (context, policies) in settings.contexts.iter().take(MAX_SETTINGS_LISTED) {
            let place = Text::new().plain("In ").code(context).plain(": ");
            lines.extend(of(policies).map(|policies| line(&policies, *irreversible, place)));
        }
    }
    let reply = match lines.len() {
        0 => Reply::text("Who can approve what:").and(Part::List(short_policy_lines(&settings.policies))),
        1 => Reply::text(lines.remove(0)),
        _ => Reply::default().and(Part::List(lines)),
    };
    reply.hint(Text::from("See ").code("/countersign settings").plain(" for all rules and limits."))
}

/// Returns the reply to a person who asks whether they may approve this open card, and may.
pub fn you_may_approve(record: &ActionRecord) -> Reply {
    Reply::text(
        Text::from("You can approve ")
            .bold(record.act())
            .plain(". Press ")
            .bold(&*record.card.approve)
            .plain(" on its card."),
    )
}

/// Returns the reply that names the people who may approve these cards, or who could before they were decided.
pub fn approvers_of(cards: &[ActionRecord]) -> Reply {
    let line = |record: &ActionRecord| {
        let can = if record.status == Status::Pending { " can be approved by " } else { " needed approval by " };
        let line = Text::new().bold(record.act()).plain(can).join(record.deciders());
        line.plain(how_many(&record.policy)).plain(".")
    };
    match cards {
        [only] => Reply::text(line(only)),
        several => Reply::default().and(Part::List(several.iter().map(line).collect())),
    }
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
        .hint("For everything else, mention me in a channel or message me directly, in your own words. Slack doesn't allow commands in threads; mention me there with “status” or “cancel”.")
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
                Some(known) if known.is_left_out_before(&word) => {
                    let meant = format!("{} {}", known.command, known.word.example);
                    return Reply::text(text.plain(" Did you mean ").code(meant).plain("?"));
                }
                Some(known) => (text.plain(" Did you mean ").code(full_name(known)).plain("?"), known),
                None => return Reply::text(text).hint(Text::from("Try ").code(format!("{command} help")).plain(".")),
            }
        }
        CommandError::Change(asked) => return no_change_by_command(asked),
        CommandError::MissingText(known) => {
            let what = match known.word.takes {
                Takes::Required(what) | Takes::Optional(what) => what,
                Takes::Nothing => "more",
            };
            (Text::new().code(full_name(known)).plain(format!(" needs a {what} after it.")), known)
        }
        CommandError::UnexpectedText(known) => {
            (Text::new().code(full_name(known)).plain(" takes no arguments."), known)
        }
    };
    Reply::text(text).hint(Text::from("For example: ").code(format!("{} {}", word.command, word.word.example)))
}

/// Returns the reply to a command that asks for a change, with a button that asks for it in a thread of the channel.
fn no_change_by_command(asked: &str) -> Reply {
    let shown: String = asked.chars().take(MAX_REQUEST_CHARS).collect();
    let reply = Reply::text("Commands only look things up, so nothing was changed. Ask for a change in a conversation, where others can see it.")
        .hint(Text::from("Or post this in a channel: ").code(format!("@countersign {shown}")));
    if shown.len() == asked.len() { reply.choice("Ask in this channel", asked) } else { reply }
}

/// The maximum length of a request that a reply repeats, in characters.
const MAX_REQUEST_CHARS: usize = 200;

fn full_name(known: &CommandWord) -> String {
    format!("{} {}", known.command, known.word.word)
}

/// Returns the reply that a notebook is being posted in its thread, which is identified by its
/// title and channel.
pub fn exported(title: Option<&str>, channel: &ChannelId, url: Option<String>) -> Reply {
    let text = Text::from("I'm posting the notebook of the thread ");
    let text = match title {
        Some(title) => text.plain("“").plain(title).plain("” "),
        None => text,
    };
    let text = match channel.is_direct() {
        true => text.plain("in our direct messages"),
        false => text.plain("in ").channel(channel.clone()),
    };
    let text = text.plain(" to that thread: a readable page and a verifiable log.");
    Reply::text(linked(text, url, "open the thread"))
}

/// Returns the reply if the text after the word is not a link to a message.
pub fn no_link() -> Reply {
    Reply::text("That isn't a link to a message. Use “Copy link” in the menu of any message in the thread.")
        .hint(Text::from("For example: ").code("/countersign notebook https://…/archives/C…/p…"))
}

/// Returns the reply to a person who wants to leave out a step of a plan that has begun.
pub fn plan_has_begun() -> Reply {
    Reply::text("The plan has begun, so I can't leave out a single step. Nothing was changed.")
        .hint("Reject the card of that step when it comes, or say “stop” to end the plan.")
}

/// Returns the reply if the person has never requested a change.
pub fn no_thread() -> Reply {
    Reply::text("You haven't asked for any changes yet, so I don't know which thread you mean.")
        .hint("Add a link to a message in the thread, or use “Export this thread” in the menu of that message.")
}

/// Returns the reply if the person has requested no change in this conversation, but this one in another, whose thread is
/// at `url`.
pub fn no_thread_here(last: &ActionRecord, url: Option<&str>) -> Reply {
    let channel = &last.thread.channel;
    let text = Text::from("You haven't asked for any changes in this conversation. Your last request was ");
    let text = match channel.is_direct() {
        true => text.plain("in a direct message: "),
        false => text.plain("in ").channel(channel.clone()).plain(": "),
    };
    let reply = Reply::text(linked(text.bold(last.act()), url.map(str::to_owned), "open its thread"));
    match url {
        Some(url) => reply.hint(
            Text::from("To export that thread there, type ").code(format!("/countersign notebook {url}")).plain("."),
        ),
        None => reply.hint("To export that thread there, use “Export this thread” in the menu of one of its messages."),
    }
}

/// Returns the reply if the person may not be able to read the thread.
pub fn not_your_thread() -> Reply {
    Reply::text("I can't tell from here whether you can see that thread.").hint(
        "Type the command in the thread's channel, or use “Export this thread” in the menu of one of its messages.",
    )
}

/// Returns the reply if the store isn't answering.
pub fn unavailable(error: &Error) -> Reply {
    tracing::warn!(error = cause::chain(&error), "A command could not be answered");
    Reply::text("My database isn't answering.")
        .hint("Try again in a minute. If it keeps failing, tell the app's operator.")
}

/// Returns the reply with the running and waiting actions of a thread.
pub fn thread_status(records: Vec<Text>, is_asking: bool, last: Option<Text>) -> Reply {
    let reply = match (records.is_empty(), is_asking) {
        (true, true) => {
            Reply::text("I'm waiting for an answer to my last question. Nothing else is running or waiting.")
        }
        (true, false) => Reply::text("Nothing is running or waiting in this thread."),
        (false, is_asking) => {
            let reply = Reply::text("In this thread:").and(Part::List(records));
            if is_asking {
                reply.and(Part::Text("I'm also waiting for an answer to my last question.".into()))
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
            "Your request is already running. To stop it, use the Stop button on its card, if there is one.",
        ),
        ([], false) => Reply::text("You have no waiting requests in this thread."),
        ([one], _) => Reply::text(Text::from("Withdrawn: ").join(one.clone()).plain(". Nothing was changed.")),
        (several, _) => Reply::text("Withdrawn. Nothing was changed:").and(Part::List(several.to_vec())),
    }
}
