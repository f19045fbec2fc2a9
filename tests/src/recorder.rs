//! A receiver of remote write that keeps every body as it came.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Keeps bodies of any content type and answers 204 as a 2.0 receiver would. It serves until the test's end.
#[derive(Debug)]
pub struct Recorder {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Recorded>>>,
}

/// A request that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub body: Vec<u8>,
}

/// Requests kept, and bytes of a body.
const MOST: usize = 10_000;
const LONGEST: usize = 64 << 20;

impl Recorder {
    /// Starts one.
    ///
    /// # Panics
    /// When there is no port to be had.
    pub fn start() -> Recorder {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &seen));
            }
        });
        Recorder { address, seen }
    }

    /// The URL to write to.
    pub fn url(&self) -> String {
        format!("http://{}/api/v1/write", self.address)
    }

    /// The items received so far.
    pub fn seen(&self) -> Vec<Recorded> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Recorded {
    /// The value of a header, if it is there.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

/// Serves a connection until its end, or until something comes that no remote write is.
fn serve(stream: TcpStream, seen: &Mutex<Vec<Recorded>>) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut headers = Vec::new();
        let mut line = String::new();
        while reader.read_line(&mut line).ok()? > 2 {
            if let Some((name, value)) = line.split_once(':') {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            line.clear();
        }
        let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
        let mut body = vec![0; Some(length).filter(|length| *length <= LONGEST)?];
        reader.read_exact(&mut body).ok()?;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST {
            return None;
        }
        seen.push(Recorded { headers, body });
        drop(seen);
        let written = "X-Prometheus-Remote-Write-Samples-Written: 0\r\n";
        writer.write_all(format!("HTTP/1.1 204 No Content\r\n{written}\r\n").as_bytes()).ok()?;
    }
}
