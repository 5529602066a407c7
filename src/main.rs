//! The command line: reads flags and settings, runs one thing, and says clearly what is wrong.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, parser::ValueSource};
use countersign::{
    app::{
        self, Bot, check, evaluate,
        mail::report,
        notebook,
        stdout::{describe_error, write_line},
        telemetry,
    },
    clock::SystemClock,
    config::{Config, LogFormat, Problems, SlackMode, environment},
    conversation::record::trace::Traces,
    ids::ThreadId,
};
use tokio_util::sync::CancellationToken;

/// The allocator. Most of a step is JSON made and thrown away on several threads; the system's allocator makes them
/// queue.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code for wrong settings or a failed check, which the operator has to mend.
const EXIT_SETTINGS: u8 = 2;

/// The time the process may take to end after the bot has drained.
const LAST_MOMENTS: Duration = Duration::from_secs(3);

/// A Slack bot that makes the changes a team asks for, and none without a countersignature.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// A file with settings that differ from config/default.toml. The playground keeps its own workspace, platform and store, and takes
    /// everything else from it, such as who can decide.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    playground: app::playground::Options,
}

#[derive(Subcommand)]
enum Command {
    /// Opens a page that looks and works like a Slack workspace with the bot in it. The default.
    Playground(app::playground::Options),
    /// Runs the bot in a real workspace.
    Serve,
    /// Checks Slack, the store, the model and the platform once, and reports their status.
    Check,
    /// Shows the tools that the tool servers in the settings offer, and what changed since they were accepted.
    Accept {
        /// Accept the tools as they are now, effective at the next start.
        #[arg(long)]
        keep: bool,
    },
    /// Runs a set of utterances through the model, and prints each mismatch and a score.
    Evaluate {
        /// The utterances and what should be understood, as JSON. Left out: those that come with the program.
        #[arg(value_name = "FILE")]
        cases: Option<PathBuf>,
    },
    /// Runs only the stand-ins for Slack and the platforms, to try `serve` against.
    Sandbox(app::sandbox::Options),
    /// Writes what happened in a thread (TEAM/CHANNEL/TS) as a lab notebook: Markdown to read, JSON lines to check.
    /// `trace` lists the threads.
    Notebook {
        /// The thread.
        thread: ThreadId,
        /// The folder for the files.
        #[arg(long, default_value = ".", value_name = "FOLDER")]
        out: PathBuf,
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
    /// Lists the threads, or tells what happened in one (TEAM/CHANNEL/TS), as JSON.
    Trace {
        /// The thread; without it, all threads are listed.
        thread: Option<ThreadId>,
    },
}

fn main() -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().ok(); // every https client of the process uses it
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(wrong) => wrong.exit(),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("cannot start: {error}")),
    };
    let ended = runtime.block_on(run(arguments));
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

/// Returns the arguments as typed, if all are for the command that was named: none is ignored silently.
fn arguments() -> Result<Arguments, clap::Error> {
    let matches = Arguments::command().get_matches();
    let arguments = Arguments::from_arg_matches(&matches)?;
    let wrong = |what: String| Err(Arguments::command().error(clap::error::ErrorKind::ArgumentConflict, what));
    let typed = |flag: &&str| matches.value_source(flag) == Some(ValueSource::CommandLine);
    let before = ["port", "data", "reset"].into_iter().find(typed);
    if let (Some(flag), Some(command)) = (before, matches.subcommand_name()) {
        return wrong(match command {
            "playground" => format!("--{flag} goes after the command: countersign playground --{flag} …"),
            command => format!("--{flag} works only with the playground, not with `{command}`"),
        });
    }
    match (&arguments.config, matches.subcommand_name().unwrap_or("playground")) {
        (Some(_), command @ ("sandbox" | "audit")) => {
            wrong(format!("`{command}` doesn't take --config: it reads no settings file"))
        }
        _ => Ok(arguments),
    }
}

async fn run(arguments: Arguments) -> ExitCode {
    let environment = environment();
    let counting = std::thread::spawn(telemetry::count);
    match arguments.command.unwrap_or(Command::Playground(arguments.playground)) {
        Command::Playground(options) => {
            telemetry::log("warn", LogFormat::Text);
            match Config::load(arguments.config.as_deref(), &environment, &countersign::app::installed::SETTINGS) {
                Ok(config) => finish(app::playground::run(options, config, signalled()).await),
                Err(problems) => settings_are_wrong(&problems.to_string()),
            }
        }
        Command::Sandbox(options) => {
            telemetry::log("warn", LogFormat::Text);
            finish(app::sandbox::run(options, signalled()).await)
        }
        Command::Audit { what: notebook::Audit::Verify { file, last, key } } => finish(
            notebook::verify(&file, last.as_deref(), key.as_deref())
                .and_then(|lines| Ok(write_line(lines.join("\n"))?)),
        ),
        command => {
            let config =
                match Config::read(arguments.config.as_deref(), &environment, &countersign::app::installed::SETTINGS) {
                    (Some(config), problems) if problems.0.is_empty() => config,
                    (config, Problems(problems)) => {
                        let mut wrong: Vec<_> = problems.iter().map(ToString::to_string).collect();
                        if let (Some(config), Command::Serve | Command::Check) = (&config, &command) {
                            let told = |line: &String| problems.iter().any(|problem| line.contains(&problem.key));
                            wrong.extend(check::settings(config).into_iter().filter(|line| !told(line)));
                        }
                        return settings_are_wrong(&wrong.join("\n"));
                    }
                };
            match command {
                Command::Serve => match check::settings(&config) {
                    wrong if wrong.is_empty() => finish(serve(config, counting).await),
                    wrong => settings_are_wrong(&wrong.join("\n")),
                },
                Command::Check => report(&check::run(&config).await),
                Command::Accept { keep } => report(&check::accept(&config, keep, &|line| eprintln!("{line}")).await),
                Command::Evaluate { cases } => finish(evaluate(&config, cases.as_deref()).await),
                Command::Trace { thread } => finish(trace(&config, thread).await),
                Command::Mail { what: report::Command::Report } => finish(mail_report(&config).await),
                Command::Notebook { thread, out } => finish(export(&config, &thread, &out).await),
                Command::Playground(_) | Command::Sandbox(_) | Command::Audit { .. } => unreachable!("handled above"),
            }
        }
    }
}

async fn serve(config: Config, counting: JoinHandle<()>) -> anyhow::Result<()> {
    telemetry::log(&config.server.log, config.server.log_format);
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

async fn evaluate(config: &Config, cases: Option<&Path>) -> anyhow::Result<()> {
    telemetry::log("error", LogFormat::Text);
    let score = evaluate::run(config, &evaluate::cases(cases)?).await?;
    Ok(write_line(score)?)
}

async fn mail_report(config: &Config) -> anyhow::Result<()> {
    Ok(write_line(report::report(config).await?)?)
}

async fn export(config: &Config, thread: &ThreadId, folder: &Path) -> anyhow::Result<()> {
    let written = notebook::export(config, thread, folder).await?;
    Ok(write_line(written.join("\n"))?)
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

fn report(lines: &[check::CheckLine]) -> ExitCode {
    for check::CheckLine { what, result } in lines {
        let said = match result {
            Ok(how) => write_line(format_args!("ok    {what:<8} {how}")),
            Err(wrong) => write_line(format_args!("wrong {what:<8} {wrong}")),
        };
        if let Err(error) = said {
            return fail(&format!("cannot determine its status: {error}"));
        }
    }
    if lines.iter().all(|line| line.result.is_ok()) { ExitCode::SUCCESS } else { ExitCode::from(EXIT_SETTINGS) }
}

/// Returns a token that is cancelled at the first SIGTERM or Ctrl-C.
fn signalled() -> CancellationToken {
    let stop = CancellationToken::new();
    let token = stop.clone();
    // Before anything else is begun: a signal that comes early is to be heard as well.
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .expect("a process may listen for its signals");
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        token.cancel();
    });
    stop
}

fn finish(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&describe_error(&error)),
    }
}

fn settings_are_wrong(problems: &str) -> ExitCode {
    eprintln!("The settings are invalid:");
    for problem in problems.lines() {
        eprintln!("  {problem}");
    }
    eprintln!("Every setting is explained in config/default.toml.");
    ExitCode::from(EXIT_SETTINGS)
}

fn fail(what: &str) -> ExitCode {
    eprintln!("countersign: {what}");
    ExitCode::FAILURE
}
