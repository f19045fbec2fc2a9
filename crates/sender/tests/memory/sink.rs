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

/// Answers whenever a body ends, chunked or counted. Requests come one at a time, and no chunked body of these
/// tests has its end inside.
fn serve(mut stream: TcpStream) {
    let mut room = [0; 16 << 10];
    let mut filled = 0;
    loop {
        match stream.read(&mut room[filled..]) {
            Ok(0) | Err(_) => break,
            Ok(read) => filled += read,
        }
        let Some(head) = position(&room[..filled], b"\r\n\r\n").map(|at| at + 4) else { continue };
        let done = match content_length(&room[..head]) {
            Some(length) => {
                head + length <= filled || counted(&mut stream, &mut room, head + length - filled)
            }
            None => room[..filled].ends_with(END) || chunked(&mut stream, &mut room, filled),
        };
        filled = 0;
        if !done || stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

fn counted(stream: &mut TcpStream, room: &mut [u8], mut left: usize) -> bool {
    while left > 0 {
        match stream.read(room) {
            Ok(0) | Err(_) => return false,
            Ok(read) => left = left.saturating_sub(read),
        }
    }
    true
}

/// Reads until the end, of which some may stand at the end of what was `filled`.
fn chunked(stream: &mut TcpStream, room: &mut [u8], mut filled: usize) -> bool {
    loop {
        let kept = filled.min(END.len());
        room.copy_within(filled - kept..filled, 0);
        match stream.read(&mut room[kept..]) {
            Ok(0) | Err(_) => return false,
            Ok(read) => filled = kept + read,
        }
        if room[..filled].ends_with(END) {
            return true;
        }
    }
}

fn content_length(head: &[u8]) -> Option<usize> {
    let name = b"content-length: ";
    let line = head
        .split(|byte| *byte == b'\n')
        .find(|line| line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name))?;
    std::str::from_utf8(&line[name.len()..]).ok()?.trim().parse().ok()
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
