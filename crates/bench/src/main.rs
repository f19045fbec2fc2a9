//! `tidegate-bench`: measures a gateway, each figure against its bar.
//!
//! The gateway under test is a process of its own, measured from outside (`/proc`, its own `/metrics`). The load, the
//! receiver and the code that a figure is compared with run in this process. Machines differ and are rarely quiet, so
//! the two sides of a comparison are measured in turns within one run, figures use processor time where they can, and
//! the median of several rounds counts.
//!
//! It is a program of its own because the pages of an executable are resident memory: what only measures does not
//! belong into the gateway.

mod figure;
mod report;
mod rows;
mod subject;

use clap::Parser;
use figure::{Bench, Figure};
use rows::chosen;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use tidegate_arena::heap::{CountingAllocator, Jemalloc};

/// As in the gateway: one row measures code of the gateway in this process.
#[global_allocator]
static HEAP: CountingAllocator<Jemalloc> = CountingAllocator::new(tidegate_arena::heap::JEMALLOC);

/// Measure what a gateway costs, each figure against its bar
///
/// Starts gateways on free ports of loopback, loads them, and prints a table. Takes about eight minutes
/// and 6 GiB of disk; the fewer other programs are at work, the better.
#[derive(Debug, Parser)]
#[command(name = "tidegate-bench", version, max_term_width = 100)]
struct Args {
    /// Names of measurements; all by default
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print what can be measured, and measure nothing
    #[arg(long)]
    list: bool,
    /// The gateway to measure. By default the `tidegate` beside this program
    #[arg(long, env = "TIDEGATE_BIN", value_name = "FILE")]
    subject: Option<PathBuf>,
    /// How long the loaded part of each measurement takes
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Coarser and sooner: 3 seconds, and a journal of 512 MiB to start with
    #[arg(long)]
    quick: bool,
    /// Where the gateways keep their data: a disk, not memory. By default the folder for temporary files
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// A `thanos`, to measure its router beside the gateway
    #[arg(long, env = "TIDEGATE_BENCH_THANOS", value_name = "FILE")]
    thanos: Option<PathBuf>,
    /// Write the figures to this file as well, in JSON
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Why nothing was measured: what was being done, what is wrong, and what to do.
#[derive(Debug)]
struct Failure(String);

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(error.to_string())
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(message)) => {
            say(&message);
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    let rows = chosen(&args.names)?;
    if args.list {
        let lines = rows.iter().map(|row| format!("{:<16}{}\n", row.name, row.what));
        return Ok(print(&lines.collect::<String>())?);
    }
    let bench = Bench::new(args)?;
    let mut figures: Vec<Figure> = Vec::new();
    for row in rows {
        say(&format!("measuring `{}`: {}", row.name, row.what));
        let measured = (row.measure)(&bench)
            .map_err(|Failure(message)| Failure(format!("measuring `{}`: {message}", row.name)))?;
        figures.extend(measured);
    }
    print(&report::table(&figures))?;
    if let Some(file) = &args.output {
        let written = std::fs::write(file, report::json(&figures, args, &bench.subject)?);
        written.map_err(|error| format!("writing the figures to {}: {error}", file.display()))?;
    }
    Ok(())
}

/// Prints a result. A reader that went away (`tidegate-bench | head`) is no failure.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Says on standard error what goes on, or what went wrong; a peer's words may be in it.
fn say(message: &str) {
    let _ = writeln!(io::stderr().lock(), "tidegate-bench: {}", tidegate_plain::lines(message.trim_end()));
}
