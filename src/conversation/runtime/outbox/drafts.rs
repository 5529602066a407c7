//! Shows the draft of an answer while it is written, as one of Slack's streams.
//!
//! A draft comes with a status line ([`Outbound::Status`]) and is sent like one: with a claim, in the slot of the reply. The
//! stream is recorded as the message of that slot before anything is added to it, and the reply then replaces it as it
//! replaces a status line, in the same message. If the start of a stream was not answered, or the process died before it
//! was recorded, the stream is searched for before anything else is sent for the slot.
//!
//! What was added to a stream is known to the process that started it, and to no other: after a restart, and after any
//! refusal, nothing is added any more. A draft that cannot be shown is a plain status line, and the answer is sent as ever.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use countersign_core::{
    cause,
    draft::{Draft, Drafting, Part},
    ids::{MessageTs, Nonce, Slot, ThreadId},
};
use countersign_graph::store::{Claimed, Outbound, Posted};
use countersign_slack::{
    blocks::Message,
    client_error::Error,
    markdown,
    stream::{self, Chunk, TaskStatus},
};

use super::{Sender, attempt::AttemptError, channel::Claim};
use crate::runtime::pacing::{Candidate, Clearance, Method};

/// The number of attempts after which a stream whose start was not answered is no longer searched for.
const MAX_SEARCHES: u32 = 3;

/// The time that these attempts take at most, with the waits between them.
const SEARCHED_FOR: Duration = Duration::from_secs(60);

/// The length of a draft, in characters, after which no more is shown of it.
const MAX_CHARS: usize = 10_000;

/// The maximum number of threads of which a draft is known.
const MAX_THREADS: usize = 1_000;

/// The drafts that this process shows.
pub(super) struct Drafts {
    drafting: Drafting,
    shown: Mutex<HashMap<ThreadId, ShownDraft>>,
}

/// The draft that is shown in a thread, or could not be.
#[derive(Clone, Debug)]
struct ShownDraft {
    slot: Option<Slot>,
    /// The stream; `None` if it was not started.
    ts: Option<MessageTs>,
    /// True if nothing is added any more.
    is_over: bool,
    shown: Shown,
}

/// The end of what is shown of a draft.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shown {
    /// The place of the last part that is shown.
    part: usize,
    /// True if anything of that part is shown.
    begun: bool,
    /// Its words, as they are shown.
    words: String,
    /// The number of characters of all parts.
    chars: usize,
}

impl Drafts {
    /// Creates it without any draft.
    pub(super) fn new(drafting: Drafting) -> Self {
        Self { drafting, shown: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, ShownDraft>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is known of the draft in a slot.
    fn of(&self, claimed: &Claimed) -> Option<ShownDraft> {
        self.lock().get(&claimed.thread).filter(|draft| draft.slot == claimed.outgoing.slot).cloned()
    }

    fn keep(&self, claimed: &Claimed, ts: Option<MessageTs>, is_over: bool, shown: Shown) {
        let mut all = self.lock();
        if all.len() >= MAX_THREADS {
            all.clear();
        }
        let draft = ShownDraft { slot: claimed.outgoing.slot.clone(), ts, is_over, shown };
        all.insert(claimed.thread.clone(), draft);
    }

    /// Forgets the stream of a message. Returns true if there is one that was not stopped, as far as this process knows.
    fn forget(&self, thread: &ThreadId, ts: &MessageTs) -> bool {
        let mut all = self.lock();
        let is_shown = all.get(thread).is_some_and(|draft| draft.ts.as_ref() == Some(ts));
        is_shown && all.remove(thread).is_some()
    }
}

impl Sender {
    /// Makes a plain status line of a draft that cannot be shown.
    pub(super) fn drop_unshowable_draft(&self, claimed: &mut Claimed) {
        let Outbound::Status { draft: Some(draft), .. } = &claimed.outgoing.body else { return };
        let known = self.0.drafts.of(claimed);
        let can_be_shown = match (&claimed.posted, claimed.attempts) {
            (Some(posted), _) => known.is_some_and(|draft| draft.ts.as_ref() == Some(&posted.ts)),
            (None, 0) => {
                let is_empty = next_chunks(draft, &Shown::default()).0.is_empty();
                let may_start = self.0.drafts.drafting.is_on() && known.is_none() && !is_empty;
                may_start && self.may_call(Method::StartStream, claimed)
            }
            (None, attempts) => attempts <= MAX_SEARCHES, // a stream may be there
        };
        if let (false, Outbound::Status { draft, .. }) = (can_be_shown, &mut claimed.outgoing.body) {
            *draft = None;
        }
    }

    /// Shows more of a draft. Returns the stream if it has just been started or found; `None` if there is none, so that the
    /// status line is shown.
    pub(super) async fn show_draft(&self, claim: &Claim) -> Result<Option<Option<Posted>>, AttemptError> {
        let claimed = &claim.message;
        let Outbound::Status { draft: Some(draft), .. } = &claimed.outgoing.body else { return Ok(None) };
        match &claimed.posted {
            Some(posted) => self.append(claim, posted, draft).await.map(|()| Some(None)),
            None if claimed.attempts > 0 => {
                let since = claimed.outgoing.not_before.minus(SEARCHED_FOR);
                let ThreadId { channel, root, .. } = &claimed.thread;
                let found = self.0.slack.find_stream(channel, root, since).await?;
                Ok(found.map(|ts| Some(Posted::at(channel.clone(), ts))))
            }
            None => Ok(self.start(claim, draft).await?.map(Some)),
        }
    }

    async fn start(&self, claim: &Claim, draft: &Draft) -> Result<Option<Posted>, AttemptError> {
        let claimed = &claim.message;
        let ThreadId { team, channel, root } = &claimed.thread;
        let (chunks, shown) = next_chunks(draft, &Shown::default());
        self.check_claim(claim).await?;
        match self.0.slack.start_stream(channel, root, (team, &draft.to), &chunks).await {
            Ok(ts) => {
                self.0.drafts.keep(claimed, Some(ts.clone()), false, shown);
                self.0.thread_status.on_stream(&claimed.thread).await;
                Ok(Some(Posted::at(channel.clone(), ts)))
            }
            Err(error @ (Error::NoAnswer(_) | Error::Decode)) => Err(error.into()), // it may be there
            Err(error) => {
                self.0.drafts.keep(claimed, None, true, Shown::default());
                self.on_refused(Method::StartStream, claimed, &error);
                if stream::has_no_streams(&error) {
                    self.0.drafts.drafting.switch_off();
                    tracing::info!(
                        error = cause::chain(&error),
                        "This workspace has no streams; answers appear when they are complete"
                    );
                }
                Ok(None)
            }
        }
    }

    async fn append(&self, claim: &Claim, posted: &Posted, draft: &Draft) -> Result<(), AttemptError> {
        let claimed = &claim.message;
        let Some(known) = self.0.drafts.of(claimed).filter(|known| !known.is_over) else { return Ok(()) };
        let (chunks, shown) = next_chunks(draft, &known.shown);
        if chunks.is_empty() || !self.may_call(Method::AppendStream, claimed) {
            return Ok(()); // the next one has what this one lacks
        }
        self.check_claim(claim).await?;
        let added = self.0.slack.append_stream(&posted.channel, &posted.ts, &chunks).await;
        if let Err(error) = &added {
            tracing::info!(thread.id = %claimed.thread, error = cause::chain(error), "A draft does not go on; its answer will replace it");
            self.on_refused(Method::AppendStream, claimed, error);
        }
        self.0.drafts.keep(claimed, Some(posted.ts.clone()), added.is_err(), shown);
        Ok(())
    }

    /// Updates a message, which may be a stream: that is stopped first.
    pub(super) async fn update(&self, claimed: &Claimed, posted: &Posted, message: &Message) -> Result<(), Error> {
        let (slack, Posted { channel, ts, .. }) = (&self.0.slack, posted);
        let nonce = &claimed.outgoing.nonce;
        if self.0.drafts.forget(&claimed.thread, ts) {
            return slack.replace_stream(channel, ts, message, nonce).await;
        }
        match slack.update_message(channel, ts, message).await {
            // A process that has died started it.
            Err(error) if stream::is_streaming(&error) => slack.replace_stream(channel, ts, message, nonce).await,
            answer => answer,
        }
    }

    /// Deletes a message, which may be a stream: that is stopped first.
    pub(super) async fn delete(&self, thread: &ThreadId, posted: &Posted, nonce: &Nonce) -> Result<(), Error> {
        let (slack, Posted { channel, ts, .. }) = (&self.0.slack, posted);
        if self.0.drafts.forget(thread, ts) {
            slack.stop_stream(channel, ts, nonce).await?;
        }
        match slack.delete_message(channel, ts).await {
            Err(Error::Refused { code }) if code == "cant_delete_message" => {
                slack.stop_stream(channel, ts, nonce).await?;
                slack.delete_message(channel, ts).await
            }
            answer => answer,
        }
    }

    /// Counts a call of a method for a draft, if Slack's rate limits allow it now.
    fn may_call(&self, method: Method, claimed: &Claimed) -> bool {
        let candidate = Candidate { method, thread: &claimed.thread, message: None, progress: true };
        let clearance = self.0.pacing.as_ref().map(|pacing| pacing.request(&candidate, self.0.clock.now()));
        clearance.is_none_or(|clearance| clearance == Clearance::Go)
    }

    fn on_refused(&self, method: Method, claimed: &Claimed, error: &Error) {
        if let (Error::RateLimited { retry_after }, Some(pacing)) = (error, &self.0.pacing) {
            pacing.on_rate_limit(method, &claimed.thread.channel, self.0.clock.now() + *retry_after);
        }
    }
}

/// Returns what a stream that shows this much of a draft lacks of it, and how much it then shows.
fn next_chunks(draft: &Draft, before: &Shown) -> (Vec<Chunk>, Shown) {
    let (mut chunks, mut now) = (Vec::new(), before.clone());
    for (at, part) in draft.parts.iter().enumerate().skip(before.part) {
        if at > now.part {
            now = Shown { part: at, chars: now.chars, ..Shown::default() };
        }
        let is_last = at + 1 == draft.parts.len();
        match part {
            Part::Task(title) if is_last && now.begun => {}
            Part::Task(title) => {
                let status = if is_last { TaskStatus::InProgress } else { TaskStatus::Complete };
                chunks.push(Chunk::task(at, &markdown::plain(title), status));
                now.begun = true;
            }
            Part::Words(words) => {
                let shown = markdown::harmless(if is_last { settled(words) } else { words });
                // What follows may change what comes before it, such as the end of a link. It is then left to the answer.
                let Some(more) = shown.strip_prefix(&now.words).filter(|more| !more.is_empty()) else { continue };
                let chars = now.chars + more.chars().count();
                if chars > MAX_CHARS {
                    continue;
                }
                let follows_words = at > 0 && matches!(draft.parts[at - 1], Part::Words(_));
                let gap = if now.words.is_empty() && follows_words { "\n\n" } else { "" };
                chunks.push(Chunk::MarkdownText { text: format!("{gap}{more}") });
                now = Shown { part: at, begun: true, words: shown, chars };
            }
        }
    }
    (chunks, now)
}

/// Returns the beginning of a text that looks the same whatever follows it: whole words, without what is only begun of a
/// link, of code or of a token.
fn settled(text: &str) -> &str {
    let mut fence = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fence = if fence.is_none() { Some(at) } else { None };
        }
        at += line.len();
    }
    if let Some(begins) = fence {
        return &text[..begins];
    }
    let text = &text[..text.rfind(char::is_whitespace).unwrap_or(0)];
    let line = text.rfind('\n').map_or(0, |at| at + 1);
    let open = |begin: char, end: char| {
        let mut opened = None;
        for (at, c) in text[line..].char_indices() {
            if c == end && opened.is_some() {
                opened = None;
            } else if c == begin {
                opened = opened.or(Some(line + at));
            }
        }
        opened
    };
    // The address of a link may not be whole yet.
    let address = text[line..].rfind("](").filter(|at| !text[line + at..].contains(')'));
    let link = address.and_then(|at| text[line..line + at].rfind('[')).map(|at| line + at);
    let cut = [open('`', '`'), open('[', ']'), open('<', '>'), link].into_iter().flatten().min();
    text[..cut.unwrap_or(text.len())].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(parts: &[Part]) -> Draft {
        Draft { to: "U1".into(), parts: parts.to_vec() }
    }

    fn words(text: &str) -> Part {
        Part::Words(text.to_owned())
    }

    fn text(text: &str) -> Chunk {
        Chunk::MarkdownText { text: text.to_owned() }
    }

    #[test]
    fn each_chunk_continues_what_is_shown() {
        let (chunks, shown) = next_chunks(&draft(&[words("Two experiments are run")]), &Shown::default());
        assert_eq!(chunks, [text("Two experiments are")]);
        let looks = Part::Task("Looking things up…".to_owned());
        let (chunks, shown) = next_chunks(&draft(&[words("Two experiments are running."), looks.clone()]), &shown);
        let task = |status| Chunk::task(1, "Looking things up…", status);
        assert_eq!(chunks, [text(" running."), task(TaskStatus::InProgress)]);
        let all = [words("Two experiments are running."), looks.clone(), words("They are A and B")];
        let (chunks, shown) = next_chunks(&draft(&all), &shown);
        assert_eq!(chunks, [task(TaskStatus::Complete), text("They are A and")]);
        assert_eq!(next_chunks(&draft(&all), &shown), (Vec::new(), shown));
        let (chunks, _) = next_chunks(&draft(&[looks, words("They are ")]), &Shown::default());
        assert_eq!(chunks, [Chunk::task(0, "Looking things up…", TaskStatus::Complete), text("They are")]);
    }

    #[test]
    fn nothing_is_shown_that_what_follows_may_change() {
        for (whole, shown) in [
            ("Go", ""),
            ("Go to [the pa", "Go to"),
            ("Go to [the page](https://a.example/x y", "Go to"),
            ("Press `rm -rf ", "Press"),
            ("Hello <!chan", "Hello"),
            ("Hello <!channel> all ", "Hello <!channel> all"),
            ("So:\n```\ncode\n", "So:\n"),
            ("So:\n```\ncode\n```\nand then ", "So:\n```\ncode\n```\nand then"),
        ] {
            assert_eq!(settled(whole), shown, "{whole:?}");
        }
        let (chunks, _) = next_chunks(&draft(&[words("Hello <!channel> all ")]), &Shown::default());
        assert_eq!(chunks, [text("Hello ‹!channel> all")]);
    }

    #[test]
    fn a_draft_is_shown_up_to_a_limit() {
        let long = draft(&[words(&"word ".repeat(MAX_CHARS))]);
        assert_eq!(next_chunks(&long, &Shown::default()).0, []);
    }
}
