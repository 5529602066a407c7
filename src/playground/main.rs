//! The command line of the playground: reads flags and settings, runs one thing, and says clearly what is wrong.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{
    Args, CommandFactory as _, Parser, Subcommand,
    error::{ContextKind, ErrorKind},
};
use countersign::{
    app::{
        installed::SETTINGS,
        program::{self, settings_are_wrong, signalled},
        spans::Export,
        stdout::write_line,
        telemetry,
    },
    config::{Config, LogFormat, environment},
};
use countersign_playground::{evaluate, sandbox, workspace};

/// The allocator, which is that of the bot.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The name of this program.
const NAME: &str = "countersign-playground";

/// Opens a page that looks and works like a Slack workspace with the bot in it.
#[derive(Parser)]
#[command(name = NAME, version, about, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    page: workspace::Options,
    #[command(flatten)]
    settings: Settings,
}

/// The settings of the bot.
#[derive(Args)]
struct Settings {
    /// A file with settings that differ from config/default.toml. The playground keeps its own workspace, platform and store, and takes
    /// everything else from it, such as who can decide.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Runs only the stand-ins for Slack and the platforms, to try `countersign serve` against.
    Sandbox(sandbox::Options),
    /// Runs a set of utterances through the model, and prints each mismatch and a score by category.
    Evaluate {
        /// The utterances and what should be understood, as JSON. Left out: those that come with the program.
        #[arg(value_name = "FILE")]
        cases: Option<PathBuf>,
        /// Compares two models: `rules` for the built-in phrases, or the name of a model, such as claude-haiku-4-5 or openai/gpt-4.1.
        #[arg(long, num_args = 2, value_names = ["A", "B"])]
        compare: Vec<String>,
        #[command(flatten)]
        settings: Settings,
    },
}

fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => program::run(NAME, run(arguments)),
        Err(wrong) => with_the_program_of(wrong).exit(),
    }
}

/// Returns the error. For a command that does not exist, it says which program has the commands for a real workspace.
fn with_the_program_of(wrong: clap::Error) -> clap::Error {
    match wrong.get(ContextKind::InvalidSubcommand) {
        Some(command) if wrong.kind() == ErrorKind::InvalidSubcommand => Arguments::command().error(
            ErrorKind::InvalidSubcommand,
            format!(
                "the playground has no command `{command}`; those for a real workspace are commands of `countersign`, such as \
                 `countersign check`"
            ),
        ),
        _ => wrong,
    }
}

async fn run(arguments: Arguments) -> ExitCode {
    match arguments.command {
        None => match arguments.settings.load() {
            Ok(config) => program::finish(NAME, show(arguments.page, config).await),
            Err(wrong) => wrong,
        },
        Some(Command::Sandbox(options)) => {
            telemetry::log("warn", LogFormat::Text, None);
            program::finish(NAME, sandbox::run(options, signalled()).await)
        }
        Some(Command::Evaluate { cases, compare, settings }) => {
            telemetry::log("error", LogFormat::Text, None);
            match settings.load() {
                Ok(config) => program::finish(NAME, score(&config, cases.as_deref(), &compare).await),
                Err(wrong) => wrong,
            }
        }
    }
}

/// Opens the workspace in the browser.
async fn show(page: workspace::Options, config: Config) -> anyhow::Result<()> {
    let export = Export::start(&config.telemetry)?;
    telemetry::log("warn", LogFormat::Text, export.as_ref());
    let ended = workspace::run(page, config, signalled()).await;
    if let Some(export) = export {
        export.finish().await;
    }
    ended
}

impl Settings {
    /// Reads the settings; reports what is wrong with them.
    fn load(&self) -> Result<Config, ExitCode> {
        Config::load(self.config.as_deref(), &environment(), &SETTINGS)
            .map_err(|problems| settings_are_wrong(&problems.to_string()))
    }
}

async fn score(config: &Config, cases: Option<&Path>, compare: &[String]) -> anyhow::Result<()> {
    let cases = evaluate::cases(cases)?;
    match compare {
        [one, other] => Ok(write_line(evaluate::compare(config, &cases, [one, other]).await?)?),
        _ => Ok(write_line(evaluate::run(config, &cases).await?)?),
    }
}
