//! Whatever a peer answers, the sender reads it without a panic, and keeps no more than it has room for; a
//! plain answer it reads as it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_sender::fuzzing;

fuzz_target!(|raw: &[u8]| {
    if let Some((_, body)) = fuzzing::answer(raw) {
        assert!(body.len() <= 8 << 10);
    }
    let plain =
        [format!("HTTP/1.1 503 No\r\nContent-Length: {}\r\n\r\n", raw.len()).as_bytes(), raw].concat();
    let (status, body) = fuzzing::answer(&plain).expect("a plain answer is read");
    assert_eq!(status, 503);
    assert!(raw.starts_with(&body) && body.len() >= raw.len().min(4000));
    let chunked = [
        format!("HTTP/1.1 200 Ok\r\nTransfer-Encoding: chunked\r\n\r\n{:x};x=y\r\n", raw.len()).as_bytes(),
        raw,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    if !raw.is_empty() {
        let (_, body) = fuzzing::answer(&chunked).expect("a chunked answer is read");
        assert!(raw.starts_with(&body) && body.len() >= raw.len().min(4000));
    }
});
