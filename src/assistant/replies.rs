//! Replies that the assistant makes without a model: questions, refusals and tool results.
//!
//! Replies are short, friendly and exact. Text from people and systems goes into its own span, never into a format
//! string that is rendered as markup. The outcomes of actions are worded in [`super::outcomes`].

use std::time::Duration;

use countersign_capabilities::Registry;
use countersign_core::{
    clock::Timestamp,
    reply::{Part, Reply, Text},
};
use countersign_graph::action::{ActionRecord, ErrorKind, MissingParameter};
use countersign_graph::conversing::FILL_IN_FORM;
use countersign_model::limits::Limit;
use countersign_understanding::situation::{Draft, Topic};
use serde_json::Value;

use super::{
    history::shorten,
    log::Log,
    past_changes, tools,
    turn::{MAX_MESSAGE_LENGTH, ToolRead, Turn},
};

mod plans;

pub use self::plans::*;

/// The maximum number of answers offered as buttons.
const MAX_BUTTONS: usize = 5;
/// The note that the grammar was used instead of the language model.
pub const WITHOUT_MODEL: &str = "I worked without my language model this time, so I may have missed some nuance.";
/// The maximum length of a button's label, in characters.
const MAX_LABEL_LENGTH: usize = 60;

/// The maximum number of examples shown when a message was not understood.
const MAX_EXAMPLES: usize = 4;

/// Suggests things to say when a message was not understood, most of them about the topic of the thread.
pub fn examples(registry: &Registry, topic: Option<&Topic>) -> Reply {
    let requests = registry.by_topic(topic, MAX_EXAMPLES, |capability| {
        let all = capability.info().invitations.iter().chain(capability.info().examples).map(|(_, says)| *says);
        let mut requests: Vec<&str> = Vec::new();
        all.for_each(|says| {
            if !requests.contains(&says) {
                requests.push(says)
            }
        });
        requests
    });
    let buttons = registry.by_topic(topic, MAX_EXAMPLES / 2, |capability| match topic {
        Some(topic) if topic.capability != capability.name() => Vec::new(),
        _ => capability.info().suggestions.to_vec(),
    });
    let listed = requests.into_iter().map(|says| Text::new().italic(says)).collect();
    let reply = Reply::text("I didn't catch that. Here are some things you can ask:").and(Part::List(listed));
    let reply = buttons.into_iter().fold(reply, |reply, (label, says)| reply.choice(label, says));
    reply.choice("What can you do?", "what can you do?")
}

/// Says that a condition does not refer to a known result.
pub fn cannot_tell(condition: &str) -> Reply {
    Reply::text(format!("I can't check the condition “{condition}”, so nothing was changed."))
        .hint("A condition can refer to the result of an earlier request in the same message.")
}

/// Says that the message was not understood, in a thread with open cards. The caller appends the cards.
pub fn not_understood() -> Reply {
    Reply::text("I didn't catch that. Nothing was changed.").choice("What can you do?", "what can you do?")
}

/// Says that a message is too long to be read as a whole. A part of it could mean something else, such as another list.
pub fn too_long(length: usize) -> Reply {
    Reply::text(format!(
        "That message is too long: it has {length} characters, and I can read up to {MAX_MESSAGE_LENGTH}. Nothing was changed."
    ))
    .hint("Split it. If it is a long list of IDs, send one part, approve its card, then send the next part.")
}

/// Asks one question, with the possible meanings as buttons.
pub fn ask_which(question: &str, options: &[String]) -> Reply {
    let question = match (question.trim(), options) {
        ("", [only]) => Text::new().plain("Did you mean “").plain(only).plain("”?"),
        ("", _) => Text::from("What do you mean?"),
        (asked, _) => Text::from(asked),
    };
    buttons(Reply::text(question), options)
}

/// Says as which request a message was read that only resembles it.
pub fn taken_as(reply: Reply, request: &str) -> Reply {
    reply.hint(format!("I took this as “{request}”."))
}

/// Returns true if a button can show these words whole.
pub fn fits_button(words: &str) -> bool {
    words.chars().count() <= MAX_LABEL_LENGTH
}

fn buttons(reply: Reply, options: &[String]) -> Reply {
    options
        .iter()
        .take(MAX_BUTTONS)
        .fold(reply, |reply, option| reply.choice(shorten(option, MAX_LABEL_LENGTH), option))
}

/// Makes each button repeat the person's whole request, with the choice replacing the name that does not exist. If the
/// request does not contain that name, the buttons keep the action's wording.
pub fn with_whole_requests(mut reply: Reply, said: &str, asked: Option<&str>) -> Reply {
    // Only ASCII is lowercased, so that the byte offset is also valid in `said`.
    let offset = asked.and_then(|asked| said.to_ascii_lowercase().find(&asked.to_ascii_lowercase()));
    let Some((asked, offset)) = asked.filter(|asked| asked.len() > 1).zip(offset) else { return reply };
    let (before, after) = (&said[..offset], &said[offset + asked.len()..]);
    // A choice that is a bare value, such as a time, does not replace the name.
    for choice in reply.choices.iter_mut().filter(|choice| choice.says != choice.label) {
        let id = choice.says.rsplit(' ').next().filter(|id| id.len() == 36 && id.split('-').count() == 5);
        let chosen = match id {
            Some(id) => id,
            None if choice.says.ends_with(&choice.label) => choice.label.as_str(),
            None => continue,
        };
        // A button such as “create Foo in mathstream” uses the requested name on purpose.
        let wording = choice.says.strip_suffix(chosen).unwrap_or(&choice.says).to_ascii_lowercase();
        if wording.contains(&asked.to_ascii_lowercase()) {
            continue;
        }
        let whole = format!("{before}{chosen}{after}");
        // Otherwise the action's wording is just as complete.
        if whole.split_whitespace().count() > choice.says.split_whitespace().count() {
            choice.says = whole;
        }
    }
    reply
}

/// Asks for the first parameter that a change is missing. Below the question is what is known so far, and what else is
/// needed.
pub fn ask_for(registry: &Registry, change: &Draft, missing: &[MissingParameter]) -> Reply {
    let Some(first) = missing.first() else { return Reply::default() };
    let mut reply = Reply::text(first.question.as_str());
    for option in first.options.iter().take(MAX_BUTTONS) {
        // The button of an earlier question still names its parameter.
        let says = if first.name == "context" { format!("{}: {option}", first.name) } else { option.clone() };
        reply = reply.choice(shorten(option, MAX_LABEL_LENGTH), says);
    }
    if first.options.len() > MAX_BUTTONS {
        reply = reply.hint(Text::new().plain("Possible: ").plain(shorten(&first.options.join(", "), 400)));
    }
    let lacks = |missing: &&MissingParameter| !change.params.contains_key(&missing.name);
    let needed: Vec<String> = missing.iter().filter(lacks).map(|missing| missing.name.replace('_', " ")).collect();
    let needed = needed.join(", ");
    let so_far = registry.book.so_far(&change.action, &change.params);
    reply = match so_far {
        Some(so_far) if needed.is_empty() => reply.hint(format!("So far: {so_far}.")),
        Some(so_far) => reply.hint(format!("So far: {so_far}. Still needed: {needed}.")),
        None if missing.len() > 1 => {
            reply.hint(format!("Needed: {needed}. You can give several at once, or say never mind."))
        }
        None => reply,
    };
    with_form(registry, change, reply)
}

/// Adds the button that opens the form of a draft of something new.
fn with_form(registry: &Registry, draft: &Draft, reply: Reply) -> Reply {
    let parameters = Value::Object(draft.params.clone());
    let has_form = registry.actions.get(draft.action.as_str()).is_some_and(|action| action.is_editable(&parameters));
    match has_form && registry.book.makes_new(&draft.action) {
        true => reply.choice("Fill in a form", FILL_IN_FORM),
        false => reply,
    }
}

/// Asks about a part of a description that was not understood, and shows what was.
pub fn ask_about_part(registry: &Registry, question: &str, options: &[String], draft: &Draft) -> Reply {
    let reply = buttons(Reply::text(question), options);
    let reply = match registry.book.so_far(&draft.action, &draft.params) {
        Some(so_far) => reply.hint(format!("So far: {so_far}.")).choice("Continue without it", "continue without it"),
        None => reply,
    };
    with_form(registry, draft, reply)
}

/// Says that the answer to a question about a draft was not understood.
pub fn still_waiting(registry: &Registry, draft: &Draft, tries: u32, topic: Option<&Topic>) -> Reply {
    match &draft.asked {
        Some(asked) => {
            let said = match tries {
                0 | 1 => "I couldn't use that as an answer.",
                _ => "I couldn't use that either. A form may be easier; it's filled in with what I know.",
            };
            let reply = buttons(Reply::text(said), &asked.options).and(Part::Text(asked.question.as_str().into()));
            with_form(registry, draft, reply).choice("Never mind", "never mind")
        }
        None => examples(registry, topic),
    }
}

/// Returns a note for a card, quoting the parts of the message that the change does not cover.
pub fn not_a_part(words: &[String]) -> Text {
    let quoted: Vec<String> = words.iter().map(|words| format!("“{words}”")).collect();
    format!("You also said {}. That isn't part of this change.", quoted.join(", ")).into()
}

/// Returns the question about parts of a message that belong to none of its requests.
pub fn in_no_step(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|words| format!("“{words}”")).collect();
    format!("I can't tell which of your requests {} belongs to. Ask for them one at a time.", quoted.join(", "))
}

/// Returns a note for the card of an undo, naming the change that it reverses and when that change was made.
pub fn takes_back(done: &Text, at: Timestamp) -> Text {
    Text::from("This undoes the change made ").moment(at).plain(": ").join(done.clone())
}

/// Returns a note for a card that takes a value from something the person asked the bot to remember.
pub fn from_a_note(note: &str) -> Text {
    Text::from("Based on what you asked me to remember: ").italic(note)
}

/// Says that a request is not supported, and lists what is.
pub fn unsupported(registry: &Registry, topic: Option<&Topic>) -> Reply {
    let examples = registry.by_topic(topic, usize::MAX, |capability| capability.info().examples.to_vec());
    let can = |(what, example): (&str, &str)| Text::new().bold(what).plain(": ").italic(example);
    Reply::text("I can't do that. Here's what I can do:")
        .and(Part::List(examples.into_iter().map(can).collect()))
        .choices(registry.by_topic(topic, 1, |capability| capability.info().suggestions.to_vec()))
        .choice("What can you do?", "what can you do?")
}

/// Says that an identical card is already open.
pub fn card_is_open(title: &str, approve: &str, reject: &str) -> Reply {
    Reply::text(
        Text::new()
            .plain("A card for exactly this is already open: ")
            .bold(title)
            .plain(" Press ")
            .bold(approve)
            .plain(" or ")
            .bold(reject)
            .plain(" on it."),
    )
}

/// Says that the message was not understood as an edit to the change being discussed.
pub fn no_part_of_it() -> Reply {
    Reply::text("I couldn't read that as a change to the request, so it stays as it was.")
}

/// Asks for a number when the answer was not one, and repeats the original `question`.
pub fn needs_a_number(question: Option<&str>) -> Reply {
    let reply = Reply::text("Enter a whole number, such as 5.").choice("Never mind", "never mind");
    question.map_or(reply.clone(), |question| reply.and(Part::Text(question.into())))
}

/// Appends the cards that are still open and a note that their buttons decide. Without open cards, returns the reply
/// unchanged.
pub fn still_open(reply: Reply, open: &[ActionRecord]) -> Reply {
    match open {
        [] => reply,
        [one] => reply
            .and(Part::Text(
                Text::new()
                    .plain("The card is still open: ")
                    .bold(one.card.title.clone())
                    .plain(" Use the buttons on the card."),
            ))
            .and(Part::Facts(main_changes(one))),
        several => reply
            .and(Part::Text("These cards are still open. Use their buttons:".into()))
            .and(Part::List(several.iter().rev().map(|open| Text::new().bold(open.card.title.clone())).collect())),
    }
}

/// Returns the main changes of an open action.
fn main_changes(open: &ActionRecord) -> Vec<(String, Text)> {
    let changes = open.card.facts.iter().filter(|fact| fact.before.is_some() || fact.label == "Starts");
    changes.take(3).map(|fact| (fact.label.clone(), fact.after.clone())).collect()
}

/// Returns a note for a new card, saying that an earlier card stays open.
pub fn stays_open(open: &ActionRecord) -> Text {
    Text::from("The earlier card stays open: ").plain(open.act()).plain(".")
}

/// Says that the draft was discarded, and which cards stay open.
pub fn dropped(open: &[ActionRecord]) -> Reply {
    let reply = Reply::text("OK, dropped. Nothing was changed.");
    match open {
        [] => reply,
        [one] => reply.hint(Text::from("The card is still open: ").bold(one.card.title.clone())),
        _ => reply.hint("The cards are still open."),
    }
}

/// Says that the action that the model named does not exist.
pub fn cannot_do(action: &str) -> Reply {
    Reply::text(Text::new().plain("I can't do that (").code(shorten(action, 60)).plain("). Nothing was changed."))
        .choice("What can you do?", "what can you do?")
}

/// Says that a change is not proposed, since no person asked for it and it cannot be undone. `answer` is what was asked.
pub fn not_suggested(answer: Option<Reply>, title: &str) -> Reply {
    let text =
        Text::from("Nothing was changed. You didn't ask for this and it can't be undone, so I didn't propose it: ");
    let text = text.bold(title.trim_end_matches('?')).plain(".");
    answer.unwrap_or_default().and(Part::Text(text)).hint("If you want it, ask for it by name.")
}

/// Says that nothing was changed, in place of an answer that claims otherwise. `read` are the answers of the turn's tools.
pub fn nothing_was_changed(read: Option<Reply>) -> Reply {
    let text = Text::from("Nothing was changed.");
    let reply = match read {
        Some(read) => read.and(Part::Text(text)),
        None => Reply::text(text),
    };
    reply.hint("To change something, name it and say what should change. I'll post a card that someone approves.")
}

/// Adds that an answer is not complete.
pub fn cut_off(reply: Reply) -> Reply {
    reply.hint("This answer is incomplete: it reached the language model's length limit. Ask about a part of it.")
}

/// Says that there was no change to show.
pub fn nothing_to_do() -> Reply {
    Reply::text("There's nothing to change here.")
}

/// Says that neither a model nor a tool produced an answer.
pub fn no_words() -> Reply {
    Reply::text("I couldn't work out an answer to that.")
        .hint("Ask for one thing at a time, or name what it is about.")
        .choice("What can you do?", "what can you do?")
}

/// Adds a note that the decision is up to the person. `request` is a message that would request the change.
pub fn for_you_to_decide(reply: Reply, request: &str) -> Reply {
    reply.and(Part::Text(
        Text::new()
            .plain("It's up to you. To request it, say “")
            .plain(shorten(request, 200))
            .plain("”. I'll post a card, and nothing is changed until someone approves it."),
    ))
}

/// Adds a button that repeats the request.
pub fn try_again(reply: Reply, said: &str) -> Reply {
    match reply.choices.is_empty() && said.chars().count() <= 300 {
        true => reply.choice("Try again", said),
        false => reply,
    }
}

/// Says that the data read earlier is no longer available.
pub fn not_kept() -> Reply {
    Reply::text("I no longer have the data I read for this.")
}

/// Says which limit of the language model's cost is reached, and what that means.
pub fn over_limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Thread => {
            "This thread has reached the cost limit for my language model. From here on I understand only plain requests; \
             start a new thread to use it again."
        }
        Limit::Person => {
            "You've reached today's cost limit for my language model. I understand only plain requests until midnight UTC; \
             say “help” to see them."
        }
        Limit::Day => {
            "Today's cost limit for my language model is reached. I understand only plain requests until midnight UTC; say \
             “help” to see them."
        }
    }
}

/// Returns the results of this turn's tools, combined into one reply.
pub fn results(registry: &Registry, turn: &Turn, log: &Log) -> Option<Reply> {
    let mut combined: Option<Reply> = None;
    for read in &turn.reads {
        let Some(part) = tool_reply(registry, turn, log, read) else { continue };
        combined = Some(match combined {
            None => part,
            Some(mut combined) => {
                combined.parts.extend(part.parts);
                combined.choices.extend(part.choices);
                combined.choices.truncate(MAX_BUTTONS);
                combined.files.extend(part.files);
                combined
            }
        });
    }
    combined
}

/// Returns the result of one tool, formatted by the tool itself if it has a presentation.
pub fn tool_reply(registry: &Registry, turn: &Turn, log: &Log, read: &ToolRead) -> Option<Reply> {
    if let Some(failed) = &read.failed {
        return Some(failed.clone());
    }
    let value = turn.gathered.get(&read.key)?;
    let reply = match registry.tools.get(read.tool.as_str()) {
        _ if read.tool == tools::EXECUTION_LOG => past_changes::reply(registry, log, &read.arguments, value),
        Some(tool) => tool.present(&read.arguments, value).unwrap_or_else(|| present_data(value)),
        None => present_data(value),
    };
    Some(match read.read_at {
        Some(read_at) => with_age(reply, turn.at.since(read_at), &turn.said),
        None => reply,
    })
}

/// Adds the age of the data to a reply, and offers to read it again.
fn with_age(reply: Reply, age: Duration, said: &str) -> Reply {
    let age = match age.as_secs() / 60 {
        0 => "less than a minute ago".to_owned(),
        1 => "a minute ago".to_owned(),
        minutes => format!("{minutes} minutes ago"),
    };
    let reply = reply.hint(format!("Fetched {age}."));
    match said.chars().count() <= 200 {
        true => reply.choice("Refresh", format!("{} again", said.trim_end_matches(['?', '!', '.', ' ']))),
        false => reply,
    }
}

/// Formats data as labelled facts or a list, for tools without a presentation of their own.
fn present_data(value: &Value) -> Reply {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let fact = |(key, value): (&String, &Value)| (key.replace('_', " "), Text::new().plain(plain_text(value)));
            Reply::default().and(Part::Facts(members.iter().take(10).map(fact).collect()))
        }
        Value::Array(items) if !items.is_empty() => {
            Reply::default().and(Part::List(items.iter().take(30).map(|item| plain_text(item).into()).collect()))
        }
        Value::Null | Value::Object(_) | Value::Array(_) => Reply::text("There's nothing there yet."),
        other => Reply::text(plain_text(other)),
    }
}

fn plain_text(value: &Value) -> String {
    let text = match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain_text).collect::<Vec<_>>().join(", "),
        Value::Object(members) => {
            members.iter().map(|(key, value)| format!("{key}: {}", plain_text(value))).collect::<Vec<_>>().join(" · ")
        }
        other => other.to_string(),
    };
    shorten(&text, 300)
}

/// Returns the name of an error kind, as saved in the state and given to models.
pub fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Api => "api",
        ErrorKind::Auth => "auth",
        ErrorKind::Validation => "validation",
        ErrorKind::NotFound => "not_found",
        ErrorKind::Network => "network",
        ErrorKind::UserInput => "user_input",
        ErrorKind::Execution => "execution",
        ErrorKind::Already => "already",
        ErrorKind::Unknown => "unknown",
    }
}
