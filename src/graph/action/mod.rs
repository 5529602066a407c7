//! A change in the outside world, from the proposal to its outcome.
//!
//! An [`ActionRecord`] is the only way to change anything. Its status only moves forward; each
//! transition is a compare-and-set in the store, and the legal transitions are one table,
//! [`Status::may_become`]. `Intent` is written before the request is sent, so a record that is
//! found in `Intent` after a crash means that *the request may or may not have arrived*. The
//! action's own [`Recovery`] decides how it is settled.
//!
//! The parts of an action (parameters, card, request) are defined by an [`ActionKind`], which a
//! capability implements.

mod batches;
mod claim;
mod decision;
mod differences;
mod evidence;
mod form;
mod kind;
mod label;
mod new_record;
mod outcome;
mod parts;
mod reader;
mod record;
mod request;
mod scope;
mod status;
mod wait;

pub use self::{
    batches::{Batch, Batches, Progress},
    claim::{CLAIMED_BY, Claim},
    decision::{Approver, Decision, Escalation, Lapse, Policy, Verdict},
    differences::{difference, differences},
    evidence::{Evidence, Suggested, Words, asked_by},
    form::{Entered, Field, Form, Input, Pick},
    kind::{ActionInfo, ActionKind, MissingParameter, Performed, PrepareError, Probed, Proposal, Recovery, Refusal},
    label::Label,
    new_record::NewRecord,
    outcome::{ErrorKind, IS_BACK, Outcome},
    parts::Parts,
    reader::Reader,
    record::{ActionRecord, Edit, Replacement, Settlement, Undo},
    request::ActionRequest,
    scope::Scope,
    status::{IllegalMove, Status},
    wait::{Awaited, Wait, WaitEnd},
};
