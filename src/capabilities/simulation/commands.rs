//! `/simulation`: quick answers about simulations, without any model.

use countersign_capabilities::{
    Command, Takes, Word,
    facts::{Facts, deadline},
};
use countersign_core::reply::Reply;
use serde_json::{Value, json};

use super::{SERVICE, replies::answers};

/// The command `/simulation` and its words.
pub(super) const COMMAND: Command = Command {
    name: "/simulation",
    words: &[
        Word {
            word: "status",
            takes: Takes::Nothing,
            what: "whether the simulation bridge is running, and its version",
            example: "status",
        },
        Word { word: "list", takes: Takes::Nothing, what: "the loaded simulations", example: "list" },
        Word {
            word: "parameters",
            takes: Takes::Required("simulation"),
            what: "the parameters of a simulation",
            example: "parameters renal-study",
        },
    ],
};

/// Answers one word of the command.
pub(super) async fn answer(word: &str, rest: &str, facts: &Facts) -> Reply {
    let (tool, arguments, present): (_, Value, fn(&Value) -> Reply) = match word {
        "list" => ("list_simulations", json!({}), answers::simulations),
        "parameters" => ("list_parameters", json!({ "simulation": rest }), answers::parameters),
        _ => (SERVICE.health, json!({}), answers::health),
    };
    match facts.read(SERVICE.name, tool, arguments, deadline()).await {
        // Private answers have no buttons.
        Ok(fact) => facts.with_age(Reply { choices: Vec::new(), ..present(&fact.answer) }, &fact, SERVICE.name),
        Err(reply) => Reply { choices: Vec::new(), ..reply },
    }
}
