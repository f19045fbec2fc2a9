//! Promise: while a task runs its writes are held back; whenever it waits they are on their way.

use super::*;
use rustix::net::sockopt::tcp_cork;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connecting = TcpStream::connect(listener.local_addr().unwrap());
    let (connected, accepted) = tokio::join!(connecting, listener.accept());
    (connected.unwrap(), accepted.unwrap().0)
}

#[tokio::test]
async fn what_is_written_arrives_while_the_task_waits() {
    let (mut near, mut far) = pair().await;
    let socket = BurstSocket::of(&near);
    let (told, wait) = tokio::sync::oneshot::channel::<()>();
    let writing = in_bursts(async move {
        for _ in 0..3 {
            socket.writes(WORTHWHILE);
            near.write_all(&[7; WORTHWHILE]).await.unwrap();
            assert!(tcp_cork(&near).unwrap());
        }
        wait.await.unwrap();
        assert!(!tcp_cork(&near).unwrap());
    });
    let reading = async {
        // All of it, and not only full segments.
        far.read_exact(&mut vec![0; 3 * WORTHWHILE]).await.unwrap();
        told.send(()).unwrap();
    };
    tokio::join!(writing, reading);
}

#[tokio::test]
async fn short_writes_and_those_of_others_are_not_held_back() {
    let (near, _far) = pair().await;
    let socket = BurstSocket::of(&near);
    socket.writes(WORTHWHILE);
    assert!(!tcp_cork(&near).unwrap(), "no task of a connection runs");
    in_bursts(async {
        socket.writes(WORTHWHILE - 1);
        assert!(!tcp_cork(&near).unwrap());
    })
    .await;
}

#[test]
fn a_task_that_panics_ends_its_burst() {
    let panicked = std::panic::catch_unwind(|| {
        let _burst = Burst::begin();
        panic!("as a task may");
    });
    assert!(panicked.is_err() && !IS_POLLING.get());
}
