//! Responses of a Kubernetes API: chunks make no difference, a pod keeps within its limit, and a path is read as it was
//! written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_kube_pods::{DecodeError, Decoder, Event, Fields, LogPath};

const POD_BYTES: usize = 2048;

fuzz_target!(|input: (bool, u8, &[u8])| {
    let (is_watch, chunk, text) = input;
    let fields = Fields { labels: vec!["a*".into()], ..Fields::default() };
    let whole = decode(is_watch, &fields, text, usize::MAX);
    assert_eq!(decode(is_watch, &fields, text, usize::from(chunk).max(1)), whole);
    for event in &whole.0 {
        if let Event::Pod(_, pod) = event {
            assert!(pod.bytes() <= POD_BYTES);
        }
    }
    if let Some(path) = str::from_utf8(text).ok().and_then(LogPath::parse) {
        let again = format!("{}_{}_{}/{}/{}.log", path.namespace, path.pod, path.uid, path.container, path.restart_count);
        let again = LogPath::parse(&again).unwrap();
        assert_eq!((again.uid, again.container, again.restart_count), (path.uid, path.container, path.restart_count));
    }
});

fn decode(
    is_watch: bool,
    fields: &Fields,
    text: &[u8],
    chunk: usize,
) -> (Vec<Event>, Result<(), DecodeError>) {
    let mut decoder =
        if is_watch { Decoder::watch(fields, POD_BYTES) } else { Decoder::list(fields, POD_BYTES) };
    let mut events = Vec::new();
    for chunk in text.chunks(chunk) {
        if let Err(error) = decoder.feed(chunk, |event| events.push(event)) {
            return (events, Err(error));
        }
    }
    let end = decoder.end();
    (events, end)
}
