//! No byte of one batch in another, whatever is retried, refused and cut.

use crate::oracle::text;
use crate::peer::{Behaviour, Peer};
use crate::{LONG, balances, number_of, numbered, quick};
use proptest::prelude::*;
use std::collections::HashMap;
use tidegate_sender::{Compression, Log, Severity, Span, Value};

fn behaviour() -> impl Strategy<Value = Behaviour> {
    prop_oneof![
        4 => Just(Behaviour::Take),
        1 => (0..30_000_usize).prop_map(Behaviour::CutAfter),
        1 => Just(Behaviour::HalfAnAnswer),
        1 => Just(Behaviour::TakeAndClose),
        1 => Just(Behaviour::Answer(503, String::new(), vec![1; 3000])),
        1 => Just(Behaviour::Answer(413, String::new(), Vec::new())),
        1 => Just(Behaviour::Answer(400, String::new(), b"never".to_vec())),
        1 => (0..2_000_usize).prop_map(|at| Behaviour::AnswerEarly(at, 429, "Retry-After: 0\r\n".to_owned())),
    ]
}

/// The unique text of event `number`.
fn says(number: u64, len: usize) -> String {
    let mut text = format!("{number}:");
    while text.len() < len {
        text.push(char::from(b'a' + (number % 26) as u8));
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Every event that a peer acknowledged is one that was given, byte for byte; none is lost but what was
    /// rejected; and the books balance.
    #[test]
    fn each_event_arrives_as_it_was_given(
        script in prop::collection::vec(behaviour(), 0..12),
        batches in prop::collection::vec(prop::collection::vec((any::<bool>(), 2..6_000_usize), 1..40), 1..6),
        gzip in any::<bool>(),
    ) {
        let peer = Peer::scripted(script);
        let compression = if gzip { Compression::Gzip } else { Compression::None };
        let sender = quick(&peer)
            .ring_bytes(4 << 20)
            .batch_bytes(64 << 10)
            .compression(compression)
            .start().unwrap();
        let mut given = HashMap::new();
        for batch in &batches {
            for (is_log, len) in batch {
                let number = given.len() as u64;
                let said = says(number, *len);
                let attributes = [("said", Value::Str(&said)), ("number", Value::Int(number as i64))];
                if *is_log {
                    let log = Log { time: number + 1, severity: Severity::INFO, body: Value::Str(&said), ..Log::default() };
                    sender.log(&log).unwrap();
                } else {
                    sender.span(&Span { attributes: &attributes, ..numbered(number) }).unwrap();
                }
                given.insert(number, said);
            }
            prop_assert!(sender.flush(LONG).is_nothing());
        }
        let stats = sender.stats();
        let (spans, logs) = (peer.spans(), peer.logs());
        let mut seen = HashMap::new();
        for span in &spans {
            let said = text(&span.attributes, "said").unwrap();
            prop_assert_eq!(Some(said), given.get(&number_of(span)).map(String::as_str));
            prop_assert_eq!(span.attributes.len(), 2);
            seen.insert(number_of(span), ());
        }
        for log in &logs {
            let Some(crate::oracle::any::Value::Str(said)) = &log.body.as_ref().unwrap().value else { panic!() };
            prop_assert_eq!(Some(said), given.get(&(log.time - 1)));
            seen.insert(log.time - 1, ());
        }
        prop_assert_eq!(seen.len() as u64 + stats.dropped_total(), given.len() as u64);
        prop_assert_eq!(stats.sent_total(), seen.len() as u64);
        balances(&sender);
    }
}
