//! Answers are read to their end, or not at all.

use super::*;
use proptest::prelude::*;

/// An answer to `question` with these resource records.
fn answer_with(question: &[u8], records: &[Vec<u8>]) -> Vec<u8> {
    let mut message = question.to_vec();
    (message[2], message[3]) = (0x81, 0x80);
    message[6..8].copy_from_slice(&u16::try_from(records.len()).unwrap().to_be_bytes());
    message.extend(records.concat());
    message
}

/// A resource record whose owner is written as these bytes.
fn resource(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap().to_be_bytes();
    [owner, &kind.to_be_bytes(), &[0, 1, 0, 0, 0, 9], &length, data].concat()
}

const NAME: &[u8] = &[0xc0, 12];

fn read(message: &[u8], question: &[u8]) -> Result<Answer, NoAnswer> {
    answer(message, question, RecordType::A, 8)
}

#[test]
fn records_of_the_name_and_of_its_alias_count() {
    let asked = question(7, "Store.example", RecordType::A);
    let alias = b"\x05other\xc0\x12";
    let address = |last| [192, 0, 2, last];
    let message = answer_with(
        &asked,
        &[
            // Before the alias that leads to it.
            resource(alias, 1, &address(1)),
            resource(NAME, 5, alias),
            resource(b"\x05OTHER\x07EXAMPLE\0", 1, &address(2)),
            resource(alias, 1, &address(2)),
            resource(b"\x05third\xc0\x12", 1, &address(3)),
            resource(alias, 28, &[1; 16]),
        ],
    );
    let expected = [1, 2].map(|last| Record::Address(address(last).into())).to_vec();
    assert_eq!(read(&message, &asked), Ok(Answer::Records(expected)));
}

#[test]
fn a_service_has_a_host_and_a_port() {
    let asked = question(7, "_grpc._tcp.store", RecordType::Srv);
    let service = |target: &[u8]| resource(NAME, 33, &[&[0, 1, 0, 2, 0x2a, 0x95], target].concat());
    let message =
        answer_with(&asked, &[service(b"\x05Pod-0\x02ns\0"), service(b"\0"), service(b"\x03a b\0")]);
    let expected = vec![Record::Service("pod-0.ns".to_owned(), 10901)];
    assert_eq!(answer(&message, &asked, RecordType::Srv, 8), Ok(Answer::Records(expected)));
}

#[test]
fn foreign_messages_are_no_answers() {
    let asked = question(0x1234, "store", RecordType::A);
    let good = answer_with(&asked, &[]);
    assert_eq!(read(&good, &asked), Ok(Answer::Records(Vec::new())));
    let spoilt = |at: usize, xor: u8| {
        let mut message = good.clone();
        message[at] ^= xor;
        read(&message, &asked)
    };
    for at in [0, 1, 14, 20] {
        assert_eq!(spoilt(at, 1), Err(NoAnswer::Foreign), "{at}");
    }
    assert_eq!(spoilt(2, 0x80), Err(NoAnswer::Foreign), "a question");
    assert_eq!(spoilt(2, 2), Ok(Answer::Truncated));
    assert_eq!(spoilt(3, 2), Ok(Answer::Failed(2)));
    assert_eq!(spoilt(3, 3), Ok(Answer::Records(Vec::new())), "there is no such name");
    assert_eq!(read(&good[..5], &asked), Err(NoAnswer::Foreign));
    assert_eq!(spoilt(7, 1), Err(NoAnswer::Malformed), "a record that is not there");
}

#[test]
fn every_prefix_of_an_answer_is_malformed() {
    let asked = question(7, "store", RecordType::A);
    let good =
        answer_with(&asked, &[resource(NAME, 5, b"\x01a\0"), resource(b"\x01a\0", 1, &[192, 0, 2, 1])]);
    for length in asked.len()..good.len() {
        assert_eq!(read(&good[..length], &asked), Err(NoAnswer::Malformed), "{length}");
    }
}

#[test]
fn names_that_never_end_are_refused() {
    let asked = question(7, "store", RecordType::A);
    let here = u8::try_from(asked.len()).unwrap();
    for owner in [vec![0xc0, here], vec![1, b'a', 0xc0, here], vec![0x80, 1], [[1, b'a']; 128].concat()] {
        let message = answer_with(&asked, &[resource(&owner, 1, &[192, 0, 2, 1])]);
        assert_eq!(read(&message, &asked), Err(NoAnswer::Malformed), "{owner:?}");
    }
}

#[test]
fn aliases_in_a_circle_end() {
    let asked = question(7, "store", RecordType::A);
    let message =
        answer_with(&asked, &[resource(NAME, 5, b"\x01a\0"), resource(b"\x01a\0", 5, b"\x05store\0")]);
    assert_eq!(read(&message, &asked), Ok(Answer::Records(Vec::new())));
}

#[test]
fn no_more_records_are_kept_than_asked_for() {
    let asked = question(7, "store", RecordType::A);
    let records: Vec<_> = (0..200).map(|last| resource(NAME, 1, &[192, 0, 2, last])).collect();
    let Ok(Answer::Records(found)) = read(&answer_with(&asked, &records), &asked) else {
        panic!("no records")
    };
    assert_eq!(found.len(), 9, "one more than the most shows that there are too many");
}

proptest! {
    #[test]
    fn any_message_is_read_or_refused(tail in proptest::collection::vec(any::<u8>(), 0..200), count in 0_u16..20) {
        let asked = question(7, "store.ns", RecordType::Srv);
        let mut message = answer_with(&asked, &[]);
        message[6..8].copy_from_slice(&count.to_be_bytes());
        message.extend(tail);
        if let Ok(Answer::Records(found)) = answer(&message, &asked, RecordType::Srv, 8) {
            prop_assert!(found.len() <= 9);
        }
    }
}
