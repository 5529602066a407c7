//! Runs a node and saves its step.

use std::{pin::pin, time::Duration};

use countersign_core::{
    cause::chain,
    clock::Timestamp,
    draft::Draft,
    ids::ActionId,
    reply::{Attachment, Reply},
    status_line::{self, Progress},
};
use serde_json::json;
use tokio::time::Instant;

use super::session::{Session, StepInfo, outgoing};
use crate::{
    action::{ActionRecord, Status},
    checkpoint::Cursor,
    digest::Digest,
    engine::{Engine, LeaseState},
    node::{Context, Next, NodeError, State, Step},
    store::{ActionFilter, AuditDraft, AuditKind, Changes, Error, Keep, Outbound, Outgoing, Then, Usage},
    unwind::caught,
};

/// The time from the first words of an answer until they are shown: an answer that is complete by then is posted whole.
const DRAFT_AFTER: Duration = Duration::from_millis(250);

/// The minimum time between two parts of a draft that are shown.
const DRAFT_EVERY: Duration = Duration::from_secs(1);

impl<S: State> Engine<S> {
    /// Runs the node at the cursor and saves its step.
    pub(super) async fn run_node(
        &self,
        session: &mut Session<S>,
        name: &str,
        attempt: u32,
        ended: Option<ActionId>,
    ) -> Result<LeaseState, Error> {
        let began = self.clock.now();
        let Some(node) = self.graph.node(name) else {
            let reply = Reply::text("I was updated while working on this and can't continue.").hint("Ask again.");
            return self.give_up(session, Failure { node: name, began, reply, cause: "no such node".to_owned() }).await;
        };
        let context = self.context(session, attempt, ended.clone()).await?;
        let run = caught(node.run(S::clone(&session.checkpoint.state), &context));
        let run = tokio::time::timeout(self.settings.step_timeout, run);
        let has_status_line = node.status().is_some();
        let first = Progress {
            draft: session.take_draft(),
            takes_draft: has_status_line && self.settings.drafting.is_on(),
            ..Progress::of(node.status().unwrap_or_default())
        };
        let (mut line, run) = status_line::during(first, run);
        let mut shown = Shown::default();
        let mut run = pin!(run);
        let result = loop {
            let held_until = session.held_until();
            let (lease, heard) = (session.lease.clone(), session.newest_seq());
            tokio::select! {
                biased;
                result = &mut run => break result,
                messages = self.messages_with_stop(lease, heard), if ended.is_none() => {
                    session.add_messages(messages);
                    if let Some(by) = session.stop() {
                        return self.end_stopped(session, name, began, by).await;
                    }
                }
                () = tokio::time::sleep_until(held_until.unwrap_or_else(Instant::now)), if held_until.is_some() => {
                    self.save_held(session).await?;
                }
                () = self.until_progress_is_due(session, &shown, &mut line), if has_status_line => {
                    let progress = line.borrow().clone();
                    shown = self.show_progress(session, progress).await?;
                }
            }
        };
        let draft = line.borrow().draft.clone();
        session.keep_draft(draft);
        match result {
            Ok(Ok(Ok(step))) => self.save_decision(session, name, began, step).await,
            Ok(Ok(Err(NodeError::Permanent { reply, source }))) => {
                self.give_up(session, Failure { node: name, began, reply, cause: chain(&*source) }).await
            }
            Ok(Ok(Err(NodeError::Transient { reply, source }))) => {
                let failure = Failure { node: name, began, reply, cause: chain(&*source) };
                self.try_again(session, failure, attempt, ended).await
            }
            Ok(Err(panicked)) => {
                let reply = Reply::text("Something went wrong on my side, so I stopped. Nothing was changed.")
                    .hint("If it fails again, tell the app's operator.");
                let failure = Failure { node: name, began, reply, cause: panicked.to_string() };
                self.try_again(session, failure, attempt, ended).await
            }
            Err(_) => {
                let reply =
                    Reply::text("This took too long, so I stopped. Nothing further was changed.").hint("Ask again.");
                let failure = Failure { node: name, began, reply, cause: "the step timed out".to_owned() };
                self.try_again(session, failure, attempt, ended).await
            }
        }
    }

    /// Waits until the status line or the draft has a new text and may be updated, or has to be shown again, since Slack's
    /// own line disappears after a while.
    async fn until_progress_is_due(&self, session: &mut Session<S>, shown: &Shown, line: &mut status_line::Line) {
        loop {
            let now = self.clock.now();
            let status_due = *session.status_due.get_or_insert(now + self.settings.status_after);
            let due = {
                let progress = line.borrow_and_update();
                let status_at = match &shown.status {
                    Some((text, at)) if *text == progress.status => *at + self.settings.status_again,
                    _ => status_due,
                };
                // An answer appears as soon as it has words, whenever a status line is due.
                let words = progress.draft.as_ref().filter(|draft| draft.has_words());
                let has_more = words.is_some_and(|draft| shown.draft.as_ref() != Some(draft));
                match has_more {
                    true => status_at.min(*session.draft_due.get_or_insert(now + DRAFT_AFTER)),
                    false => status_at,
                }
            };
            tokio::select! {
                () = tokio::time::sleep(due.since(now)) => return,
                changed = line.changed() => if changed.is_err() {
                    std::future::pending::<()>().await; // the node has finished
                },
            }
        }
    }

    /// Shows the progress of the node at the cursor. It is written only if the node takes long, or writes an answer, so
    /// most steps have no status line.
    async fn show_progress(&self, session: &mut Session<S>, progress: Progress) -> Result<Shown, Error> {
        let Progress { status: text, draft, .. } = progress;
        let now = self.clock.now();
        session.status_due = Some(now + self.settings.status_every);
        session.draft_due = draft.as_ref().filter(|draft| draft.has_words()).map(|_| now + DRAFT_EVERY);
        let mut changes = session.changes();
        changes.acks.clear(); // the message is acknowledged when its first step is saved
        let shown = Shown { status: Some((text.clone(), now)), draft: draft.clone() };
        let draft = draft.filter(|draft| !draft.parts.is_empty());
        let status = Outbound::Status { text, draft };
        changes.outbox.push(outgoing(session.checkpoint.reply_slots.slot(), now, status));
        let acks = std::mem::take(&mut session.acks);
        self.save(session, changes, Then::Keep).await?;
        session.acks = acks;
        Ok(shown)
    }

    async fn context(&self, session: &mut Session<S>, attempt: u32, ended: Option<ActionId>) -> Result<Context, Error> {
        let ended = match ended {
            Some(id) => self.decided(session, &id).await?,
            None => None,
        };
        let open = self.open_in(session).await?;
        let thread = &session.lease.thread;
        let run = session.checkpoint.run.clone().unwrap_or_else(|| "none".into());
        Ok(Context { thread: thread.clone(), run, now: self.clock.now(), attempt, ended, open })
    }

    /// Returns the actions of the thread that wait for a person.
    pub(super) async fn open_in(&self, session: &Session<S>) -> Result<Vec<ActionRecord>, Error> {
        if session.checkpoint.suspended.is_empty() {
            return Ok(Vec::new());
        }
        self.store.actions(&ActionFilter::of(&session.lease.thread, &[Status::Pending], 20)).await
    }

    /// Saves the step that a node returned.
    async fn save_decision(
        &self,
        session: &mut Session<S>,
        node: &str,
        began: Timestamp,
        step: Step<S>,
    ) -> Result<LeaseState, Error> {
        let Step { state, next, says, posts, usage } = step;
        let now = self.clock.now();
        session.checkpoint.state = state.into();
        let mut extra = session.changes();
        for reply in says {
            self.say(session, &mut extra, reply).await?;
        }
        for (channel, body) in posts {
            let detail = json!({ "channel": channel, "digest": Digest::of(&[&body]) });
            extra.audit.push(AuditDraft::new(AuditKind::Posted, now, None, detail));
            let slot = session.checkpoint.reply_slots.slot();
            let post = outgoing(slot, now, Outbound::Elsewhere { channel, body });
            extra.outbox.push(Outgoing { slot: None, ..post });
        }
        record_events(session, &mut extra, now);
        let (mut wait, mut goes_on) = (None, false);
        let next = match next {
            Next::Later(target, after) => {
                session.checkpoint.cursor = Cursor::At { node: target.to_owned(), attempt: 0, ended: None };
                wait = Some(now + after);
                target
            }
            Next::Go(target) => {
                goes_on = extra.outbox.is_empty();
                session.checkpoint.cursor = Cursor::At { node: target.to_owned(), attempt: 0, ended: None };
                target
            }
            Next::Ask(ask) => {
                return Box::pin(self.save_question(session, (node, began), extra, *ask, usage)).await;
            }
            Next::Close(why) => {
                return Box::pin(self.save_closing(session, (node, began), extra, why, usage)).await;
            }
            Next::End => {
                if session.checkpoint.reply_slots.said == 0 {
                    extra.outbox.push(outgoing(session.checkpoint.reply_slots.slot(), now, Outbound::Remove));
                }
                session.checkpoint.cursor = Cursor::Idle;
                "end"
            }
        };
        let info = StepInfo { node, next, began, took: now.since(began), usage, error: None, pause: false };
        match goes_on {
            true => self.hold_step(session, info, extra).await,
            false => self.save_step(session, info, extra, wait).await,
        }
    }

    /// Holds a step back, to be written with the next one: what a crash in between repeats has had no effect, or an
    /// effect that is looked up. A step with a full checkpoint is written at once.
    pub(super) async fn hold_step(
        &self,
        session: &mut Session<S>,
        info: StepInfo<'_>,
        extra: Changes,
    ) -> Result<LeaseState, Error> {
        let node = info.node;
        let changes = self.with_step(session, info, extra);
        match changes.snapshot {
            Some(_) => self.save(session, changes, Then::Keep).await?,
            None => {
                session.hold(changes);
                tracing::debug!(thread.id = %session.lease.thread, node.name = node, "A step is held back");
            }
        }
        Ok(LeaseState::Held)
    }

    /// Adds a step to its other changes and writes them together. If `wait` is given, the thread is
    /// released until then.
    pub(super) async fn save_step(
        &self,
        session: &mut Session<S>,
        info: StepInfo<'_>,
        extra: Changes,
        wait: Option<Timestamp>,
    ) -> Result<LeaseState, Error> {
        let changes = self.with_step(session, info, extra);
        let then = match wait {
            Some(until) => Then::ReleaseUntil(until),
            None if session.checkpoint.is_idle() && !session.has_messages() => Then::Release,
            None => Then::Keep,
        };
        self.save(session, changes, then).await?;
        Ok(if then == Then::Keep { LeaseState::Held } else { LeaseState::Released })
    }

    /// Adds a step to its other changes.
    fn with_step(&self, session: &mut Session<S>, info: StepInfo<'_>, mut extra: Changes) -> Changes {
        if let Some(usage) = &info.usage {
            extra.audit.push(usage_event(session, info.node, usage, self.clock.now()));
        }
        if session.checkpoint.is_idle() {
            session.take_buttons_away(&mut extra, self.clock.now());
        }
        let step = session.step(info);
        Changes { steps: step.steps, snapshot: step.snapshot, acks: step.acks, ..extra }
    }

    /// Adds a reply to `changes`, in the next message of the run, or in several if it is long. Its
    /// files follow it.
    pub(super) async fn say(
        &self,
        session: &mut Session<S>,
        changes: &mut Changes,
        mut reply: Reply,
    ) -> Result<(), Error> {
        let now = self.clock.now();
        let files = std::mem::take(&mut reply.files);
        let mut detail = AuditDraft::text_detail(&reply.words());
        detail["run"] = json!(session.checkpoint.run);
        changes.audit.push(AuditDraft::new(AuditKind::Answered, now, None, detail));
        for reply in (self.settings.chunks)(reply) {
            let slot = session.checkpoint.reply_slots.slot();
            session.checkpoint.reply_slots.said += 1;
            session.remember_buttons(changes, &slot, &reply, now);
            changes.outbox.push(outgoing(slot, now, Outbound::Reply { reply }));
        }
        for Attachment { name, title, alt, bytes } in files {
            let hash = self.store.put_blob(&bytes, Keep::WithThread(&session.lease.thread)).await?;
            let detail = json!({ "name": name, "title": title, "hash": hash, "bytes": bytes.len() });
            changes.audit.push(AuditDraft::new(AuditKind::Attached, now, None, detail));
            let file = outgoing(session.checkpoint.reply_slots.slot(), now, Outbound::File { name, title, alt, hash });
            changes.outbox.push(Outgoing { slot: None, ..file });
        }
        Ok(())
    }

    /// Schedules another attempt at the node after a wait, or gives up.
    async fn try_again(
        &self,
        session: &mut Session<S>,
        failure: Failure<'_>,
        attempt: u32,
        ended: Option<ActionId>,
    ) -> Result<LeaseState, Error> {
        let failures = attempt + 1;
        if !self.settings.retry.allows(failures) {
            return self.give_up(session, failure).await;
        }
        let Failure { node, began, reply: _, cause } = failure;
        let now = self.clock.now();
        let wait = self.settings.retry.wait(failures);
        tracing::warn!(thread.id = %session.lease.thread, node.name = node, attempt, cause, "Node failed; retrying");
        session.checkpoint.cursor = Cursor::At { node: node.to_owned(), attempt: failures, ended };
        let info =
            StepInfo { node, next: node, began, took: now.since(began), usage: None, error: Some(cause), pause: false };
        let extra = session.changes();
        self.save_step(session, info, extra, Some(now + wait)).await
    }

    /// Ends the run and posts the reply of the failure.
    async fn give_up(&self, session: &mut Session<S>, failure: Failure<'_>) -> Result<LeaseState, Error> {
        let Failure { node, began, reply, cause } = failure;
        let now = self.clock.now();
        tracing::error!(thread.id = %session.lease.thread, node.name = node, cause, "Node gave up");
        let mut extra = session.changes();
        self.say(session, &mut extra, reply).await?;
        session.checkpoint.cursor = Cursor::Idle;
        let info = StepInfo {
            node,
            next: "end",
            began,
            took: now.since(began),
            usage: None,
            error: Some(cause),
            pause: false,
        };
        self.save_step(session, info, extra, None).await
    }
}

/// Adds to the record what the nodes have noted of the run.
pub(super) fn record_events<S: State>(session: &mut Session<S>, changes: &mut Changes, now: Timestamp) {
    for mut event in session.checkpoint.state_mut().take_events() {
        event["run"] = json!(session.checkpoint.run);
        changes.audit.push(AuditDraft::new(AuditKind::Progress, now, None, event));
    }
}

/// Creates the audit entry for the usage of a step.
fn usage_event<S: State>(session: &Session<S>, node: &str, usage: &Usage, now: Timestamp) -> AuditDraft {
    let mut detail = serde_json::to_value(usage).expect("usage is plain data");
    detail["run"] = json!(session.checkpoint.run);
    detail["node"] = json!(node);
    AuditDraft::new(AuditKind::Ran, now, None, detail)
}

/// What was shown of the progress of a node.
#[derive(Default)]
struct Shown {
    /// The status line, and when it was shown.
    status: Option<(String, Timestamp)>,
    draft: Option<Draft>,
}

/// A failure of a node, with the reply about it.
struct Failure<'a> {
    node: &'a str,
    began: Timestamp,
    reply: Reply,
    cause: String,
}
