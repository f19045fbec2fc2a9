//! The overview as text, for scripts and `watch`.

use crate::frame::{Frame, SinkState};
use crate::theme::Theme;
use crate::units;
use std::fmt::Write as _;

/// The overview of one answer, in lines of text. Rates are the gateway's own, over its last two minutes.
pub fn once(frame: &Frame, address: &str, theme: Theme) -> String {
    let mut lines = vec![
        format!("tidegate {address}, v{}, up {}", frame.version, units::duration(frame.uptime_seconds)),
        format!("{}: {}", frame.state.replace('_', " "), frame.reason),
        format!("in       {}", received(frame)),
        format!("memory   {}", memory(frame)),
        format!("journal  {}", journal(frame)),
        format!("books    {}", books(frame)),
    ];
    lines.extend(frame.sinks.iter().map(sink));
    let mut text = String::new();
    for line in lines {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", theme.clean(&line));
    }
    text
}

fn received(frame: &Frame) -> String {
    let rate = match frame.journal.items_per_second {
        Some(rate) => format!("{} items/s", units::count(rate)),
        None => "rate not known yet".to_owned(),
    };
    let sum = |of: fn(&crate::frame::SourceBook) -> u64| {
        frame.books.sources.iter().fold(0_u64, |sum, source| sum.saturating_add(of(source)))
    };
    format!(
        "{rate}; {} items, {} received, {} requests refused since the start",
        sum(|source| source.all_items()),
        units::bytes(sum(|source| source.bytes) as f64),
        sum(|source| source.all_refused()),
    )
}

fn memory(frame: &Frame) -> String {
    let (memory, bytes) = (&frame.memory, |bytes: u64| units::bytes(bytes as f64));
    let resident = match &memory.resident {
        Some(resident) => format!("{} resident, peak {}, ", bytes(resident.now), bytes(resident.peak)),
        None => String::new(),
    };
    let payload = memory.payload.shares.iter().fold(0_u64, |sum, share| sum.saturating_add(share.used));
    format!(
        "{resident}limit {}; payload {} of {}; connections {} of {}",
        bytes(memory.limit),
        bytes(payload),
        bytes(memory.payload.total),
        memory.connections_open,
        memory.connections_limit,
    )
}

fn journal(frame: &Frame) -> String {
    let (journal, bytes) = (&frame.journal, |bytes: u64| units::bytes(bytes as f64));
    format!("{} of {}; {}", bytes(journal.bytes), bytes(journal.quota), crate::screens::journal_facts(frame))
}

fn books(frame: &Frame) -> String {
    match frame.books.difference {
        0 => "they close".to_owned(),
        items => format!("{items} UNACCOUNTED FOR: a bug, please report it"),
    }
}

fn sink(sink: &crate::frame::Sink) -> String {
    let state = sink.state();
    let lag = match sink.lag.age_seconds {
        Some(age) => format!(
            "{} behind, {} items, {}",
            units::duration(age),
            sink.lag.items,
            units::bytes(sink.lag.bytes as f64)
        ),
        None => "keeps up".to_owned(),
    };
    let rate =
        sink.items_per_second.map_or_else(String::new, |rate| format!(", {} items/s", units::count(rate)));
    let error = sink.error().filter(|_| state != SinkState::Fine);
    let error = error.map_or_else(String::new, |error| format!("; last error: {}", error.message));
    format!(
        "sink     {} ({}) {}: {lag}{rate}, {} delivered{error}",
        sink.name,
        sink.kind,
        state.word(),
        sink.delivered
    )
}

#[cfg(test)]
mod tests {
    //! Promise: one text for scripts, whatever names and errors hold.

    use super::*;

    #[test]
    fn says_everything_of_a_troubled_gateway() {
        let golden = include_str!("../../console/src/tests/golden/troubled.json");
        let mut frame = Frame::parse(golden).unwrap();
        frame.sinks[1].name = "up\u{1b}[2J\nsink".to_owned();
        let text = once(&frame, "127.0.0.1:4319", Theme::PLAIN);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "tidegate 127.0.0.1:4319, v0.1.0, up 1 d 2 h");
        assert!(lines[1].starts_with("pushing back: the journal accepts nothing: its quota"), "{text}");
        assert_eq!(
            lines[2],
            "in       52.0k items/s; 10000000 items, 400 MiB received, 18 requests refused since the start"
        );
        assert!(lines[3].starts_with("memory   31.0 MiB resident, peak 40.0 MiB, limit 64.0 MiB;"), "{text}");
        assert!(
            lines[4].starts_with("journal  20.0 GiB of 20.0 GiB; oldest 3 h 5 min, full in 0 s"),
            "{text}"
        );
        assert_eq!(lines[5], "books    they close");
        assert_eq!(
            lines[6],
            "sink     lake (lake) ok: 1 min 35 s behind, 120000 items, 30.0 MiB, 9880000 delivered"
        );
        assert_eq!(
            lines[7],
            "sink     up\\u{1b}[2J\\nsink (prometheus_remote_write) failing: 3 h behind, 7000000 items, 20.0 GiB, \
             0 items/s, 2999995 delivered; last error: connecting to 127.0.0.1:9090: connection refused"
        );
        assert_eq!(lines.len(), 8);
    }
}
