//! Lines of the Kubernetes container runtime interface: `2016-10-06T00:17:09.669794202Z stdout F message`.
//!
//! The third word is a list of tags, separated by `:`. The first is `F` for a whole line or the last part of one, `P` for
//! another part. Runtimes write what is behind the tags as it is, a `\r` at its end included.
//!
//! Source: Kubernetes, `pkg/kubelet/kuberuntime/logs/logs.go` and the design proposal "CRI: Log management".

use super::{Entry, Stream};
use tidegate_wire::time::parse_rfc3339;

/// The message of `line`.
#[inline]
pub(crate) fn parse(line: &[u8]) -> Option<Entry<'_>> {
    let (time, rest) = word(line)?;
    let (stream, rest) = word(rest)?;
    // A message may be empty, and then some runtimes leave out the space before it.
    let (tags, text) = word(rest).unwrap_or((rest, &[]));
    let is_partial = match tags {
        [b'F'] | [b'F', b':', ..] => false,
        [b'P'] | [b'P', b':', ..] => true,
        _ => return None,
    };
    Some(Entry { text, stream: Stream::of_name(stream)?, time_ns: parse_rfc3339(time)?, is_partial })
}

/// The text before the first space, and the text behind it.
#[inline(always)]
fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    /// The longest word before a message: a time has 35 characters, and tags are few.
    const LONGEST: usize = 64;
    let at = line.iter().take(LONGEST).position(|byte| *byte == b' ')?;
    Some((line.get(..at)?, line.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &[u8], stream: Stream, is_partial: bool) -> Option<Entry<'_>> {
        Some(Entry { text, stream, time_ns: 1_475_713_029_669_794_202, is_partial })
    }

    #[test]
    fn parses_whole_and_partial_lines() {
        use Stream::{Stderr, Stdout};
        for (line, expected) in [
            ("2016-10-06T00:17:09.669794202Z stdout F a  b ", entry(b"a  b ", Stdout, false)),
            ("2016-10-06T02:17:09.669794202+02:00 stderr P log", entry(b"log", Stderr, true)),
            ("2016-10-06T00:17:09.669794202Z stdout F:more:tags log", entry(b"log", Stdout, false)),
            ("2016-10-06T00:17:09.669794202Z stdout F ", entry(b"", Stdout, false)),
            ("2016-10-06T00:17:09.669794202Z stdout F", entry(b"", Stdout, false)),
            ("2016-10-06T00:17:09.669794202Z stdout F x\r", entry(b"x\r", Stdout, false)),
        ] {
            assert_eq!(parse(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn refuses_other_lines() {
        for line in [
            "",
            "plain text of some words",
            "2016-10-06T00:17:09.669794202Z stdout",
            "2016-10-06T00:17:09.669794202Z stdlog F x",
            "2016-10-06T00:17:09.669794202Z stdout X x",
            "2016-10-06T00:17:09.669794202Z stdout FP x",
            "2016-13-06T00:17:09.669794202Z stdout F x",
        ] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }
}
