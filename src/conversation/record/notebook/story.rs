//! The human-readable notebook: Markdown for readers who did not take part in the thread.

use std::fmt::Write as _;

use countersign_core::{clock::Timestamp, ids::ThreadId, reply::KEY_MARK};
use countersign_graph::store::{AuditDraft, AuditEntry, AuditKind};
use countersign_planner::events::Phase;
use serde_json::{Value, json};

use super::{
    JSONL,
    people::People,
    words::{capitalized, day, inline, listed, plain, quote, time},
};

mod cards;
mod costs;
mod evidence;

use cards::Cards;

/// The maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 80;

/// Writes the story of a thread.
pub(super) fn write_story(
    thread: &ThreadId,
    record: &[AuditEntry],
    is_sealed: bool,
    people: &People,
    now: Timestamp,
) -> String {
    let mut story = Story { people, cards: Cards::of(record), out: String::new(), day: String::new() };
    story.write_head(thread, record, now);
    story.cards.write_summary(&mut story.out, people);
    story.write_paragraph("## What happened\n\nAll times are in UTC.");
    for entry in record {
        story.write_entry(entry);
    }
    costs::write_table(&mut story.out, record);
    story.write_proof(record, is_sealed, now);
    story.out.truncate(story.out.trim_end().len());
    story.out + "\n"
}

/// Returns the title of a thread: its first message, or else its first request.
pub(super) fn title(record: &[AuditEntry], people: &People) -> Option<String> {
    title_in(record, &Cards::of(record), people)
}

fn title_in(record: &[AuditEntry], cards: &Cards<'_>, people: &People) -> Option<String> {
    let said = record.iter().find(|entry| entry.event.kind == AuditKind::Said).map(|entry| text(&entry.event));
    said.as_deref().or(cards.first_title()).map(|words| shortened(&people.named(words)))
}

/// Returns the name under which a file of the thread is exported, and its hash. Returns `None` if the file is hidden.
pub(super) fn file_of(event: &AuditDraft) -> Option<(String, String)> {
    let hash = event.detail["hash"].as_str().filter(|hash| hash.len() == 64)?;
    let name = event.detail["name"].as_str().filter(|name| !name.starts_with('['))?;
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' }).collect();
    Some((format!("{}-{plain}", &hash[..8]), hash.to_owned()))
}

struct Story<'a> {
    people: &'a People,
    cards: Cards<'a>,
    out: String,
    day: String,
}

impl Story<'_> {
    fn write_paragraph(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push_str("\n\n");
    }

    fn write_head(&mut self, thread: &ThreadId, record: &[AuditEntry], now: Timestamp) {
        let title = match title_in(record, &self.cards, self.people) {
            Some(words) => format!("“{}”", inline(&words)),
            None => "a thread".to_owned(),
        };
        self.write_paragraph(&format!("# Lab notebook: {title}"));
        let mut facts = format!("- Thread: `{thread}`\n");
        if let (Some(first), Some(last)) = (record.first(), record.last()) {
            let (from, to) = (first.event.at, last.event.at);
            let _ = match day(from) == day(to) {
                true => writeln!(facts, "- When: {}, {} to {} UTC", day(from), time(from), time(to)),
                false => writeln!(facts, "- When: {} {} to {} {} UTC", day(from), time(from), day(to), time(to)),
            };
        }
        let who: Vec<_> = self
            .people
            .all()
            .map(|(id, name)| {
                match name.starts_with('@') || name.starts_with("Person ") || name.starts_with(KEY_MARK) {
                    true => inline(name),
                    false => format!("{} (@{id})", inline(name)),
                }
            })
            .collect();
        let _ = write!(facts, "- Who: {}\n- Exported: {} {} UTC", listed(&who), day(now), time(now));
        self.write_paragraph(&facts);
    }

    fn write_entry(&mut self, entry: &AuditEntry) {
        let event = &entry.event;
        if day(event.at) != self.day {
            self.day = day(event.at);
            self.write_paragraph(&format!("### {}", self.day.clone()));
        }
        if entry.withheld && event.kind != AuditKind::Unreadable {
            let kind = kind_name(event.kind);
            return self.write_event(event, &format!("One entry is fully hidden ({kind})."), None);
        }
        let who = self.who(event);
        let card = self.cards.name(event);
        let detail = &event.detail;
        match event.kind {
            AuditKind::Said => {
                let words = self.people.named(&text(event));
                self.write_event(event, &format!("**{who}** said:"), Some(&words));
            }
            AuditKind::Answered => {
                let words = self.people.named(&text(event));
                self.write_event(event, "**Countersign** answered:", Some(&words));
            }
            AuditKind::Posted => {
                let channel = inline(detail["channel"].as_str().unwrap_or("elsewhere"));
                let line = match detail["given_up"].as_str() {
                    Some(why) => format!("**Countersign** could not send a message by {channel}: {}.", inline(why)),
                    None => format!("**Countersign** sent a message by {channel}."),
                };
                self.write_event(event, &line, None);
            }
            AuditKind::Edited => {
                let labels =
                    detail["edited"].as_array().into_iter().flatten().filter_map(|fact| fact["label"].as_str());
                let changed = listed(&labels.map(inline).collect::<Vec<_>>());
                let older = detail["from"].as_str().and_then(|from| self.cards.number(from));
                let older = older.unwrap_or_else(|| "the card".to_owned());
                self.write_event(event, &format!("**{who}** edited {older} ({changed}); {card} takes its place."), None);
            }
            AuditKind::Asked if detail["suggested"] == true => {
                let what = format!("Countersign suggested a change while answering **{who}** and created {card} for it.");
                self.write_event(event, &what, None);
            }
            AuditKind::Asked => self.write_event(event, &format!("**{who}** asked for a change; Countersign created {card} for it."), None),
            AuditKind::Shown => self.cards.write_card(&mut self.out, event, self.people),
            AuditKind::ClickRefused => {
                let why = refusal_reason(detail["why"].as_str().unwrap_or_default());
                if event.action.is_none() {
                    return self.write_event(event, &format!("**{who}** was refused: {why}."), None);
                }
                if detail["claim"] == true {
                    return self.write_event(event, &format!("**{who}** tried to take {card} and was refused: {why}."), None);
                }
                self.write_event(event, &format!("**{who}** tried to decide about {card}, but it didn't count: {why}."), None);
            }
            AuditKind::Decided => {
                let (what, reason) = self.cards.decision_sentence(event, &who, self.people);
                self.write_event(event, &what, reason.map(|reason| self.people.named(reason)).as_deref());
            }
            AuditKind::Executed if event.by.is_some() => {
                let digest = inline(detail["payload_digest"].as_str().unwrap_or("unknown"));
                self.write_event(event, &format!("**{who}** took {card} with the same payload (`{digest}`)."), None);
            }
            AuditKind::Executed => {
                let what = format!(
                    "Countersign started {card}, after comparing it with what was shown (digest `{}`).",
                    inline(detail["digest"].as_str().unwrap_or("unknown"))
                );
                self.write_event(event, &what, None);
            }
            AuditKind::Sent => self.write_exchanges(event, &card),
            AuditKind::Stopped if event.action.is_some() => {
                let after = cards::so_far(detail).map(|so_far| format!(" after {so_far}")).unwrap_or_default();
                self.write_event(event, &format!("**{who}** stopped {card}{after}."), None);
            }
            AuditKind::Stopped => {
                let then = match detail["not_begun"].as_u64() {
                    None => ", and the work ended there",
                    Some(0) => "; nothing was running at that moment",
                    Some(_) => ", and earlier requests that had not started were dropped",
                };
                self.write_event(event, &format!("**{who}** said “stop”{then}."), None);
            }
            AuditKind::Waits => {
                let source = inline(detail["source"].as_str().unwrap_or("elsewhere"));
                self.write_event(event, &format!("Countersign paused to wait for an answer from {source} before continuing with {card}."), None);
            }
            AuditKind::Arrived => {
                let source = inline(detail["source"].as_str().unwrap_or("elsewhere"));
                let waited = if event.action.is_some() { format!(", which {card} was waiting for") } else { String::new() };
                self.write_event(event, &format!("An answer came from {source}{waited}."), None);
            }
            AuditKind::Outcome if event.by.is_some() => {
                let status = inline(detail["status"].as_str().unwrap_or("unknown"));
                let summary = self.people.named(detail["summary"].as_str().unwrap_or_default());
                let what = format!("**{who}** reported on {card}, which Countersign did not check. It is **{status}**:");
                self.write_event(event, &what, Some(&summary));
            }
            AuditKind::Outcome => {
                let what = match detail["status"].as_str().unwrap_or_default() {
                    "done" if !detail["stopped"].is_null() => {
                        format!("{card} was **{}**:", cards::stopped(&detail["stopped"]))
                    }
                    "done" => format!("{card} was **done**:"),
                    "failed" => format!("{card} was approved but **failed**:"),
                    "unknown" => format!("It is **not known** whether {card} was done:"),
                    other => format!("{card} ended as **{}**:", inline(other)),
                };
                let summary = self.people.named(detail["summary"].as_str().unwrap_or_default());
                self.write_event(event, &capitalized(&what), Some(&summary));
            }
            AuditKind::Progress => self.write_progress(event),
            AuditKind::Ran => {}
            AuditKind::Attached => self.write_attachment(event),
            AuditKind::PolicyChanged if detail["policy"].is_object() => {
                let digest = |name: &str| inline(detail[name].as_str().unwrap_or("unknown"));
                let what = format!(
                    "The policy changed in the meantime: under the current settings, other people can decide about {card}. Its digest is now `{}`, no longer `{}`. {}",
                    digest("digest"),
                    digest("before"),
                    cards::policy(&detail["policy"], self.people)
                );
                self.write_event(event, &what, None);
            }
            AuditKind::PolicyChanged => {
                self.write_event_with_details(event, &format!("The settings changed who can decide about {card}."));
            }
            AuditKind::Lapsed => {
                let why = inline(detail["why"].as_str().unwrap_or_default());
                self.write_event(event, &format!("The approval of **{who}** for {card} no longer counted: {why}."), None);
            }
            AuditKind::Reasoned => self.write_event_with_details(event, &format!("**{who}** gave a reason about {card}:")),
            AuditKind::Reminded => {
                self.write_event_with_details(event, &format!("Countersign posted a reminder about {card}."))
            }
            AuditKind::Settled => {
                let by = if event.by.is_some() { format!("**{who}**") } else { "A later check".to_owned() };
                let Some(summary) = detail["summary"].as_str().map(|summary| self.people.named(summary)) else {
                    return self.write_event_with_details(event, &format!("{by} settled the outcome of {card}."));
                };
                let what = match detail["status"].as_str() {
                    Some("settled") => format!("{by} said that {card} was done, and Countersign checked it once more:"),
                    Some("failed") => format!("{by} abandoned {card}:"),
                    _ => format!("{by} settled the outcome of {card}:"),
                };
                self.write_event(event, &what, Some(&summary));
            }
            AuditKind::Rated => {
                let how = if detail["helped"] == true { "helpful" } else { "not helpful" };
                self.write_event(event, &format!("**{who}** found the answer {how}."), None);
            }
            AuditKind::Exported => {
                let what = format!(
                    "**{who}** exported the first {} entries of this record; the last of them has hash `{}`.",
                    inline(&plain(&detail["entries"])),
                    inline(detail["last"].as_str().unwrap_or("unknown"))
                );
                self.write_event(event, &what, None);
            }
            AuditKind::Forgotten => self.write_event(
                event,
                "Messages and steps up to here were deleted after their retention period. This record was kept.",
                None,
            ),
            AuditKind::Unreadable => self.write_event(
                event,
                "One entry of this record can't be read, so what happened here is missing. Its place in the chain is kept.",
                None,
            ),
        }
    }

    /// Writes a sentence with its time, and a quotation if there are `words`.
    fn write_event(&mut self, event: &AuditDraft, what: &str, words: Option<&str>) {
        let sentence = format!("{} · {what}", time(event.at));
        match words {
            Some(words) => self.write_paragraph(&format!("{sentence}\n\n{}", quote(words))),
            None => self.write_paragraph(&sentence),
        }
    }

    /// Writes a sentence and the details of the entry: the reason as a quotation, and all other
    /// fields unchanged.
    fn write_event_with_details(&mut self, event: &AuditDraft, what: &str) {
        let reason = event.detail["reason"].as_str().map(|reason| self.people.named(reason));
        self.write_event(event, what, reason.as_deref());
        let rest: Vec<_> = event
            .detail
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, value)| *name != "reason" && !value.is_null())
            .map(|(name, value)| format!("- {}: {}", inline(&name.replace('_', " ")), inline(&plain(value))))
            .collect();
        if !rest.is_empty() {
            self.write_paragraph(&rest.join("\n"));
        }
    }

    fn write_progress(&mut self, event: &AuditDraft) {
        let detail = &event.detail;
        if detail["source"] == "model" {
            let words = inline(detail["text"].as_str().unwrap_or_default());
            return self.write_event(event, &format!("**Model**: {words}."), None);
        }
        let place = match (detail["complete"] == true, detail["step"].as_u64(), detail["total_steps"].as_u64()) {
            (false, Some(step), Some(total)) if detail["phase"] == json!(Phase::Execution) => {
                format!("step {step} of {total}")
            }
            (true, ..) => "end".to_owned(),
            _ => "made".to_owned(),
        };
        let words = inline(&self.people.named(detail["text"].as_str().unwrap_or_default()));
        let reason = detail["reason"].as_str().map(|reason| format!(" ({})", inline(&self.people.named(reason))));
        let what = format!("**Plan**, {place}: {words}{}.", reason.unwrap_or_default());
        self.write_event(event, &what, None);
    }

    fn write_exchanges(&mut self, event: &AuditDraft, card: &str) {
        self.write_event(event, &format!("Sent to the platform for {card}, and its answers:"), None);
        let mut table = String::from("| Request | Answer | Times |\n| --- | --- | --- |\n");
        for exchange in event.detail["exchanges"].as_array().into_iter().flatten() {
            let text = |name: &str| inline(exchange[name].as_str().unwrap_or_default());
            let status = match &exchange["status"] {
                Value::Null => "no answer".to_owned(),
                status => inline(&plain(status)),
            };
            let count = inline(&plain(&exchange["count"]));
            let _ = writeln!(table, "| {} {} | {status} | {count} |", text("method"), text("path"));
        }
        self.write_paragraph(table.trim_end());
    }

    fn write_attachment(&mut self, event: &AuditDraft) {
        let title = inline(event.detail["title"].as_str().unwrap_or("a file"));
        let Some((name, hash)) = file_of(event) else {
            return self.write_event(event, &format!("Countersign posted a file in the thread: {title}."), None);
        };
        self.write_event(event, &format!("Countersign posted a file in the thread: {title}."), None);
        let picture = [".png", ".svg", ".jpg", ".jpeg"].iter().any(|ending| name.ends_with(ending));
        let mark = if picture { "!" } else { "" };
        self.write_paragraph(&format!("{mark}[{title}]({name})\n\nSHA-256 `{hash}`"));
    }

    fn who(&self, event: &AuditDraft) -> String {
        event.by.as_ref().map_or_else(|| "Countersign".to_owned(), |by| inline(&self.people.name(by.as_str())))
    }

    fn write_proof(&mut self, record: &[AuditEntry], is_sealed: bool, now: Timestamp) {
        let Some(last) = record.last() else { return };
        let proof = match is_sealed {
            true => {
                "The record is sealed: with the digest key of the installation (`--key`), the same command shows that the bot wrote these entries and that none was changed, added or removed."
            }
            false => {
                "**This record has no seal.** Nothing shows that the bot wrote it: the seal was removed, or another program wrote it."
            }
        };
        let hidden: usize =
            record.iter().filter_map(|entry| entry.sealed.as_ref()).map(|sealed| sealed.hidden.len()).sum();
        let hidden_note = match hidden {
            0 => String::new(),
            1 => " One value is hidden; its hash proves it.".to_owned(),
            n => format!(" {n} values are hidden; their hashes prove them."),
        };
        self.write_paragraph("## How to check this");
        self.write_paragraph(&format!(
            "This page was written on {} from {} entries of an append-only record, the last of which has hash `{}`.{hidden_note} \
             The entries themselves are in `{JSONL}`; `countersign audit verify {JSONL}` finds damage to them, and shows that this page was exported with them. {proof}",
            day(now),
            record.len(),
            last.hash,
        ));
    }
}

/// Returns a description of a kind of entry.
fn kind_name(kind: AuditKind) -> &'static str {
    match kind {
        AuditKind::Asked => "a request",
        AuditKind::Shown => "a card",
        AuditKind::ClickRefused => "a press that did not count",
        AuditKind::Decided => "a decision",
        AuditKind::Executed => "the beginning of a change",
        AuditKind::Stopped => "a stop",
        AuditKind::Waits => "a wait",
        AuditKind::Arrived => "an answer from elsewhere",
        AuditKind::Outcome => "an outcome",
        AuditKind::Said => "a message",
        AuditKind::Answered => "an answer",
        AuditKind::Posted => "a message elsewhere",
        AuditKind::Progress => "the progress of a plan",
        AuditKind::Ran => "the use of a model",
        AuditKind::Sent => "requests to the platform",
        AuditKind::Attached => "a file",
        AuditKind::Edited => "an edit",
        AuditKind::PolicyChanged => "a change in who can decide",
        AuditKind::Reasoned => "a reason",
        AuditKind::Lapsed => "an approval that no longer counts",
        AuditKind::Reminded => "a reminder",
        AuditKind::Settled => "a settlement",
        AuditKind::Rated => "a rating",
        AuditKind::Exported => "an export",
        AuditKind::Forgotten => "the end of what was kept",
        AuditKind::Unreadable => "something that can't be read",
    }
}

/// Returns a message's text, with a note if it was truncated.
fn text(event: &AuditDraft) -> String {
    let text = event.detail["text"].as_str().unwrap_or_default();
    match event.detail["cut"]["characters"].as_u64() {
        Some(all) => format!("{text}… (cut; {all} characters in all)"),
        None => text.to_owned(),
    }
}

/// Returns the reason why a click did not count, worded to follow “it did not count”.
fn refusal_reason(word: &str) -> String {
    match word {
        "copied" => "the button was on a copy of the card".to_owned(),
        "late" => "it had already been decided".to_owned(),
        "typed" => "this needs a button press, but they typed".to_owned(),
        "may be a no before" => "something said before may have meant no, so it needs a button press".to_owned(),
        "not an approver" => "they aren't an approver".to_owned(),
        "own request" => "no one can approve their own request here".to_owned(),
        "not to be edited" => "they can't edit it".to_owned(),
        "group not looked up" => "the user groups could not be looked up".to_owned(),
        "guest account" => "they are a guest in the workspace".to_owned(),
        "another workspace" => "they belong to another workspace".to_owned(),
        "bot account" => "it is a bot account".to_owned(),
        "deactivated account" => "the account is deactivated".to_owned(),
        "account not looked up" => "their account could not be looked up".to_owned(),
        "twice" => "they had already approved, and each person counts once".to_owned(),
        other => inline(other),
    }
}

/// Returns the first line of a text, shortened.
fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_TITLE_CHARS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}
