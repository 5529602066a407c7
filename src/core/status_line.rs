//! The status line of work in progress that takes long.
//!
//! A call that is repeated deep inside a service knows the reason for the wait, and the engine knows where to show it.
//! The line between them belongs to the task, so nothing in between has to hand it on. Words that nobody reads are
//! dropped, as in actions and commands.

use tokio::sync::watch;

tokio::task_local! {
    static LINE: watch::Sender<String>;
}

/// The receiving end of a status line.
pub type Line = watch::Receiver<String>;

/// Runs `work` with a status line that begins as `first` and changes with each [`say`] during the work.
pub fn during<F: Future>(first: &str, work: F) -> (Line, impl Future<Output = F::Output>) {
    let (sender, line) = watch::channel(first.to_owned());
    (line, LINE.scope(sender, work))
}

/// Changes the status line of the current work, if it has one.
pub fn say(words: impl Into<String>) {
    let _ = LINE.try_with(|line| line.send_replace(words.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_said_deep_inside_arrives_outside() {
        say("nobody listens");
        let (line, work) = during("Looking…", async { say("Looking again…") });
        assert_eq!(*line.borrow(), "Looking…");
        work.await;
        assert_eq!(*line.borrow(), "Looking again…");
    }
}
