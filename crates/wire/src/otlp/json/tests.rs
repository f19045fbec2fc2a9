//! JSON and protobuf have the same meaning: checked against a plain recursive encoder, against prost, and against the
//! schema of the specification's own descriptors. Deviations from the specification are refused with position and
//! reason.
#![allow(clippy::indexing_slicing, reason = "a test ends where it fails")]

mod accepts;
mod descriptors;
mod encoded;
mod generated;
mod model;
mod refuses;
mod retains_valid;

use super::*;

/// The protobuf of `json`, or what is wrong with it.
fn translated(signal: Signal, json: &str) -> Result<Vec<u8>, OtlpJsonError> {
    let (out, Translated { errors, .. }) = translate_valid(signal, json)?;
    errors.into_iter().next().map_or(Ok(out), Err)
}

/// The protobuf of what is good of `json`. What is left of the room that was asked for is not needed: as much as was
/// measured is enough, and less is not.
fn translate_valid(signal: Signal, json: &str) -> Result<(Vec<u8>, Translated), OtlpJsonError> {
    let mut out = vec![0xaa; max_len(json.as_bytes())];
    let done = translate(signal, json.as_bytes(), &mut out);
    let measured = measure(signal, json.as_bytes());
    let (Ok(done), Ok(most)) = (done.clone(), measured.clone()) else {
        assert_eq!(done.clone().err(), measured.err());
        return Err(done.unwrap_err());
    };
    assert!(most >= done.len && most <= out.len(), "{done:?} in {most}");
    let mut exact = vec![0xaa; most];
    assert_eq!(translate(signal, json.as_bytes(), &mut exact), Ok(done.clone()));
    assert_eq!(exact[..done.len], out[..done.len]);
    if let Some(less) = most.checked_sub(1) {
        let error = translate(signal, json.as_bytes(), &mut exact[..less]).unwrap_err();
        assert_eq!(*error.kind(), OtlpJsonErrorKind::Full);
    }
    out.truncate(done.len);
    Ok((out, done))
}
