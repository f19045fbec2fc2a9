//! A command-line tool that counts words, reports a span per file and its mistakes, and is gone in a moment:
//! what matters is that it does not wait long for its telemetry, and says what it could not send.
//!
//!     OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 cargo run --example command_line -- README.md
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_sender::{Builder, Log, Sender, Severity, Span, Status, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sender = Builder::from_env().service("count-words").start()?;
    let (whole, start) = (Sender::new_span_context(None), now());
    let mut failed = false;
    for file in std::env::args().skip(1) {
        let (context, start) = (Sender::new_span_context(Some(whole)), now());
        let counted = std::fs::read(&file)
            .map(|text| text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count());
        let error = counted.as_ref().err().map(ToString::to_string);
        sender.span(&Span {
            context,
            parent: Some(whole.span_id),
            name: "count",
            start,
            end: now(),
            attributes: &[
                ("file.path", Value::Str(&file)),
                ("words", counted.as_ref().map_or(Value::Empty, |words| Value::Int(*words as i64))),
            ],
            status: error.as_deref().map_or(Status::Ok, Status::Error),
            ..Span::default()
        })?;
        match (counted, error) {
            (Ok(words), _) => println!("{words:8} {file}"),
            (_, error) => {
                let error = error.unwrap_or_default();
                let body = format_args!("{file} cannot be read: {error}");
                let time = now();
                sender.log(&Log {
                    time,
                    severity: Severity::ERROR,
                    body: Value::Display(&body),
                    context: Some(context),
                    ..Log::default()
                })?;
                eprintln!("{file}: {error}");
                failed = true;
            }
        }
    }
    sender.span(&Span { context: whole, name: "count-words", start, end: now(), ..Span::default() })?;

    let left = sender.shutdown(Duration::from_secs(5));
    if !left.is_nothing() {
        eprintln!("{} events could not be sent: {:?}", left.events, sender.stats());
    }
    std::process::exit(i32::from(failed));
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
