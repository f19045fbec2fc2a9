//! The memory of an idle connection. A separate process, since it measures the heap of the process.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

#[path = "tls/rig.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod rig;

use rig::rig;
use std::future::poll_fn;
use std::sync::Arc;
use tidegate_arena::heap::{CountingAllocator, heap};
use tidegate_http1::Stream as _;
use tidegate_tls::{CONNECTION_BYTES, ClientAuth, TlsStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[global_allocator]
static HEAP: CountingAllocator<std::alloc::System> = CountingAllocator::new(std::alloc::System);

/// An idle connection's memory, on the heap and in its task, is below its charge in the budget.
#[tokio::test]
async fn an_idle_connection_stays_below_its_charge() {
    const MANY: usize = 20;
    let rig = rig(ClientAuth::Required).await;
    let signed = rig.authority.sign("agent", "Acme");
    let config = Arc::new(rig.client(Some(&signed)));
    let mut most = 0;
    for _ in 0..MANY {
        let server = async {
            let mut stream = rig.enter().await.unwrap();
            let mut request = [0; 4096];
            assert!(poll_fn(|context| stream.poll_read(context, &mut request)).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            stream
        };
        let client = async {
            let mut stream = rig.connect(&config).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
            assert!(stream.read(&mut [0; 100]).await.unwrap() > 0);
            stream
        };
        let (server, _client) = tokio::join!(server, client);
        assert!(server.certificate().is_some());
        let live = heap().live;
        drop(server);
        most = most.max(live - heap().live);
    }
    let all = usize::try_from(most).unwrap() + size_of::<TlsStream>();
    println!("an idle connection keeps {most} bytes beside its {} own", size_of::<TlsStream>());
    assert!(all < CONNECTION_BYTES, "{all}");
}
