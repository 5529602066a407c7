//! The queues of scripted answers and faults.
//!
//! A fault affects one request and leaves the answers queued, so that the next attempt gets the
//! answer that was meant for the first. If the fault is in the answer itself, the answer is removed
//! from the queue.

use std::{collections::VecDeque, fmt, sync::Arc};

use serde_json::{Value, json};

/// A scripted answer.
#[derive(Clone, Debug)]
pub(super) struct Scripted {
    /// Its blocks.
    pub(super) content: Vec<Value>,
    /// The reason why it ends, such as `end_turn`.
    pub(super) stop_reason: String,
}

/// A fault in the handling of one request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// The request is answered with this status.
    Fail { status: u16, retry_after: Option<f64> },
    /// The answer begins, and the rest is not sent.
    Stall,
    /// The answer begins, and the connection is closed.
    Cut,
    /// The answer begins and ends in an error.
    BreakOff { kind: String },
    /// The arguments are not valid JSON.
    BadJson,
    /// The stream gives no reason for its end.
    NoReason,
    /// The answer is not streamed.
    Whole,
}

impl Fault {
    /// Returns true if the fault is in the answer itself, which is then not sent again.
    fn is_in_answer(&self) -> bool {
        matches!(self, Self::BadJson | Self::NoReason | Self::Whole)
    }
}

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum Turn {
    /// An answer, possibly with a fault.
    Answer(Scripted, Option<Fault>),
    /// An error with this status.
    Fail { status: u16, retry_after: Option<f64> },
    /// Nothing was scripted.
    Unscripted,
}

/// A function that answers a request with the blocks of a message.
pub(super) type Answers = dyn Fn(&Value) -> Vec<Value> + Send;

/// The function that answers requests without a scripted answer.
#[derive(Default)]
pub(super) struct Otherwise(pub(super) Option<Box<Answers>>);

impl fmt::Debug for Otherwise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Otherwise").field(&self.0.is_some()).finish()
    }
}

/// The condition until which the rest of an answer is held back.
#[derive(Clone, Default)]
pub(super) struct Hold(pub(super) Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hold").field(&self.0.is_some()).finish()
    }
}

/// The queued answers and faults.
#[derive(Debug, Default)]
pub(super) struct Script {
    answers: VecDeque<Scripted>,
    /// The function that answers if the queue is empty.
    pub(super) otherwise: Otherwise,
    faults: VecDeque<Fault>,
    calls: u64,
    /// True if every request is answered with status 529.
    pub(super) down: bool,
    /// The condition until which the second half of a streamed text is held back.
    pub(super) hold: Hold,
    /// The paths of the members for which a request is refused.
    pub(super) refused: Vec<&'static str>,
    /// The number of requests without an answer.
    pub(super) unscripted: usize,
}

impl Script {
    /// Queues an answer.
    pub(super) fn add(&mut self, answer: Scripted) {
        let answer = self.with_ids(answer);
        self.answers.push_back(answer);
    }

    /// Gives ids to the calls of an answer.
    fn with_ids(&mut self, mut answer: Scripted) -> Scripted {
        for block in &mut answer.content {
            if block["type"] == "tool_use" && block["id"].is_null() {
                self.calls += 1;
                block["id"] = Value::from(format!("toolu_sandbox_{:04}", self.calls));
            }
        }
        answer
    }

    /// Queues a fault.
    pub(super) fn fail(&mut self, fault: Fault) {
        self.faults.push_back(fault);
    }

    /// Returns the number of queued answers.
    pub(super) fn unasked(&self) -> usize {
        self.answers.len()
    }

    /// Returns the status of a valid request that needs no scripted answer if it fails, and removes it from the queue.
    pub(super) fn refuses(&mut self) -> Option<(u16, Option<f64>)> {
        if self.down {
            return Some((529, None));
        }
        match self.faults.pop_front()? {
            Fault::Fail { status, retry_after } => Some((status, retry_after)),
            _ => None,
        }
    }

    /// Returns the outcome of a valid request, and removes it from the queues.
    pub(super) fn next(&mut self, request: &Value) -> Turn {
        if self.down {
            return Turn::Fail { status: 529, retry_after: None };
        }
        if let (true, Some(answers)) = (self.answers.is_empty(), &self.otherwise.0) {
            let content = told_to_call(request).map_or_else(|| answers(request), |call| vec![call]);
            let calls = content.iter().any(|block| block["type"] == "tool_use");
            let stop_reason = if calls { "tool_use" } else { "end_turn" };
            self.add(Scripted { content, stop_reason: stop_reason.to_owned() });
        }
        match self.faults.pop_front() {
            Some(Fault::Fail { status, retry_after }) => Turn::Fail { status, retry_after },
            Some(fault) => {
                let answer =
                    if fault.is_in_answer() { self.answers.pop_front() } else { self.answers.front().cloned() };
                self.or_unscripted(answer, Some(fault))
            }
            None => {
                let answer = self.answers.pop_front();
                self.or_unscripted(answer, None)
            }
        }
    }

    fn or_unscripted(&mut self, answer: Option<Scripted>, fault: Option<Fault>) -> Turn {
        match answer {
            Some(answer) => Turn::Answer(answer, fault),
            None => {
                self.unscripted += 1;
                Turn::Unscripted
            }
        }
    }
}

/// Returns a call of the tool that the instructions name, if they are nothing else than an instruction to call it.
fn told_to_call(request: &Value) -> Option<Value> {
    let name = request["system"][0]["text"].as_str()?.strip_prefix("Call the tool `")?.strip_suffix("`.")?;
    Some(json!({ "type": "tool_use", "name": name, "input": {} }))
}
