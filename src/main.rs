//! The command line: reads flags and settings, runs one thing, and says clearly what is wrong.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use clap::{
    CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};
use countersign::{
    api::client,
    app::{
        self, Bot, backup, check, fork, golden,
        installed::SETTINGS,
        mail::report,
        notebook,
        program::{self, EXIT_SETTINGS, settings_are_wrong, signalled},
        spans::Export,
        stdout::write_line,
        telemetry,
    },
    clock::SystemClock,
    config::{Config, Problems, SlackMode, StoreKind, environment},
    conversation::record::trace::Traces,
    ids::ThreadId,
};
use tokio_util::sync::CancellationToken;

/// The allocator. Most of a step is JSON made and thrown away on several threads; the system's allocator makes them
/// queue.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The name of this program.
const NAME: &str = "countersign";

/// The time the process may take to end after the bot has drained.
const LAST_MOMENTS: Duration = Duration::from_secs(3);

/// A Slack bot that makes the changes a team asks for, and none without a countersignature.
#[derive(Parser)]
#[command(version, about, after_help = TRY_IT_OUT)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// A file with settings that differ from config/default.toml.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The last line of the help.
const TRY_IT_OUT: &str =
    "To try the bot without a workspace, run `countersign-playground`: it opens one in the browser.";

/// The commands of the playground, with what runs each of them.
const OF_THE_PLAYGROUND: [(&str, &str); 3] = [
    ("playground", "countersign-playground"),
    ("sandbox", "countersign-playground sandbox"),
    ("evaluate", "countersign-playground evaluate"),
];

#[derive(Subcommand)]
enum Command {
    /// Runs the bot in a real workspace.
    Serve,
    /// Checks Slack, the store, the model and the platform once, and reports their status.
    Check {
        /// Check only the settings, the store, the keys and the clock, without the network.
        #[arg(long)]
        offline: bool,
        /// Report as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Copies the SQLite store to a new file, also while the bot runs. The digest key is not in it.
    Backup {
        /// The file to write.
        file: PathBuf,
    },
    /// Checks a backup, and puts it in the place of the store.
    Restore {
        /// The backup.
        file: PathBuf,
        /// Only check it.
        #[arg(long, conflicts_with = "replace")]
        verify: bool,
        /// Keep a store that is there beside the restored one, under a name with the time.
        #[arg(long)]
        replace: bool,
    },
    /// Shows the tools that the tool servers in the settings offer, and what changed since they were accepted.
    Accept {
        /// Accept the tools as they are now, effective at the next start.
        #[arg(long)]
        keep: bool,
    },
    /// Writes what happened in a thread (TEAM/CHANNEL/TS) as a lab notebook: Markdown to read, JSON lines to check.
    /// `trace` lists the threads.
    Notebook {
        /// The thread.
        thread: ThreadId,
        /// The folder for the files.
        #[arg(long, default_value = ".", value_name = "FOLDER")]
        out: PathBuf,
    },
    /// Writes a thread (TEAM/CHANNEL/TS) as a case for `countersign-playground evaluate`, without what names people: its messages,
    /// and what its last turn looked up or proposed.
    Golden {
        /// The thread.
        thread: ThreadId,
        /// A name to be replaced, such as by one that the stand-ins know: "Spring Pilot=Math Hints".
        #[arg(long, value_name = "NAME=OTHER")]
        rename: Vec<golden::Renaming>,
    },
    /// Replays a thread (TEAM/CHANNEL/TS) as a copy from one of its steps on, as JSON: tools give the answers that they gave
    /// in the thread, changes are refused, and nothing outside is reached.
    Fork {
        /// The thread.
        thread: ThreadId,
        /// The step, as `trace` numbers them (`version`). Without it, the last one.
        #[arg(long, value_name = "STEP")]
        at: Option<u64>,
        /// A message to say in the copy; may be repeated.
        #[arg(long, value_name = "WORDS")]
        say: Vec<String>,
    },
    /// Shows email statistics.
    Mail {
        #[command(subcommand)]
        what: report::Command,
    },
    /// Checks exported records.
    Audit {
        #[command(subcommand)]
        what: notebook::Audit,
    },
    /// Asks for an approval over the API, waits, and claims it; for jobs and scripts.
    Request(Box<client::RequestArgs>),
    /// Reports over the API how a claimed change went.
    Report(client::ReportArgs),
    /// Offers the API as tools to an agent, over MCP on standard input and output.
    Mcp(client::Connection),
    /// Answers a hook of a coding agent that asks whether a tool may be used, on standard input and output.
    Hook(client::HookArgs),
    /// Checks the tokens of the API.
    Token {
        #[command(subcommand)]
        what: client::TokenCommand,
    },
    /// Makes the keys of programs, and shows what to put into the settings.
    Key {
        #[command(subcommand)]
        what: client::key::KeyCommand,
    },
    /// Lists the threads, or tells what happened in one (TEAM/CHANNEL/TS), as JSON.
    Trace {
        /// The thread; without it, all threads are listed.
        thread: Option<ThreadId>,
    },
}

fn main() -> ExitCode {
    match arguments() {
        Ok(arguments) => program::run(NAME, run(arguments)),
        Err(wrong) => wrong.exit(),
    }
}

/// Returns the arguments as typed, if all are for the command that was named: none is ignored silently.
fn arguments() -> Result<Arguments, clap::Error> {
    let wrong = |kind, what: String| Arguments::command().error(kind, what);
    let matches = Arguments::command().try_get_matches().map_err(|error| match of_the_playground(&error) {
        Some((command, run)) => {
            wrong(ErrorKind::InvalidSubcommand, format!("`{command}` is done by another program; run `{run}` instead"))
        }
        None => error,
    })?;
    let arguments = Arguments::from_arg_matches(&matches)?;
    match (&arguments.config, &arguments.command) {
        (
            Some(_),
            Command::Request(_) | Command::Report(_) | Command::Mcp(_) | Command::Hook(_) | Command::Token { .. },
        ) => Err(wrong(
            ErrorKind::ArgumentConflict,
            "this command doesn't take --config: it uses the API of a bot that runs elsewhere".to_owned(),
        )),
        (Some(_), Command::Audit { .. }) => Err(wrong(
            ErrorKind::ArgumentConflict,
            "`audit` doesn't take --config: it reads no settings file".to_owned(),
        )),
        _ => Ok(arguments),
    }
}

/// Returns the command of the playground that was typed here, if this is the error.
fn of_the_playground(error: &clap::Error) -> Option<(&'static str, &'static str)> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    OF_THE_PLAYGROUND.into_iter().find(|(command, _)| command == typed)
}

async fn run(arguments: Arguments) -> ExitCode {
    let Arguments { command, config } = arguments;
    let counting = std::thread::spawn(telemetry::count);
    if let Command::Audit { what: notebook::Audit::Verify { file, last, key } } = command {
        let verified = notebook::verify(&file, last.as_deref(), key.as_deref());
        return finish(say(verified));
    }
    let command = match command {
        Command::Request(arguments) => return code(client::request(*arguments, &environment()).await),
        Command::Report(arguments) => return code(client::report(arguments, &environment()).await),
        Command::Mcp(connection) => return code(client::mcp(connection, &environment()).await),
        Command::Hook(arguments) => return code(client::hook(arguments, &environment()).await),
        Command::Token { what } => return code(client::token(what, &environment()).await),
        command => command,
    };
    let config = match Config::read(config.as_deref(), &environment(), &SETTINGS) {
        (Some(config), problems) if problems.0.is_empty() => config,
        (config, Problems(problems)) => {
            let mut wrong: Vec<_> = problems.iter().map(ToString::to_string).collect();
            if let (Some(config), Command::Serve | Command::Check { .. }) = (&config, &command) {
                let told = |line: &String| problems.iter().any(|problem| line.contains(&problem.key));
                wrong.extend(check::settings(config).into_iter().filter(|line| !told(line)));
            }
            if let Command::Check { json: true, .. } = command {
                return report(&[check::of_settings(&wrong)], true);
            }
            return settings_are_wrong(&wrong.join("\n"));
        }
    };
    match command {
        Command::Serve => match check::settings(&config) {
            wrong if wrong.is_empty() => finish(serve(config, counting).await),
            wrong => settings_are_wrong(&wrong.join("\n")),
        },
        Command::Check { offline: true, json } => report(&check::offline(&config).await, json),
        Command::Check { offline: false, json } => report(&check::run(&config).await, json),
        Command::Accept { keep } => report(&check::accept(&config, keep, &|line| eprintln!("{line}")).await, false),
        Command::Backup { .. } | Command::Restore { .. } if config.store_kind() == StoreKind::Redis => {
            eprintln!("{}", backup::WITH_REDIS);
            ExitCode::from(EXIT_SETTINGS)
        }
        Command::Backup { file } => finish(say(backup::back_up(&config, &file))),
        Command::Restore { file, verify, replace } => {
            finish(say(backup::restore(&config, &file, verify, replace).await))
        }
        Command::Trace { thread } => finish(trace(&config, thread).await),
        Command::Mail { what: report::Command::Report } => finish(mail_report(&config).await),
        Command::Golden { thread, rename } => finish(write_case(&config, &thread, &rename).await),
        Command::Fork { thread, at, say } => finish(replay(&config, &thread, at, &say).await),
        Command::Notebook { thread, out } => finish(export(&config, &thread, &out).await),
        Command::Key { what } => finish(keys(&what, &config)),
        Command::Audit { .. }
        | Command::Request(_)
        | Command::Report(_)
        | Command::Mcp(_)
        | Command::Hook(_)
        | Command::Token { .. } => unreachable!("handled above"),
    }
}

/// Returns the exit code of a command that uses the API.
fn code(end: client::End) -> ExitCode {
    ExitCode::from(end as u8)
}

/// Makes or lists the keys of programs.
fn keys(command: &client::key::KeyCommand, config: &Config) -> anyhow::Result<()> {
    let printed = client::key::run(command, config.sections.get()).map_err(anyhow::Error::msg)?;
    for line in printed.told {
        eprintln!("{line}");
    }
    printed.out.iter().try_for_each(write_line)?;
    Ok(())
}

async fn serve(config: Config, counting: JoinHandle<()>) -> anyhow::Result<()> {
    let export = Export::start(&config.telemetry)?;
    telemetry::log(&config.server.log, config.server.log_format, export.as_ref());
    let ended = run_bot(config, counting).await;
    if let Some(export) = export {
        export.finish().await;
    }
    ended
}

async fn run_bot(config: Config, counting: JoinHandle<()>) -> anyhow::Result<()> {
    let stop = signalled();
    end_at_last(stop.clone(), config.workers.drain + LAST_MOMENTS);
    let bot = tokio::select! {
        bot = Bot::start(&config, Arc::new(SystemClock), stop.clone()) => bot?,
        () = stop.cancelled() => return Ok(()),
    };
    if config.slack_mode() == SlackMode::Socket {
        // The number of connections is recorded only when it changes. A panic is logged, and only metrics are missing then.
        tokio::task::spawn_blocking(|| counting.join()).await?.ok();
    }
    tracing::info!(address = %bot.address()?, "Listening");
    bot.run(stop).await
}

/// Ends the process once `after` has passed since `stop`, if it still runs: a disk that hangs, or a thread that never
/// comes back, would hold it for ever. What is stored is whole at every moment.
fn end_at_last(stop: CancellationToken, after: Duration) {
    tokio::spawn(async move {
        stop.cancelled().await;
        std::thread::spawn(move || {
            std::thread::sleep(after);
            eprintln!("countersign: it didn't shut down within {} s, so it was terminated", after.as_secs());
            std::process::exit(1);
        });
    });
}

async fn mail_report(config: &Config) -> anyhow::Result<()> {
    Ok(write_line(report::report(config).await?)?)
}

async fn export(config: &Config, thread: &ThreadId, folder: &Path) -> anyhow::Result<()> {
    say(notebook::export(config, thread, folder).await)
}

async fn write_case(config: &Config, thread: &ThreadId, renamed: &[golden::Renaming]) -> anyhow::Result<()> {
    let case = golden::write(config, thread, renamed).await?;
    Ok(write_line(format_args!("{case:#}"))?)
}

async fn replay(config: &Config, thread: &ThreadId, at: Option<u64>, say: &[String]) -> anyhow::Result<()> {
    let report = fork::run(config, thread, at, say).await?;
    Ok(write_line(format_args!("{report:#}"))?)
}

async fn trace(config: &Config, thread: Option<ThreadId>) -> anyhow::Result<()> {
    let traces = Traces::new(app::dependencies::store_to_read(config, Arc::new(SystemClock)).await?);
    let told = match thread {
        None => traces.threads().await?,
        Some(thread) => {
            traces.trace(&thread).await?.ok_or_else(|| anyhow::anyhow!("there is no thread {thread} in this store"))?
        }
    };
    Ok(write_line(format_args!("{told:#}"))?)
}

fn report(lines: &[check::CheckLine], json: bool) -> ExitCode {
    let said = match json {
        true => write_line(format_args!("{:#}", check::report(lines))),
        false => lines.iter().try_for_each(write_line),
    };
    if let Err(error) = said {
        return program::fail(NAME, &format!("cannot determine its status: {error}"));
    }
    if lines.iter().all(|line| line.result.is_ok()) { ExitCode::SUCCESS } else { ExitCode::from(EXIT_SETTINGS) }
}

/// Writes lines to standard output.
fn say(lines: anyhow::Result<Vec<String>>) -> anyhow::Result<()> {
    Ok(write_line(lines?.join("\n"))?)
}

fn finish(result: anyhow::Result<()>) -> ExitCode {
    program::finish(NAME, result)
}
