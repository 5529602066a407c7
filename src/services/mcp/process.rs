//! The process of a server: it leads a group of its own, and is ended together with everything that it has started. If
//! the bot is killed with SIGKILL, nothing is left that could end them: only their input is closed.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use secrecy::ExposeSecret as _;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader, ReadBuf},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::{Instant, sleep, timeout},
};

use crate::client::Program;

/// The environment variables that a server's process inherits. The others may contain secrets.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// The time for which a server may end by itself after its input was closed.
const PATIENCE: Duration = Duration::from_millis(400);

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(1500);

/// The interval at which a group is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// The number of lines that are kept of what a server writes to its standard error, and the length of each.
const KEPT_LINES: usize = 8;
const KEPT_CHARS: usize = 300;

/// The last lines that a server wrote to its standard error.
type LastLines = Arc<Mutex<VecDeque<String>>>;

/// The process of a server. Dropping it kills its group.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    /// The group, until it has been ended.
    group: Option<Pid>,
    last_lines: LastLines,
}

impl Process {
    /// Starts a program in a group of its own. Returns it with its pipes.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be started.
    pub(crate) fn start(program: &Program) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let mut command = Command::new(&program.command);
        command.args(&program.arguments).env_clear().process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(program.variables.iter().map(|(name, value)| (name, value.expose_secret())));
        if let Some(folder) = &program.folder {
            command.current_dir(folder);
        }
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let last_lines = LastLines::default();
        if let Some(errors) = child.stderr.take() {
            tokio::spawn(keep_last(errors, last_lines.clone()));
        }
        let pipes = child.stdout.take().zip(child.stdin.take());
        let process = Self { name: program.command.clone(), child, group, last_lines };
        let (output, input) = pipes.ok_or_else(|| io::Error::other("it has no pipes"))?;
        Ok((process, output, input))
    }

    /// Describes why the program did not answer: its end, if it has ended, and its last words.
    pub(crate) async fn why_silent(&mut self) -> String {
        let status = timeout(PATIENCE, self.child.wait()).await.ok().and_then(Result::ok);
        let how = match status {
            Some(status) => format!("`{}` ended at once ({})", self.name, in_words(status)),
            None => format!("`{}` runs but did not answer as an MCP server", self.name),
        };
        sleep(LOOK).await; // what it wrote last is read by another task
        match self.last_words() {
            said if said.is_empty() => format!("{how} and wrote no error"),
            said => format!("{how}; it wrote: {said}"),
        }
    }

    /// Returns the last lines that it wrote to its standard error, joined.
    fn last_words(&self) -> String {
        let lines = self.last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join(" / ")
    }

    /// Logs what the program wrote last, for a connection that was lost.
    pub(crate) fn log_last_words(&self) {
        tracing::warn!(program = self.name, wrote = self.last_words(), "The connection to a server's process was lost");
    }

    /// Ends the group: the program may end by itself for a moment, as its input is closed; then the group gets SIGTERM,
    /// and what is left of it SIGKILL.
    pub(crate) async fn end(mut self) {
        let Some(group) = self.group else { return };
        if !self.is_gone_within(PATIENCE, group).await {
            let _ = kill_process_group(group, Signal::TERM);
            if !self.is_gone_within(GRACE, group).await {
                let _ = kill_process_group(group, Signal::KILL);
                let _ = timeout(GRACE, self.child.wait()).await;
            }
        }
        self.group = None;
    }

    /// Waits until nothing is left of the group. Returns false if something is left after this time.
    async fn is_gone_within(&mut self, time: Duration, group: Pid) -> bool {
        let deadline = Instant::now() + time;
        loop {
            // A process that has ended stays in its group until its parent has asked for its status.
            let _ = self.child.try_wait();
            if test_kill_process_group(group).is_err() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            sleep(LOOK).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.child.try_wait();
        }
    }
}

fn in_words(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

/// Reads the standard error of a program to its end, and keeps the last lines.
async fn keep_last(errors: ChildStderr, last_lines: LastLines) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        // Lines without an end are read in pieces.
        let read = {
            let mut limited = tokio::io::AsyncReadExt::take(&mut errors, 4096);
            limited.read_until(b'\n', &mut line).await
        };
        if !matches!(read, Ok(1..)) {
            return;
        }
        let text = String::from_utf8_lossy(&line);
        let plain: String = text.chars().filter(|c| !c.is_control()).take(KEPT_CHARS).collect();
        if plain.trim().is_empty() {
            continue;
        }
        let mut lines = last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(plain.trim().to_owned());
        if lines.len() > KEPT_LINES {
            lines.pop_front();
        }
    }
}

/// A function that is shown a line.
type Show = Box<dyn Fn(&[u8]) + Send + Sync>;

/// A stream of lines that reports a line which is longer than the limit, and shows all others. The line itself is dropped
/// by its reader.
pub(crate) struct LimitedLines<R> {
    inner: R,
    /// The present line so far, up to the limit.
    line: Vec<u8>,
    /// True if the present line is longer than the limit.
    is_too_long: bool,
    most: usize,
    report: Box<dyn Fn() + Send + Sync>,
    show: Show,
}

impl<R> LimitedLines<R> {
    pub(crate) fn new(
        inner: R,
        most: usize,
        report: impl Fn() + Send + Sync + 'static,
        show: impl Fn(&[u8]) + Send + Sync + 'static,
    ) -> Self {
        let (report, show) = (Box::new(report), Box::new(show));
        Self { inner, line: Vec::new(), is_too_long: false, most, report, show }
    }

    /// Adds a piece of the present line, which may end it.
    fn add(&mut self, piece: &[u8]) {
        let is_over = self.line.len() + piece.len() > self.most;
        if is_over && !self.is_too_long {
            (self.report)();
        }
        self.is_too_long |= is_over;
        match self.is_too_long {
            true => self.line = Vec::new(),
            false => self.line.extend_from_slice(piece),
        }
        if piece.ends_with(b"\n") {
            if !self.is_too_long {
                (self.show)(&self.line);
            }
            self.line = Vec::new();
            self.is_too_long = false;
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LimitedLines<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        buffer.filled()[before..].split_inclusive(|byte| *byte == b'\n').for_each(|piece| self.add(piece));
        read
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn each_line_is_shown_and_a_long_one_is_reported() {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (told, shown) = (seen.clone(), seen.clone());
        let report = move || told.lock().unwrap().push("too long".to_owned());
        let show = move |line: &[u8]| shown.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
        let mut lines = LimitedLines::new(&b"one\nmuch longer\ntwo\nrest"[..], 5, report, show);
        let mut piece = [0; 3];
        while lines.read(&mut piece).await.unwrap() > 0 {}
        assert_eq!(*seen.lock().unwrap(), ["one\n", "too long", "two\n"]);
    }
}
