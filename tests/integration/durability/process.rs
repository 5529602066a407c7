//! A bot as a process: started, told to stop, killed.

use std::{
    collections::HashMap,
    fs::File,
    io,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::support::bot::BOUND;

/// The program itself.
pub(super) const COUNTERSIGN: &str = env!("CARGO_BIN_EXE_countersign");

/// `countersign serve` with these settings.
pub(super) fn serve(settings: &HashMap<String, String>) -> Command {
    let mut command = Command::new(COUNTERSIGN);
    command.arg("serve").env_clear().envs(settings);
    command
}

/// A running process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    kill: Kill,
    log: PathBuf,
    /// How much others had written there before it began.
    from: usize,
}

impl Process {
    /// Starts it; what it says goes to the end of a file.
    pub(super) fn start(command: Command, log: &Path) -> Self {
        Self::start_for(&Kill::default(), command, log)
    }

    /// The same, to be killed by somebody who was waiting for it.
    pub(super) fn start_for(kill: &Kill, mut command: Command, log: &Path) -> Self {
        let from = std::fs::metadata(log).map_or(0, |file| usize::try_from(file.len()).unwrap());
        kill.takes(spawn(&mut command, log));
        Self { kill: kill.clone(), log: log.to_owned(), from }
    }

    /// Starts it where everybody who could have heard it has gone.
    pub(super) fn unheard(mut command: Command) -> Self {
        let nobody = || io::pipe().unwrap().1;
        let child = command.stdin(Stdio::null()).stdout(nobody()).stderr(nobody()).spawn().unwrap();
        let kill = Kill::default();
        kill.takes(child);
        Self { kill, log: PathBuf::new(), from: 0 }
    }

    /// Whether a bot has come so far that it can be told to stop.
    pub(super) fn is_up(&self) -> bool {
        self.log().get(self.from..).is_some_and(|log| log.contains("Connected to a workspace"))
    }

    /// Its number.
    pub(super) fn id(&self) -> u32 {
        self.kill.0.lock().unwrap().as_ref().expect("it was started").id()
    }

    /// How it ended, if it did.
    pub(super) fn ended(&self) -> Option<ExitStatus> {
        self.kill.0.lock().unwrap().as_mut().and_then(|child| child.try_wait().unwrap())
    }

    /// Asks it to end, as an operator does, and waits.
    pub(super) async fn stop(&self) -> ExitStatus {
        self.kill.politely();
        let deadline = tokio::time::Instant::now() + BOUND;
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(tokio::time::Instant::now() < deadline, "it does not end:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What it said.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills it without a word.
    pub(super) fn kill(&self) {
        self.kill.now();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill.now();
    }
}

fn spawn(command: &mut Command, log: &Path) -> Child {
    let log = File::options().create(true).append(true).open(log).unwrap();
    let also = log.try_clone().unwrap();
    command.stdin(Stdio::null()).stdout(also).stderr(log).spawn().unwrap()
}

/// Ends a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Kill(Arc<Mutex<Option<Child>>>);

impl Kill {
    fn takes(&self, child: Child) {
        *self.0.lock().unwrap() = Some(child);
    }

    /// Kills it without a word (SIGKILL). A process that has ended already stays so.
    pub(super) fn now(&self) {
        if let Some(child) = &mut *self.0.lock().unwrap() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Asks it to end (SIGTERM), unless it has. A crash point may be reached at the same time; whoever holds the lock is
    /// the only one who may wait for it, so its number stays its own.
    fn politely(&self) {
        if let Some(child) = &mut *self.0.lock().unwrap()
            && child.try_wait().unwrap().is_none()
        {
            assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
        }
    }
}
