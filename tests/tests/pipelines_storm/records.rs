//! Requests of one log record each that pipelines find hard. Values are encoded ones, since deep ones are more than generated
//! code takes.

use crate::otlp::message;
use tidegate_load::otlp::NUMBER;

/// A request, and the number of its record.
pub(crate) struct Body {
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A request of a record with this body, its number and these attributes.
pub(crate) fn record(number: u64, body: &[u8], attributes: &[Vec<u8>]) -> Body {
    let mut value = vec![3 << 3];
    prost::encoding::encode_varint(number, &mut value);
    let mut record = [message(5, body), message(6, &pair(NUMBER, &value))].concat();
    attributes.iter().for_each(|attribute| record.extend(message(6, attribute)));
    Body { number, bytes: message(1, &message(2, &message(2, &record))) }
}

pub(crate) fn text(text: &str) -> Vec<u8> {
    message(1, text.as_bytes())
}

pub(crate) fn pair(key: &str, value: &[u8]) -> Vec<u8> {
    [message(1, key.as_bytes()), message(2, value)].concat()
}

/// So many attributes.
pub(crate) fn pairs(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| pair(&format!("a{number}"), &text("x"))).collect()
}

pub(crate) fn map(pairs: &[Vec<u8>]) -> Vec<u8> {
    message(6, &members(pairs))
}

pub(crate) fn list(values: &[Vec<u8>]) -> Vec<u8> {
    message(5, &members(values))
}

/// A number within so many maps or lists.
pub(crate) fn nested(depth: usize, is_map: bool) -> Vec<u8> {
    (0..depth)
        .fold(vec![3 << 3, 1], |inner, _| if is_map { map(&[pair("a", &inner)]) } else { list(&[inner]) })
}

fn members(encoded: &[Vec<u8>]) -> Vec<u8> {
    encoded.iter().flat_map(|member| message(1, member)).collect()
}
