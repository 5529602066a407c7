//! Starting and stopping, shared by the bot and the playground.

use std::{process::ExitCode, time::Duration};

use tokio_util::sync::CancellationToken;

use super::stdout::describe_error;

/// The exit code for wrong settings or a failed check, which the operator has to mend.
pub const EXIT_SETTINGS: u8 = 2;

/// Runs the program of this name to its end.
pub fn run(name: &str, program: impl Future<Output = ExitCode>) -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().ok(); // every https client of the process uses it
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(name, &format!("cannot start: {error}")),
    };
    let ended = runtime.block_on(program);
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

/// Returns a token that is cancelled at the first SIGTERM or Ctrl-C.
pub fn signalled() -> CancellationToken {
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

/// Returns the exit code for a result. An error is printed after the name of the program.
pub fn finish(name: &str, result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(name, &describe_error(&error)),
    }
}

/// Prints an error after the name of the program.
pub fn fail(name: &str, what: &str) -> ExitCode {
    eprintln!("{name}: {what}");
    ExitCode::FAILURE
}

/// Prints what is wrong with the settings.
pub fn settings_are_wrong(problems: &str) -> ExitCode {
    eprintln!("The settings are invalid:");
    for problem in problems.lines() {
        eprintln!("  {problem}");
    }
    eprintln!("Every setting is explained in config/default.toml.");
    ExitCode::from(EXIT_SETTINGS)
}
