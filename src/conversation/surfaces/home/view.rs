//! Draws the Home tab, in at most 100 blocks.

use countersign_assistant::model_health::ModelHealth;
use countersign_capabilities::{Shortcut, facts};
use countersign_core::{
    clock::{Timestamp, ago},
    ids::ChannelId,
    reply::{CardState, Part, Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Status},
    card,
};
use countersign_model::prices::dollars;
use countersign_slack::{
    blocks::{self, MAX_TEXT_CHARS},
    mrkdwn::Mrkdwn,
};
use serde_json::{Value, json};

use super::content::{Content, Item, ListPage, Pages};
use crate::{
    presentation::{
        buttons::{HOME_NEW, HOME_PAGE, WITHDRAW},
        links::linked,
        names::ResolvedNames,
        render,
    },
    record::{
        sight,
        spending::{Limits, Today},
    },
};

/// The maximum number of blocks in a Home tab.
const MAX_BLOCKS: usize = 100;

/// The maximum number of blocks of a card that is shown with its buttons. For a longer one there is
/// a link, so that people decide where they can read all of it.
const MAX_CARD_BLOCKS: usize = 14;

/// The maximum number of blocks for the outcome of a press.
const MAX_NOTICE_BLOCKS: usize = 4;

/// The maximum number of links to cards for one channel.
const MAX_LINKS: usize = 5;

/// The health of the systems.
pub struct Health {
    /// The health of the outside systems.
    pub services: Vec<facts::Health>,
    /// The sections of the capabilities.
    pub sections: Vec<Reply>,
    /// Examples of requests.
    pub invitations: Vec<&'static str>,
    /// The windows for something new.
    pub shortcuts: Vec<&'static Shortcut>,
    /// The health of the language model, if there is one.
    pub model: Option<ModelHealth>,
    /// What language models have cost today, if there is one.
    pub cost: Option<Today>,
    /// The current time.
    pub now: Timestamp,
}

/// Returns the age in minutes or more, since a tab is not redrawn for less.
fn age(now: Timestamp, then: Timestamp) -> String {
    if now.since(then).as_secs() < 60 { "just now".to_owned() } else { ago(now, then) }
}

/// Draws the whole tab. The user groups that can decide are named as in `resolved`.
pub fn draw(content: &Content, resolved: &ResolvedNames, health: &Health, notice: Option<&Reply>) -> Value {
    let mut blocks = Vec::new();
    if let Some(notice) = notice {
        blocks.extend(render::reply(notice).blocks.into_iter().take(MAX_NOTICE_BLOCKS));
        blocks.push(json!({ "type": "divider" }));
    }
    draw_new(&mut blocks, &health.shortcuts);
    draw_waiting(&mut blocks, content, resolved);
    draw_requests(&mut blocks, content, resolved);
    draw_running(&mut blocks, content);
    draw_decided(&mut blocks, content);
    for section in &health.sections {
        push_reply(&mut blocks, section);
    }
    push_reply(&mut blocks, &about(health));
    blocks.truncate(MAX_BLOCKS);
    json!({ "type": "home", "callback_id": "home", "blocks": blocks })
}

/// Returns the state of an action that the reader of the tab has just decided: its outcome, once there is one.
pub(super) fn decided(record: &ActionRecord) -> Text {
    let act = Text::new().bold(record.act()).plain(": ");
    match record.card_state() {
        CardState::Closed { outcome: Some(outcome), decision, .. } => match record.status {
            Status::Done => outcome.plain(" · ").join(decision), // it names what was done
            _ => act.join(outcome).plain(" · ").join(decision),
        },
        CardState::Running { is_elsewhere: false, .. } => {
            act.join(record.decision_line()).plain(". You'll see the outcome here and in its thread.")
        }
        _ => act.join(record.decision_line()),
    }
}

/// Draws the buttons that open the windows for something new.
fn draw_new(blocks: &mut Vec<Value>, shortcuts: &[&'static Shortcut]) {
    let button = |shortcut: &&Shortcut| {
        blocks::button(&format!("{HOME_NEW}{}", shortcut.callback), shortcut.title, shortcut.callback)
    };
    let buttons: Vec<_> = shortcuts.iter().map(button).collect();
    if !buttons.is_empty() {
        blocks.push(blocks::actions("new", &buttons));
    }
}

/// Returns the state of a card for a reader outside of its channel.
fn state_elsewhere(record: &ActionRecord, resolved: &ResolvedNames) -> CardState {
    let mut state = record.card_state();
    if let CardState::Open { deciders, .. } = &mut state
        && !record.is_out_of_reach()
        && !record.thread.channel.is_direct()
    {
        *deciders = record.deciders_elsewhere();
    }
    resolved.in_state(state)
}

fn draw_waiting(blocks: &mut Vec<Value>, content: &Content, resolved: &ResolvedNames) {
    blocks.push(blocks::header("Waiting for you"));
    for item in &content.waiting.items {
        draw_card(blocks, item, resolved);
    }
    for (channel, items) in &content.elsewhere {
        blocks.push(blocks::section(&in_channel(channel, items)));
    }
    if content.waiting.items.is_empty() && content.elsewhere.is_empty() {
        blocks.push(blocks::section("Nothing is waiting for you."));
    }
    let pages = content.pages;
    push_page_buttons(blocks, "waiting", &content.waiting, pages.waiting, |waiting| Pages { waiting, ..pages });
}

/// Returns the title of an action as a link to its card, so that each link is named by what it leads to.
fn title(item: &Item) -> Text {
    titled(item, item.record.act())
}

fn titled(item: &Item, act: &str) -> Text {
    match &item.link {
        Some(url) => Text::new().link(url, act),
        None => Text::new().bold(act),
    }
}

/// Draws a card as in its thread, with its buttons. For a long one, draws only a link.
fn draw_card(blocks: &mut Vec<Value>, item: &Item, resolved: &ResolvedNames) {
    let record = &item.record;
    let drawn = render::card(&record.card, &state_elsewhere(record, resolved)).blocks;
    if drawn.len() <= MAX_CARD_BLOCKS {
        blocks.extend(drawn);
        let words = format!("{} in its thread", record.act());
        let channel = &record.thread.channel;
        let place = match channel.is_direct() {
            true => Text::from("Asked in direct messages"),
            false => Text::from("Asked in ").channel(channel.clone()),
        };
        let place = linked(place, item.link.clone(), &words);
        push_reply(blocks, &Reply::default().hint(place));
    } else {
        push_reply(blocks, &Reply::text(title(item).plain(" is too long to show here.")));
    }
    blocks.push(json!({ "type": "divider" }));
}

/// Returns the line about cards that wait in a channel. Their content is omitted, since the reader
/// may no longer be in the channel.
fn in_channel(channel: &ChannelId, items: &[Item]) -> String {
    let many = match items.len() {
        1 => "1 card is waiting; anyone there can approve".to_owned(),
        many => format!("{many} cards are waiting; anyone there can approve"),
    };
    let line = Mrkdwn::new(MAX_TEXT_CHARS).plain("In ").channel(channel).plain(&format!(", {many}"));
    let name = |nth: usize| if items.len() == 1 { "open the card".to_owned() } else { format!("card {}", nth + 1) };
    let links = items.iter().filter_map(|item| item.link.as_deref()).take(MAX_LINKS).enumerate();
    links.fold(line, |line, (nth, url)| line.plain(" · ").link(url, &name(nth))).finish()
}

fn draw_requests(blocks: &mut Vec<Value>, content: &Content, resolved: &ResolvedNames) {
    if content.asked.items.is_empty() && content.pages.asked == 0 {
        return;
    }
    blocks.push(blocks::header("You asked for"));
    for item in &content.asked.items {
        let record = &item.record;
        let state = match state_elsewhere(record, resolved) {
            CardState::Open { deciders, needed, approved_by, .. } => {
                let state = title(item).plain(" · ").join(deciders).plain(" can approve");
                let state = match needed {
                    0 | 1 => state,
                    needed => state.plain(format!(" · {} of {needed} have approved", approved_by.len())),
                };
                state.join(record.end_in_words())
            }
            _ => title(item),
        };
        let line = render::reply(&Reply::text(state)).blocks;
        blocks.extend(line.into_iter().take(1).map(|mut section| {
            section["block_id"] = json!(format!("asked:{}", record.approval));
            section["accessory"] = blocks::button(WITHDRAW, card::WITHDRAW, record.approval.as_str());
            section
        }));
    }
    let pages = content.pages;
    push_page_buttons(blocks, "asked", &content.asked, pages.asked, |asked| Pages { asked, ..pages });
}

fn draw_running(blocks: &mut Vec<Value>, content: &Content) {
    if content.running.items.is_empty() && content.pages.running == 0 {
        return;
    }
    blocks.push(blocks::header("Running"));
    for item in &content.running.items {
        let record = &item.record;
        push_reply(blocks, &Reply::text(title(item).plain(" · ").join(record.decision_line())));
        if let CardState::Running { meter: Some(meter), .. } = record.card_state() {
            blocks.extend(render::meter(&meter));
        }
    }
    let pages = content.pages;
    push_page_buttons(blocks, "running", &content.running, pages.running, |running| Pages { running, ..pages });
}

fn draw_decided(blocks: &mut Vec<Value>, content: &Content) {
    if content.lately.items.is_empty() && content.pages.lately == 0 {
        return;
    }
    blocks.push(blocks::header("Recent activity"));
    let lines = content.lately.items.iter().map(|item| {
        let record = &item.record;
        let line = match record.status.has_outcome() {
            true => {
                let (act, status) = sight::act_and_status(record);
                titled(item, act).plain(status)
            }
            false => title(item),
        };
        line.plain(" · ").join(record.decision_line())
    });
    let lines: Vec<_> = lines.collect();
    if !lines.is_empty() {
        push_reply(blocks, &Reply::default().and(Part::List(lines)));
    }
    let pages = content.pages;
    push_page_buttons(blocks, "lately", &content.lately, pages.lately, |lately| Pages { lately, ..pages });
}

/// Returns the health of the systems, and examples of requests.
fn about(health: &Health) -> Reply {
    let service = |service: &facts::Health| {
        let said = match &service.fact {
            Some(fact) => {
                let version = fact.answer["version"].as_str().unwrap_or("unknown");
                let age = age(health.now, fact.at);
                match fact.fresh {
                    true => Text::from("is running, version ").code(version).plain(format!(" ({age})")),
                    false => Text::from("isn't answering; last answered ").plain(age).plain(", version ").code(version),
                }
            }
            None => Text::from("isn't answering"),
        };
        (service.service.name.to_owned(), said)
    };
    let model = match &health.model {
        None => Text::from("none; documented phrases only"),
        Some(ModelHealth { name, last: None }) => Text::new().code(name).plain(", not used since the last start"),
        Some(ModelHealth { name, last: Some((at, true)) }) => {
            Text::new().code(name).plain(format!(", answered {}", age(health.now, *at)))
        }
        Some(ModelHealth { name, last: Some((at, false)) }) => {
            let since = format!(", didn't answer {}; documented phrases only until it does", age(health.now, *at));
            Text::new().code(name).plain(since)
        }
    };
    Reply::default()
        .and(Part::Heading("Status".to_owned()))
        .and(Part::Facts(
            health
                .services
                .iter()
                .map(service)
                .chain([("Language model".to_owned(), model)])
                .chain(health.cost.and_then(cost).map(|cost| ("Model cost today".to_owned(), cost)))
                .collect(),
        ))
        .and(Part::Heading("How to ask".to_owned()))
        .and(Part::Text(ways_to_ask(&health.invitations)))
        .hint("I look things up on my own. Before I change anything, I show a card and wait for someone to approve it.")
}

/// Returns what models have cost today, such as `$1.20 of at most $20.00; for you, $0.15`. Without a limit, nothing is said of
/// a day without cost.
fn cost(Today { everyone, person, limits }: Today) -> Option<Text> {
    if everyone == 0 && limits == Limits::default() {
        return None;
    }
    let of = |cost: u64, limit: Option<u64>| match limit {
        Some(limit) if cost >= limit => format!("{} (limit {} reached)", dollars(cost), dollars(limit)),
        Some(limit) => format!("{} of at most {}", dollars(cost), dollars(limit)),
        None => dollars(cost),
    };
    Some(Text::from(format!("{}; for you, {}", of(everyone, limits.day), of(person, limits.person_a_day))))
}

/// Returns the examples of requests, such as `Mention me …: list documents, …`.
fn ways_to_ask(invitations: &[&'static str]) -> Text {
    let text = Text::from("Mention me in a channel, or message me directly");
    invitations
        .iter()
        .enumerate()
        .fold(text, |text, (nth, says)| text.plain(if nth == 0 { ": " } else { ", " }).italic(*says))
}

/// Adds buttons for the previous and the next page, if they exist.
fn push_page_buttons(blocks: &mut Vec<Value>, list: &str, listed: &ListPage, page: u16, to: impl Fn(u16) -> Pages) {
    let value = |page| serde_json::to_string(&to(page)).expect("pages are plain numbers");
    let mut buttons = Vec::new();
    if page > 0 {
        buttons.push(blocks::button(&format!("{HOME_PAGE}newer"), "Newer", &value(page - 1)));
    }
    if listed.more {
        buttons.push(blocks::button(&format!("{HOME_PAGE}older"), "Older", &value(page.saturating_add(1))));
    }
    if !buttons.is_empty() {
        blocks.push(blocks::actions(&format!("page:{list}:{page}"), &buttons));
    }
}

fn push_reply(blocks: &mut Vec<Value>, reply: &Reply) {
    blocks.extend(render::reply(reply).blocks);
}
