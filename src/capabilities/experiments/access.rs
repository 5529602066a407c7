//! Reading from the platform on behalf of tools and actions: by name, with every error in the form its caller needs.

use countersign_capabilities::ToolError;
pub use countersign_capabilities::parameters::{parameters, refused, schema};
use countersign_core::reply::Reply;
use countersign_graph::action::{ErrorKind, MissingParameter, PrepareError};
use countersign_services::google;

use super::{
    lookup::{self, Found},
    replies::refusals,
};
use crate::upgrade::{
    client::UpgradeClient,
    context::{ContextMetadata, Contexts},
    error::Error,
    experiment::{Experiment, Named},
};

/// How many experiments are offered where none was named.
const OFFERED: usize = 30;

/// Asks for an experiment, with the names there are.
pub async fn which_experiment(client: &UpgradeClient) -> MissingParameter {
    let names = client.names().await.unwrap_or_default();
    let options = names.into_iter().take(OFFERED).map(|named| named.name).collect();
    MissingParameter { name: "experiment".to_owned(), question: "Which experiment?".to_owned(), options }
}

/// What kind of thing went wrong, for those who only sort.
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

/// What to say about a read that failed.
pub fn read_failed(error: &Error) -> Reply {
    match error {
        Error::Unavailable { reason } | Error::NoAnswer { reason } => refusals::platform_down(reason),
        Error::Auth => refusals::not_accepted(),
        Error::SignIn(error) => refusals::cannot_sign_in(error),
        Error::NotFound { reason }
        | Error::Refused { reason }
        | Error::Faulted { reason }
        | Error::Unclear { reason }
        | Error::Decode { reason } => refusals::platform_odd(reason),
        Error::Invalid { problems } => refusals::platform_odd(&problems.join("; ")),
    }
}

/// A failed read, for a tool.
pub fn tool_error(error: &Error) -> ToolError {
    let transient = matches!(error, Error::Unavailable { .. } | Error::SignIn(google::Error::Unreachable { .. }));
    ToolError { kind: kind(error), reply: read_failed(error), transient }
}

/// A failed read, while a change is prepared.
pub fn unavailable(error: Error) -> PrepareError {
    PrepareError::Unavailable { error: kind(&error), reply: read_failed(&error) }
}

/// The experiment that `asked` names. `says` makes a corrected request from a name or id, for the buttons.
///
/// # Errors
///
/// A refusal with suggestions, or that the platform cannot be asked.
pub async fn experiment(
    client: &UpgradeClient,
    asked: &str,
    says: impl Fn(&str) -> String,
) -> Result<Experiment, PrepareError> {
    let named = named(client, asked, &says).await?;
    match client.single(named.id).await {
        Err(Error::NotFound { .. }) => {
            let gone = refusals::unknown_experiment(asked, &[], says);
            Err(refused(ErrorKind::NotFound, gone))
        }
        answer => answer.map_err(unavailable),
    }
}

async fn named(client: &UpgradeClient, asked: &str, says: impl Fn(&str) -> String) -> Result<Named, PrepareError> {
    let names = client.names().await.map_err(unavailable)?;
    match lookup::find(&names, asked) {
        Found::One(named) => Ok(named),
        Found::None(similar) => Err(refused(ErrorKind::NotFound, refusals::unknown_experiment(asked, &similar, says))),
        Found::Several(several) => {
            let mut views = Vec::with_capacity(several.len());
            for named in several.iter().take(5) {
                match client.single(named.id).await {
                    Ok(experiment) => views.push(experiment.view),
                    Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(unavailable(error)),
                }
            }
            Err(refused(ErrorKind::UserInput, refusals::several_experiments(asked, &views, says)))
        }
    }
}

/// The context that `asked` names, and its vocabulary.
///
/// # Errors
///
/// A refusal that lists the contexts there are.
pub fn context<'a>(
    contexts: &'a Contexts,
    asked: &str,
    says: impl Fn(&str) -> String,
) -> Result<(&'a str, &'a ContextMetadata), PrepareError> {
    let known: Vec<_> = contexts.keys().cloned().collect();
    let picked = lookup::pick(&known, asked).and_then(|name| contexts.get_key_value(name));
    let unknown = || refused(ErrorKind::NotFound, refusals::unknown_context(asked, &known, says));
    picked.map(|(name, metadata)| (name.as_str(), metadata)).ok_or_else(unknown)
}

/// The word of a context's vocabulary that `asked` means; `what` it is goes into the refusal.
///
/// # Errors
///
/// A refusal that lists the words there are.
pub fn word(known: &[String], what: &str, asked: &str, context: &str) -> Result<String, PrepareError> {
    let unknown = || refused(ErrorKind::Validation, refusals::unknown_word(what, asked, context, known));
    lookup::pick(known, asked).cloned().ok_or_else(unknown)
}

/// The group type that `asked` means; people say `class` for `classId`.
pub fn group_type<'a>(known: &'a [String], asked: &str) -> Option<&'a String> {
    lookup::pick(known, asked).or_else(|| lookup::pick(known, &format!("{}Id", asked.trim())))
}

/// The group type of a context that `asked` means.
///
/// # Errors
///
/// A refusal that lists the types there are.
pub fn group(known: &[String], asked: &str, context: &str) -> Result<String, PrepareError> {
    word(known, "group type", group_type(known, asked).map_or(asked, String::as_str), context)
}

/// A user id that can travel in a header.
///
/// # Errors
///
/// A refusal, if it cannot.
pub fn user(asked: &str) -> Result<String, PrepareError> {
    let fits = (1..=250).contains(&asked.len()) && asked.bytes().all(|b| (b' '..=b'~').contains(&b));
    if fits && asked.trim() == asked {
        Ok(asked.to_owned())
    } else {
        Err(refused(ErrorKind::Validation, refusals::bad_user()))
    }
}
