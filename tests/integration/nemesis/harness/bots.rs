//! The processes of the bot: started, started again whenever they end, stopped in their tracks, killed.

use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

use super::{clocks::WallClock, weather::Weather};
use crate::support::ports::free_port;

/// How long a process may take to come up before that counts as its own fault.
const START: Duration = Duration::from_secs(20);
/// How long whoever starts processes waits after one has ended.
const PAUSE: Duration = Duration::from_millis(150);
/// How often somebody looks after a process.
const LOOK: Duration = Duration::from_millis(20);

/// A place for a process: what runs there changes, its port and its settings do not.
pub(crate) struct Slot {
    /// Counted from 0.
    pub(crate) index: usize,
    /// Where it answers.
    pub(crate) port: u16,
    /// Where it writes its log.
    pub(crate) log: PathBuf,
    clock: WallClock,
    settings: Mutex<HashMap<String, String>>,
    child: Mutex<Option<Child>>,
    ready: AtomicBool,
    over: AtomicBool,
    weather: Weather,
    /// How often it ended although nobody killed it.
    pub(crate) ended_by_itself: AtomicU64,
    killed: AtomicBool,
}

impl Slot {
    /// # Errors
    ///
    /// If its clock cannot be made.
    pub(crate) fn new(index: usize, folder: &Path, weather: &Weather) -> anyhow::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            index,
            port: free_port(),
            log: folder.join(format!("bot-{index}.log")),
            clock: WallClock::right(folder.join(format!("clock-{index}")))?,
            settings: Mutex::default(),
            child: Mutex::default(),
            ready: AtomicBool::new(false),
            over: AtomicBool::new(false),
            weather: weather.clone(),
            ended_by_itself: AtomicU64::new(0),
            killed: AtomicBool::new(false),
        }))
    }

    /// Whether it has said that it is ready since it was started.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }

    /// Kills what runs here, without a word.
    pub(crate) fn kill(&self, why: &str) {
        let mut child = self.child();
        if let Some(running) = child.as_mut()
            && running.try_wait().ok().flatten().is_none()
        {
            self.weather.strikes("kill -9 of a bot", &format!("bot {} ({why})", self.index));
            self.killed.store(true, Ordering::SeqCst);
            running.kill().ok(); // it may have ended in this moment
        }
    }

    /// Stops what runs here for a while, between one instruction and the next.
    pub(crate) fn freeze(self: &Arc<Self>, time: Duration, why: &str) {
        let Some(pid) = self.signal(None, Signal::STOP) else { return };
        let fault = self.weather.begins("stall of a bot", &format!("bot {} for {time:?} ({why})", self.index));
        let slot = self.clone();
        tokio::spawn(async move {
            sleep(time).await;
            slot.signal(Some(pid), Signal::CONT);
            drop(fault);
        });
    }

    /// Sets its clock so many seconds fast or slow, for what runs here now and for what comes after it.
    pub(crate) fn set_clock(&self, seconds: f64) {
        if let Err(error) = self.clock.set(seconds) {
            self.weather.note(&format!("the clock of bot {} cannot be set: {error}", self.index));
        }
    }

    /// Sends a signal to what runs here; only if it is still that process, where one is named.
    fn signal(&self, only: Option<u32>, signal: Signal) -> Option<u32> {
        let mut child = self.child();
        let running = child.as_mut()?;
        let pid = running.id();
        if only.is_some_and(|only| only != pid) || running.try_wait().ok().flatten().is_some() {
            return None;
        }
        kill_process(Pid::from_child(running), signal).ok()?;
        Some(pid)
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().expect("nobody panics with the lock")
    }

    /// Ends it for good.
    fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(mut child) = self.child().take() {
            child.kill().ok(); // it may have ended unexpectedly
            child.wait().ok();
        }
    }

    fn start(&self, program: &Path) -> std::io::Result<()> {
        let mut child = self.child();
        if self.over.load(Ordering::SeqCst) {
            return Ok(());
        }
        let log = File::options().create(true).append(true).open(&self.log)?;
        let settings = self.settings.lock().expect("nobody panics with the lock").clone();
        self.killed.store(false, Ordering::SeqCst);
        let mut command = Command::new(program);
        command
            .arg("serve")
            .env_clear()
            .envs(settings)
            .envs(self.clock.variables())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        *child = Some(command.spawn()?);
        Ok(())
    }

    /// Whether it has ended; then it is gone for good.
    fn has_ended(&self) -> bool {
        let mut child = self.child();
        match child.as_mut().map(Child::try_wait) {
            Some(Ok(None)) => false,
            _ => {
                *child = None;
                true
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.end();
    }
}

/// All processes. Dropping it ends them.
pub(crate) struct Fleet {
    pub(crate) slots: Vec<Arc<Slot>>,
}

impl Fleet {
    /// Starts a process in each slot, and another one whenever one ends.
    pub(crate) fn start(slots: Vec<(Arc<Slot>, HashMap<String, String>)>, program: &Path, weather: &Weather) -> Self {
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).timeout(Duration::from_secs(1));
        let client = client.build().expect("a TLS provider is installed");
        let mut fleet = Vec::new();
        for (slot, settings) in slots {
            *slot.settings.lock().expect("nobody panics with the lock") = settings;
            let kept = (slot.clone(), program.to_owned(), weather.clone(), client.clone());
            tokio::spawn(async move { keep_running(kept.0, kept.1, kept.2, kept.3).await });
            fleet.push(slot);
        }
        Self { slots: fleet }
    }

    /// Waits until all of them are ready.
    pub(crate) async fn ready(&self, bound: Duration) -> bool {
        let began = Instant::now();
        while !self.slots.iter().all(|slot| slot.is_ready()) {
            if began.elapsed() > bound {
                return false;
            }
            sleep(LOOK).await;
        }
        true
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for slot in &self.slots {
            slot.end();
        }
    }
}

async fn keep_running(slot: Arc<Slot>, program: PathBuf, weather: Weather, client: reqwest::Client) {
    let readyz = format!("http://127.0.0.1:{}/readyz", slot.port);
    while !slot.over.load(Ordering::SeqCst) {
        let coming_up = weather.consequence();
        if let Err(error) = slot.start(&program) {
            weather.note(&format!("bot {} cannot be started: {error}", slot.index));
        }
        let began = Instant::now();
        loop {
            if slot.has_ended() || began.elapsed() > START {
                break;
            }
            if client.get(&readyz).send().await.is_ok_and(|answer| answer.status().is_success()) {
                slot.ready.store(true, Ordering::SeqCst);
                break;
            }
            sleep(LOOK).await;
        }
        drop(coming_up);
        while !slot.has_ended() {
            sleep(LOOK).await;
        }
        slot.ready.store(false, Ordering::SeqCst);
        if !slot.killed.load(Ordering::SeqCst) && !slot.over.load(Ordering::SeqCst) {
            slot.ended_by_itself.fetch_add(1, Ordering::Relaxed);
            weather.note(&format!("bot {} ended unexpectedly", slot.index));
        }
        sleep(PAUSE).await;
    }
}
