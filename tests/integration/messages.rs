//! Every text that people read, on one page, so that all sentences can be read against each other:
//!
//! ```sh
//! cargo test --test integration -- --ignored --nocapture messages::every_message_on_one_page
//! ```
//!
//! The page groups the texts by source file, in the order of the file; placeholders are as written, and a line break is
//! `⏎`. A text that a file has twice is listed once.
//!
//! # The rule
//!
//! The collector reads the production sources below `src`, without tests, with a parser of Rust. A string literal is a text for people
//! if it contains a space and, outside its placeholders, a letter, or if it is a label: a word with a capital letter at
//! its beginning only, such as “Paused”. Doc comments are texts if `clap` shows them as help; of the other attributes,
//! only `#[error("…")]` is read. To these come the texts of the page and of Slack's manifests, in [`pages`].
//!
//! These are no texts for people:
//!
//! - what is compared and not said: patterns, operands of `==`, arguments of methods such as `starts_with`, and lists
//!   of words without a capital letter, a placeholder or a punctuation mark that ends a sentence, also if they are one
//!   text with `|` between them;
//! - what goes to a log, to a test of the program itself (`assert!`, `expect`), or to a database;
//! - what only a model reads: the functions named in [`collect::FOR_MODELS`];
//! - what belongs to the stand-ins, and the files in [`LEFT_OUT`].
//!
//! A few literals that pass by this rule are not sentences. They do no harm, and a rule without exceptions for single
//! lines stays short.

mod collect;
mod pages;

use std::{fmt::Write as _, fs, path::Path};

use crate::tidy::{for_tests_alone, production, sources};

/// Folders and files whose texts people do not read, with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("src/sandbox", "stand-ins: they speak as other systems do"),
    ("src/assistant/tools.rs", "descriptions for a model"),
    ("src/store/redis", "commands and scripts for a database"),
    ("src/store/sqlite", "statements for a database"),
    ("src/services/context/sqlite", "statements for a database"),
    ("src/services/context/postgres", "statements for a database"),
];

fn is_left_out(path: &Path) -> bool {
    LEFT_OUT.iter().any(|(folder, _)| path.starts_with(folder) || path == Path::new(&format!("{folder}.rs")))
}

/// Every text with the file it is from, as one page.
fn all_messages() -> String {
    let tests = for_tests_alone();
    let mut page = String::new();
    for path in sources() {
        if is_left_out(&path) || tests.iter().any(|test| path.starts_with(test)) {
            continue;
        }
        let text = production(&fs::read_to_string(&path).unwrap());
        let found =
            collect::texts(&text).unwrap_or_else(|error| panic!("{} cannot be parsed: {error}", path.display()));
        push_section(&mut page, &path, &found);
    }
    for (path, found) in pages::all() {
        push_section(&mut page, &path, &found);
    }
    page
}

fn push_section(page: &mut String, path: &Path, texts: &[String]) {
    if !texts.is_empty() {
        writeln!(page, "\n## {}\n", path.display()).unwrap();
        for text in texts {
            writeln!(page, "{}", text.replace("\r\n", "⏎").replace('\n', "⏎")).unwrap();
        }
    }
}

#[test]
#[ignore = "prints a page for whoever reads the sentences"]
fn every_message_on_one_page() {
    println!("{}", all_messages());
}

/// Texts of earlier versions that read as translated or as riddles. None may come back.
const NO_LONGER_SAID: &[&str] = &[
    "Its buttons decide",
    "not sure what you would like",
    "I do not understand",
    "All right, I let that go",
    "No experiment is like that",
    "Chance alone gives",
    "Chance moves each number",
    "Of the users,",
    "are enrolled and stay so",
    "who is enrolled by then stays so",
    "come to other experiments at the same point",
    "People on no list",
    "each person by themselves",
    "all of a group together",
    "draws the lots",
    "is on its way into it",
    "On the card, and now",
    "but the person who asked may decide",
    "nobody in this conversation may decide",
    "to settle.",
    "Starts by itself",
    "starts it by itself",
    "whoever runs me",
    "Whoever runs me",
    "How everything is",
    "become somebody else",
    "Write and press as",
    "Colours: as the system",
    "There is nothing I could put back",
    "I read this less than a minute ago",
    "I am on it and answer",
    "runs when you press",
    "does not enrol anybody",
    "say it in other words",
];

#[test]
fn sentences_that_were_replaced_do_not_come_back() {
    let page = all_messages();
    let found: Vec<_> = page.lines().filter(|line| NO_LONGER_SAID.iter().any(|old| line.contains(old))).collect();
    assert!(found.is_empty(), "these are said differently now (voice: plain, short, exact):\n{}", found.join("\n"));
}

#[test]
fn the_collector_finds_what_people_read_and_nothing_else() {
    let source = r#"
        /// The first line of the help.
        #[derive(Parser)]
        struct Cli {
            /// Starts the bot and
            /// keeps it running.
            #[arg(long, help = "a helping hand")]
            run: bool,
        }
        #[derive(thiserror::Error)]
        #[error("weights add up to {0}%")]
        struct Wrong(u8);
        fn description() -> &'static str { "only for a model" }
        fn label(status: Status) -> &'static str {
            match status {
                Status::Paused => "Paused",
                Status::Enrolling => "enrolling",
            }
        }
        fn answer(text: &str) -> String {
            tracing::info!("into the log only");
            if text == "not this one" || text.contains("nor this") || matches!(text, "nor that") {
                return format!("Hello, {name}. {}", if text.is_empty() { "Say more." } else { "{} {}" });
            }
            let typed = ["yes please", "go ahead"];
            let said = ["Do it.", "Try again"];
            let json = json!({ "text": "in a block" });
            text.parse().expect("never shown")
        }
    "#;
    let expected = [
        "The first line of the help.",
        "Starts the bot and keeps it running.",
        "a helping hand",
        "weights add up to {0}%",
        "Paused",
        "Hello, {name}. {}",
        "Say more.",
        "Do it.",
        "Try again",
        "in a block",
    ];
    assert_eq!(collect::texts(source).unwrap(), expected);
}
