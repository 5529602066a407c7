//! A second domain in one file: documents that can be looked up and archived. What it brings is all that anybody knows of it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use countersign::{
    capabilities::{
        Capability, CapabilityInfo, Command, Takes, Things, Tool, ToolInfo, Word,
        facts::Facts,
        parameters::refused,
        rows::{Change, Read},
    },
    config::{Config, Envelope, Kind, Measure},
    graph::action::{ActionInfo, ActionKind, ErrorKind, Outcome, Performed, Proposal, Reader, Scope},
    reply::{Card, Fact, Part, Reply, Text},
    understanding::{
        lexicon::{Name, Names},
        phrases::Vocabulary,
    },
};
use countersign_sandbox::{
    model::SandboxModel,
    slack::{self, Command as SlackCommand},
};
use insta::assert_snapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
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
            phrases: Some(&PHRASES),
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

    fn things(&self) -> Option<&dyn Things> {
        Some(self)
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        ["list_documents", "show_document", "count_documents"].map(|name| reads(name, self.0.clone())).into()
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        vec![archive(self.0.clone())]
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

#[async_trait]
impl Things for Documents {
    fn names(&self) -> Arc<Names> {
        let name = |(name, _): &(String, bool)| Name {
            kind: "document".to_owned(),
            name: name.clone(),
            id: None,
            owner: "documents".to_owned(),
            subject: true,
        };
        Arc::new(Names::new(self.0.lock().unwrap().iter().map(name)))
    }
}

/// What can be said of documents without a language model.
const PHRASES: Vocabulary = Vocabulary {
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
};

fn listed(shelf: &Shelf) -> Reply {
    let line =
        |(name, archived): &(String, bool)| Text::new().bold(name).plain(if *archived { ", archived" } else { "" });
    Reply::text("Documents:").and(Part::List(shelf.lock().unwrap().iter().map(line).collect()))
}

/// The parameters of the tools and of the action.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Asked {
    #[serde(default)]
    document: String,
    #[serde(default)]
    copies: u32,
}

fn reads(name: &'static str, shelf: Shelf) -> Arc<dyn Tool> {
    Arc::new(Read {
        present: |shelf, _, _| Some(listed(shelf)),
        ..Read::new(shelf, ToolInfo::new(name, "Reads documents."), |shelf: &Shelf, _: Asked, _| {
            Box::pin(async { Ok(json!({ "documents": *shelf.lock().unwrap() })) })
        })
    })
}

fn archive(shelf: Shelf) -> Arc<dyn ActionKind> {
    Arc::new(Change::new(
        shelf,
        ActionInfo::new("archive_document", "Archives a document."),
        |row: &Change<Shelf, Asked, Asked>, asked, _| {
            Box::pin(async {
                let name = asked.document.clone();
                if !row.deps.lock().unwrap().iter().any(|(known, _)| *known == name) {
                    return Err(refused(ErrorKind::NotFound, Reply::text(format!("There is no document “{name}”."))));
                }
                let card = Card {
                    facts: vec![Fact::new("Copies", asked.copies.to_string())],
                    reject: "Leave it".to_owned(),
                    ..Card::new(format!("Archive “{name}”?"), "Archive it", format!("Archived “{name}”."))
                };
                let scope = Scope::of(format!("document:{name}")).of_subject(name).measure("copies", asked.copies);
                Ok(Proposal { scope, ..Proposal::new(asked, card) })
            })
        },
        |row, Asked { document, .. }, record| {
            Box::pin(async move {
                let mut shelf = row.deps.lock().unwrap();
                shelf.iter_mut().filter(|(known, _)| *known == document).for_each(|(_, archived)| *archived = true);
                Performed::Ended(Outcome::done(record, json!({})))
            })
        },
    ))
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
