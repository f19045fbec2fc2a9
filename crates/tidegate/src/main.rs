//! The tidegate command: the command line, and the wiring of the crates into a running gateway.
//!
//! It promises nothing of its own; it keeps what the crates promise by starting them in order (the plan
//! first: what does not fit does not start), and stopping them in the opposite order.

mod cli;
mod commands;
mod gateway;
mod logging;
mod output;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;
use tidegate_arena::heap::{CountingAllocator, Jemalloc};

#[global_allocator]
static HEAP: CountingAllocator<Jemalloc> = CountingAllocator::new(tidegate_arena::heap::JEMALLOC);

/// The version, with the commit where that is known: `0.1.0 (d3adb33fd3ad)`.
pub(crate) const VERSION: &str = env!("TIDEGATE_VERSION");

/// The result of a command: nothing, or a message for the user.
type Outcome = Result<(), Failure>;

/// A command failed; the sentence says what was being done, what is wrong, and what to do.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(error.to_string())
    }
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        let arguments: Vec<String> =
            std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
        cli::explained(error, &arguments).exit()
    });
    let outcome = match logging::start(&cli.log, cli.log_format) {
        Ok(()) => {
            if matches!(cli.command, Command::Run(_) | Command::Demo(_)) {
                logging::is_all_there_is(cli.log_format);
            }
            run(cli.command)
        }
        Err(message) => Err(Failure(message)),
    };
    match outcome {
        Ok(code) => code,
        Err(Failure(message)) => {
            // Nothing is left to say where it was said in colours.
            if !message.is_empty() {
                output::error(&message);
            }
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    let outcome = match command {
        Command::Run(args) => commands::run::run(&args),
        Command::Check(args) => commands::check::check(&args),
        Command::Plan(args) => commands::plan::plan(&args),
        Command::Connect(args) => commands::connect::connect(&args),
        Command::Doctor(args) => return commands::doctor::doctor(&args),
        Command::Demo(args) => commands::demo::demo(&args),
        Command::Tap(args) => commands::tap::tap(&args),
        Command::Test(args) => commands::test::test(&args),
        Command::Pipeline(command) => commands::pipeline::pipeline(&command),
        Command::Lake(command) => commands::lake::lake(&command),
        Command::File(command) => commands::file::file(&command),
        Command::Fleet(command) => commands::fleet::fleet(&command),
        Command::Journal(command) => commands::journal::journal(&command),
        Command::Replay(command) => commands::replay::replay(&command),
        Command::Ring(command) => commands::ring::ring(&command),
        Command::Sample(command) => commands::sample::sample(&command),
        Command::Import(command) => commands::import::import(&command),
        Command::Elasticsearch(command) => commands::elasticsearch::elasticsearch(&command),
        Command::Top(args) => commands::top::top(&args),
        Command::Token(args) => commands::token::token(&args),
        Command::Schema => commands::print::schema(),
        Command::Example => commands::print::example(),
        Command::Completions { shell } => commands::print::completions(shell),
        Command::Man => commands::print::man(),
        Command::SearchProcess { memory } => commands::search_process::search_process(memory),
        Command::Bench { arguments: _ } => {
            let build = "cargo build --release -p tidegate-bench";
            Err(Failure(format!(
                "`tidegate bench` is a separate program: run `tidegate-bench` with the same arguments ({build})"
            )))
        }
    };
    outcome.map(|()| ExitCode::SUCCESS)
}
