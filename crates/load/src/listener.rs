//! A listener that can be gone for a while without losing its port.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// The pause between attempts to listen again.
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// Listens at `address` again. Between two sockets the port may have gone to somebody's outgoing connection: then this waits
/// until that has ended.
pub(crate) async fn listen_again(mut held: Option<TcpSocket>, address: SocketAddr) -> TcpListener {
    loop {
        let socket = held.take().map_or_else(|| hold(address), Ok);
        if let Ok(listener) = socket.and_then(|socket| socket.listen(BACKLOG)) {
            return listener;
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

/// `address`, at which nobody listens.
pub(crate) fn hold(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// The next connection; none comes without a listener.
pub(crate) async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    loop {
        match listener {
            None => std::future::pending().await,
            Some(listener) => {
                if let Ok((stream, _peer)) = listener.accept().await {
                    return stream;
                }
                // Out of descriptors, most likely: let connections end.
                tokio::task::yield_now().await;
            }
        }
    }
}
