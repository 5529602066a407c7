//! A second domain in one file: documents that can be looked up and archived. What it brings is all that anybody knows of it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use countersign::{
    capabilities::{Capability, CapabilityInfo, Command, Family, Takes, Tool, ToolError, ToolInfo, Word, facts::Facts},
    config::{Config, Envelope, Kind, Measure},
    graph::action::{
        ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Proposal, Reader, Recovery,
        Refusal, Scope,
    },
    reply::{Card, Fact, Part, Reply, Text},
    understanding::{
        lexicon::{Name, Names},
        phrases::{Phrases, Vocabulary},
    },
};
use countersign_sandbox::{
    model::SandboxModel,
    slack::{self, Command as SlackCommand},
};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::scripted::{self, finish};
use crate::support::{
    bot::{Setup, TestBot},
    short::in_short,
};

/// The documents, by name; whether each is archived.
type Shelf = Arc<Mutex<Vec<(String, bool)>>>;

struct Documents(Shelf);

/// What envelopes can limit: how many copies go along.
const MEASURES: &[Measure] = &[Measure {
    name: "copies",
    kind: Kind::Between {
        least: None,
        most: "most_copies",
        range: (0.0, 100.0),
        tolerance: 0.0,
        value: ("", " copies"),
        unit: "",
        plural: "copies",
    },
}];

#[async_trait]
impl Capability for Documents {
    fn info(&self) -> CapabilityInfo {
        CapabilityInfo {
            phrases: Some(&OfDocuments),
            instructions: "# Documents\n\nA document has a name; an archived one stays readable.",
            command: {
                const WORDS: &[Word] =
                    &[Word { word: "list", takes: Takes::Nothing, what: "all documents", example: "list" }];
                Some(Command { name: "/documents", words: WORDS })
            },
            measures: MEASURES,
            ..CapabilityInfo::new("documents", "Documents: look them up, archive them.")
        }
    }

    fn names(&self) -> Arc<Names> {
        let name = |(name, _): &(String, bool)| Name {
            kind: "document".to_owned(),
            name: name.clone(),
            id: None,
            owner: self.info().name.to_owned(),
            subject: true,
        };
        Arc::new(Names::new(self.0.lock().unwrap().iter().map(name)))
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        ["list_documents", "show_document", "count_documents"]
            .map(|name| Arc::new(Reads(name, self.0.clone())) as Arc<dyn Tool>)
            .into()
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        vec![Arc::new(Archive(self.0.clone()))]
    }

    fn families(&self) -> Vec<Family> {
        let family = Family::new("documents", "documents: which there are, archiving them").often();
        vec![family.tools(["list_documents", "show_document", "count_documents"]).actions(["archive_document"])]
    }

    fn subject(&self, parameters: &Value, _: &Value) -> Option<String> {
        parameters["document"].as_str().map(str::to_owned)
    }

    async fn answer(&self, _: &str, _: &str, _: &Facts, _: &Reader) -> Reply {
        listed(&self.0)
    }

    async fn home(&self, _: &Facts) -> Option<Reply> {
        let count = self.0.lock().unwrap().len();
        Some(
            Reply::default()
                .and(Part::Heading("Documents".to_owned()))
                .and(Part::Text(format!("{count} in all.").into())),
        )
    }
}

/// What can be said of documents without a language model.
struct OfDocuments;

impl Phrases for OfDocuments {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            lines: "read list_documents
    (list|show|what|which) [all] documents [there|do we have]
read count_documents
    how many documents [there|do we have]
read show_document
    (show|open|read) <document:thing>
change archive_document
    (archive|file|put away) <document:thing> [with <copies:number> copies]",
            help: "*Documents*\n• “list documents”, “archive Study Plan”",
            ..Vocabulary::new(&["document", "documents"])
        }
    }
}

fn listed(shelf: &Shelf) -> Reply {
    let line =
        |(name, archived): &(String, bool)| Text::new().bold(name).plain(if *archived { ", archived" } else { "" });
    Reply::text("Documents:").and(Part::List(shelf.lock().unwrap().iter().map(line).collect()))
}

struct Reads(&'static str, Shelf);

#[async_trait]
impl Tool for Reads {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(self.0, "Reads documents.")
    }

    fn schema(&self) -> Value {
        json!({ "type": "object", "properties": { "document": { "type": "string" } }, "additionalProperties": false })
    }

    async fn call(&self, _: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        Ok(json!({ "documents": *self.1.lock().unwrap() }))
    }

    fn present(&self, _: &Value, _: &Value) -> Option<Reply> {
        Some(listed(&self.1))
    }
}

struct Archive(Shelf);

#[async_trait]
impl ActionKind for Archive {
    fn info(&self) -> ActionInfo {
        ActionInfo::new("archive_document", "Archives a document.")
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": { "document": { "type": "string" }, "copies": { "type": "integer" } },
            "additionalProperties": false,
        })
    }

    async fn prepare(&self, parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let name = parameters["document"].as_str().unwrap_or_default().to_owned();
        let copies = parameters["copies"].as_u64().unwrap_or_default();
        if !self.0.lock().unwrap().iter().any(|(known, _)| *known == name) {
            let reply = Reply::text(format!("There is no document “{name}”."));
            return Err(Refusal::Refused { error: ErrorKind::NotFound, reply }.into());
        }
        let fact = |label: &str, after: String| Fact { label: label.to_owned(), before: None, after: after.into() };
        Ok(Proposal {
            parameters: json!({ "document": name, "copies": copies }),
            preconditions: json!({}),
            card: Card {
                title: format!("Archive “{name}”?"),
                facts: vec![fact("Copies", copies.to_string())],
                approve: "Archive it".to_owned(),
                reject: "Leave it".to_owned(),
                done: format!("Archived “{name}”."),
                ..Card::default()
            },
            undo: None,
            scope: Scope::of(format!("document:{name}")).of_subject(name).measure("copies", copies),
        })
    }

    async fn preconditions(&self, _: &ActionRecord) -> Result<Value, Outcome> {
        Ok(json!({}))
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let name = record.parameters["document"].as_str().unwrap_or_default();
        self.0.lock().unwrap().iter_mut().filter(|(known, _)| known == name).for_each(|(_, archived)| *archived = true);
        Performed::Ended(Outcome::done(record, json!({})))
    }

    fn recovery(&self) -> Recovery {
        Recovery::Idempotent
    }
}

/// A bot with experiments and documents, with a scripted model, and with an envelope for one document.
async fn bot() -> (TestBot, SandboxModel, Shelf) {
    let model = SandboxModel::start(0).await.unwrap();
    let ask = scripted::asking(&model);
    let shelf: Shelf = Arc::new(Mutex::new(vec![("Study Plan".to_owned(), false), ("Consent Form".to_owned(), false)]));
    let settings = Box::new(move |config: &mut Config| {
        ask(config);
        config.approvals.measures = &[MEASURES];
        let pilot = Envelope {
            subjects: vec!["Consent Form".to_owned()],
            limits: [("most_copies".to_owned(), json!(2))].into(),
            ..Envelope::default()
        };
        config.approvals.envelopes.insert("pilot".to_owned(), pilot);
    });
    let mut commands = slack::Options::default().commands;
    commands.push(SlackCommand::new("/documents", "Documents", "list"));
    let slack = slack::Options { commands, ..slack::Options::default() };
    let more: Vec<Arc<dyn Capability>> = vec![Arc::new(Documents(shelf.clone()))];
    (TestBot::with(Setup { slack, settings, more, ..Setup::default() }).await, model, shelf)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_domain_needs_one_file() {
    let (bot, model, shelf) = bot().await;

    assert_snapshot!(in_short(&bot.user("ana").types("/documents list").await), @"
    Documents:
    • *Study Plan*
    • *Consent Form*
    ");
    assert_snapshot!(in_short(&bot.user("ana").types("/documents lst").await), @"
    I don't know `/documents lst`. Did you mean `/documents list`?
    For example: `/documents list`
    ");
    let home = bot.user("ana").opens_home().await;
    assert!(home.contains("Documents") && home.contains("2 in all."), "{home}");

    model.will_call("propose_archive_document", json!({ "document": "Study Plan" }));
    let mut thread = bot.user("ana").says("please put the Study Plan away").await;
    assert_snapshot!(thread.in_short(), @"
    *Archive “Study Plan”?*
    *Copies*  0
    ‹ana asks, anyone may decide› [Archive it] [Leave it] [Show all]
    ");
    assert_snapshot!(thread.outcome("bo", "Archive it").await, @"
    ✅ *Archived “Study Plan”.*
    Approved by @bo · ‹time›
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana Archived “Study Plan”. Approved by bo. What next?
    ");
    assert!(shelf.lock().unwrap()[0].1 && !shelf.lock().unwrap()[1].1);

    // In the same thread, something of the other domain.
    model.will_call("propose_update_experiment_status", json!({ "experiment": "Math Hints", "status": "enrolling" }));
    thread.says("ana", "and could we get math hints going?").await;
    thread.clicks("bo", "Start experiment").await;
    assert!(thread.heard().contains("Started “Math Hints”"));

    // What is outside of its envelope needs two others.
    model.will_call("propose_archive_document", json!({ "document": "Consent Form", "copies": 5 }));
    thread.says("ana", "archive the Consent Form with 5 copies").await;
    let heard = thread.heard();
    assert!(heard.contains("outside the envelope pilot: 5 copies, at most 2"), "{heard}");
    assert!(!shelf.lock().unwrap()[1].1);
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_domain_is_understood_by_its_phrases() {
    let documents = ["Study Plan", "Math Hints"].map(|name| (name.to_owned(), false));
    let shelf: Shelf = Arc::new(Mutex::new(documents.into()));
    let more: Vec<Arc<dyn Capability>> = vec![Arc::new(Documents(shelf.clone()))];
    let settings = Box::new(|config: &mut Config| config.approvals.measures = &[MEASURES]);
    let bot = TestBot::with(Setup { settings, more, ..Setup::default() }).await;

    let mut thread = bot.user("ana").says("what documents are there?").await;
    assert_snapshot!(thread.in_short(), @"
    Documents:
    • *Study Plan*
    • *Math Hints*
    ");
    assert_snapshot!(thread.answer("ana", "please archive Study Plan with 2 copies").await, @"
    *Archive “Study Plan”?*
    *Copies*  2
    ‹ana asks, anyone may decide› [Archive it] [Leave it] [Show all]
    ");
    thread.clicks("bo", "Archive it").await;
    assert!(thread.heard().contains("Archived “Study Plan”"));

    // “It” is the document; the experiments that are there as well are not asked about.
    assert_snapshot!(thread.answer("ana", "archive it").await, @"
    *Archive “Study Plan”?*
    *Copies*  0
    ‹ana asks, anyone may decide› [Archive it] [Leave it] [Show all]
    ");

    // In the same thread, something of the other domain.
    thread.says("ana", "start Running Test").await;
    assert!(thread.heard().contains("Running Test"), "it is an experiment");

    // Both domains have a thing of this name.
    let mut thread = bot.user("ana").says("archive Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    Which of these do you mean?
    [archive the experiment “Math Hints”] [archive the document “Math Hints”]
    ");
    assert_snapshot!(thread.outcome("ana", "archive the document “Math Hints”").await, @"
    @ana chose *archive the document “Math Hints”*.
    ---
    *Archive “Math Hints”?*
    *Copies*  0
    ‹ana asks, anyone may decide› [Archive it] [Leave it] [Show all]
    ");
    thread.clicks("bo", "Archive it").await;
    assert!(shelf.lock().unwrap().iter().all(|(_, archived)| *archived));
}
