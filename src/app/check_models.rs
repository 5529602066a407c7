//! Checks the configured models: what each can do, as it shows in a few requests, and for how long its provider offers it.

use std::{collections::BTreeMap, sync::Arc};

use countersign_config::{ChosenModel, Config, Line, ModelPurpose, Provider};
use countersign_model::{
    AnswerSchema, Error, Model, Purpose, Request, ToolChoice, ToolSpec,
    prices::{Price, price_of, table_date},
};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{check::CheckLine, dependencies, models::Offered, stdout::describe_error};

/// The context that a conversation needs, in tokens: instructions, tools, history, and room for thoughts and the answer.
const CONTEXT: u64 = 16_384;

/// The name of the tool that is called, and of the form of the answer in JSON.
const PRESENCE: &str = "report_presence";

/// Checks the configured models and the source of embeddings.
pub(super) async fn run(config: &Config) -> Vec<CheckLine> {
    let offered = Offered::ask(config).await;
    let config = &offered.with_names(config);
    let models = match dependencies::models(config, Arc::default()) {
        Ok((models, _)) => models,
        Err(error) => return vec![CheckLine::new("model", Err(describe_error(&error)))],
    };
    let general = async {
        let Some(chosen) = config.model.general() else {
            let variables = Provider::ALL.map(Provider::key_variable).join(" or ");
            let none = format!("none, documented phrases only (set {variables} for a language model)");
            return CheckLine::new("model", Ok(none));
        };
        let needs = Needs { tools: true, json: true };
        line("model", models.general().as_ref(), Purpose::Analyze, needs, &chosen, &offered, config).await
    };
    let mut lines = vec![general.await];
    let (models, offered) = (&models, &offered);
    let others = ModelPurpose::ALL.into_iter().filter_map(|setting| Some((setting, config.model.of(setting)?)));
    let others = others.map(|(setting, chosen)| async move {
        let purpose = dependencies::purpose_of(setting);
        let json = matches!(purpose, Purpose::Classify | Purpose::Generate);
        let needs = Needs { tools: !json, json };
        line(setting.key(), models.model_for(purpose).as_ref(), purpose, needs, &chosen, offered, config).await
    });
    lines.extend(join_all(others).await);
    lines.extend(embeddings(config, offered).await);
    lines
}

/// The abilities that a model needs for its purpose.
#[derive(Clone, Copy)]
struct Needs {
    tools: bool,
    json: bool,
}

/// Returns the line about a model.
async fn line(
    key: &'static str,
    model: &dyn Model,
    purpose: Purpose,
    needs: Needs,
    chosen: &ChosenModel,
    offered: &Offered,
    config: &Config,
) -> CheckLine {
    let context = offered.context_of(chosen);
    let result = match abilities(model, purpose, needs).await {
        Ok(abilities) => {
            let ChosenModel { name, is_named, .. } = chosen;
            let line = Line::of(chosen.provider);
            let name = match !is_named && line.contains(name) {
                true => {
                    format!("{name}, the newest {} (to stay with it, set {key}.name to \"{name}\"),", line.name)
                }
                false => name.clone(),
            };
            let refused = model.refused_members();
            let refused = (!refused.is_empty()).then(|| format!("it refuses {}", refused.join(", ")));
            let context = context.map(|context| format!("it reads up to {context} tokens"));
            let price = price(config, &chosen.name);
            let more = refused.into_iter().chain(context).chain([price]);
            let more: String = more.map(|more| format!("; {more}")).collect();
            Ok(format!("{name} answers{abilities}{more}"))
        }
        Err(Wrong::Failed(error)) => Err(no_answer(&error, chosen)),
        Err(Wrong::Uncalled) => Err(format!(
            "{} answers, but did not call the tool that it was told to call, so requests are understood only in the \
             documented phrases; choose a model with tool calls, and turn them on in its server (vLLM: \
             --enable-auto-tool-choice and --tool-call-parser; llama.cpp: --jinja)",
            chosen.name
        )),
        Err(Wrong::NotJson) => Err(format!(
            "{} answers, but not in JSON as it was told to, which mails need; choose a model with structured output",
            chosen.name
        )),
    };
    let short = context.filter(|context| *context < CONTEXT).map(|context| {
        format!(
            "{context} tokens are too few for a long conversation; let its server take {CONTEXT} or more (vLLM: \
             --max-model-len; llama.cpp: --ctx-size; Ollama: OLLAMA_CONTEXT_LENGTH)"
        )
    });
    let news = offered.news_of(key, chosen).map(|news| news.to_string());
    let advice: Vec<String> = news.into_iter().chain(short).collect();
    let advice = (!advice.is_empty()).then(|| advice.join("; "));
    match (result, advice) {
        // Only what is wrong is shown then, so it says the next model as well.
        (Err(wrong), Some(advice)) => CheckLine::new(key, Err(format!("{wrong}; {advice}"))),
        (result, advice) => CheckLine { advice, ..CheckLine::new(key, result) },
    }
}

/// Describes the price of a model, and where it is from.
fn price(config: &Config, name: &str) -> String {
    let Some(price) = dependencies::price(config, name) else {
        return format!("its price is not known (model.prices.\"{name}\")");
    };
    let source = match price_of(name, &BTreeMap::new()) {
        Some(of_table) if of_table == price => format!("table of {}", table_date()),
        _ => "model.prices".to_owned(),
    };
    let Price { input, cached, output } = price;
    format!(
        "a million tokens cost ${input} of input, ${cached} of input from the cache, ${output} of output ({source})"
    )
}

/// The reason why a model is of no use for its purpose.
enum Wrong {
    Failed(Error),
    Uncalled,
    NotJson,
}

/// Asks a model to do what it must be able to do, and describes what it did, as in “ and calls tools”.
async fn abilities(model: &dyn Model, purpose: Purpose, needs: Needs) -> Result<String, Wrong> {
    let mut done = Vec::new();
    if needs.tools {
        let tool = ToolSpec {
            name: PRESENCE.to_owned(),
            description: "Reports that you are there.".to_owned(),
            input_schema: schema(),
            strict: false,
        };
        let instructions = "Call the tool `report_presence`.";
        let question = question(purpose, instructions, vec![tool], ToolChoice::Auto, None);
        // Some servers convert a demanded call, but no other.
        if model.respond(&question).await.map_err(Wrong::Failed)?.tool_calls().next().is_none() {
            return Err(Wrong::Uncalled);
        }
        done.push("calls tools");
        // Each turn begins with a demanded call, so what the model refuses then is to be known as well.
        let demanded = Request { tool_choice: ToolChoice::Any, ..question };
        model.respond(&demanded).await.map_err(Wrong::Failed)?;
    }
    if needs.json {
        let form = AnswerSchema { name: PRESENCE.to_owned(), schema: schema() };
        let question =
            question(purpose, "Answer in JSON that you are there.", Vec::new(), ToolChoice::Auto, Some(form));
        let answer = model.respond(&question).await.map_err(Wrong::Failed)?;
        match answer.json::<Value>() {
            Ok(answer) if answer["is_there"].is_boolean() => done.push("answers in JSON"),
            // Only mails need it.
            _ if needs.tools => done.push("does not answer in JSON, which mails need"),
            _ => return Err(Wrong::NotJson),
        }
    }
    Ok(match &*done {
        [] => String::new(),
        [one] => format!(" and {one}"),
        [first, second, ..] => format!(", {first} and {second}"),
    })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "is_there": { "type": "boolean", "description": "True." } },
        "required": ["is_there"],
        "additionalProperties": false,
    })
}

fn question(
    purpose: Purpose,
    instructions: &str,
    tools: Vec<ToolSpec>,
    tool_choice: ToolChoice,
    answer_schema: Option<AnswerSchema>,
) -> Request {
    Request {
        purpose,
        instructions: instructions.into(),
        tools: tools.into(),
        history: Vec::new(),
        situation: json!({ "user_text": "Are you there?" }),
        exchange: Vec::new(),
        tool_choice,
        answer_schema,
        max_tokens: 512,
        payer: Default::default(),
        words: None,
    }
}

/// Asks for an embedding, if a source is configured.
async fn embeddings(config: &Config, offered: &Offered) -> Option<CheckLine> {
    let chosen = config.model.embedding()?;
    let embeddings = match dependencies::embeddings(config) {
        Ok(embeddings) => embeddings?,
        Err(error) => return Some(CheckLine::new("embeddings", Err(describe_error(&error)))),
    };
    let result = match embeddings.embed("Are you there?").await {
        Ok(embedded) => Ok(format!("{} answers, with {} dimensions", embeddings.name(), embedded.vector.len())),
        Err(error) => Err(no_answer(&error, &chosen)),
    };
    let advice = offered.news_of("model.embed", &chosen).map(|news| news.to_string());
    Some(CheckLine { advice, ..CheckLine::new("embeddings", result) })
}

/// Describes why a model did not answer, with the address that was used.
fn no_answer(error: &Error, ChosenModel { provider, name, base_url, .. }: &ChosenModel) -> String {
    format!("{name}: {error} ({} is {base_url})", provider.url_variable())
}
