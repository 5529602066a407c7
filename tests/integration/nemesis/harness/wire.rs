//! The wires between one process of the bot and what it talks to: they can be cut, stalled and delayed, they can say
//! something else than what was answered, and they can stop or kill the process at the moment at which bytes pass.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::sleep,
};

use super::{bots::Slot, weather::Weather};

/// How much of a request is looked at to tell which it is.
const HEAD: usize = 160;

/// How a wire is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Bytes pass.
    Up,
    /// Connections end, new ones too.
    Cut,
    /// Nothing passes until the wire is up again; what waited goes on then.
    Stalled,
    /// What the bot sends passes; as soon as something is answered, the connection ends.
    LosesAnswers,
}

/// In which direction bytes pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// From the bot.
    Request,
    /// To the bot.
    Answer,
}

/// What happens as bytes pass.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// The process stands still for so long; the bytes pass.
    Freeze(Duration),
    /// The process stands still for the first time, the bytes wait for the second.
    FreezeAndHold(Duration, Duration),
    /// The process is killed; the bytes pass.
    Kill,
    /// The process is killed, and the bytes are gone.
    KillBefore,
    /// The connection ends instead.
    Cut,
    /// The bytes wait.
    Delay(Duration),
    /// This is answered in place of what would be, and the connection ends. `done`: whether the request passes.
    Say { raw: Arc<[u8]>, done: bool },
}

/// Something that happens to some of what passes, until it is taken back.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) kind: &'static str,
    pub(crate) side: Side,
    /// Only where the request contains this in its first bytes.
    pub(crate) only: &'static str,
    pub(crate) chance: f64,
    /// How often at most.
    pub(crate) left: u32,
    pub(crate) act: Act,
}

struct Shared {
    name: &'static str,
    slot: Arc<Slot>,
    target: u16,
    mode: watch::Sender<Mode>,
    rules: Mutex<(Vec<Rule>, StdRng)>,
    /// So that a wire without rules takes no lock.
    ruled: AtomicUsize,
    weather: Weather,
}

/// A wire with a port of its own. Dropping it cuts it.
pub(crate) struct Wire {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Wire {
    /// A wire of the process in `slot` to `target`.
    pub(crate) async fn new(
        name: &'static str,
        slot: &Arc<Slot>,
        target: u16,
        seed: u64,
        weather: &Weather,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            name,
            slot: slot.clone(),
            target,
            mode: watch::Sender::new(Mode::Up),
            rules: Mutex::new((Vec::new(), StdRng::seed_from_u64(seed))),
            ruled: AtomicUsize::new(0),
            weather: weather.clone(),
        });
        let serving = shared.clone();
        let accepting = tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((client, _)) => drop(tokio::spawn(pass_on(client, serving.clone()))),
                    Err(_) => sleep(Duration::from_millis(10)).await,
                }
            }
        });
        Ok(Self { port, shared, accepting })
    }

    pub(crate) fn name(&self) -> String {
        format!("{} of bot {}", self.shared.name, self.shared.slot.index)
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.shared.mode.send_replace(mode);
    }

    pub(crate) fn add(&self, rule: Rule) {
        let mut rules = self.shared.rules.lock().expect("nobody panics with the lock");
        rules.0.push(rule);
        self.shared.ruled.store(rules.0.len(), Ordering::SeqCst);
    }

    /// Takes back all rules.
    pub(crate) fn clear(&self) {
        self.shared.rules.lock().expect("nobody panics with the lock").0.clear();
        self.shared.ruled.store(0, Ordering::SeqCst);
        self.set(Mode::Up);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.set(Mode::Cut);
        self.accepting.abort();
    }
}

impl Shared {
    /// What happens to bytes that pass on a connection whose last request began like this.
    fn fate(&self, side: Side, head: &[u8]) -> Option<Act> {
        if self.ruled.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut rules = self.rules.lock().expect("nobody panics with the lock");
        let (rules, dice) = &mut *rules;
        let fits = |rule: &Rule| rule.side == side && (rule.only.is_empty() || contains(head, rule.only.as_bytes()));
        let at = rules.iter().position(|rule| fits(rule) && dice.random_bool(rule.chance))?;
        let rule = &mut rules[at];
        rule.left = rule.left.saturating_sub(1);
        let (act, kind, gone) = (rule.act.clone(), rule.kind, rule.left == 0);
        if gone {
            rules.remove(at);
            self.ruled.store(rules.len(), Ordering::SeqCst);
        }
        if !matches!(act, Act::Freeze(_) | Act::FreezeAndHold(..) | Act::Kill | Act::KillBefore) {
            let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
            let line = String::from_utf8_lossy(&line[..line.len().min(90)]);
            self.weather.strikes(kind, &format!("{} of bot {} {side:?} `{line}`", self.name, self.slot.index));
        }
        Some(act)
    }
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

/// Serves one connection until either end closes it or the wire is cut.
async fn pass_on(mut client: TcpStream, shared: Arc<Shared>) {
    let mut mode = shared.mode.subscribe();
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", shared.target)).await else { return };
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let (mut request, mut answer) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let mut head = Vec::new();
    loop {
        let now = *mode.borrow_and_update();
        match now {
            Mode::Cut => return,
            Mode::Stalled => {
                if mode.wait_for(|mode| *mode != Mode::Stalled).await.is_err() {
                    return;
                }
                continue;
            }
            Mode::Up | Mode::LosesAnswers => {}
        }
        let (side, n) = tokio::select! {
            biased;
            changed = mode.changed() => if changed.is_err() { return } else { continue },
            read = server.read(&mut answer) => (Side::Answer, read.unwrap_or(0)),
            read = client.read(&mut request) => (Side::Request, read.unwrap_or(0)),
        };
        if n == 0 || (side == Side::Answer && now == Mode::LosesAnswers) {
            return;
        }
        if side == Side::Request {
            head.clear();
            head.extend_from_slice(&request[..n.min(HEAD)]);
        }
        let why = || format!("{} {side:?}", shared.name);
        match shared.fate(side, &head) {
            None => {}
            Some(Act::Freeze(time)) => shared.slot.freeze(time, &why()),
            Some(Act::FreezeAndHold(time, held)) => {
                shared.slot.freeze(time, &why());
                sleep(held).await;
            }
            Some(Act::Kill) => shared.slot.kill(&why()),
            Some(Act::KillBefore) => {
                shared.slot.kill(&why());
                return;
            }
            Some(Act::Cut) => return,
            Some(Act::Delay(time)) => sleep(time).await,
            Some(Act::Say { raw, done }) => {
                if done && side == Side::Request {
                    server.write_all(&request[..n]).await.ok();
                    let _answered = server.read(&mut answer).await; // it is done once it is answered
                }
                client.write_all(&raw).await.ok();
                client.shutdown().await.ok();
                return;
            }
        }
        let passed = match side {
            Side::Answer => client.write_all(&answer[..n]).await,
            Side::Request => server.write_all(&request[..n]).await,
        };
        if passed.is_err() {
            return;
        }
    }
}

/// One address for several processes, as a load balancer gives them: a connection goes to the next one that takes it.
pub(crate) async fn balancer(slots: Vec<Arc<Slot>>) -> std::io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let turn = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        loop {
            let Ok((client, _)) = listener.accept().await else {
                sleep(Duration::from_millis(10)).await;
                continue;
            };
            let (slots, turn) = (slots.clone(), turn.clone());
            tokio::spawn(async move {
                for _ in 0..slots.len() {
                    let slot = &slots[turn.fetch_add(1, Ordering::Relaxed) % slots.len()];
                    if !slot.is_ready() {
                        continue;
                    }
                    if let Ok(mut server) = TcpStream::connect(("127.0.0.1", slot.port)).await {
                        let mut client = client;
                        tokio::io::copy_bidirectional(&mut client, &mut server).await.ok();
                        return;
                    }
                }
            });
        }
    });
    Ok(port)
}
