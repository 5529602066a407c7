//! The status line of long-running work.
//!
//! The reason for a delay, such as a retry, is known only deep inside a service, while the engine shows the line. The
//! line is therefore task-local, so that the code in between does not have to pass it along. Where there is no status
//! line, as in actions and commands, the text is discarded.

use tokio::sync::watch;

tokio::task_local! {
    static LINE: watch::Sender<String>;
}

/// The receiving end of a status line.
pub type Line = watch::Receiver<String>;

/// Gives `work` a status line, which is `first` until `work` changes it with [`say`]. Returns the line, and the future
/// to run.
pub fn during<F: Future>(first: &str, work: F) -> (Line, impl Future<Output = F::Output>) {
    let (sender, line) = watch::channel(first.to_owned());
    (line, LINE.scope(sender, work))
}

/// Sets the status line of the current work, if it has one.
pub fn say(words: impl Into<String>) {
    let _ = LINE.try_with(|line| line.send_replace(words.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn changes_during_the_work_arrive_at_the_receiver() {
        say("nobody listens");
        let (line, work) = during("Looking…", async { say("Looking again…") });
        assert_eq!(*line.borrow(), "Looking…");
        work.await;
        assert_eq!(*line.borrow(), "Looking again…");
    }
}
