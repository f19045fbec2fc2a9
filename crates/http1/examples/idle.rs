//! Measures what idle keep-alive connections cost: `cargo run --release -p tidegate-http1 --example idle -- 10000`.
//!
//! The clients live in a child process, so that only the server's side is counted. Each connection makes one
//! request and stays open.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example, which says what it measures"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use tidegate_arena::heap::{CountingAllocator, Jemalloc, heap};
use tidegate_arena::{Arena, Floors};
use tidegate_http1::{
    Admitted, Body, Head, Refusal, RefusalContext, Reply, Server, Service, Settings, Shutdown,
};
use tokio::net::TcpListener;

#[global_allocator]
static HEAP: CountingAllocator<Jemalloc> = CountingAllocator::new(tikv_jemallocator::Jemalloc);

struct NoContent;

impl Service for NoContent {
    type RequestState = u64;

    fn admit(&self, _: &Head<'_>) -> Result<Admitted<u64>, Reply> {
        Ok(Admitted { max_body: 1 << 20, ticket: 0 })
    }

    async fn answer(&self, _: u64, _: Body) -> Reply {
        Reply::new(204)
    }

    fn refuse(&self, refusal: Refusal, _: RefusalContext<'_, u64>) -> Reply {
        refusal.reply()
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("clients"), Some(address)) => {
            clients(address.parse().unwrap(), arguments.next().unwrap().parse().unwrap())
        }
        (connections, _) => serve(connections.map_or(10_000, |count| count.parse().unwrap())),
    }
}

fn serve(connections: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let arena = Arena::new(64 << 20, Floors::NONE, 32 << 20, 256, 256).unwrap();
        let server = Server::new(NoContent, Settings::default(), arena, Shutdown::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let child = |connections: usize| {
            let program = std::env::current_exe().unwrap();
            let mut command = Command::new(program);
            command.args(["clients", &address.to_string(), &connections.to_string()]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
        };
        let mut size = 0;
        let mut accept = async |connections: usize| {
            for _ in 0..connections {
                let (stream, peer) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let serving = server.serve(stream, peer);
                size = size_of_val(&serving);
                tokio::spawn(serving);
            }
        };
        // The first hundred pay for what is made once.
        let mut warm = child(100);
        accept(100).await;
        answered(&mut warm).await;
        let (resident_before, heap_before) = (resident(), heap().live);
        let mut clients = child(connections);
        accept(connections).await;
        answered(&mut clients).await;
        let per = |bytes: u64| bytes as f64 / connections as f64;
        println!("connections                 {connections}");
        println!("future                      {size} bytes");
        println!("heap per connection         {:.0} bytes", per(heap().live - heap_before));
        println!("resident per connection     {:.0} bytes", per(resident() - resident_before));
        for mut child in [warm, clients] {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    });
}

/// Waits until the child says that every connection has its answer.
async fn answered(child: &mut std::process::Child) {
    let mut output = child.stdout.take().unwrap();
    tokio::task::spawn_blocking(move || output.read_exact(&mut [0])).await.unwrap().unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
}

/// The child: opens the connections, makes a request on each, says so, and holds them until its input ends.
fn clients(address: SocketAddr, connections: usize) {
    let held: Vec<TcpStream> = (0..connections)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "POST /api/v1/write HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
                .unwrap();
            let mut answer = [0; 256];
            let read = stream.read(&mut answer).unwrap();
            assert!(answer[..read].starts_with(b"HTTP/1.1 204 "));
            stream
        })
        .collect();
    std::io::stdout().write_all(b".").unwrap();
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
    drop(held);
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
