//! A target for scrapes, with a page of the test's own.

use crate::free_address;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

/// A target on loopback that can lose a series, vanish and come back.
#[derive(Debug)]
pub struct ScrapeTarget {
    address: SocketAddr,
    page: Arc<Page>,
    server: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Page {
    scrapes: AtomicU64,
    without_series: AtomicBool,
    stopping: AtomicBool,
}

impl ScrapeTarget {
    /// One that serves its page.
    ///
    /// # Panics
    /// When there is no port to be had.
    pub fn started() -> ScrapeTarget {
        let mut target = ScrapeTarget { address: free_address(), page: Arc::default(), server: None };
        target.start();
        target
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often it was scraped: the value of `own_scrapes` on the last page.
    pub fn scrapes(&self) -> u64 {
        self.page.scrapes.load(Relaxed)
    }

    /// Whether the series `own_vanishing` is missing from now on.
    pub fn lose_series(&self, lost: bool) {
        self.page.without_series.store(lost, Relaxed);
    }

    /// Starts it again.
    ///
    /// # Panics
    /// When its port is taken.
    pub fn start(&mut self) {
        let listener = TcpListener::bind(self.address).unwrap();
        self.page.stopping.store(false, Relaxed);
        let page = Arc::clone(&self.page);
        self.server = Some(std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if page.stopping.load(Relaxed) {
                    return;
                }
                let _client_gone = page.serve(stream);
            }
        }));
    }

    /// Stops it: nobody listens any more.
    ///
    /// # Panics
    /// When it is not running.
    pub fn stop(&mut self) {
        self.page.stopping.store(true, Relaxed);
        // Wakes the server, which looks whether it is to stop.
        let _woken = TcpStream::connect(self.address);
        self.server.take().unwrap().join().unwrap();
    }
}

impl Drop for ScrapeTarget {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.stop();
        }
    }
}

impl Page {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(crate::SOON))?;
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let scrapes = self.scrapes.fetch_add(1, Relaxed) + 1;
        let mut text = format!(
            "# TYPE own_scrapes counter\n# HELP own_scrapes How often.\nown_scrapes {scrapes}\n\
             own_special{{value=\"nan\"}} NaN\nown_special{{value=\"-inf\"}} -Inf\n\
             own_special{{value=\"zürich \\\"1\\\"\"}} 1e-300\n"
        );
        if !self.without_series.load(Relaxed) {
            text.push_str(&format!("own_vanishing {scrapes}\n"));
        }
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{text}",
            text.len()
        )
    }
}
