//! What work in progress says of itself while it takes long, for whoever shows it.
//!
//! A call that is repeated deep inside a service knows why somebody has to wait, and the engine knows where they look. The
//! line between them belongs to the task, so that nothing in between has to hand it on. Words that nobody listens to are
//! dropped, as in actions and commands.

use tokio::sync::watch;

tokio::task_local! {
    static LINE: watch::Sender<String>;
}

/// The line, read by whoever shows it.
pub type Line = watch::Receiver<String>;

/// Runs `work`; the line begins as `first` and changes with whatever is said during the work.
pub fn during<F: Future>(first: &str, work: F) -> (Line, impl Future<Output = F::Output>) {
    let (sender, line) = watch::channel(first.to_owned());
    (line, LINE.scope(sender, work))
}

/// Changes the line of the work that this is part of.
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
