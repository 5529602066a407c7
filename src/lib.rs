//! Countersign: a Slack bot that makes the changes a team asks for, and none without a countersignature.
//!
//! This page describes the architecture: read it first, then the front page of whichever crate you need.
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
//! Everything that arrives takes the same path: it is stored before it is acknowledged. A worker that holds a thread's
//! lease runs the nodes of its graph, one step at a time; each step is saved together with its replies in one atomic
//! write. A change in the outside world is an action: proposed by a node, shown on a card, decided by a person, carried
//! out once.
//!
//! # Code map
//!
//! Each row is a crate, `countersign_<name>` in `src/<name>`. No crate depends on one above it in the table.
//!
//! | crate | what it is | start at |
//! | --- | --- | --- |
//! | `playground` | the program to try things out without a real system: a page that is a workspace in the browser, with the bot and the stand-ins behind it; the stand-ins alone; the evaluation of a model | `playground/lib.rs` |
//! | `sandbox` | stand-ins for Slack, the platforms, Google and a model, as real servers, for tests and the playground | `sandbox/slack/mod.rs` |
//! | [`app`] | the composition root and the program, in the crate `countersign` itself; it depends on all crates below | [`app::bot`] |
//! | [`api`] | the HTTP API with which programs ask for approvals, and the commands that use it | [`api`] |
//! | [`conversation`] | joins Slack and the engine, in six rooms: [`runtime`](conversation::runtime) runs threads and sends replies, [`surfaces`](conversation::surfaces) are the Home tab and shortcuts, [`commands`](conversation::commands) quick answers, [`approvals`](conversation::approvals) decisions, [`record`](conversation::record) the history, [`presentation`](conversation::presentation) the look of replies | [`conversation`] |
//! | [`email`] | the mail graph: from a mail in the team's inbox to an answer; its rules, its nodes, its prompts; and the loop that brings mails into threads | [`email::graph`] |
//! | [`assistant`] | the chat graph: its state, its nodes, its prompts | [`assistant::graph`] |
//! | [`experiments`] | the capability for A/B experiments on UpGrade, in `src/capabilities/experiments` | [`experiments::Experiments`] |
//! | [`simulation`] | the capability for pharmacokinetic simulations behind a bridge, in `src/capabilities/simulation` | [`simulation::Simulation`] |
//! | [`team-inbox`](team_inbox) | the capability to look at the team's mail: `/mail`, the Home tab, figures, a daily digest; in `src/capabilities/team_inbox` | [`team_inbox::TeamInbox`] |
//! | [`watches`] | the capability to follow things: news when something happens, regular digests; in `src/capabilities/watches` | [`watches::watcher`] |
//! | [`standing`] | the capability for standing approvals, which allow some changes in advance; in `src/capabilities/standing` | [`standing`] |
//! | [`memory`] | the capability to remember notes at a person's request, in `src/capabilities/memory` | [`memory`] |
//! | [`plans`] | the capability to review a plan before it is carried out, in `src/capabilities/plans` | [`plans`] |
//! | [`mcp`] | the capability for tools of MCP servers, one for each server of the settings; in `src/capabilities/mcp` | [`mcp::McpServer`] |
//! | [`capabilities`] | the trait of a capability, which covers everything that can be done in one domain, and the registry of all capabilities | [`capabilities::Capability`] |
//! | [`planner`] | plans of several steps: checks before use, the choice of the next step, conditions on results | [`planner::routing`] |
//! | [`understanding`] | understands requests without a language model: the names in them, then the phrases that the capabilities define; and the situation that is described to every model | [`understanding`] |
//! | [`model`] | language models of several providers behind one trait, and embeddings | [`model::Model`] |
//! | [`mcp-client`](mcp_client) | a client for servers that speak the Model Context Protocol, in `src/services/mcp` | [`mcp_client::McpClient`] |
//! | [`mail`] | mail: messages are read as safe plain text, answers are written, accounts on Gmail or IMAP and SMTP are behind one trait; in `src/services/mail` | [`mail::MailAccount`] |
//! | [`context`] | the context of a mail: similar mails, contacts, the calendar; a store in SQLite or PostgreSQL; in `src/services/context` | [`context::Context`] |
//! | [`services`] | shared code of the clients of outside systems: calls, answers, changes, signing in | [`services::http`] |
//! | [`store`] | two stores for the engine: SQLite in a file, Redis for several processes; both are sealed | [`graph::store`] |
//! | [`graph`] | the durable engine: nodes, steps, questions, actions; and the trait of a store | [`graph::engine`] |
//! | [`slack`] | the connection to Slack: requests are verified and parsed, messages escaped and sent | [`slack::sink`] |
//! | [`config`] | settings: one struct for each component; all wrong values are reported at once | [`config::Config`] |
//! | [`wire`] | connections that respect a permit and a maximum length of answers; [`this_machine`] for requests from this machine only | [`wire`] |
//! | `core` | the leaves: [`ids`], [`clock`], [`cause`] (the chain of causes of an error), [`draft`] of an answer, [`addresses`] (several servers in one address), [`reply`] (a message before it is rendered), [`spans`] of a turn, [`status_line`], [`http_log`], [`send_permit`] (the time limit for sending a change), [`private_file`], [`units`] of quantities | [`send_permit::SendPermit`] |
//!
//! The compiler enforces this table: a crate can only use the crates in its manifest, and `tests/integration/tidy.rs`
//! compares the manifests with the order above. `conversation` joins the engine with `slack`, and its rooms only import
//! those below them. The bot and the playground are two programs: `countersign` contains no stand-in and no page.
//!
//! **Graphs.** A thread belongs to one graph from its first message on. The graph's name ([`ids::GraphName`]) is in the
//! thread's row, its lease and its checkpoint. [`conversation::runtime::workers`] runs each thread with the engine of
//! its graph. If this process does not have the graph, the thread and its messages are left to a process that has it.
//! The rooms around a graph read its state through [`graph::conversing`].
//!
//! **Beyond Slack.** An event elsewhere, such as the end of a job or an e-mail, is a message of a thread like any other
//! ([`graph::store::External`]): it is stored once, by its key. An action can wait for it
//! ([`graph::action::Batch::Waits`]) and holds no lease, permit or connection meanwhile; the thread handles its other
//! messages, and a timer ends the wait. A capability that can follow such events returns a
//! [`capabilities::EventSource`], and [`conversation::runtime::events`] follows each event as long as an action waits
//! for it, also after a restart. The event can be a person's answer to a question in the middle of a change
//! ([`graph::action::Batch::Asks`]). Replies are sent through a channel ([`conversation::runtime::outbox::channel`]),
//! which is Slack unless the message names another.
//!
//! There are four places to add things: a *capability* (an ability), a *node* (a step of its reasoning), a *channel* (a
//! way to reach it), a *store* (a place for its memory).
//!
//! # One folder, one capability
//!
//! A domain is a folder in [`capabilities`] and one [`capabilities::Capability`]. The folder contains everything about
//! the domain: its tools and actions, its client, its replies, its phrases and the meanings of its words. Nothing
//! outside this folder and the stand-in names the platform, except [`app::installed`], which lists the capabilities,
//! and `playground/platform_stand_in.rs`, which starts the stand-ins; `tidy` checks this. [`standing`] has no platform;
//! `app/dependencies.rs` adds it. If two domains understand the same words, the topic of the thread decides
//! ([`understanding::situation::Topic`]); if the words name something, the person is asked once which of them is meant
//! ([`understanding::phrase_book`]).
//!
//! The files below are those of the largest folder in [`capabilities`]; a smaller one, such as [`standing`], has
//! fewer. Paths are relative to `src/`, except `deploy/` and `tests/`.
//!
//! | to change | go to |
//! | --- | --- |
//! | the content and warnings of a card | the action's file in the capability's `actions/`, or `testing/`, whose `prepare` makes the card; warnings that several cards share in its `replies/cautions.rs`, those of the engine in `graph/engine/ask.rs`; a change of several things at once has its own card, such as `actions/several.rs` |
//! | the reply about an answer or an outcome | the capability's `replies/` |
//! | what an action reads again before it runs | its `preconditions`: [`graph::action::ActionKind`] |
//! | whether and how often a change is sent again | without an answer, the action's `recovery` says whether, and `MAX_SENDS` in `graph/engine/perform.rs` how often; its effect is looked up in `graph/engine/looks.rs`, for the longest `settle_within` of the platforms; after a refusal it is not sent again; batches are in `graph/engine/batches.rs` |
//! | the number of attempts of a read, and the time limit for sending a change | [`services::http`] for reads, [`services::changes`] and [`send_permit`] for changes |
//! | what is shown of an answer before it is complete | [`status_line`] collects the draft, `graph/engine/step.rs` says when it is shown, `conversation/runtime/outbox/drafts.rs` how |
//! | the number of attempts to send a message to Slack | [`conversation::runtime::outbox`] |
//! | a slash word | a capability's in its `commands.rs` (the table and `answer`), the bot's own in [`conversation::commands::grammar`], answered in `conversation/commands/mod.rs`; a word typed in a thread in `conversation/commands/in_thread.rs`; and the usage hint in `deploy/slack-manifest.*.json` and `sandbox/slack/mod.rs` |
//! | who may decide, and the answer to a click | [`conversation::approvals::policy`], `conversation/approvals/replies.rs`; guests, bots and other workspaces in `conversation/approvals/people.rs` |
//! | who may see what; the look of a card | [`conversation::record::sight`]; [`conversation::presentation::render`] |
//! | the steps of a plan, and the checks of a plan | `capabilities/planning.rs` makes it, [`planner::plan`] checks it; its card is in [`plans`], what follows a step in `assistant/nodes/carry_on.rs`, and another plan after one that ended early in `assistant/nodes/replan.rs` |
//! | a window for something new | [`capabilities::CapabilityInfo::shortcuts`] |
//! | the Home tab | `conversation/surfaces/home`; a capability may add a section ([`capabilities::Capability::home`]), and its `invitations` are listed under “How to ask” |
//! | the mail account, and where an email's context comes from | [`mail::MailAccount`], [`context::store`]; which of them the settings choose, in `app/mail/`, and their lines of `check` in `app/check_mail.rs` |
//! | the figures about email | `email/figures.rs` for the command line and `/metrics`, `capabilities/team_inbox/figures.rs` for people |
//! | the default language models, and which of them are told as retired | `config/line.rs`, `app/models.rs`; what a model refuses in a request, in `model/learnt.rs`, with its source in `docs/models.md` |
//! | what `check` and `/readyz` report about a platform | [`capabilities::Capability::check`]; its JSON, and how often it is called, in `app/services.rs`, the rest of `/readyz` in `app/http.rs` |
//! | a phrase that is understood without a model | a line in the capability's `phrases/lines.txt` ([`understanding::lines`]), with `~` if its parts may come in any order; freer phrases, such as the description of something new, in the files beside it that `phrases/mod.rs` lists |
//! | a request that is suggested for words that nothing reads | an `offer` in the capability's lines, with other ways to say it; those about the bot itself in `understanding/requests/talk.txt`; how near words are, in `understanding/leftovers/suggestions.rs` |
//! | the values of a file that take the place of “these” | `conversation/runtime/inbox/attached.rs`; which files are read, in `files.rs` beside it, and how, in [`slack::file`] |
//! | the answer to a message in another language | the tables in `understanding/leftovers/languages.rs` |
//! | the price of a model | a row in `model/prices.txt`; what calls cost and which limits they keep to, in [`conversation::record::spending`]; the sentence at a limit, in `assistant/replies.rs` |
//! | the answers to “what was changed?” and “who approved that?” | `assistant/past_changes.rs`; a thread's own list in `assistant/outcomes.rs` |
//! | greetings, “thanks” and “help” | the phrases in `understanding/requests/talk.txt`, the answers in `understanding/requests/talk.rs`; with a language model, `assistant/prompts/respond.md` |
//! | the words for “no” | the lists in `understanding/answers/refusals.rs`; what a “no” leaves open, in [`conversation::approvals::withdraw`] |
//! | the words for “stop” | the lists in `understanding/answers/stop_words.rs`; what they end, in `conversation/runtime/inbox/stopping.rs` |
//! | the words around a correction, such as “no, make it …”, and what continues the last request, such as “the same for …” and “make it 50” | `understanding/answers/corrections.rs` and `understanding/answers/follow_ups.rs`, for all capabilities; the types of the values are theirs |
//! | the order in which a message is read | the tables in `understanding/order.rs`; its folders are in the same order |
//! | the meaning of a word | `core.rs` and `assignment.rs` in the capability's `glossary`; two words together in its `pairs.rs` |
//! | the instructions for a model | about a domain: its `instructions.md`, `families.rs`, each `info` and `schema`; about everything: `assistant/prompts` |
//! | the tools that a model is offered for a request | the capability's `families.rs`; their selection in `assistant/nodes/round.rs`, the number that fits in `assistant/tools.rs` |
//! | whether a person asked for a change that a model proposes | the verbs in the capability's phrases, those of other languages in `understanding/verbs.txt`; the search in `assistant/nodes/evidence.rs`; the first line of such a card in `graph/action/evidence.rs` |
//! | which answers of a model count as claims of a change | `understanding/claims.txt`; what supports a claim, in `assistant/nodes/claims.rs` |
//! | a setting, such as the duration of a lease | the struct of its section, with `config/default.toml`, and its bounds in `config/check.rs`; a capability's in its `settings.rs` and its `default.toml`. The page for operators, `config/default.toml` at the top level, consists of these parts, with a blank line between them |
//! | the events that people can wait for, and what is said then | `has_happened` in `capabilities/watches/watch.rs`, the sentences in `capabilities/watches/replies.rs`; what can be followed on a platform, the capability's [`capabilities::Observer`] |
//! | what an envelope can limit | the `MEASURES` in the capability's `settings.rs`, with the value in the action's [`graph::action::Scope`]; a new kind of limit in `config/measure.rs`; an example in `config/default.toml` |
//! | what a standing approval can allow | the capability's `allowances.rs` |
//! | a stored field | the struct (of a conversation: [`assistant::state`]), with `skip_serializing_if` and a default: a seal is computed from the record as it is serialized again, so an old record must serialize as it was stored, and a sealed field cannot be renamed; and a new entry in `tests/fixtures/shapes` (of a conversation: `chat_checkpoint.json`), where the old ones stay |
//! | which answers to mails need a person, and which tools a class of mail may use | [`email::rules`]; what an automatic answer may use up, in [`email::automatic`] |
//! | the card about an answer, and what is sent | `email/card.rs` and [`email::send`]; what a mail's thread says, in `email/replies.rs`, and its first message in `email/heading.rs` |
//! | the instructions for a model about mail | `email/prompts`; the phrases that need no model, in `email/talk.rs`, the classes by keywords in `email/keywords.rs`, the templates in `email/template.rs` |
//! | what a backup has, and what `restore` checks | `app/backup.rs`, the copy itself in `store/sqlite/backup.rs`; how an older copy is noticed, in `app/seen.rs` |
//! | the lines of the audit stream | [`conversation::record::stream`]; where they go, in `app/audit_stream.rs` |
//! | what a status is called, and the verbs that ask for it | `NAMES` in the capability's `status.rs`; the sentences around them in its `phrases/lines.txt`, what it means in `glossary/core.rs` |
//! | a new action or tool of a capability | a row ([`capabilities::rows`]) in its `actions/` or `tools.rs`; CONTRIBUTING.md lists what else it has |
//! | a new domain | “The next capability”, below |
//!
//! # The next capability
//!
//! 1. `src/capabilities/<name>` with a `Cargo.toml` like the one of a capability of its kind, with or without a platform, and a `lib.rs` with one
//!    [`capabilities::Capability`], whose tools and actions are rows ([`capabilities::rows`]); the smallest example is
//!    `tests/integration/dialogues/toy.rs`.
//! 2. In the top `Cargo.toml`: a member, a dependency of the workspace, and a dependency of `countersign`.
//! 3. On this page: a row in the table of crates, above the crates that it uses, and a `pub use`.
//! 4. In [`app::installed`]: an entry in `capabilities`.
//! 5. If it has settings: `settings.rs` with a [`config::SectionSpec`] and `default.toml` beside it, listed in
//!    [`app::installed::SETTINGS`] and added at the end of the page for operators, `config/default.toml`.
//! 6. If it has a platform: a client built on [`services`], and a stand-in in `sandbox`, an implementation of
//!    `sandbox::call::Service` (`sandbox/hubspot` is a small one), started in `playground/platform_stand_in.rs`.
//! 7. A parameter that is a moment is called `start_on`, `end_on` or `until`: only these keep their date while a request
//!    is completed or corrected the next day ([`capabilities::dates::PARAMETERS`]).
//! 8. Its dialogues in `tests/integration/dialogues`; a row in `FOLDERS` of `tests/integration/tidy.rs` keeps its words
//!    in its folder.
//!
//! # Promises, and where they are kept
//!
//! 1. *An acknowledged delivery is never lost; a duplicate delivery is handled once.* [`slack::sink`] acknowledges
//!    after [`graph::store::Store::ingest`] has stored the delivery under all its keys.
//! 2. *Nothing in the outside world changes without a recorded decision of a person entitled to make it.* Nodes can
//!    only propose; [`graph::action::Status::may_become`] allows `Intent` only after `Approved`, or after `Intent`
//!    itself when the change is sent again. A change that a language model proposes carries the words of a person that ask
//!    for it; without them it is a suggestion, and nothing agreed beforehand is spent on it
//!    ([`graph::action::Evidence`]). Only a person who is a full member of the workspace at that moment can
//!    decide ([`conversation::approvals::people`]). A change that a standing approval covers carries the decision of
//!    the people who granted it ([`graph::standing`]). The one change without them is an answer to a mail, where the
//!    operator has decided by a setting, off by default, which answers need nobody; the record names the setting
//!    ([`email::automatic`]).
//! 3. *The change that runs is the one that was shown.* Card, record and request carry one [`graph::digest::Digest`],
//!    computed again before execution; the state that was shown is read again as well. Digests and seals need a key
//!    that is not in the store ([`graph::keyring`], [`store::sealed`]), so someone who can write to the store can
//!    neither make another change run nor forge a decision.
//! 4. *An approved action is never sent twice without evidence that the first request had no effect.* `Intent` is
//!    written before the request is sent; after that, only the action's own [`graph::action::Recovery`] may decide: its
//!    effect is looked up until no late request can arrive any more, and if it must not happen twice, a person then
//!    decides. No byte of a change is sent once another process may look it up ([`send_permit`]). An answer is trusted as
//!    far as it describes the change; the rest is read back. A change too large for one request is saved batch by batch
//!    ([`graph::action::Batches`]).
//! 5. *Every click gets an answer; no live button outlasts its decision.* The inbox needs no lease
//!    ([`conversation::approvals`]).
//! 6. *Killing any process at any moment loses nothing and blocks no thread for longer than a lease.* Readiness and
//!    leases are properties of the thread in the store; there is no queue to lose. A wait for an outside event is saved
//!    with its action, its deadline and the turn that started it.
//! 7. *Two threads never mix; one thread is advanced by one worker at a time.* Every write carries version and fence.
//! 8. *Without a language model, commands, buttons, cards and the documented phrases still work; each word of a request
//!    is used, asked about or declined.* [`understanding`].
//! 9. *Text from people, models and other systems cannot mention everyone, forge a link, press a button or reach a log
//!    at `info`.* [`reply`] marks it, [`slack::mrkdwn`] escapes it.
//! 10. *The cost of a turn does not grow with the age of the thread.* The state is bounded; steps are stored as
//!     differences with a snapshot every 16.
//!
//! # Cross-cutting concerns
//!
//! **Time** is [`clock::Clock`], an argument everywhere. **Randomness** is in the engine, not in nodes. **Errors** are
//! one enum for each module, with a variant for each different reaction of a caller; people see sentences from a
//! `replies.rs`, operators the chain of causes, logged once. **HTTP** uses [hyper] on both sides: [`app::server`]
//! serves each connection with it, each change is sent on its own connection ([`services::changes`]), and the Slack
//! library and `reqwest`, which is for reads only, are built on it. **Logs** contain ids and sizes, never people's
//! words; so do **spans** ([`spans`]), which are disabled unless [`app::spans`] exports them, and follow a turn from
//! task to task. **Metrics** are all listed in [`app::metrics`]. **Every call to the outside has a time-out, and its
//! answer a maximum length**; the same holds for every client that calls us ([`app::server`]). **Tasks** that always
//! run are supervised ([`app::supervision`]); a panic in
//! a node or an action is a failed attempt ([`graph::unwind`]).

pub mod app;

pub use countersign_api as api;
pub use countersign_assistant as assistant;
pub use countersign_capabilities as capabilities;
pub use countersign_config as config;
pub use countersign_context as context;
pub use countersign_conversation as conversation;
pub use countersign_core::{
    addresses, cause, clock, draft, http_log, ids, private_file, reply, send_permit, spans, status_line, units,
};
pub use countersign_email as email;
pub use countersign_experiments as experiments;
pub use countersign_graph as graph;
pub use countersign_mail as mail;
pub use countersign_mcp as mcp;
pub use countersign_mcp_client as mcp_client;
pub use countersign_memory as memory;
pub use countersign_model as model;
pub use countersign_planner as planner;
pub use countersign_plans as plans;
pub use countersign_services as services;
pub use countersign_simulation as simulation;
pub use countersign_slack as slack;
pub use countersign_standing as standing;
pub use countersign_store as store;
pub use countersign_team_inbox as team_inbox;
pub use countersign_understanding as understanding;
pub use countersign_watches as watches;
pub use countersign_wire as wire;
pub use countersign_wire::this_machine;
