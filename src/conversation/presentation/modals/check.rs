//! Checks a form's input while the person waits, and shows each error at the field that is wrong.
//!
//! Slack expects an answer to a submitted window within seconds. Otherwise it shows an error, and
//! the person has to submit again. [`Deadline`] divides the available time among reading the form,
//! checking the input, finding the wrong field and storing the result. Work that takes too long is
//! abandoned, so that there is always an answer in time.

use std::{collections::BTreeMap, time::Duration};

use countersign_core::reply::Part;
use countersign_graph::action::{ActionKind, Entered, Form, PrepareError, Proposal, Refusal};
use countersign_slack::{interaction::View, sink::PATIENCE};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::form;

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
        // “50 %” and “50” are the same value: an entry that changes nothing must make no new card.
        Some(Ok(proposal)) if same_except_id(&proposal.parameters, before) => return unchanged(),
        Some(Ok(proposal)) => return FormCheck::Valid(filled, Box::new(proposal)),
        Some(Err(error)) => error,
        None => return FormCheck::Unchecked(filled),
    };
    let place = match &error {
        PrepareError::Refusal(Refusal::Missing(_)) => "", // each error is shown at its own field
        _ => {
            let search = wrong_field(kind, before, &form, &entered, &error);
            deadline.within(Duration::ZERO, search).await.unwrap_or_default()
        }
    };
    FormCheck::Invalid(form::errors(&form, by_field(error, place)))
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

/// Returns the changed field that makes the input invalid. With its old value, the input would be valid, or another field
/// would be wrong. A field that must be filled in cannot be tried this way; it is the wrong one if the error quotes it. If
/// there is no such field, returns the first changed field.
async fn wrong_field<'a>(
    kind: &dyn ActionKind,
    parameters: &Value,
    form: &'a Form,
    entered: &'a Entered,
    error: &PrepareError,
) -> &'a str {
    let changed: Vec<&str> = form.changed(entered).collect();
    let mut others_wrong = None;
    if let [_, _, ..] = changed.as_slice() {
        for field in form.fields.iter().filter(|field| changed.contains(&field.place.as_str())) {
            let mut others = entered.clone();
            others.insert(field.place.clone(), field.input.as_entered());
            let Ok(filled) = form.fill(parameters, &others) else { continue };
            match kind.prepare(&filled, None).await {
                Ok(_) => return &field.place,
                Err(other @ PrepareError::Refusal(Refusal::Refused { .. })) if other != *error => {
                    others_wrong = others_wrong.or(Some(field.place.as_str()));
                }
                Err(_) => {}
            }
        }
    }
    // A field depends on those before it, so the last field that is quoted is the wrong one.
    let words = words_of(error);
    let is_quoted = |place: &&&str| entered.get(**place).is_some_and(|entries| is_quoted_in(&words, entries));
    let quoted = changed.iter().rev().find(is_quoted).copied();
    others_wrong.or(quoted).or(changed.first().copied()).unwrap_or_default()
}

/// Returns the words of an error.
fn words_of(error: &PrepareError) -> String {
    match error {
        PrepareError::Refusal(Refusal::Missing(_)) => String::new(),
        PrepareError::Refusal(Refusal::Refused { reply, .. })
        | PrepareError::Answered { reply, .. }
        | PrepareError::Unavailable { reply, .. } => reply.words(),
    }
}

/// Returns true if the words quote one of these entries, a line of it or a part of a line.
fn is_quoted_in(words: &str, entries: &[String]) -> bool {
    let plain: String = words.chars().filter(|c| *c != '*' && *c != '`').collect();
    let parts = entries.iter().flat_map(|entry| entry.lines()).flat_map(|line| {
        std::iter::once(line).chain(line.split(['/', ':', ','])).map(str::trim).filter(|part| !part.is_empty())
    });
    parts.into_iter().any(|part| plain.contains(&format!("“{part}”")))
}

/// Returns the errors by field: a missing value at its own field, everything else at `place`.
fn by_field(error: PrepareError, place: &str) -> BTreeMap<String, String> {
    match error {
        PrepareError::Refusal(Refusal::Missing(missing)) => {
            missing.into_iter().map(|missing| (format!("/{}", missing.name), missing.question)).collect()
        }
        PrepareError::Refusal(Refusal::Refused { reply, .. })
        | PrepareError::Answered { reply, .. }
        | PrepareError::Unavailable { reply, .. } => {
            // A hint about phrasing a message is of no use next to a field for a single number.
            let lines = match place.ends_with("/weight") {
                true => reply.parts.iter().filter(|part| !matches!(part, Part::Note(_))).map(Part::words).collect(),
                false => vec![reply.words()],
            };
            [(place.to_owned(), lines.join("\n"))].into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_an_entry_or_a_part_of_it() {
        let quotes =
            |entry: &str| is_quoted_in("The context assign-prog has no target “*nowhere*”.", &[entry.to_owned()]);
        assert!(quotes("SelectSection / nowhere"));
        assert!(quotes("SelectSection / area_model\nSelectSection / nowhere"));
        assert!(quotes("nowhere: 50"));
        assert!(!quotes("assign-prog"), "it is named, but not quoted");
        assert!(!quotes("no"));
        assert!(!quotes(""));
    }
}
