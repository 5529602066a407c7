//! The status line of long-running work, and the draft of the answer that it comes to.
//!
//! The reason for a delay, such as a retry, is known only deep inside a service, while the engine shows the line. The
//! line is therefore task-local, so that the code in between does not have to pass it along. Where there is no status
//! line, as in actions and commands, the text is discarded.

use std::sync::Mutex;

use tokio::sync::watch;

use crate::{
    draft::{Draft, Part},
    ids::UserId,
};

tokio::task_local! {
    static LINE: watch::Sender<Progress>;
}

/// The receiving end of a status line.
pub type Line = watch::Receiver<Progress>;

/// What is shown of work in progress.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The status line.
    pub status: String,
    /// The draft of the answer, once a language model works on it.
    pub draft: Option<Draft>,
    /// True if there may be a draft.
    pub takes_draft: bool,
}

impl Progress {
    /// Creates a status line without a draft.
    pub fn of(status: impl Into<String>) -> Self {
        Self { status: status.into(), draft: None, takes_draft: false }
    }

    /// Sets the status line, which is also a task of the draft.
    fn say(&mut self, status: String) {
        if let Some(draft) = &mut self.draft {
            draft.add_task(&status);
        }
        self.status = status;
    }
}

/// Gives `work` a status line, which is `first` until `work` changes it with [`say`]. Returns the line, and the future
/// to run.
pub fn during<F: Future>(mut first: Progress, work: F) -> (Line, impl Future<Output = F::Output>) {
    let status = std::mem::take(&mut first.status);
    first.say(status);
    let (sender, line) = watch::channel(first);
    (line, LINE.scope(sender, work))
}

/// Sets the status line of the current work, if it has one.
pub fn say(words: impl Into<String>) {
    let _ = LINE.try_with(|line| line.send_modify(|progress| progress.say(words.into())));
}

/// Begins the draft of an answer to a person, if the current work may have one and has none yet. From then on, each status
/// line is a task of the draft.
pub fn begin_draft(to: &UserId) {
    let begin = |progress: &mut Progress| {
        let begins = progress.takes_draft && progress.draft.is_none();
        if begins {
            progress.draft = Some(Draft::to(to.clone()));
        }
        begins
    };
    let _ = LINE.try_with(|line| line.send_if_modified(begin));
}

/// Returns a writer of the words of one answer, if the current work has a draft.
pub fn writer() -> Option<Writer> {
    let line = LINE.try_with(Clone::clone).ok()?;
    let has_draft = line.borrow().draft.is_some();
    has_draft.then(|| Writer { line, at: Mutex::default() })
}

/// A writer of the words of one answer.
#[derive(Debug)]
pub struct Writer {
    line: watch::Sender<Progress>,
    /// The place of the words in the draft.
    at: Mutex<Option<usize>>,
}

impl Writer {
    /// Adds the answer so far to the draft. What looks like data, such as a call written as text, is no words for people.
    pub fn write(&self, so_far: &str) {
        if so_far.trim_start().is_empty() || so_far.trim_start().starts_with(['{', '[', '<', '`']) {
            return;
        }
        let Ok(mut at) = self.at.lock() else { return };
        self.line.send_if_modified(|progress| {
            let Some(draft) = &mut progress.draft else { return false };
            let before = draft.parts.last().map(length);
            *at = draft.write(*at, so_far);
            draft.parts.last().map(length) != before
        });
    }
}

fn length(part: &Part) -> usize {
    match part {
        Part::Words(text) | Part::Task(text) => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn changes_during_the_work_arrive_at_the_receiver() {
        say("nobody listens");
        let (line, work) = during(Progress::of("Looking…"), async { say("Looking again…") });
        assert_eq!(line.borrow().status, "Looking…");
        work.await;
        assert_eq!(line.borrow().status, "Looking again…");
    }

    #[tokio::test]
    async fn a_draft_has_the_words_and_what_is_done_between_them() {
        let work = async {
            say("Reading…");
            begin_draft(&"U1".into());
            let first = writer().unwrap();
            first.write("I look");
            first.write("I look it up.");
            say("Looking…");
            let second = writer().unwrap();
            second.write("{\"name\":");
            second.write("There");
            second.write("Here are other words");
            second.write("There are two.");
        };
        let (line, work) = during(Progress { takes_draft: true, ..Progress::of("Beginning…") }, work);
        work.await;
        let words = |text: &str| Part::Words(text.to_owned());
        let parts = line.borrow().draft.clone().unwrap().parts;
        assert_eq!(parts, [words("I look it up."), Part::Task("Looking…".to_owned()), words("There are two.")]);
    }

    #[tokio::test]
    async fn work_that_may_have_no_draft_has_none() {
        let work = async {
            begin_draft(&"U1".into());
            writer().is_none()
        };
        let (line, work) = during(Progress::of("Looking…"), work);
        assert!(work.await && line.borrow().draft.is_none());
    }
}
