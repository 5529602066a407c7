//! Countersign: a Slack bot that makes the changes a team asks for, and none without a countersignature.
//!
//! This page is the plan of the house: read it first, then the front page of whichever crate you need.
//!
//! # Bird's-eye view
//!
//! ```text
//! Slack ──► slack (verify, parse) ──► runtime::dispatch ──► store.ingest (deduplicate, file, wake) ──► acknowledge
//!                                              │
//!            mailbox of a thread ◄─────────────┴─────────────► inbox (clicks, typed consent, commands, timers)
//!                   │                                                 │
//!    worker: lease ─► load ─► graph: run a node ─► commit             └─► decide: one compare-and-set, no lease
//!                   ▲                     │
//!                   └──── next node ──────┴──► outbox ──► Slack          an approved action ──► the platform, once
//! ```
//!
//! Everything that arrives goes the same way: it is stored before it is acknowledged. A worker that holds a thread's
//! lease runs the nodes of its graph, one step at a time; each step is saved with what it says in one atomic write. A
//! change in the outside world is an action: proposed by a node, shown on a card, decided by a person, carried out once.
//!
//! # Code map
//!
//! Each row is a crate, `countersign_<name>` in `src/<name>`, and none knows a crate that stands above it.
//!
//! | crate | what it is | start at |
//! | --- | --- | --- |
//! | [`app`] | the composition root and the program, in the crate `countersign` itself; it alone knows everything | [`app::bot`] |
//! | [`playground`] | the page: a workspace in the browser | |
//! | [`sandbox`] | stand-ins for Slack, the platforms, Google and a model, as real servers, for tests and the playground | |
//! | [`conversation`] | joins Slack and the engine, in six rooms: [`runtime`](conversation::runtime) moves the work, [`surfaces`](conversation::surfaces) are the Home tab and shortcuts, [`commands`](conversation::commands) quick answers, [`approvals`](conversation::approvals) decisions, [`record`](conversation::record) what is kept of the past, [`presentation`](conversation::presentation) how things look | [`conversation`] |
//! | [`assistant`] | the chat graph: its state, its nodes, its prompts | [`assistant::graph`] |
//! | [`experiments`] | the capability for A/B experiments on UpGrade, in `src/capabilities/experiments` | [`experiments::Experiments`] |
//! | [`simulation`] | the capability for pharmacokinetic simulations behind a bridge, in `src/capabilities/simulation` | [`simulation::Simulation`] |
//! | [`standing`] | the capability for standing approvals: some changes allowed beforehand; in `src/capabilities/standing` | [`standing`] |
//! | [`memory`] | the capability to remember what a person asked to be remembered, in `src/capabilities/memory` | [`memory`] |
//! | [`plans`] | the capability to look at a plan before it is carried out, in `src/capabilities/plans` | [`plans`] |
//! | [`mcp`] | the capability for tools of MCP servers, one for each server of the settings; in `src/capabilities/mcp` | [`mcp::McpServer`] |
//! | [`capabilities`] | the trait of a capability, all that can be done in one domain, and the registry of all of them | [`capabilities::Capability`] |
//! | [`planner`] | plans of several steps: checked before use, which step is next, conditions on results | [`planner::routing`] |
//! | [`understanding`] | understands requests without a language model: the names in them, then phrases, which the capabilities bring; and the situation that every model is shown | [`understanding`] |
//! | [`model`] | language models behind one trait | [`model::Model`] |
//! | [`mcp-client`](mcp_client) | a client for servers that speak the Model Context Protocol, in `src/services/mcp` | [`mcp_client::McpClient`] |
//! | [`services`] | shared by the clients of outside systems: calls, answers, changes, signing in | [`services::http`] |
//! | [`store`] | two stores for the engine: SQLite in a file, Redis for several processes; seals around both | [`graph::store`] |
//! | [`graph`] | the durable engine: nodes, steps, questions, actions; and the trait of a store | [`graph::engine`] |
//! | [`slack`] | the wire to Slack: requests are verified and parsed, messages escaped and sent | [`slack::sink`] |
//! | [`config`] | settings: one struct for each component, every wrong value told at once | [`config::Config`] |
//! | [`wire`] | connections that keep to a permit and to a longest answer; [`this_machine`] for requests of this machine only | [`wire`] |
//! | `core` | the leaves: [`ids`], [`clock`], [`cause`] (the chain of causes of an error), [`reply`] (a message before it is drawn), [`status_line`], [`http_log`], [`permit`] (until when a change may leave), [`private_file`] | [`permit::Permit`] |
//!
//! The compiler keeps this table: a crate can name those of its manifest only, and `tests/integration/tidy.rs` compares the
//! manifests with the order above. `conversation` joins the engine with `slack`, and its rooms import those below them
//! only; production code never knows the `sandbox`.
//!
//! **Graphs.** A thread belongs to one graph from its first message on; the name of it ([`ids::GraphName`]) stands in the
//! thread's row, its lease and its checkpoint. [`conversation::runtime::workers`] runs each thread with the engine of its
//! graph. One whose graph this process does not have is left, with all its messages, to a process that has it. What the rooms
//! around a graph have to know of its state they ask through [`graph::conversing`].
//!
//! **Beyond Slack.** What happens elsewhere, a job's end or an e-mail, is a message of a thread like everything else
//! ([`graph::store::External`]): stored once, by its key. An action can wait for it ([`graph::action::Batch::Waits`]) and
//! holds no lease, no seat and no connection meanwhile; the thread goes on with what else arrives, and a timer ends the wait.
//! A capability that can follow such an event says so ([`capabilities::EventSource`]), and
//! [`conversation::runtime::events`] has it followed for as long as an action waits, also after a restart.
//! The event can be a person's answer to a question in the middle of a change ([`graph::action::Batch::Asks`]).
//! What is said goes out by a channel ([`conversation::runtime::outbox::channel`]), which is Slack unless the message names
//! another.
//!
//! Four ideas, four places to add things: a *capability* (what it can do), a *node* (how it thinks), a *channel* (how it is
//! reached), a *store* (where it remembers).
//!
//! # One folder, one capability
//!
//! A domain is a folder in [`capabilities`] and one [`capabilities::Capability`]. It brings all that is known of the domain:
//! its tools and actions, its client, its sentences, its phrases and the meanings of its words. Nothing outside of its
//! folder and its stand-in names its platform, but for [`app::installed`], which says which there are; `tidy` greps for it.
//! [`standing`] has no platform; `app/dependencies.rs` adds it. Where two
//! domains understand the same words, the person is asked once which of them is meant ([`understanding::book`]).
//!
//! The files below are those of the largest folder in [`capabilities`]; a smaller one, such as [`standing`], has
//! fewer. Paths count from `src/`, but for `deploy/` and `tests/`.
//!
//! | to change | go to |
//! | --- | --- |
//! | what a card shows or warns of | the action's file in the capability's `actions/`, or `testing/`, whose `prepare` makes the card; warnings that several share in its `replies/cautions.rs`, those of the engine in `graph/ask.rs`; a change of several things at once has a card of its own, such as `actions/several.rs` |
//! | what is said of an answer or an outcome | the capability's `replies/` |
//! | what an action reads again before it runs | its `preconditions`: [`graph::action::ActionKind`] |
//! | whether and how often a change is sent again | after no answer, the action's `recovery` says whether and `MAX_SENDS` in `graph/perform.rs` how often; it is looked up in `graph/looks.rs`, for as long as the longest `settle_within` of the platforms; a refusal ends it; batches are in `graph/batches.rs` |
//! | how often a read is tried, and until when a change may leave | [`services::http`] for reads, [`services::changes`] and [`permit`] for changes |
//! | how often a message to Slack is tried | [`conversation::runtime::outbox`] |
//! | a slash word | a capability's in its `commands.rs` (the table and `answer`), the bot's own in [`conversation::commands::grammar`], answered in `conversation/commands/mod.rs`; a word typed in a thread in `conversation/commands/in_thread.rs`; and the usage hint in `deploy/slack-manifest.*.json` and `sandbox/slack/mod.rs` |
//! | who may decide, and what a press is answered | [`conversation::approvals::policy`], `conversation/approvals/replies.rs`; guests, bots and other workspaces in `conversation/approvals/people.rs` |
//! | who may be shown what; how a card is drawn | [`conversation::record::sight`]; [`conversation::presentation::render`] |
//! | what a plan is made of, and when it is refused | `capabilities/planning.rs` makes it, [`planner::plan`] checks it; its card is in [`plans`], what follows a step in `assistant/nodes/carry_on.rs` |
//! | a window for something new | [`capabilities::Capability::shortcuts`] |
//! | the Home tab | `conversation/surfaces/home`; a capability may add a section ([`capabilities::Capability::home`]), and its `invitations` stand under “How to ask” |
//! | what `check` and `/readyz` tell of a platform | [`capabilities::Capability::check`]; its JSON, and how often it is asked, in `app/services.rs`, the rest of `/readyz` in `app/http.rs` |
//! | a phrase that is understood without a model | a line in the capability's `phrases/lines.txt` ([`understanding::lines`]), with `~` where the parts may stand in any order; freer phrases, such as the description of something new, in the files beside it that `phrases/mod.rs` lists |
//! | greetings, “thanks” and “help” | what is heard in `understanding/talk.txt`, what is answered in `understanding/talk.rs`; with a language model, `assistant/prompts/respond.md` |
//! | what a word means | `core.rs` and `assignment.rs` in the capability's `glossary`; two words together in its `pairs.rs` |
//! | what a model is told | of a domain: its `instructions.md`, `families.rs`, each `description` and `schema`; of everything: `assistant/prompts` |
//! | which tools a model is offered for a request | the capability's `families.rs`; how they are chosen in `assistant/nodes/round.rs`, how much fits in `assistant/tools.rs` |
//! | a setting, such as how long a lease lasts | the struct of its section, with `config/default.toml`, and its bounds in `config/check.rs`; a capability's in its `settings.rs` and its `default.toml`. The page for operators, `config/default.toml` at the top level, is made of these parts, with a blank line between them |
//! | what an envelope can limit | the `MEASURES` in the capability's `settings.rs`, with the value in the action's [`graph::action::Scope`]; a new kind of limit in `config/measure.rs`; an example in `config/default.toml` |
//! | what a standing approval can allow | the capability's `allowances.rs` |
//! | a stored field | the struct, of a conversation [`assistant::state`], with `skip_serializing_if` and a default: seals are computed from the record as it is serialized again, so an old record has to come out as it went in, and nothing that is sealed gets another name; and a new entry in `tests/fixtures/shapes` (of a conversation, `chat_checkpoint.json`), where the old ones stay |
//! | a new domain | “The next capability”, below |
//!
//! # The next capability
//!
//! 1. `src/capabilities/<name>` with a `Cargo.toml` like that of `memory`, and a `lib.rs` with one [`capabilities::Capability`]; the
//!    smallest one is `tests/integration/dialogues/toy.rs`.
//! 2. In the top `Cargo.toml`: a member, a dependency of the workspace, and one of `countersign`.
//! 3. On this page: a row of the table of crates, above those crates that it uses, and `pub use`.
//! 4. In [`app::installed`]: one line in `capabilities`.
//! 5. If it has settings: `settings.rs` with a [`config::SectionSpec`] and `default.toml` beside it, named in
//!    [`app::installed::SETTINGS`] and added at the end of the page for operators.
//! 6. If it has a platform: the client on [`services`], a stand-in in `sandbox`, started in [`app::installed`] too.
//! 7. Its dialogues in `tests/integration/dialogues`; a row in `FOLDERS` of `tests/integration/tidy.rs` keeps its words in its
//!    folder.
//!
//! # Promises, and where they are kept
//!
//! 1. *A delivery that was acknowledged is never lost; one that comes twice is handled once.* [`slack::sink`] acknowledges
//!    after [`graph::store::Store::ingest`] has stored the delivery under all its keys.
//! 2. *Nothing in the outside world changes without a recorded decision of a person entitled to make it.* Nodes can only
//!    propose; [`graph::action::Status::may_become`] has no way to `Intent` but from `Approved`, or from `Intent` itself
//!    where it is sent again. Who decides is a full member of the workspace when it counts
//!    ([`conversation::approvals::people`]). What a standing approval covers carries the decision of those who granted it
//!    ([`graph::standing`]).
//! 3. *What runs is what was shown.* Card, record and request carry one [`graph::digest::Digest`], computed again before
//!    execution; the state that was shown is read again as well. Digests and seals need a key that is not in the store
//!    ([`graph::keyring`], [`store::sealed`]), so who can write there can make no other change run, and no decision.
//! 4. *An approved action is never sent twice without evidence that the first did not happen.* `Intent` is written before
//!    the request leaves; afterwards only the action's own [`graph::action::Recovery`] may decide: it is looked up until it
//!    is quiet, and what must not happen twice is then put before a person. No byte of a change leaves once another process may look
//!    ([`permit`]). An answer counts as far as it tells of the change; the rest is read back. What is too large for one
//!    request is saved batch by batch ([`graph::action::Batches`]).
//! 5. *Every click gets an answer; no live button outlasts its decision.* The inbox needs no lease
//!    ([`conversation::approvals`]).
//! 6. *Killing any process at any moment loses nothing and blocks no thread for longer than a lease.* Readiness and leases
//!    are properties of the thread in the store; there is no queue to lose. A wait for something elsewhere is saved with its
//!    action, its deadline and the turn that asked.
//! 7. *Two threads never mix; one thread is advanced by one worker at a time.* Every write carries version and fence.
//! 8. *Without a language model commands, buttons, cards and the documented phrases still work; each word of a request is
//!    used, asked about or declined.* [`understanding`].
//! 9. *Text from people, models and other systems cannot mention everyone, forge a link, press a button or reach a log at
//!    `info`.* [`reply`] marks it, [`slack::mrkdwn`] escapes it.
//! 10. *The cost of a turn does not grow with the age of the thread.* The state is bounded; steps are stored as
//!     differences with a snapshot every 16.
//!
//! # Concerns that cut across
//!
//! **Time** is [`clock::Clock`], an argument everywhere. **Randomness** is in the engine, not in nodes. **Errors** are one
//! enum for each module, by what the caller would do differently; people see sentences from a `replies.rs`, operators the
//! chain, logged once. **HTTP** is [hyper]'s on both sides: [`app::server`] serves each connection with it, a
//! change leaves on a connection of its own ([`services::changes`]), and the Slack library and `reqwest`, for what only reads,
//! stand on it. **Logs** hold ids and sizes, never what people wrote. **Every call to the outside has a time-out,
//! and its answer a longest length**; so has every client that calls from there ([`app::server`]). **Tasks** that run all the
//! time are watched ([`app::supervision`]); a panic in a node or an action is a failed attempt ([`graph::unwind`]).

pub mod app;

pub use countersign_assistant as assistant;
pub use countersign_capabilities as capabilities;
pub use countersign_config as config;
pub use countersign_conversation as conversation;
pub use countersign_core::{cause, clock, http_log, ids, permit, private_file, reply, status_line};
pub use countersign_experiments as experiments;
pub use countersign_graph as graph;
pub use countersign_mcp as mcp;
pub use countersign_mcp_client as mcp_client;
pub use countersign_memory as memory;
pub use countersign_model as model;
pub use countersign_planner as planner;
pub use countersign_plans as plans;
pub use countersign_playground as playground;
pub use countersign_sandbox as sandbox;
pub use countersign_services as services;
pub use countersign_simulation as simulation;
pub use countersign_slack as slack;
pub use countersign_standing as standing;
pub use countersign_store as store;
pub use countersign_understanding as understanding;
pub use countersign_wire as wire;
pub use countersign_wire::this_machine;
