//! Bodies that are routed by a key: what passes the check is routed to requests that pass it too, with as many items.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_wire::otlp::route::{RouteKey, RouteWriter, route};
use tidegate_wire::otlp::{Signal, check};

fuzz_target!(|input: &[u8]| {
    let Some((&first, body)) = input.split_first() else { return };
    let signal = [Signal::Traces, Signal::Logs, Signal::Metrics][usize::from(first) % 3];
    let Ok(counts) = check(signal, body) else { return };
    for key in [RouteKey::TraceId, RouteKey::Service, RouteKey::Resource, RouteKey::MetricName] {
        let mut requests = [const { (RouteWriter::new(), Vec::new()) }; 2];
        for run in route(signal, body, key) {
            let (writer, request) = &mut requests[(run.hash % 2) as usize];
            let (at, needed) = (request.len(), writer.len_of(&run, 0));
            request.resize(at + needed, 0);
            assert_eq!(writer.write(&run, 0, at, &mut request[at..]), Ok(needed));
            writer.close(request);
        }
        let items = requests.iter().map(|(_, request)| check(signal, request).expect("routed").items);
        assert_eq!(items.sum::<u64>(), counts.items);
    }
});
