//! Plans: several steps of one request, which may depend on each other.
//!
//! A [`plan::Plan`] is checked and repaired by [`plan::Plan::checked`] before it is used, and again when a person
//! reorders its steps. After each step, [`routing::next`] decides what follows: the next step, another attempt, another
//! plan, or the end. A step may have a [`condition::Condition`] on an earlier result; code evaluates it, and if code
//! cannot, a person is asked.
//!
//! Everything here is a pure function of its arguments: nothing waits, nothing is stored, nothing is sent. The engine
//! implements the waits that [`routing::next`] returns, and holds no lease meanwhile.
//!
//! This crate knows no capabilities, threads or messages. Start reading at [`routing`].
//!
//! The rules are those of a public planning agent (Alpha Berkeley 0.1 and 0.8.5), as recorded in the vectors in
//! `tests/fixtures/agent-state`. They differ on purpose where that agent has faults:
//!
//! | rule | there | here |
//! | --- | --- | --- |
//! | stopped, and a retriable error | tries again | the stop comes first: no step begins after it |
//! | a flag asks for another classification (0.1 only) | read under a wrong name | there is no such flag: it is a [`control::Severity`] |
//! | step index past the end of the plan | an exception | [`routing::PastTheEnd`], an error of the caller |
//! | two steps with one key, unknown inputs, a reply in the middle | not checked | [`plan::Fault`] |
//! | a wait before another attempt | sleeps inside the decision | returned, and waited for outside |
//! | a refused plan | made again without limit | its reason is the input of one other plan; then the limit of plans holds |
//! | an unknown capability in a plan | another classification makes another plan, from its first step | the steps ahead are assigned again; what is done stays done |
//! | the limits of run time and nodes | declared but not enforced | [`control::Control::enforce`], after each step |
//! | the newest event replaces those before it | a history has to be kept elsewhere | each [`events::StreamEvent`] is an entry of the record |

pub mod condition;
pub mod control;
pub mod events;
pub mod plan;
pub mod routing;
