//! Reads from the platform for tools and actions: lookups by name, and the conversion of errors to
//! the types that callers return.

use std::sync::Arc;

pub use countersign_capabilities::parameters::{parameters, refused};
use countersign_capabilities::{
    ToolError,
    parameters::{missing, non_blank},
};
use countersign_core::{clock::Clock, reply::Reply};
use countersign_graph::action::{ErrorKind, MissingParameter, PrepareError, Refusal};
use countersign_services::google;

use super::{
    described,
    lookup::{self, LookupResult},
    replies::refusals,
};
use crate::upgrade::{
    client::UpgradeClient,
    context::{ContextMetadata, Contexts},
    error::Error,
    experiment::{Experiment, ExperimentName},
    status::Status,
};

/// The maximum number of experiments that are offered as options if none was named.
const MAX_OFFERED: usize = 30;

/// The dependencies of the tools and actions.
#[derive(Clone, Debug)]
pub struct Deps {
    /// The platform.
    pub client: Arc<UpgradeClient>,
    /// The clock that decides which dates are in the future.
    pub clock: Arc<dyn Clock>,
}

/// Refuses a value that a person gave.
pub fn invalid(reply: Reply) -> PrepareError {
    refused(ErrorKind::Validation, reply)
}

/// The question for the participant of a change.
pub const WHICH_USER: &str = "Which user? I need the user ID.";

/// Asks for a parameter.
pub fn ask(name: &str, question: impl Into<String>, options: Vec<String>) -> PrepareError {
    Refusal::Missing(vec![missing(name, question, options)]).into()
}

/// Returns the words that name an experiment.
///
/// # Errors
///
/// The question for it.
pub async fn named<'a>(client: &UpgradeClient, asked: Option<&'a String>) -> Result<&'a str, PrepareError> {
    match non_blank(asked) {
        Some(name) => Ok(name),
        None => Err(Refusal::Missing(vec![which_experiment(client).await]).into()),
    }
}

/// Returns the words that name an experiment whose status should fit.
///
/// # Errors
///
/// As [`which_experiment_in`], or the question for it.
pub async fn named_in<'a>(
    client: &UpgradeClient,
    asked: Option<&'a String>,
    fits: impl Fn(Status) -> bool,
    none: impl FnOnce() -> Reply,
) -> Result<&'a str, PrepareError> {
    match non_blank(asked) {
        Some(name) => Ok(name),
        None => Err(Refusal::Missing(vec![which_experiment_in(client, fits, none).await?]).into()),
    }
}

/// Returns the question that asks for an experiment, with the existing names as options.
pub async fn which_experiment(client: &UpgradeClient) -> MissingParameter {
    let names = client.known_names().await.unwrap_or_default();
    let options = names.all().iter().take(MAX_OFFERED).map(|named| named.name.clone()).collect();
    missing("experiment", "Which experiment?", options)
}

/// Returns the question that asks for an experiment whose status fits; only those are options.
///
/// # Errors
///
/// A refusal with the reply `none` if there is none.
pub async fn which_experiment_in(
    client: &UpgradeClient,
    fits: impl Fn(Status) -> bool,
    none: impl FnOnce() -> Reply,
) -> Result<MissingParameter, PrepareError> {
    let Ok(overview) = client.overview().await else { return Ok(which_experiment(client).await) };
    let fitting = overview.read().expect("nothing panics while it is held").names_in(fits);
    match fitting.is_empty() {
        true => Err(refused(ErrorKind::NotFound, none())),
        false => Ok(MissingParameter {
            options: fitting.into_iter().take(MAX_OFFERED).collect(),
            ..which_experiment(client).await
        }),
    }
}

/// Returns the kind of an error from the platform.
pub fn kind(error: &Error) -> ErrorKind {
    match error {
        Error::NotFound { .. } => ErrorKind::NotFound,
        Error::Auth | Error::SignIn(google::Error::Refused { .. }) => ErrorKind::Auth,
        Error::SignIn(google::Error::Unreachable { .. }) => ErrorKind::Network,
        Error::Invalid { .. } => ErrorKind::Validation,
        Error::Refused { .. } | Error::Faulted { .. } | Error::Unclear { .. } | Error::Decode { .. } => ErrorKind::Api,
        Error::Unavailable { .. } | Error::NoAnswer { .. } => ErrorKind::Network,
    }
}

/// Returns the reply about a failed read.
pub fn read_failed(error: &Error) -> Reply {
    match error {
        Error::Unavailable { reason } | Error::NoAnswer { reason } => refusals::platform_down(reason),
        Error::Auth => refusals::not_accepted(),
        Error::SignIn(error) => refusals::cannot_sign_in(error),
        Error::NotFound { reason }
        | Error::Refused { reason }
        | Error::Faulted { reason }
        | Error::Unclear { reason }
        | Error::Decode { reason } => refusals::platform_error(reason),
        Error::Invalid { problems } => refusals::platform_error(&problems.join("; ")),
    }
}

impl From<Error> for ToolError {
    /// A read failed.
    fn from(error: Error) -> Self {
        let transient = matches!(error, Error::Unavailable { .. } | Error::SignIn(google::Error::Unreachable { .. }));
        Self { kind: kind(&error), reply: read_failed(&error), transient }
    }
}

impl From<Error> for PrepareError {
    /// A read failed.
    fn from(error: Error) -> Self {
        Self::Unavailable { error: kind(&error), reply: read_failed(&error) }
    }
}

/// Returns the experiment that `asked` names, as it is now. An exact name or an id is looked up in memory first, and on the
/// platform if that does not lead to exactly one experiment that still has the name. A name that is written in another
/// way is looked up on the platform, since an experiment with that very name may be new. `request_with` returns the corrected request
/// for a name or id, which the buttons of a refusal send.
///
/// # Errors
///
/// A refusal with suggestions, or an error from the platform.
pub async fn experiment(
    client: &UpgradeClient,
    asked: &str,
    request_with: impl Fn(&str) -> String,
) -> Result<Experiment, PrepareError> {
    if let Some(names) = client.names_in_memory()
        && let LookupResult::One(named) = lookup::find(&names, asked)
        && (named.name == asked || named.id.to_string() == asked)
    {
        match client.single(named.id).await {
            Ok(experiment) if experiment.view.name == named.name => return Ok(experiment),
            Ok(_) | Err(Error::NotFound { .. }) => {} // renamed or deleted elsewhere
            Err(error) => return Err(error.into()),
        }
    }
    experiment_by_current_names(client, asked, request_with).await
}

/// Returns the experiment that `asked` names, for a question about it. Here, a part that only one name has is enough: nothing
/// is changed, and the answer has the whole name.
///
/// # Errors
///
/// As [`experiment`].
pub async fn experiment_asked_about(
    client: &UpgradeClient,
    asked: &str,
    request_with: impl Fn(&str) -> String,
) -> Result<Experiment, PrepareError> {
    match experiment(client, asked, &request_with).await {
        Err(PrepareError::Refusal(refused)) => {
            let names = client.names_in_memory();
            let Some(named) = names.and_then(|names| lookup::with_part(&names, asked)) else {
                return Err(PrepareError::Refusal(refused));
            };
            experiment(client, &named.id.to_string(), request_with).await
        }
        found => found,
    }
}

/// Returns the experiment that `asked` names, as [`experiment`] does, without names from memory: for a change that
/// cannot be undone, another experiment with this name must not be missed.
///
/// # Errors
///
/// As [`experiment`].
pub async fn experiment_by_current_names(
    client: &UpgradeClient,
    asked: &str,
    request_with: impl Fn(&str) -> String,
) -> Result<Experiment, PrepareError> {
    let named = find_by_name(client, asked, &request_with).await?;
    match client.single(named.id).await {
        Err(Error::NotFound { .. }) => {
            let gone = refusals::unknown_experiment(asked, &[], request_with);
            Err(refused(ErrorKind::NotFound, gone))
        }
        answer => Ok(answer?),
    }
}

/// Looks a name up on the platform.
async fn find_by_name(
    client: &UpgradeClient,
    asked: &str,
    request_with: impl Fn(&str) -> String,
) -> Result<ExperimentName, PrepareError> {
    let names = client.names().await?;
    match lookup::find(&names, asked) {
        LookupResult::One(named) => Ok(named),
        LookupResult::None(similar) => {
            let described = match described::is_description(asked) {
                true => described::fitting(&client.all().await?, asked),
                false => Vec::new(),
            };
            let suggested = if described.is_empty() { similar } else { described };
            Err(refused(ErrorKind::NotFound, refusals::unknown_experiment(asked, &suggested, request_with)))
        }
        LookupResult::Several(several) => {
            let mut views = Vec::with_capacity(several.len());
            for named in several.iter().take(5) {
                match client.single(named.id).await {
                    Ok(experiment) => views.push(experiment.view),
                    Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(refused(ErrorKind::UserInput, refusals::several_experiments(asked, &views, request_with)))
        }
    }
}

/// Returns the context that `asked` names, and its vocabulary.
///
/// # Errors
///
/// A refusal that lists the existing contexts.
pub fn context<'a>(
    contexts: &'a Contexts,
    asked: &str,
    request_with: impl Fn(&str) -> String,
) -> Result<(&'a str, &'a ContextMetadata), PrepareError> {
    let known: Vec<_> = contexts.keys().cloned().collect();
    let picked = lookup::pick(&known, asked).and_then(|name| contexts.get_key_value(name));
    let unknown = || refused(ErrorKind::NotFound, refusals::unknown_context(asked, &known, request_with));
    picked.map(|(name, metadata)| (name.as_str(), metadata)).ok_or_else(unknown)
}

/// Returns the word of a context's vocabulary that `asked` refers to; `what` names the kind of word
/// in the refusal.
///
/// # Errors
///
/// A refusal that lists the known words.
pub fn word(known: &[String], what: &str, asked: &str, context: &str) -> Result<String, PrepareError> {
    let unknown = || invalid(refusals::unknown_word(what, asked, context, known));
    lookup::pick(known, asked).cloned().ok_or_else(unknown)
}

/// Returns the group type that `asked` refers to; `class` may stand for `classId`.
pub fn group_type<'a>(known: &'a [String], asked: &str) -> Option<&'a String> {
    lookup::pick(known, asked).or_else(|| lookup::pick(known, &format!("{}Id", asked.trim())))
}

/// Returns the group type of a context that `asked` refers to.
///
/// # Errors
///
/// A refusal that lists the known types.
pub fn group(known: &[String], asked: &str, context: &str) -> Result<String, PrepareError> {
    word(known, "group type", group_type(known, asked).map_or(asked, String::as_str), context)
}

/// Returns the user id if it is valid in an HTTP header.
///
/// # Errors
///
/// A refusal if it is not.
pub fn user(asked: &str) -> Result<String, PrepareError> {
    let fits = (1..=250).contains(&asked.len()) && asked.bytes().all(|b| (b' '..=b'~').contains(&b));
    if fits && asked.trim() == asked { Ok(asked.to_owned()) } else { Err(invalid(refusals::bad_user())) }
}
