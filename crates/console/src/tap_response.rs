//! `/tap`: a look at what passes, answered with what was caught since the last answer.

use crate::console::{DATA_HEADERS, failed};
use crate::page_buffer::PageBuffer;
use std::time::Duration;
use tidegate_arena::Arena;
use tidegate_http1::Reply;
use tidegate_tap::{OPEN_FOR, ReadResult, RecordReader, Tap, TapError, TapFilter};

/// How often it is looked whether something was caught; so also the least time between two answers that wait.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// No record is begun when there is less room, in bytes: most fit whole then.
const ROOM: usize = 128 << 10;
/// No record is begun after so many bytes were looked through: it is work that others on this thread wait for.
const WORK: usize = 4 << 20;

/// Opens `tap`, or goes on; waits for as long as `look` says, and writes what was caught.
pub(crate) async fn answer(tap: &Tap, sinks: &[String], arena: &Arena, look: TapFilter) -> Reply {
    if let Some(unknown) = look.sink.as_ref().filter(|sink| *sink != "*" && !sinks.contains(sink)) {
        let known = if sinks.is_empty() { "none".to_owned() } else { sinks.join(", ") };
        let words = format!("there is no sink `{}`; there are: {known}\n", unknown.escape_debug());
        return Reply::new(404).content(words);
    }
    let mut left = look.wait;
    let reading = match tap.open(look).await {
        Ok(reading) => reading,
        Err(refused) => return turned_away(refused),
    };
    while !left.is_zero() && !reading.is_over() {
        let glance = left.min(POLL_INTERVAL);
        tokio::time::sleep(glance).await;
        left = if reading.waiting() > 0 { Duration::ZERO } else { left - glance };
    }
    match PageBuffer::take(arena) {
        Ok(sheet) => written(&reading, sheet).await,
        Err(failure) => failed(failure, ""),
    }
}

async fn written(reading: &RecordReader, mut sheet: PageBuffer) -> Reply {
    let mut no_room = 0;
    let mut work = 0;
    while sheet.room() >= ROOM && work < WORK {
        let Some(ReadResult { no_room: more, bytes, .. }) = reading.write_next(&mut |line| sheet.line(line))
        else {
            break;
        };
        (no_room, work) = (no_room + more, work + bytes);
        tokio::task::yield_now().await;
    }
    let last = format!(
        "{{\"missed_records\":{},\"lines_without_room\":{no_room},\"records_waiting\":{},\"open_for_seconds\":{OPEN_FOR}}}\n",
        reading.missed(),
        reading.waiting(),
    );
    match sheet.ending(last) {
        Ok(window) => {
            Reply::new(200).content_type("application/x-ndjson").headers(&DATA_HEADERS).content(window)
        }
        Err(failure) => failed(failure, ""),
    }
}

fn turned_away(refused: TapError) -> Reply {
    let reply = match refused {
        TapError::Taken | TapError::Reading => Reply::new(409).retry_after(1),
        TapError::Memory => Reply::new(503).retry_after(1),
        TapError::Small => Reply::new(507),
    };
    reply.content(format!("{refused}\n"))
}
