//! Policy × person × moment: whose press counts, and what everybody is told.
//!
//! Five people press on cards of each policy at each moment. A row of a table stands for those who were treated alike.

use std::time::Duration;

use countersign::{
    config::Config,
    graph::store::ActionKey,
    ids::{ApprovalId, ChannelId, MessageTs, UserId},
};
use countersign_sandbox::slack::world::Channel;
use serde_json::json;

use super::windows;
use crate::support::{
    bot::{Setup, TestBot, eventually, impatient},
    thread::Thread,
};

/// Who asks, who is named, a member of the group, who left the group after the card was shown, anybody else.
const PEOPLE: [&str; 5] = ["ana", "bo", "di", "eve", "fay"];

/// What Slack waits for.
const WINDOW_MS: u64 = 3_000;

/// A policy, and how a card under it gets anywhere.
pub(super) struct Case {
    pub(super) settings: fn(&mut Config),
    /// What ana asks for, and with what she replaces it.
    pub(super) asks: [&'static str; 2],
    /// What she asks for before the restart.
    pub(super) again: &'static str,
    /// Who approves so that it is done, in order. Nobody: it never is.
    pub(super) deciders: &'static [&'static str],
    /// Who changes the request in its form, if it has one.
    pub(super) editor: Option<&'static str>,
}

/// What everybody is told about a card that is closed, however it was; `{by}` is who decided last.
const CLOSED: &str = "\
superseded | A newer request took the place of this one ‹while› ago. ‹Open the newer card›
withdrawn | This request was withdrawn ‹while› ago, so nothing was changed.
rejected | This request was withdrawn ‹while› ago, so nothing was changed.
running | @{by} approved this ‹while› ago; it is running now.
done | @{by} approved this ‹while› ago; it is done.
failed | @{by} approved this ‹while› ago; it failed. The card says why.
expired | This card expired ‹while› ago, so nothing was changed.";

impl Case {
    /// About a start, which is what most are about.
    pub(super) fn of(
        settings: fn(&mut Config),
        deciders: &'static [&'static str],
        editor: Option<&'static str>,
    ) -> Self {
        Self { settings, asks: ["start Math Hints", "cancel Math Hints"], again: "stop Math Hints", deciders, editor }
    }
}

/// A card in a thread of its own.
pub(super) struct Shown<'a> {
    pub(super) thread: Thread<'a>,
    pub(super) ts: MessageTs,
    pub(super) key: ApprovalId,
}

/// One press: who, whether it counted, what they were told.
pub(super) type Cell = (&'static str, bool, String);

/// What was seen so far.
pub(super) struct Table<'a> {
    pub(super) bot: &'a TestBot,
    pub(super) rows: Vec<String>,
}

impl<'a> Table<'a> {
    pub(super) async fn card(&self, asks: &str) -> Shown<'a> {
        let thread = self.bot.user("ana").asks(asks).await;
        self.newest(thread)
    }

    /// The newest open card of a thread.
    fn newest(&self, thread: Thread<'a>) -> Shown<'a> {
        let mut messages = thread.messages().into_iter().rev();
        let found = messages.find_map(|message| {
            let button = message.buttons().into_iter().find(|button| button.action_id == "approve")?;
            Some((message.ts.clone(), button.value.clone()?))
        });
        let Some((ts, key)) = found else { panic!("no card is open: {}", thread.last()) };
        Shown { ts, key: ApprovalId::try_from(key).unwrap(), thread }
    }

    async fn counted_of(&self, key: &ApprovalId, name: &str) -> usize {
        let by = Some(self.bot.slack.user(name));
        let record = self.bot.store().action(ActionKey::ByApproval(key)).await.unwrap().unwrap();
        record.decisions.iter().filter(|decision| decision.by == by).count()
    }

    fn words(&self, card: &Shown<'_>) -> String {
        let message = card.thread.messages().into_iter().find(|message| message.ts == card.ts);
        self.bot.readable(&message.map(|message| message.words()).unwrap_or_default())
    }

    /// Somebody presses *approve* on a card, also where it is gone by now. An answer always comes: to them, or on the card.
    pub(super) async fn press(&self, name: &'static str, card: &Shown<'_>) -> Cell {
        let (bot, before) = (self.bot, self.bot.slack.ephemerals(name).len());
        let (decisions, words) = (self.counted_of(&card.key, name).await, self.words(card));
        bot.slack.clicks(name, "experiments", &card.ts, "approve").await.unwrap();
        // The card may be drawn anew before the press is dealt with: other people may decide by now.
        bot.answered().await;
        eventually("an answer", || bot.slack.ephemerals(name).len() > before || self.words(card) != words).await;
        let counted = self.counted_of(&card.key, name).await > decisions;
        if counted {
            bot.settled().await;
        }
        let told: Vec<_> = bot.slack.ephemerals(name)[before..].iter().map(|message| message.words()).collect();
        let told = match told.is_empty() {
            false => told.join(" "),
            true => self.words(card).lines().find(|line| line.contains("pproved by")).unwrap_or("?").to_owned(),
        };
        (name, counted, plainly(&bot.readable(&told)))
    }

    /// Rows of a moment: those who were treated alike together. Whose press counts finds their own name on the card.
    pub(super) fn rows(&mut self, moment: &str, cells: Vec<Cell>) {
        let mut alike: Vec<(Vec<&str>, bool, String)> = Vec::new();
        for (name, counted, told) in cells {
            let told = if counted { told.replace(&format!("@{name}"), "‹them›") } else { told };
            match alike.iter_mut().find(|(_, others, words)| *others == counted && *words == told) {
                Some((names, ..)) => names.push(name),
                None => alike.push((vec![name], counted, told)),
            }
        }
        for (names, counted, told) in alike {
            let counts = if counted { "counts" } else { "does not" };
            self.rows.push(format!("{moment} | {} | {counts} | {told}", names.join(", ")));
        }
    }

    /// Everybody presses on the same card, which is decided.
    async fn all_on(&mut self, moment: &str, card: &Shown<'_>) {
        let mut cells = Vec::new();
        for name in PEOPLE {
            cells.push(self.press(name, card).await);
        }
        self.rows(moment, cells);
    }

    /// Everybody presses on a card of their own.
    async fn each_on(&mut self, moment: &str, cards: Vec<Shown<'_>>) {
        let mut cells = Vec::new();
        for (name, card) in PEOPLE.into_iter().zip(&cards) {
            cells.push(self.press(name, card).await);
        }
        self.rows(moment, cells);
    }
}

/// Without what differs from run to run, on one line.
fn plainly(told: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in told.split_whitespace() {
        let is_ago = matches!(word.trim_end_matches(['.', ',', ';']), "ago");
        match (is_ago, words.len()) {
            (true, n) if n > 1 && words[n - 2].parse::<u32>().is_ok() => {
                words.truncate(n - 2);
                words.push(format!("‹while› {word}"));
            }
            (true, n) if n > 1 && words[n - 2] == "a" => {
                words.truncate(n - 2);
                words.push(format!("‹while› {word}"));
            }
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

/// A workspace with everybody in it; eve is in the group for now.
pub(super) fn enlist(bot: &TestBot) {
    bot.slack.arrange(|world| {
        let (cy, direct) = (world.user("cy").unwrap().clone(), world.channels.last().unwrap().clone());
        for (id, name) in [("U4", "di"), ("U5", "eve"), ("U6", "fay")] {
            let person = UserId::from(id);
            let mut user = cy.clone();
            (user.id, user.name, user.real_name) = (person.clone(), name.to_owned(), name.to_owned());
            world.users.push(user);
            world.channels.iter_mut().filter(|c| c.with.is_none()).for_each(|c| c.members.push(person.clone()));
            let members = vec![person.clone(), world.app.user.clone()];
            let id = ChannelId::new(format!("D{}", &id[1..]));
            world.channels.push(Channel { id, name: name.to_owned(), with: Some(person), members, ..direct.clone() });
        }
        world.groups[0].members = vec!["U4".into(), "U5".into()];
    });
}

/// The whole table of a policy.
pub(super) async fn table(case: Case) -> String {
    let set = case.settings;
    let settings = Box::new(move |config: &mut Config| {
        impatient(config);
        set(config);
    });
    let mut bot = TestBot::with(Setup { settings, ..Setup::default() }).await;
    enlist(&bot);
    let rows = Box::pin(before_the_end(&bot, &case)).await;
    let asked = {
        let table = Table { bot: &bot, rows: Vec::new() };
        let mut cards = Vec::new();
        for _ in PEOPLE {
            let Shown { thread, ts, key } = table.card(case.again).await;
            cards.push((thread.root.clone(), ts, key));
        }
        cards
    };
    bot.restart().await;
    let mut table = Table { bot: &bot, rows };
    let cards =
        asked.into_iter().map(|(root, ts, key)| Shown { thread: Thread::new(&bot, "experiments", root), ts, key });
    let cards: Vec<_> = cards.collect();
    table.each_on("restarted", cards).await;
    let rows = in_short(table.rows, case.deciders.last().copied());
    bot.settled().await;
    acknowledged_in_time(&bot);
    bot.finish().await;
    rows.join("\n")
}

/// One row for all the closed cards if they are as in [`CLOSED`], one for those of after the restart if they are as before.
fn in_short(mut rows: Vec<String>, last: Option<&str>) -> Vec<String> {
    let closed = CLOSED.lines().filter(|row| last.is_some() || !row.contains("{by}"));
    let closed = closed.map(|row| {
        let (moment, told) = row.split_once(" | ").unwrap();
        format!("{moment} | {} | does not | {}", PEOPLE.join(", "), told.replace("{by}", last.unwrap_or_default()))
    });
    let closed: Vec<_> = closed.collect();
    if closed.iter().all(|row| rows.contains(row)) {
        rows.retain(|row| !closed.contains(row));
        rows.push(format!(
            "closed{} | everybody | does not | as always",
            last.map(|by| format!(", by {by}")).unwrap_or_default()
        ));
    }
    let of = |moment: &str| -> Vec<_> {
        rows.iter().filter_map(|row| row.strip_prefix(moment)).map(str::to_owned).collect()
    };
    if of("open | ") == of("restarted | ") {
        rows.retain(|row| !row.starts_with("restarted | "));
        rows.push("restarted | as when it was open".to_owned());
    }
    rows
}

/// Each press was acknowledged while Slack waited.
fn acknowledged_in_time(bot: &TestBot) {
    let recorded = bot.slack.recorded();
    let presses: Vec<_> = recorded.deliveries.iter().filter(|attempt| attempt.kind == "interaction").collect();
    assert!(presses.len() > PEOPLE.len());
    for press in presses {
        assert!(press.acknowledged_after_ms.is_some_and(|after| after < WINDOW_MS), "{press:?}");
    }
}

async fn before_the_end(bot: &TestBot, case: &Case) -> Vec<String> {
    let mut table = Table { bot, rows: Vec::new() };
    let (mut open, mut edited, mut half) = (Vec::new(), Vec::new(), Vec::new());
    for _ in PEOPLE {
        open.push(table.card(case.asks[0]).await);
        if case.editor.is_some() {
            edited.push(table.card(case.asks[0]).await);
        }
        if case.deciders.len() > 1 {
            half.push(table.card(case.asks[0]).await);
        }
    }
    let [running, failed, withdrawn, rejected, superseded, expired] = [
        table.card(case.asks[0]).await,
        table.card(case.asks[0]).await,
        table.card(case.asks[0]).await,
        table.card(case.asks[0]).await,
        table.card(case.asks[0]).await,
        table.card(case.asks[0]).await,
    ];
    // eve leaves the group; who is in it is looked up when somebody presses, and known for seconds only.
    bot.slack.arrange(|world| world.groups[0].members.retain(|member| member.as_str() != "U5"));
    bot.clock.advance(Duration::from_secs(11));

    let mut newer = Vec::new();
    if let Some(editor) = case.editor {
        let mut older = Vec::new();
        for Shown { thread, ts, key } in edited {
            windows::opens(bot, &thread, editor, "Edit…").await;
            let wrong = windows::sends(bot, editor, json!({ "Status": "cancelled" })).await;
            assert!(wrong.is_empty(), "{wrong:?}");
            let root = thread.root.clone();
            older.push(Shown { thread: Thread::new(bot, "experiments", root), ts, key });
            newer.push(table.newest(thread));
        }
        table.all_on(&format!("edited by {editor}, old card"), &older[0]).await;
    }
    superseded.thread.says("ana", case.asks[1]).await;
    table.all_on("superseded", &superseded).await;
    withdrawn.thread.says("ana", "never mind").await;
    table.all_on("withdrawn", &withdrawn).await;
    // Where nobody but the requester decides, the card has no other button to say no.
    let said_no = bot.slack.clicks("ana", "experiments", &rejected.ts, "reject").await;
    if said_no.is_err() {
        bot.slack.clicks("ana", "experiments", &rejected.ts, "withdraw").await.unwrap();
    }
    bot.settled().await;
    table.all_on("rejected", &rejected).await;

    if let [before @ .., last] = case.deciders {
        for card in &half {
            table.press(before[0], card).await;
        }
        for name in before {
            table.press(name, &running).await;
        }
        bot.upgrade.loses_next_answer();
        bot.slack.clicks(last, "experiments", &running.ts, "approve").await.unwrap();
        eventually("a word about it", || running.thread.last().contains("No answer")).await;
        table.all_on("running", &running).await;
        bot.clock.advance(Duration::from_secs(5));
        bot.settled().await;
        table.all_on("done", &running).await;
        for name in case.deciders {
            table.press(name, &failed).await;
        }
        table.all_on("failed", &failed).await;
    }
    table.each_on("open", open).await;
    if let Some(one) = case.deciders.first()
        && !half.is_empty()
    {
        table.each_on(&format!("{one} has approved"), half).await;
    }
    if let Some(editor) = case.editor {
        table.each_on(&format!("edited by {editor}"), newer).await;
    }
    bot.clock.advance(Duration::from_secs(25 * 60 * 60));
    eventually("an expired card", || table.words(&expired).contains("Expired")).await;
    bot.settled().await;
    table.all_on("expired", &expired).await;
    table.rows
}
