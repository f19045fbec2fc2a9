//! Streams of syslog: chunks make no difference, no message is longer than its limit, and none is read out of bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_syslog::{Format, Framed, Framer, Framing, ParseSettings, Zone, parse};

fuzz_target!(|input: (u8, u8, bool, &[u8])| {
    let (max, chunk, is_local, stream) = input;
    let max = usize::from(max) + 1;
    let settings = ParseSettings { format: Format::Auto, zone: Zone::UTC, is_local };
    for framing in [Framing::Auto, Framing::OctetCounting, Framing::Newline] {
        let whole = messages(framing, max, stream.len(), stream);
        assert_eq!(messages(framing, max, usize::from(chunk) + 1, stream), whole);
        for message in whole.0 {
            assert!(message.len() <= max);
            let read = parse(message, &settings, 1_795_424_400_000_000_000);
            assert!(read.text.len() <= message.len());
        }
    }
});

fn messages(framing: Framing, max: usize, chunk: usize, stream: &[u8]) -> (Vec<&[u8]>, bool) {
    let mut framer = Framer::new(framing, max);
    let (mut found, mut start, mut arrived) = (Vec::new(), 0, 0);
    loop {
        let is_end = arrived == stream.len();
        match framer.next(&stream[start..arrived], is_end) {
            Framed::Message { bytes, used, .. } => {
                found.push(bytes);
                start += used;
            }
            Framed::Skipped(used) => start += used,
            Framed::Broken => return (found, true),
            Framed::Partial if is_end => return (found, false),
            Framed::Partial => {
                assert!(arrived - start < framer.lookahead());
                arrived = (arrived + chunk.max(1)).min(stream.len());
            }
        }
    }
}
