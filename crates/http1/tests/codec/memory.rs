//! The cost of a connection: little while idle, no allocation per request, and no uncharged memory.

use crate::pipe::{Client, pipe};
use crate::record::{peer, server, statuses};
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::heap::{CountingAllocator, allocations_of_this_thread};
use tidegate_arena::{Arena, Floors, PAGE};
use tidegate_http1::{
    Admitted, Body, ConnectionEnd, Head, Refusal, RefusalContext, Reply, Server, Service, Settings, Shutdown,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[global_allocator]
static HEAP: CountingAllocator<std::alloc::System> = CountingAllocator::new(std::alloc::System);

/// A service as lean as a real one can be.
struct Lean;

impl Service for Lean {
    type RequestState = u32;

    fn admit(&self, _: &Head<'_>) -> Result<Admitted<u32>, Reply> {
        Ok(Admitted { max_body: 1 << 20, ticket: 1 })
    }

    async fn answer(&self, _: u32, body: Body) -> Reply {
        drop(body);
        Reply::new(204).numbers(&["Samples-Written"], [3, 0, 0])
    }

    fn refuse(&self, refusal: Refusal, _: RefusalContext<'_, u32>) -> Reply {
        refusal.reply()
    }
}

fn lean() -> Arc<Server<Lean>> {
    let arena = Arena::new(16 << 20, Floors::NONE, 2 << 20, 64, 64).unwrap();
    Server::new(Lean, Settings::default(), arena, Shutdown::new())
}

/// The whole state of a connection is small: it is what an idle one costs.
#[test]
fn the_future_of_a_connection_is_small() {
    let (_, pipe) = pipe();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream.set_nonblocking(true).unwrap();
    let in_memory = size_of_val(&lean().serve(pipe, peer()));
    let tcp = size_of_val(&lean().serve(TcpStream::from_std(stream).unwrap(), peer()));
    println!("a connection's future: {in_memory} bytes in memory, {tcp} bytes on TCP");
    assert!(tcp < 1024, "{tcp} bytes");
}

/// Answering a request on an open connection allocates nothing, sized or chunked, on a real socket.
#[test]
fn a_request_allocates_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let talking = async {
            let body = vec![b'x'; 20_000];
            let mut sized =
                format!("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
            sized.extend_from_slice(&body);
            let mut chunked = b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for chunk in body.chunks(3_000) {
                chunked.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                chunked.extend_from_slice(chunk);
                chunked.extend_from_slice(b"\r\n");
            }
            chunked.extend_from_slice(b"0\r\n\r\n");
            let mut answer = [0; 1024];
            let mut before = 0;
            for round in 0..300 {
                if round == 100 {
                    before = allocations_of_this_thread();
                }
                let request = if round % 2 == 0 { &sized } else { &chunked };
                client.write_all(request).await.unwrap();
                let read = client.read(&mut answer).await.unwrap();
                assert!(answer[..read].starts_with(b"HTTP/1.1 204 "));
            }
            let allocations = allocations_of_this_thread() - before;
            drop(client);
            allocations
        };
        let server = lean();
        let (ended, allocations) = tokio::join!(server.serve(stream, peer), talking);
        assert_eq!((ended, allocations), (ConnectionEnd::ByClient, 0));
    });
}

/// Serves one connection on a paused clock while `script` talks to it.
fn during<F: Future<Output = ()>>(
    server: &Arc<Server<crate::record::Record>>,
    script: impl FnOnce(Client) -> F,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let (client, pipe) = pipe();
    let both = async { tokio::join!(server.serve(pipe, peer()), script(client.clone())) };
    runtime.unwrap().block_on(both);
    assert_eq!(used(server.arena()), 0, "all of it is given back");
}

fn used(arena: &Arena) -> u64 {
    arena.usage().shares.iter().map(|share| share.used).sum()
}

/// Lets the server do all it can do now.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

/// An idle connection holds no window; half a head holds a page, even after large requests; a body holds
/// what it announced, no more; and a refused one nothing while it is thrown away.
#[test]
fn memory_is_held_only_while_a_request_is_in_progress() {
    let server = server(Settings::default());
    let arena = server.arena().clone();
    during(&server, |client| async move {
        settle().await;
        assert_eq!(used(&arena), 0);
        client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n");
        settle().await;
        assert_eq!(used(&arena), 4 * 64 * 1024);
        client.send(vec![0; 200_000]);
        settle().await;
        assert_eq!((used(&arena), statuses(&client.answers())), (0, vec![204]));
        client.send("GET / HTTP/1.1\r\nHos");
        settle().await;
        assert_eq!(used(&arena), PAGE as u64);
        client.send("t: h\r\n\r\n");
        settle().await;
        assert_eq!((used(&arena), statuses(&client.answers())), (0, vec![204, 204]));
        client.send("POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n");
        settle().await;
        assert_eq!((used(&arena), statuses(&client.answers())), (0, vec![204, 204, 401]));
        client.close();
    });
}

/// A chunk that claims to be large is paid for as it arrives.
#[test]
fn chunks_are_paid_for_as_they_arrive() {
    let server = server(Settings::default());
    let arena = server.arena().clone();
    during(&server, |client| async move {
        client.send("POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nf0000\r\n");
        settle().await;
        assert!(used(&arena) <= 5 * 64 * 1024, "{}", used(&arena));
        client.send(vec![0; 0xf0000]);
        client.send("\r\n0\r\n\r\n");
        settle().await;
        assert_eq!((used(&arena), statuses(&client.answers())), (0, vec![204]));
        client.close();
    });
}

/// Requests sent without waiting for answers are answered in order; where there is no memory to keep what
/// came ahead, the one after is refused, and neither is lost in silence.
#[test]
fn pipelined_requests_are_answered_or_refused() {
    let request = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello";
    let all_at_once = |total: u64| {
        let server = crate::record::server_with(Settings::default(), total);
        let mut answered = Vec::new();
        during(&server, |client| {
            client.send(request.repeat(3));
            client.close();
            let answered = &mut answered;
            async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                *answered = statuses(&client.answers());
            }
        });
        answered
    };
    assert_eq!(all_at_once(1 << 20), [204, 204, 204]);
    assert_eq!(all_at_once(PAGE as u64), [204, 503]);
}
