//! Describes the cards of a thread in the notebook: the question, the decision and the outcome.

use std::fmt::Write as _;

use countersign_core::{clock::Timestamp, ids::ActionId};
use countersign_graph::store::{AuditDraft, AuditEntry, AuditKind};
use serde_json::Value;

use super::evidence::Messages;
use crate::record::notebook::{
    people::People,
    words::{capitalized, day, inline, listed, plain, time},
};

/// The cards of a thread, numbered in order of creation.
pub(super) struct Cards<'a> {
    all: Vec<CardHistory<'a>>,
    messages: Messages<'a>,
}

/// The history of one card.
struct CardHistory<'a> {
    action: &'a ActionId,
    title: &'a str,
    asked_by: Option<&'a str>,
    /// True if the assistant suggested it while answering that person.
    is_suggested: bool,
    /// The people who edited the card or one of its earlier versions.
    edited_by: Vec<&'a str>,
    /// The number of times the card was shown.
    shown: usize,
    decided: Option<&'a AuditDraft>,
    approved_by: Vec<&'a str>,
    /// The required number of approvals.
    needed: u64,
    outcome: Option<&'a AuditDraft>,
}

impl<'a> Cards<'a> {
    pub(super) fn of(record: &'a [AuditEntry]) -> Self {
        let mut cards = Self { all: Vec::new(), messages: Messages::of(record) };
        for event in record.iter().filter(|entry| !entry.withheld).map(|entry| &entry.event) {
            let Some(action) = &event.action else { continue };
            let at = cards.all.iter().position(|card| card.action == action).unwrap_or_else(|| {
                let new = CardHistory {
                    action,
                    title: "",
                    asked_by: None,
                    is_suggested: false,
                    edited_by: Vec::new(),
                    shown: 0,
                    decided: None,
                    approved_by: Vec::new(),
                    needed: 1,
                    outcome: None,
                };
                cards.all.push(new);
                cards.all.len() - 1
            });
            cards.all[at].apply(event);
            if event.kind == AuditKind::Edited {
                cards.inherit(at, event);
            }
        }
        cards
    }

    /// Copies the requester and editors of an older version to its replacement, and adds the person
    /// who edited it.
    fn inherit(&mut self, at: usize, event: &'a AuditDraft) {
        let from = event.detail["from"].as_str();
        let Some(older) = self.all.iter().find(|card| Some(card.action.as_str()) == from) else { return };
        let (asked_by, is_suggested, mut edited_by) = (older.asked_by, older.is_suggested, older.edited_by.clone());
        edited_by.extend(event.by.as_ref().map(|by| by.as_str()));
        let newer = &mut self.all[at];
        (newer.asked_by, newer.is_suggested, newer.edited_by) = (asked_by, is_suggested, edited_by);
    }

    /// Returns the name of an event's card, such as `card 2`.
    pub(super) fn name(&self, event: &AuditDraft) -> String {
        let named = event.action.as_ref().and_then(|action| self.number(action.as_str()));
        named.unwrap_or_else(|| "a card".to_owned())
    }

    /// Returns the name of an action's card, such as `card 2`.
    pub(super) fn number(&self, action: &str) -> Option<String> {
        let at = self.all.iter().position(|card| card.action.as_str() == action)?;
        Some(format!("card {}", at + 1))
    }

    /// Returns a sentence about a decision, and the reason given for it, if any.
    pub(super) fn decision_sentence<'e>(
        &self,
        event: &'e AuditDraft,
        who: &str,
        people: &People,
    ) -> (String, Option<&'e str>) {
        let (detail, card) = (&event.detail, self.name(event));
        let reason = match verdict(detail) {
            "obsolete" => detail["text"].as_str(),
            _ => detail["verdict"]["rejected"]["reason"].as_str(),
        };
        let what = match verdict(detail) {
            "approved" if detail["status"] == "pending" => {
                format!("**{who}** approved {card}{}; more approvals were needed.", typed(detail))
            }
            "approved" => format!("**{who}** approved {card}{}.", typed(detail)),
            "rejected" if reason.is_some() => format!("**{who}** rejected {card} and said why:"),
            "rejected" => format!("**{who}** rejected {card}{}.", typed(detail)),
            "expired" => match self.history_of(event).and_then(|history| history.approvals_so_far(people)) {
                None => format!("{} expired: no one decided in time.", capitalized(&card)),
                Some(so_far) => format!("{} expired: {so_far} when time ran out.", capitalized(&card)),
            },
            "cancelled" if self.history_of(event).is_some_and(|history| history.is_by_another_person(event)) => {
                format!("**{who}** closed {card}.")
            }
            "cancelled" => format!("**{who}** withdrew {card}{}.", typed(detail)),
            "obsolete" => format!("{} was closed, because of something that happened elsewhere:", capitalized(&card)),
            "superseded" => {
                let newer = detail["replaced_by"].as_str().and_then(|action| self.number(action));
                let newer = newer.unwrap_or_else(|| "a newer request".to_owned());
                format!("{} was replaced by {newer}.", capitalized(&card))
            }
            other => format!("{} was decided: {}.", capitalized(&card), inline(other)),
        };
        (what, reason)
    }

    /// Returns the history of the card that an event is about.
    fn history_of(&self, event: &AuditDraft) -> Option<&CardHistory<'a>> {
        let action = event.action.as_ref()?;
        self.all.iter().find(|card| card.action == action)
    }

    pub(super) fn first_title(&self) -> Option<&str> {
        self.all.first().map(|card| card.title).filter(|title| !title.is_empty())
    }

    /// Writes one line for each card, with its outcome.
    pub(super) fn write_summary(&self, out: &mut String, people: &People) {
        if self.all.is_empty() {
            out.push_str("No change was requested in this thread.\n\n");
            return;
        }
        out.push_str("## Summary\n\n");
        for (n, card) in self.all.iter().enumerate() {
            let how = if card.is_suggested { "suggested by the assistant while answering" } else { "asked for by" };
            let asked = card.asked_by.map(|by| format!(", {how} {}", inline(&people.name(by)))).unwrap_or_default();
            let title = inline(card.title);
            let _ = writeln!(out, "{}. **{title}**{asked}: {}.", n + 1, card.outcome_summary(people));
        }
        out.push('\n');
    }

    /// Writes the card as it was shown.
    pub(super) fn write_card(&self, out: &mut String, event: &AuditDraft, people: &People) {
        let detail = &event.detail;
        let card = &detail["card"];
        let number = self.name(event);
        let title = card["title"].as_str().map(|title| format!(": {}", inline(title))).unwrap_or_default();
        let _ = writeln!(out, "#### C{}{title}\n", &number[1..]);
        let _ = writeln!(out, "{} · Countersign showed this card.\n", time(event.at));
        let answered = self.history_of(event).and_then(|history| history.asked_by);
        for line in self.messages.evidence(detail, answered, people) {
            let _ = writeln!(out, "{line}\n");
        }
        let facts = card["facts"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |fact: &Value, name: &str| fact[name].as_str().map_or_else(|| "–".to_owned(), inline);
        let (changes, others): (Vec<_>, Vec<_>) = facts.iter().partition(|fact| fact["before"].is_string());
        if !changes.is_empty() {
            out.push_str("| | Before | After |\n| --- | --- | --- |\n");
            for fact in changes {
                let _ =
                    writeln!(out, "| {} | {} | {} |", text(fact, "label"), text(fact, "before"), text(fact, "after"));
            }
            out.push('\n');
        }
        if !others.is_empty() {
            for fact in others {
                let _ = writeln!(out, "- {}: {}", text(fact, "label"), text(fact, "after"));
            }
            out.push('\n');
        }
        for (mark, name) in [("⚠️ ", "warnings"), ("", "notes")] {
            for line in card[name].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let _ = writeln!(out, "{mark}{}\n", inline(&people.named(line)));
            }
        }
        if let Some(until) = detail["expires_at"].as_i64().map(Timestamp) {
            let who = policy(&detail["policy"], people);
            let _ = match until.is_never() {
                true => writeln!(out, "{who} The card didn't expire.\n"),
                false => writeln!(out, "{who} The card expired {} {} UTC.\n", day(until), time(until)),
            };
        }
        for (name, what) in
            [("parameters", "Exactly what would run"), ("preconditions", "It could run only if this was still true")]
        {
            if !detail[name].is_null() {
                let json = serde_json::to_string_pretty(&detail[name]).unwrap_or_default().replace("```", "'''");
                let action = match (name, detail["action"].as_str()) {
                    ("parameters", Some(action)) => format!(" (`{action}`)"),
                    _ => String::new(),
                };
                let _ = writeln!(out, "{what}{action}:\n\n```json\n{json}\n```\n");
            }
        }
        if let Some(label) = detail["undo"]["label"].as_str() {
            let _ = writeln!(out, "It could be undone afterward: {}.\n", inline(label));
        }
        let digest = detail["digest"].as_str().unwrap_or("unknown");
        let _ = writeln!(out, "Digest: `{}`\n", inline(digest));
    }
}

impl<'a> CardHistory<'a> {
    fn apply(&mut self, event: &'a AuditDraft) {
        let by = event.by.as_ref().map(|by| by.as_str());
        match event.kind {
            AuditKind::Asked => {
                self.asked_by = by;
                self.is_suggested = event.detail["suggested"] == true;
                self.title = event.detail["title"].as_str().unwrap_or(self.title);
            }
            AuditKind::Edited => self.title = event.detail["title"].as_str().unwrap_or(self.title),
            AuditKind::Shown => {
                self.shown += 1;
                self.title = event.detail["card"]["title"].as_str().unwrap_or(self.title);
                self.needed = event.detail["policy"]["needed"].as_u64().unwrap_or(self.needed);
            }
            AuditKind::PolicyChanged => self.needed = event.detail["policy"]["needed"].as_u64().unwrap_or(self.needed),
            AuditKind::Decided => {
                if event.detail["verdict"] == "approved" {
                    self.approved_by.extend(by);
                }
                self.decided = Some(event);
            }
            AuditKind::Lapsed => self.approved_by.retain(|approved| Some(*approved) != by),
            AuditKind::Outcome | AuditKind::Settled => self.outcome = Some(event),
            _ => {}
        }
    }

    /// Returns the outcome, worded as the end of a sentence.
    fn outcome_summary(&self, people: &People) -> String {
        let Some(decided) = self.decided else { return "not decided".to_owned() };
        let by = |event: &AuditDraft| event.by.as_ref().map(|by| inline(&people.name(by.as_str())));
        let done_by = |word: &str| by(decided).map_or_else(|| word.to_owned(), |by| format!("{word} by {by}"));
        let decision = match verdict(&decided.detail) {
            "approved" if self.approved_by.is_empty() => "approved by the operator's setting".to_owned(),
            "approved" => {
                let names: Vec<_> = self.approved_by.iter().map(|by| inline(&people.name(by))).collect();
                let enough = decided.detail["status"] != "pending";
                format!("approved by {}{}", listed(&names), if enough { "" } else { ", which was not enough yet" })
            }
            "rejected" => done_by("rejected"),
            "expired" => match self.approvals_so_far(people) {
                None => "expired: no one decided in time".to_owned(),
                Some(so_far) => format!("expired; {so_far} when time ran out"),
            },
            "cancelled" if self.is_by_another_person(decided) => done_by("closed"),
            "cancelled" => done_by("withdrawn"),
            "superseded" => "replaced by a newer request".to_owned(),
            "obsolete" => "closed, because of something that happened elsewhere".to_owned(),
            other => inline(other),
        };
        let Some(outcome) = self.outcome else { return decision };
        let settled_by = by(outcome).filter(|_| outcome.kind == AuditKind::Settled);
        let stopped = &outcome.detail["stopped"];
        match (outcome.detail["status"].as_str().unwrap_or("settled"), settled_by) {
            ("done", Some(by)) => format!("{decision}; outcome not known; marked as done by {by}"),
            ("settled", Some(by)) => format!("{decision}; outcome not known; {by} says it was done"),
            ("failed", Some(by)) => format!("{decision}; outcome not known; abandoned by {by}"),
            ("done", None) if !stopped.is_null() => format!("{decision}; {}", self::stopped(stopped)),
            ("unknown", _) => format!("{decision}; the outcome is not known"),
            (status, _) => format!("{decision}; {}", inline(status)),
        }
    }

    /// Returns the approvals given so far, such as `1 of 2 had approved (bo)`.
    fn approvals_so_far(&self, people: &People) -> Option<String> {
        let names: Vec<_> = self.approved_by.iter().map(|by| inline(&people.name(by))).collect();
        (!names.is_empty()).then(|| format!("{} of {} had approved ({})", names.len(), self.needed, listed(&names)))
    }

    /// Returns true if an event was caused by a person who neither requested nor edited the card.
    fn is_by_another_person(&self, event: &AuditDraft) -> bool {
        let is_author = |by: &str| self.asked_by == Some(by) || self.edited_by.contains(&by);
        self.asked_by.is_some() && event.by.as_ref().is_some_and(|by| !is_author(by.as_str()))
    }
}

/// Returns the progress of a stopped action, such as `32 of 400`.
pub(super) fn so_far(detail: &Value) -> Option<String> {
    Some(format!("{} of {}", detail["done"].as_u64()?, detail["total"].as_u64()?))
}

/// Returns the progress at which an action stopped, such as `stopped after 32 of 400`.
pub(super) fn stopped(detail: &Value) -> String {
    match so_far(detail) {
        Some(so_far) => format!("stopped after {so_far}"),
        None => "stopped before the first step".to_owned(),
    }
}

/// Returns a phrase such as ` by typing “yes”`, or an empty string if a button was clicked.
fn typed(detail: &Value) -> String {
    let words = detail["how"]["typed"]["text"].as_str();
    words.map(|words| format!(" by typing “{}”", inline(words))).unwrap_or_default()
}

/// Returns the name of a verdict, without the reason that it may contain.
fn verdict(detail: &Value) -> &str {
    match &detail["verdict"] {
        Value::String(word) => word,
        Value::Object(fields) => fields.keys().next().map_or("", String::as_str),
        _ => "",
    }
}

/// Returns a sentence about the people who could decide.
pub(super) fn policy(policy: &Value, people: &People) -> String {
    let named = |list: &Value| {
        let approvers = list.as_array().into_iter().flatten().map(|approver| match approver {
            Value::String(word) if word == "channel" => "anyone in the channel".to_owned(),
            Value::String(word) if word == "requester" => "the requester".to_owned(),
            Value::Object(fields) => match (fields.get("user"), fields.get("group")) {
                (Some(user), _) => inline(&people.name(&plain(user))),
                (_, Some(group)) => format!("a member of `{}`", inline(&plain(group))),
                _ => inline(&plain(approver)),
            },
            other => inline(&plain(other)),
        });
        listed(&approvers.collect::<Vec<_>>()).replace(" and ", " or ")
    };
    let also = policy["also"].as_array().into_iter().flatten();
    let also: String = also.map(|list| format!(", who also had to be {}", named(list))).collect();
    let needed = match policy["needed"].as_u64() {
        None | Some(1) => "one approval was needed".to_owned(),
        Some(n) => format!("{n} approvals were needed"),
    };
    let own = match policy["own_request"].as_bool() {
        Some(false) => ", not from the requester",
        _ => "",
    };
    let contexts: Vec<String> =
        policy["apart"].as_array().into_iter().flatten().map(|one| inline(&plain(one))).collect();
    let nobody = match (&policy["apart"], contexts.as_slice()) {
        (Value::Null, _) => String::new(),
        (_, []) => ", since the lists of approvers had nobody in common".to_owned(),
        (_, contexts) => format!(", since the approvers of {} had nobody in common", listed(contexts)),
    };
    format!("Who could decide: {}{also}{nobody}; {needed}{own}.", named(&policy["approvers"]))
}
