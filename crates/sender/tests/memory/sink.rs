//! A peer that acknowledges everything and allocates nothing once it serves.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;
use tidegate_sender::{Compression, Protocol, Sender};

const END: &[u8] = b"\r\n0\r\n\r\n";

pub(crate) struct Sink {
    port: u16,
}

impl Sink {
    pub(crate) fn new() -> Sink {
        Sink::at(0)
    }

    pub(crate) fn at(port: u16) -> Sink {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                std::thread::spawn(move || serve(stream));
            }
        });
        Sink { port }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn sender(&self, protocol: Protocol, compression: Compression) -> Sender {
        Sender::builder()
            .endpoint(self.url())
            .protocol(protocol)
            .compression(compression)
            .flush_interval(Duration::from_secs(60))
            .start()
            .unwrap()
    }
}

/// Answers whenever a body ends. Compressed or not, no body of these tests has its end inside.
fn serve(mut stream: TcpStream) {
    let mut room = [0; 16 << 10];
    let mut last = [0; END.len()];
    loop {
        let read = match stream.read(&mut room) {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        let tail = &room[..read];
        if read >= END.len() {
            last.copy_from_slice(&tail[read - END.len()..]);
        } else {
            last.rotate_left(read);
            last[END.len() - read..].copy_from_slice(tail);
        }
        if last == END && stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}
