//! Checks a form's input while the person waits.
//!
//! Slack expects an answer to a submitted window within seconds. Otherwise it shows an error, and
//! the person has to submit again. [`Deadline`] divides the available time among reading the form,
//! checking the input, finding the wrong field and storing the result. Work that takes too long is
//! abandoned, so that there is always an answer in time.

use std::time::Duration;

use countersign_graph::action::{ActionKind, PrepareError, Proposal, Refusal};
use countersign_slack::{interaction::View, sink::PATIENCE};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{form, form_errors};

/// The time reserved for storing a window's result.
const STORING_TIME: Duration = Duration::from_millis(300);

/// The time reserved for finding the wrong field after an error.
const FIELD_SEARCH_TIME: Duration = Duration::from_millis(400);

/// The message for a check that took too long.
const TOO_SLOW_MESSAGE: &str = "The platform took too long to check this, so nothing was saved. Try again in a moment.";

/// The time by which the check of a submitted window must be finished.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// Returns the deadline of a window that arrives now.
    pub fn from_now() -> Self {
        Self(Instant::now() + PATIENCE.saturating_sub(STORING_TIME))
    }

    /// Returns the result of `work` if it is ready `reserve` before the deadline.
    async fn within<T>(self, reserve: Duration, work: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.0 - reserve, work).await.ok()
    }
}

/// The outcomes of a check.
#[derive(Debug)]
pub enum FormCheck {
    /// The input is valid. Contains the parameters, and the proposal made from them.
    Valid(Value, Box<Proposal>),
    /// The check of these parameters took too long.
    Unchecked(Value),
    /// The input is invalid. Contains the answer to Slack that shows the errors.
    Invalid(Value),
    /// The action has no form.
    NoForm,
}

/// Checks the input, which changes the parameters `before`.
pub async fn check(kind: &dyn ActionKind, before: &Value, view: &View, deadline: Deadline) -> FormCheck {
    let form = match deadline.within(FIELD_SEARCH_TIME, kind.form(before)).await {
        Some(Some(form)) => form,
        Some(None) => return FormCheck::NoForm,
        None => return FormCheck::Invalid(too_slow(view)),
    };
    let entered = form::read(&form, view);
    let filled = match form.fill(before, &entered) {
        Ok(filled) => filled,
        Err(wrong) => return FormCheck::Invalid(form::errors(&form, wrong)),
    };
    let unchanged = || {
        let place = form.changed(&entered).next().unwrap_or_default().to_owned();
        FormCheck::Invalid(form::errors(&form, [(place, "You haven't changed anything.".to_owned())].into()))
    };
    if filled == *before {
        return unchanged();
    }
    let error = match deadline.within(FIELD_SEARCH_TIME, kind.prepare(&filled, None)).await {
        Some(Ok(proposal)) if same_except_id(&proposal.parameters, before) => return unchanged(),
        Some(Ok(proposal)) => return FormCheck::Valid(filled, Box::new(proposal)),
        Some(Err(error)) => error,
        None => return FormCheck::Unchecked(filled),
    };
    let place = match &error {
        PrepareError::Refusal(Refusal::Missing(_)) => "", // each error is shown at its own field
        _ => {
            let search = form_errors::wrong_field(kind, before, &form, &entered, &error);
            deadline.within(Duration::ZERO, search).await.unwrap_or_default()
        }
    };
    FormCheck::Invalid(form::errors(&form, form_errors::by_field(error, place)))
}

/// Returns true if the parameters are the same as before, apart from the id: a new object gets
/// another one each time.
fn same_except_id(parameters: &Value, before: &Value) -> bool {
    let rest = |value: &Value| match value {
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.remove("id");
            Value::Object(fields)
        }
        other => other.clone(),
    };
    rest(parameters) == rest(before)
}

/// Returns the answer that keeps the window open with its input, and shows that the check took too
/// long.
pub fn too_slow(view: &View) -> Value {
    at_first_field(view, TOO_SLOW_MESSAGE.to_owned())
}

/// Returns the answer that keeps the window open with its input, and shows `words` at its first
/// field.
pub fn at_first_field(view: &View, words: String) -> Value {
    super::errors(&view.values.keys().take(1).map(|field| (field.clone(), words.clone())).collect())
}
