//! The tools that a model is offered: the graph's own, and those of the capabilities that a request needs.
//!
//! Each action is a tool, `propose_<action>`; a call sets `action_needed` and `action_params` (see [`super::state`]).
//! [`Kit::offered`] chooses the tools of a request from the families that it needs, up to a total size. The same
//! families give the same tools, byte for byte, so that a provider can cache them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, LazyLock, Mutex},
};

use countersign_capabilities::{Family, ParameterSchema, Registry};
use countersign_model::ToolSpec;
use serde_json::{Value, json};

use super::{
    brief::{self, Strictness},
    past_changes,
};

/// The tool that gives the analysis of a request.
pub(super) const ANALYZE: &str = "analyze_user_request";
/// The prefix of the tools that propose a change.
pub(super) const PROPOSE: &str = "propose_";
/// The tool that gives or corrects one parameter.
pub(super) const UPDATE_PARAMS: &str = "update_action_params";
/// The tool that names the parameters that only the person can give.
pub(super) const SET_MISSING: &str = "set_missing_params";
/// The tool that notes a problem.
pub(super) const ADD_ERROR: &str = "add_error";
/// The tool that drops the draft.
pub(super) const DROP_DRAFT: &str = "drop_draft";
/// The tool that reads what was done in this thread.
pub(super) const EXECUTION_LOG: &str = "get_execution_log";
/// The tool that offers buttons below the answer.
pub(super) const NEXT_STEPS: &str = "offer_next_steps";
/// The tool that reads back everything that was gathered.
pub(super) const ALL_GATHERED: &str = "get_all_gathered_info";
/// The tool that reads back the problems of the turn.
pub(super) const ERRORS: &str = "get_errors";

/// The name given as the capability of a request that no capability serves.
pub(super) const UNSUPPORTED: &str = "unsupported";
/// The maximum total size of the tools of a request, in bytes of JSON: 3,000 tokens of four bytes.
pub(super) const MAX_OFFER_BYTES: usize = 12_000;

fn spec(name: &str, description: &str, input_schema: Value) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: description.to_owned(), input_schema, strict: false }
}

fn no_arguments() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

/// Returns the size of a tool in a request, in bytes.
pub(super) fn size(spec: &ToolSpec) -> usize {
    let members = r#"{"description":,"input_schema":,"name":,"strict":true},"#.len();
    members
        + json!(spec.name).to_string().len()
        + json!(spec.description).to_string().len()
        + spec.input_schema.to_string().len()
}

/// Returns the compiled schemas of these tools, by name.
pub(super) fn schemas_of<'a>(specs: impl IntoIterator<Item = &'a ToolSpec>) -> BTreeMap<String, ParameterSchema> {
    specs.into_iter().map(|spec| (spec.name.clone(), ParameterSchema::new(spec.input_schema.clone()))).collect()
}

/// Returns the action that a tool proposes, according to its name.
pub(super) fn proposed_action(tool: &str) -> Option<&str> {
    tool.strip_prefix(PROPOSE)
}

/// The key of a cached offer: the names of the tools and actions, and true if a change is in hand.
type OfferKey = (BTreeSet<&'static str>, bool);

/// All tools and actions, in the form that models are sent, and the offers made so far.
pub(super) struct Kit {
    registry: Registry,
    analysis: ToolSpec,
    /// The schemas of the graph's own tools, by name.
    own_schemas: BTreeMap<String, ParameterSchema>,
    /// The total size of the graph's own tools, without and with those that continue a change.
    own_sizes: [usize; 2],
    known: Mutex<Known>,
}

/// The tools and actions of a moment. They are listed again when a capability changes them.
struct Known {
    /// The sum of the capabilities' generations ([`countersign_capabilities::ChangingOffer::generation`]).
    generation: u64,
    /// Tools and actions as a model sees them, with the size of each, by their own names.
    specs: HashMap<&'static str, (ToolSpec, usize)>,
    offers: HashMap<OfferKey, Arc<[ToolSpec]>>,
}

impl Known {
    /// Lists the tools and actions that are offered at present.
    fn of(registry: &Registry) -> Self {
        let generation = registry.generation();
        let hidden = registry.hidden();
        let brief = |name: &str, description: &str, schema: Value| spec(name, description, brief::brief(&schema));
        let tools = registry.tools.values().map(|tool| {
            let name = tool.name();
            (name, brief(name, tool.info().description, tool.schema()))
        });
        let actions = registry.actions.values().map(|action| {
            let name = action.name();
            (name, brief(&format!("{PROPOSE}{name}"), action.info().description, action.schema()))
        });
        let offered = tools.chain(actions).filter(|(name, _)| !hidden.contains(name));
        let sized = offered.map(|(name, spec)| {
            let size = size(&spec);
            (name, (spec, size))
        });
        let specs = sized.collect();
        Self { generation, specs, offers: HashMap::new() }
    }
}

impl Kit {
    /// Creates the kit of a registry.
    pub(super) fn new(registry: Registry) -> Self {
        let analysis = analysis(&registry.families);
        let known = Mutex::new(Known::of(&registry));
        let sizes = |specs: &[ToolSpec]| specs.iter().map(size).sum::<usize>();
        let always_size = size(&analysis) + sizes(always());
        Self {
            registry,
            own_schemas: schemas_of([&analysis].into_iter().chain(always()).chain(continuing())),
            own_sizes: [always_size, always_size + sizes(continuing())],
            analysis,
            known,
        }
    }

    /// Returns the tool by which a model says that a message is unclear, or contains several requests or none.
    pub(super) fn analysis(&self) -> &ToolSpec {
        &self.analysis
    }

    /// Returns the schema of that tool.
    pub(super) fn analysis_schema(&self) -> &ParameterSchema {
        self.own_schema(ANALYZE).expect("it is one of the graph's own tools")
    }

    /// Returns the tools for a request that needs these families. The tools and actions named in `first` come before
    /// all others. While a change is `in_hand`, the tools that continue it are included. Tools that exceed
    /// [`MAX_OFFER_BYTES`] are left out; the model can ask for them by family.
    pub(super) fn offered<'a>(
        &self,
        families: impl IntoIterator<Item = &'a str>,
        first: &[String],
        in_hand: bool,
    ) -> Arc<[ToolSpec]> {
        let mut names: Vec<&'static str> = Vec::new();
        let all = || self.registry.families.iter().flat_map(Family::names);
        names.extend(first.iter().filter_map(|name| all().find(|known| known == name)));
        for family in families {
            names.extend(self.registry.families_called(family).flat_map(Family::names));
        }
        let mut known = self.known.lock().expect("nothing panics while it is held");
        if known.generation != self.registry.generation() {
            *known = Known::of(&self.registry);
        }
        let mut bytes_left = MAX_OFFER_BYTES.saturating_sub(self.own_sizes[usize::from(in_hand)]);
        let mut chosen = BTreeSet::new();
        for name in names {
            let Some((_, size)) = known.specs.get(name).filter(|_| !chosen.contains(name)) else { continue };
            if *size <= bytes_left {
                bytes_left -= size;
                chosen.insert(name);
            }
        }
        let key = (chosen, in_hand);
        if let Some(tools) = known.offers.get(&key) {
            return Arc::clone(tools);
        }
        let tools = self.build_offer(&known.specs, &key.0, in_hand);
        if known.offers.len() < 256 {
            known.offers.insert(key, Arc::clone(&tools));
        }
        tools
    }

    /// Returns the graph's own tools, then the chosen ones in the order of their families.
    fn build_offer(
        &self,
        specs: &HashMap<&'static str, (ToolSpec, usize)>,
        chosen: &BTreeSet<&'static str>,
        in_hand: bool,
    ) -> Arc<[ToolSpec]> {
        let mut tools: Vec<ToolSpec> = self.own(in_hand).cloned().collect();
        let mut added = BTreeSet::new();
        for name in self.registry.families.iter().flat_map(Family::names) {
            if chosen.contains(name) && added.insert(name) {
                tools.extend(specs.get(name).map(|(spec, _)| spec.clone()));
            }
        }
        let mut strictness = Strictness::new();
        let (proposals, others): (Vec<_>, Vec<_>) =
            tools.iter_mut().partition(|tool| proposed_action(&tool.name).is_some());
        for tool in proposals.into_iter().chain(others) {
            tool.strict = strictness.admit(&tool.input_schema);
        }
        tools.into()
    }

    /// Returns the graph's own tools.
    fn own(&self, in_hand: bool) -> impl Iterator<Item = &ToolSpec> {
        let continuing = continuing().iter().filter(move |_| in_hand);
        [&self.analysis].into_iter().chain(always()).chain(continuing)
    }

    /// Returns the schema of one of the graph's own tools, offered or not.
    pub(super) fn own_schema(&self, name: &str) -> Option<&ParameterSchema> {
        self.own_schemas.get(name)
    }

    /// Returns the name of the capability that a called tool or action belongs to.
    pub(super) fn capability_of(&self, call: &str) -> Option<&'static str> {
        self.registry.family_of(proposed_action(call).unwrap_or(call)).map(|family| family.within)
    }

    /// Returns the families of these tools and actions.
    pub(super) fn families_of(&self, calls: &[String]) -> Vec<&'static str> {
        let mut families: Vec<_> =
            calls.iter().filter_map(|call| self.registry.family_of(call)).map(|family| family.name).collect();
        families.dedup();
        families
    }

    /// Returns the families that are offered when nothing is known about a request.
    pub(super) fn common_families(&self) -> Vec<&'static str> {
        self.registry.families.iter().filter(|family| family.often).map(|family| family.name).collect()
    }

    /// Returns the name of the capability for a family's name or a capability's name, as given by a model.
    pub(super) fn capability_name<'a>(&self, name: &'a str) -> &'a str {
        self.registry.families_called(name).next().map_or(name, |family| family.within)
    }
}

/// Returns the tool by which a model says that a message is not one clear request.
fn analysis(families: &[Family]) -> ToolSpec {
    let mut names: Vec<&str> = Vec::new();
    for family in families {
        for name in [family.within, family.name] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.push(UNSUPPORTED);
    let purposes: Vec<String> = families.iter().map(|family| format!("{}: {}", family.name, family.purpose)).collect();
    spec(
        ANALYZE,
        "Say what the person wants where no other tool does: talk, an unclear request, several requests, one that needs \
         tools which are not here, or that nothing serves.",
        json!({
            "type": "object",
            "properties": {
                "intent_type": {
                    "type": "string",
                    "enum": ["direct_answer", "needs_info"],
                    "description": "direct_answer: nothing to look up or change.",
                },
                "confidence": {
                    "type": "number",
                    "description": "0 to 1. Below 0.7 the person is asked.",
                },
                "user_request_summary": {
                    "type": "string",
                    "description": "The request in one complete sentence.",
                },
                "reasoning": { "type": "string" },
                "answer": { "type": "string", "description": "With direct_answer: what to say." },
                "capability": {
                    "type": "string",
                    "enum": names,
                    "description": format!("What it needs; those tools come next. {}.", purposes.join("; ")),
                },
                "question": { "type": "string", "description": "If not sure: what to ask." },
                "options": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "If not sure: two to four readings, each a full request.",
                },
                "claims": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Each change that the answer says was made, sent, scheduled, proposed or approved.",
                },
                "steps": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "If several: each request in full, in order.",
                },
            },
            "required": ["intent_type", "confidence", "user_request_summary"],
            "additionalProperties": false,
        }),
    )
}

/// Returns the tools that are offered with every request.
fn always() -> &'static [ToolSpec] {
    static TOOLS: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| {
        vec![
            spec(
                EXECUTION_LOG,
                "Read what was done in this thread, or else in the others of this channel, when, and who approved it.",
                past_changes::parameters(),
            ),
            next_steps(),
        ]
    });
    &TOOLS
}

/// Returns the tools that continue a draft, or correct the change on a card.
fn continuing() -> &'static [ToolSpec] {
    static TOOLS: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| {
        vec![
            spec(
                UPDATE_PARAMS,
                "Give or correct one parameter of the draft, or of the change on the open card, and keep the others.",
                json!({
                    "type": "object",
                    "properties": { "key": { "type": "string" }, "value": {} },
                    "required": ["key", "value"],
                    "additionalProperties": false,
                }),
            ),
            spec(
                SET_MISSING,
                "Name the parameters that only the person can give.",
                json!({
                    "type": "object",
                    "properties": { "missing_params": { "type": "array", "items": { "type": "string" } } },
                    "required": ["missing_params"],
                    "additionalProperties": false,
                }),
            ),
            spec(
                ADD_ERROR,
                "Note that the change cannot be made as it is asked for, and why.",
                json!({
                    "type": "object",
                    "properties": {
                        "error_type": {
                            "type": "string",
                            "enum": ["api", "auth", "validation", "not_found", "network", "user_input", "execution", "unknown"],
                        },
                        "message": { "type": "string" },
                    },
                    "required": ["error_type", "message"],
                    "additionalProperties": false,
                }),
            ),
            spec(DROP_DRAFT, "Give up the draft: the person no longer wants it.", no_arguments()),
        ]
    });
    &TOOLS
}

fn next_steps() -> ToolSpec {
    spec(
        NEXT_STEPS,
        "Show up to four buttons below the answer. Each says something for the person, as if typed.",
        json!({
            "type": "object",
            "properties": {
                "steps": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "label": { "type": "string", "description": "Two or three words." },
                            "says": { "type": "string", "description": "The full request." },
                        },
                        "required": ["label", "says"],
                        "additionalProperties": false,
                    },
                },
                "claims": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Each change that the answer says was made, sent, scheduled, proposed or approved.",
                },
            },
            "required": ["steps"],
            "additionalProperties": false,
        }),
    )
}

/// Returns the tools of the node `respond`, which read back what is known and offer buttons.
pub(super) fn responding(registry: &Registry) -> Vec<ToolSpec> {
    let back = |name: &str, what: &str| {
        spec(name, &format!("Read back {what}. Nothing is asked of the platform."), no_arguments())
    };
    let read = registry.tools.values().filter_map(|tool| Some(back(tool.name(), tool.info().read_back?)));
    let own = [
        back(ALL_GATHERED, "everything that was gathered in this turn"),
        back(EXECUTION_LOG, "what was done in this thread, when, and who approved it"),
        back(ERRORS, "what went wrong in this turn"),
        next_steps(),
    ];
    read.chain(own).collect()
}
