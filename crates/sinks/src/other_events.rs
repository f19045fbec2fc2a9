//! Counts the events of a lost record that the sink is not configured to take: those are passed over and not lost.
//!
//! A record may be lost because no memory holds it. So the body is decoded through a small buffer, and only the
//! beginning of each line is looked at.

use crate::decoding::DamagedBody;
use crate::signals::Signals;
use tidegate_journal::{Encoding, Meta};
use tidegate_wire::coding::{Decode as _, Needs, Progress};
use tidegate_wire::gzip;
use tidegate_wire::intake::{EventKind, EventKinds};

/// How much is decoded before others get their turn.
const PIECE: usize = 16 << 10;
/// The longest beginning of a line that names its event: longer than every name with the signs around it.
const NAME: usize = 24;

/// The events of other signals in a body that is looked at piece by piece.
pub(crate) struct OtherEvents<'a> {
    taken: EventKinds,
    rest: &'a [u8],
    decoding: Option<Box<Decoding>>,
    line: Line,
    others: u64,
}

struct Decoding {
    decoder: gzip::Decoder,
    is_zlib: bool,
    /// Steps that came to nothing.
    idle: u32,
    piece: [u8; PIECE],
}

/// The beginning of a line without blanks.
#[derive(Default)]
struct Line {
    bytes: [u8; NAME],
    len: usize,
}

impl<'a> OtherEvents<'a> {
    /// Its heap memory, in bytes.
    pub(crate) const BYTES: usize = gzip::Decoder::BYTES + PIECE;

    /// Those of a record's `body` beside those that are `taken`. Nothing where all are taken, or where the body can only
    /// be decoded as a whole.
    pub(crate) fn of(meta: &Meta, taken: Signals, body: &'a [u8]) -> Option<OtherEvents<'a>> {
        if !meta.is_mixed() || taken == Signals::ALL {
            return None;
        }
        let decoding = |is_zlib| {
            let mut decoder = gzip::Decoder::new();
            if is_zlib {
                decoder.as_zlib().reset()
            } else {
                decoder.reset()
            }
            Some(Box::new(Decoding { decoder, is_zlib, idle: 0, piece: [0; PIECE] }))
        };
        let decoding = match meta.encoding {
            Encoding::Identity => None,
            Encoding::Gzip => decoding(false),
            Encoding::Deflate => decoding(true),
            Encoding::Zstd | Encoding::Snappy => return None,
        };
        Some(OtherEvents { taken: taken.kinds(), rest: body, decoding, line: Line::default(), others: 0 })
    }

    /// Looks at the next piece; gives their number when that was the last.
    ///
    /// # Errors
    /// When the body is not what its record says.
    pub(crate) fn step(&mut self) -> Result<Option<u64>, DamagedBody> {
        let OtherEvents { taken, rest, decoding, line, others } = self;
        let Some(decoding) = decoding else {
            let (piece, more) = rest.split_at(PIECE.min(rest.len()));
            *others += line.follow(piece, *taken);
            *rest = more;
            return Ok(rest.is_empty().then(|| self.end()));
        };
        let Decoding { decoder, is_zlib, idle, piece } = &mut **decoding;
        let progress = match is_zlib {
            true => decoder.as_zlib().step(rest, piece).map_err(|_| DamagedBody),
            false => decoder.step(rest, piece).map_err(|_| DamagedBody),
        };
        let Progress { read, written, needs } = progress?;
        *others += line.follow(piece.get(..written).unwrap_or_default(), *taken);
        *rest = rest.get(read..).unwrap_or_default();
        *idle = if read + written > 0 { 0 } else { *idle + 1 };
        match needs {
            Needs::Nothing if rest.is_empty() => Ok(Some(self.end())),
            Needs::Input => Err(DamagedBody),
            _ if *idle > 2 => Err(DamagedBody),
            _ => Ok(None),
        }
    }

    /// All of them, at once: for threads that nobody else waits for. Nothing is said of a damaged body.
    pub(crate) fn count_blocking(mut self) -> u64 {
        loop {
            match self.step() {
                Ok(None) => {}
                Ok(Some(others)) => return others,
                Err(DamagedBody) => return 0,
            }
        }
    }

    /// The last line may have no end.
    fn end(&mut self) -> u64 {
        self.others += self.line.follow(b"\n", self.taken);
        self.others
    }
}

impl Line {
    /// Goes on with `bytes`; how many lines ended whose events are not `taken`.
    fn follow(&mut self, mut bytes: &[u8], taken: EventKinds) -> u64 {
        let mut others = 0;
        while !bytes.is_empty() {
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            for byte in part.iter().filter(|byte| !byte.is_ascii_whitespace()) {
                let Some(to) = self.bytes.get_mut(self.len) else { break };
                (*to, self.len) = (*byte, self.len + 1);
            }
            bytes = rest.get(1..).unwrap_or_default();
            if end.is_some() {
                others += u64::from(self.kind().is_some_and(|kind| !taken.contains(kind)));
                self.len = 0;
            }
        }
        others
    }

    /// The event that the line is named for.
    fn kind(&self) -> Option<EventKind> {
        let named = self.bytes.get(..self.len)?.strip_prefix(b"{\"")?;
        let name = named.split(|byte| *byte == b'"').next()?;
        EventKind::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_journal::{Protocol, Signal, Tenant};
    use tidegate_load::elastic_apm::AGENTS;
    use tidegate_load::otlp::ContentCoding;

    fn meta(encoding: Encoding) -> Meta {
        Meta {
            tenant: Tenant::NONE,
            signal: Signal::Events,
            protocol: Protocol::Intake,
            encoding,
            items: 1,
            raw_len: 1,
            received_at_ns: 1,
        }
    }

    /// It counts what is counted in the whole body, however that is compressed and wherever its pieces end.
    #[test]
    fn counts_as_many_as_the_whole_body_has() {
        let blanks = " { \"span\" : {\"a\":1} }\r\n\n\t{\"metricset\":{}}\n{\"log\":{}}".to_owned();
        let long = format!("{{\"error\":{{\"a\":\"{}\"}}}}\n", "x".repeat(3 * PIECE)).repeat(3);
        let bodies = AGENTS.iter().map(|agent| agent.busy.repeat(9)).chain([blanks, long]);
        for raw in bodies {
            for choice in 1_u8..8 {
                let all = Meta::MIXED.into_iter().enumerate();
                let taken: Signals =
                    all.filter(|(at, _)| choice & (1 << at) != 0).map(|(_, signal)| signal).collect();
                let gzip = ContentCoding::Gzip.encode(raw.as_bytes()).unwrap();
                for (encoding, body) in [(Encoding::Identity, raw.as_bytes()), (Encoding::Gzip, &gzip[..])] {
                    let others = OtherEvents::of(&meta(encoding), taken, body).unwrap().count_blocking();
                    assert_eq!(others, taken.others_blocking(raw.as_bytes()), "{encoding:?} {choice}");
                }
            }
        }
    }

    #[test]
    fn records_without_events_of_other_signals_skip_nothing() {
        let traces: Signals = [Signal::Traces].into_iter().collect();
        assert!(OtherEvents::of(&meta(Encoding::Gzip), Signals::ALL, b"").is_none());
        assert!(
            OtherEvents::of(&Meta { signal: Signal::Traces, ..meta(Encoding::Gzip) }, traces, b"").is_none()
        );
        for body in [&b""[..], b"x", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]] {
            assert_eq!(OtherEvents::of(&meta(Encoding::Gzip), traces, body).unwrap().count_blocking(), 0);
        }
    }
}
