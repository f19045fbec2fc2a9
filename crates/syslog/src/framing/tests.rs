//! Promises: every byte is used once; the messages are those that were framed, however the stream is cut.

#![allow(clippy::indexing_slicing, reason = "a test ends where it fails")]

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// All messages of a stream that arrives in pieces of these lengths, and whether it broke.
fn messages(framing: Framing, max: usize, stream: &[u8], pieces: &[usize]) -> (Vec<Vec<u8>>, bool) {
    let mut framer = Framer::new(framing, max);
    let (mut found, mut start, mut arrived) = (Vec::new(), 0, 0);
    let mut pieces = pieces.iter().copied().cycle();
    loop {
        let is_end = arrived == stream.len();
        match framer.next(&stream[start..arrived], is_end) {
            Framed::Message { bytes, used, .. } => {
                found.push(bytes.to_vec());
                start += used;
            }
            Framed::Skipped(used) => start += used,
            Framed::Broken => return (found, true),
            Framed::Partial if is_end => return (found, false),
            Framed::Partial => {
                assert!(arrived - start < framer.lookahead(), "no progress");
                arrived = (arrived + pieces.next().unwrap().max(1)).min(stream.len());
            }
        }
    }
}

fn counted(message: &[u8]) -> Vec<u8> {
    [message.len().to_string().as_bytes(), b" ", message].concat()
}

proptest! {
    /// Counted and line-framed messages in any mixture are found again (RFC 6587, section 3.4).
    #[test]
    fn finds_what_was_framed(
        texts in vec(("<[0-9]{1,3}>[ -~]{0,60}", any::<bool>()), 0..12),
        pieces in vec(1..40_usize, 1..6),
    ) {
        let mut stream = Vec::new();
        for (text, is_counted) in &texts {
            match is_counted {
                true => stream.extend(counted(text.as_bytes())),
                false => stream.extend([text.as_bytes(), b"\n"].concat()),
            }
        }
        let (found, is_broken) = messages(Framing::Auto, 100, &stream, &pieces);
        prop_assert!(!is_broken);
        let expected: Vec<Vec<u8>> = texts.iter().map(|(text, _)| text.clone().into_bytes()).collect();
        prop_assert_eq!(found, expected);
    }

    /// Noise ends, and never needs more than the lookahead.
    #[test]
    fn noise_is_survived(
        stream in vec(prop_oneof![any::<u8>(), Just(b'9'), Just(b' '), Just(b'<'), Just(b'\n')], 0..300),
        framing in prop_oneof![Just(Framing::Auto), Just(Framing::OctetCounting), Just(Framing::Newline)],
        pieces in vec(1..40_usize, 1..6),
        max in 1..50_usize,
    ) {
        let (found, _) = messages(framing, max, &stream, &pieces);
        prop_assert!(found.iter().all(|message| message.len() <= max));
    }
}

/// A message that is too long is cut, and the next one is found.
#[test]
fn long_messages_are_cut() {
    let long = format!("<13>{}", "x".repeat(100));
    for stream in
        [[counted(long.as_bytes()), counted(b"<13>next")].concat(), format!("{long}\n<13>next\n").into()]
    {
        let (found, is_broken) = messages(Framing::Auto, 20, &stream, &[7]);
        assert_eq!(found, [b"<13>xxxxxxxxxxxxxxxx".to_vec(), b"<13>next".to_vec()]);
        assert!(!is_broken);
    }
}

/// A count that no message has ends the stream; a number that is no count is text.
#[test]
fn counts_are_checked() {
    assert!(messages(Framing::Auto, 100, b"1000000000000 <13>x", &[5]).1);
    assert!(messages(Framing::OctetCounting, 100, b"x", &[5]).1);
    let (found, is_broken) = messages(Framing::Auto, 100, b"404 not found\n5\n", &[3]);
    assert_eq!((found, is_broken), (vec![b"404 not found".to_vec(), b"5".to_vec()], false));
}

/// rsyslog counts the line feed of its template; others put one behind a counted message, or end messages with NUL.
#[test]
fn ends_of_lines_are_no_text() {
    let (found, _) = messages(Framing::Auto, 100, b"6 <13>a\n6 <13>b\n", &[4]);
    assert_eq!(found, [b"<13>a".to_vec(), b"<13>b".to_vec()]);
    let (found, _) = messages(Framing::Auto, 100, b"5 <13>a\n5 <13>b\r\n<13>c\0<13>d", &[4]);
    let found: Vec<Vec<u8>> = found.into_iter().filter(|message| !message.is_empty()).collect();
    assert_eq!(found, [b"<13>a".to_vec(), b"<13>b".to_vec(), b"<13>c".to_vec(), b"<13>d".to_vec()]);
}
