//! Tools that read from the platform. Their answers are small, since they are sent to a model and
//! stored in the thread's state.

use std::sync::Arc;

use countersign_capabilities::{
    ShownList, Tool, ToolError, ToolInfo, dates,
    rows::{Nothing, Read},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    access::{self, Deps},
    listing::{Form, ListArguments},
    replies::{
        answers,
        aspects::{self, Aspect},
        contexts, details, lists,
    },
    subject,
    summary::{Details, Summary},
};
use crate::upgrade::experiment::View;

/// The maximum number of experiments in one answer.
const MAX_EXPERIMENTS: usize = 200;
/// The maximum size of an experiment's raw data in an answer, in bytes.
const MAX_RAW_BYTES: usize = 80_000;

/// Returns `check_upgrade_health`: the health of the platform.
pub(super) fn health(deps: Deps) -> Arc<dyn Tool> {
    let info = ToolInfo::new(
        "check_upgrade_health",
        "Checks whether the experiment platform answers, and which version it is.",
    );
    Arc::new(Read {
        present: |_, _, answer| Some(answers::health_reply(answer)),
        ..Read::new(deps, info, |deps, Nothing {}, _| Box::pin(async move { Ok(json!(deps.client.health().await?)) }))
    })
}

/// Returns `get_context_metadata`: the vocabulary of every context.
pub(super) fn vocabulary(deps: Deps) -> Arc<dyn Tool> {
    let info = ToolInfo {
        read_back: Some("the contexts and their vocabulary"),
        may_be_repeated: true,
        ..ToolInfo::new(
            "get_context_metadata",
            "Lists the contexts (client applications) with what each knows: CONDITIONS are suggested condition codes, \
         GROUP_TYPES kinds of groups, EXP_POINTS sites and EXP_IDS targets of decision points.",
        )
    };
    Arc::new(Read {
        present: |_, arguments, answer| Some(contexts::contexts_reply(answer, arguments["context"].as_str())),
        ..Read::new(deps, info, |deps, Nothing {}, _| {
            Box::pin(async move { Ok(json!(deps.client.context_metadata().await?)) })
        })
    })
}

/// Returns `get_experiment_names`: the names and ids of all experiments.
pub(super) fn names(deps: Deps) -> Arc<dyn Tool> {
    let info = ToolInfo {
        read_back: Some("the names of the experiments"),
        ..ToolInfo::new(
            "get_experiment_names",
            "Lists the names and ids of all experiments. Use it to find an experiment that a person names loosely.",
        )
    };
    Arc::new(Read {
        present: |_, _, answer| Some(answers::names_reply(answer)),
        listed: |_, answer| all_named(answer),
        ..Read::new(deps, info, |deps, Nothing {}, _| {
            Box::pin(async move {
                let names = deps.client.names().await?;
                Ok(json!({ "total": names.all().len(), "experiments": names.all() }))
            })
        })
    })
}

/// Returns the names of the experiments in an answer that shows all of them.
pub(super) fn all_named(answer: &Value) -> Option<ShownList> {
    let names = answer["experiments"].as_array()?.iter().filter_map(|named| named["name"].as_str());
    Some(ShownList { names: names.map(str::to_owned).collect(), is_complete: true })
}

/// Returns `get_all_experiments`: the summaries of the experiments that match a filter.
pub(super) fn list(deps: Deps) -> Arc<dyn Tool> {
    let info = ToolInfo {
        read_back: Some("the list of experiments"),
        may_be_repeated: true,
        ..ToolInfo::new(
            "get_all_experiments",
            "Lists and searches experiments: by context, status, tag, words in the name, or when they were created or changed, in \
         any order. Each comes with status, context, conditions with weights, decision points and tags. `total` counts all \
         that fit.",
        )
    };
    Arc::new(Read {
        present: |_, arguments, answer| Some(lists::list_reply(answer, &which_list(arguments, answer))),
        listed: |arguments, answer| lists::shown(answer, &which_list(arguments, answer)),
        ..Read::new(deps, info, |deps, which, _| Box::pin(matching(deps, which)))
    })
}

async fn matching(Deps { client, clock }: &Deps, which: ListArguments) -> Result<Value, ToolError> {
    let today = dates::day(clock.now());
    let filter = which.parse_filter(today).map_err(access::invalid)?;
    let all = client.all().await?;
    let found = filter.of(&all);
    let data = |found: &[&View]| {
        let experiments: Vec<_> = found.iter().take(MAX_EXPERIMENTS).copied().map(Summary::of).collect();
        json!({ "total": found.len(), "experiments": experiments })
    };
    let Some(context) = which.context.as_ref().filter(|_| found.is_empty()) else { return Ok(data(&found)) };
    // An empty list may mean that the context does not exist, or is written in another way.
    let contexts = client.context_metadata().await?;
    let with = |known: &str| ListArguments { context: Some(known.to_owned()), ..which.clone() };
    let known = access::context(&contexts, context, |known| with(known).request(1))?.0;
    let with_known = with(known);
    let mut answer = with_known.parse_filter(today).map_or_else(|_| data(&found), |filter| data(&filter.of(&all)));
    answer["context"] = json!(known);
    Ok(answer)
}

/// Returns the filter of an answer, with the context as the platform writes it.
fn which_list(arguments: &Value, answer: &Value) -> ListArguments {
    let which = ListArguments::deserialize(arguments).unwrap_or_default();
    match answer["context"].as_str() {
        Some(context) => ListArguments { context: Some(context.to_owned()), ..which },
        None => which,
    }
}

/// The experiment to show, and the amount of detail.
#[derive(Deserialize, JsonSchema)]
struct One {
    /// The id or name.
    experiment_id: String,
    /// `short`, `normal` (default), `full` for everything, or `raw` for a JSON file in the thread.
    #[serde(default)]
    #[schemars(with = "String")]
    form: Form,
    /// The part that the question is about, which is then the whole answer: `created` (by whom and when), `running_time`,
    /// `enrollment`, `excluded` or `included`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    about: Option<Aspect>,
}

/// Returns `get_experiment_details`: one experiment with its numbers of participants.
pub(super) fn details(deps: Deps) -> Arc<dyn Tool> {
    let info = ToolInfo {
        may_be_repeated: true,
        ..ToolInfo::new(
            "get_experiment_details",
            "Shows one experiment, by id or name: status and what it may become, conditions with weights, payloads, decision \
         points, inclusion and exclusion lists, rules, history, and how many people are enrolled in each condition.",
        )
    };
    Arc::new(Read {
        present: |_, arguments, answer| {
            if let Some(about) = arguments.get("about").and_then(|about| Aspect::deserialize(about).ok()) {
                return Some(aspects::aspect_reply(answer, about));
            }
            let form = arguments.get("form").and_then(|form| Form::deserialize(form).ok());
            Some(details::details_reply(answer, form.unwrap_or_default()))
        },
        subject: subject::of_answer,
        ..Read::new(deps, info, |deps, one, _| Box::pin(shown(deps, one)))
    })
}

async fn shown(Deps { client, clock }: &Deps, One { experiment_id, form, about }: One) -> Result<Value, ToolError> {
    let experiment = access::experiment_asked_about(client, &experiment_id, |name| format!("show {name}")).await?;
    // The numbers of participants are optional: without them the rest is still useful.
    let enrolled = client.enrollment_detail(&experiment.view).await.ok();
    let mut answer = json!(Details::of(&experiment.view, enrolled.as_ref()));
    if form == Form::Raw {
        let raw = experiment.raw()?;
        let size = raw.to_string().len();
        answer["raw"] = if size > MAX_RAW_BYTES { json!({ "left_out": size }) } else { raw };
    }
    match about {
        // The log of who did what is optional, too.
        Some(Aspect::Created) => answer["created_by"] = json!(client.creator(experiment.view.id).await.ok().flatten()),
        Some(Aspect::RunningTime) => answer["read_at"] = json!(clock.now().0),
        _ => {}
    }
    Ok(answer)
}
