//! Every parser that meets the outside, given millions of broken inputs: `cargo bench --bench parsers`.
//!
//! The cases are those of `tests/integration/parsers`, which runs the first thousands of them. Here the memory that a
//! case takes is measured as well: it must stay within a multiple of its input. `--cases N` sets how many cases each
//! parser is given, `--from N` where to begin, and `--only NAME` picks parsers whose name contains it.

#![allow(
    clippy::print_stdout,
    unreachable_pub,
    dead_code,
    reason = "the figures are what it is for; half of the shared code is its tests"
)]

#[path = "../../tests/integration/parsers/mod.rs"]
mod parsers;

use std::{collections::HashMap, process::ExitCode, sync::Arc, time::Instant};

use clap::Parser;
use countersign::{
    app::{dependencies, installed},
    clock::SystemClock,
    config::Config,
    understanding::{
        lexicon::{Name, Names},
        situation::Situation,
    },
};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Memory that a case may take whatever its input is, in bytes: tables, buffers, the texts of errors.
const BASE: usize = 4 << 20;

/// Bytes that a case may take for each byte of its input. JSON read into values takes about 70 for `[0,0,…]`.
const FOR_EACH_BYTE: usize = 300;

#[derive(Parser)]
struct Options {
    #[arg(long, default_value_t = 250_000)]
    cases: u64,
    #[arg(long, default_value_t = 0)]
    from: u64,
    #[arg(long, default_value = "")]
    only: String,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The longest that a message may take to be understood, in microseconds.
const LONGEST: u128 = 1_000;

/// Measures the time to find the names in a message, and to understand it, with 5,000 experiments.
fn words() -> Option<String> {
    let name = |at: usize| Name {
        kind: "experiment".to_owned(),
        name: format!(
            "{} {} {at}",
            ["Math", "Geometry", "Reading", "Chat"][at % 4],
            ["Hints", "Pilot", "Study"][at % 3]
        ),
        id: None,
        owner: "experiments".to_owned(),
        subject: true,
    };
    let names = Names::new((0..5_000).map(name));
    let said = "Hey team, when you get a chance, could you please start the Math Hints 4320 experiment on Friday at 9:00, and \
                only for class 5B of the northern schools, since the teachers there have told us that they would like to be \
                the first ones who try it before the holidays begin, thanks a lot to all of you, and have a nice day!!";
    let config = Config::load(None, &HashMap::new(), &installed::SETTINGS).expect("the default settings are sound");
    let book = dependencies::capabilities(&config, Arc::new(SystemClock)).expect("the capabilities fit together").book;
    const ROUNDS: u32 = 200;
    let began = Instant::now();
    for _ in 0..ROUNDS {
        std::hint::black_box(names.find(said));
    }
    let finding = began.elapsed().as_micros() / u128::from(ROUNDS);
    let mut situation = Situation { said: said.to_owned(), names: names.find(said), ..Situation::default() };
    let began = Instant::now();
    for round in 0..ROUNDS {
        situation.last_subject = Some(round.to_string()); // a message that is known is not read again
        std::hint::black_box(book.asks_otherwise(&situation));
    }
    let understanding = began.elapsed().as_micros() / u128::from(ROUNDS);
    println!(
        "{} characters, 5,000 experiments: names found in {finding} µs, understood in {understanding} µs",
        said.len()
    );
    (finding + understanding > LONGEST).then(|| format!("a message takes {} µs", finding + understanding))
}

fn main() -> ExitCode {
    let options = Options::parse();
    std::panic::set_hook(Box::new(|_| ())); // the cases that panic are listed
    let mut failed = Vec::new();
    println!("{:<36} {:>10} {:>10} {:>8} {:>14} {:>12}", "parser", "cases", "accepted", "s", "longest, KB", "most, KB");
    for target in parsers::all().iter().filter(|target| target.name.contains(&options.only)) {
        let (began, mut longest, mut most) = (Instant::now(), 0, 0);
        for case in options.from..options.from + options.cases {
            MEMORY.reset_peak_usage();
            let before = MEMORY.current_usage();
            match parsers::run_case(target, case) {
                Err(what) => failed.push(what),
                Ok(length) => {
                    let took = MEMORY.peak_usage().saturating_sub(before);
                    (longest, most) = (longest.max(length), most.max(took));
                    if took > BASE + FOR_EACH_BYTE * length {
                        failed.push(format!("{} takes {took} bytes for {length} in case {case}", target.name));
                    }
                }
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let accepted = (target.accepted)();
        println!(
            "{:<36} {:>10} {accepted:>10} {seconds:>8.1} {:>14} {:>12}",
            target.name,
            options.cases,
            longest / 1024,
            most / 1024
        );
    }
    if "words".contains(&options.only) {
        failed.extend(words());
    }
    for what in failed.iter().take(20) {
        println!("FAILED: {what}");
    }
    println!("{} failures", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
