//! Sixteen pages of the console are open during a storm, of which some read nothing: they cost what is declared for them, and a
//! small part of a core.

use crate::support::{MIB, Storm, alone, full_speed, phase};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidegate_tests::{SOON, until};

const SERIES: usize = 20_000;
const CONNECTIONS: usize = 200;
/// Those that read, and those that do not.
const READING: usize = 12;
const STALLED: usize = 4;
/// How long the gateway is measured without pages.
const AT_REST: Duration = Duration::from_secs(5);

fn open(address: SocketAddr) -> TcpStream {
    let mut page = TcpStream::connect(address).unwrap();
    page.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    page.write_all(b"GET /console/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    page
}

/// Reads until it is told to stop, and counts events.
fn reading(address: SocketAddr, stop: Arc<AtomicBool>, events: Arc<AtomicUsize>) -> JoinHandle<()> {
    let mut page = open(address);
    std::thread::spawn(move || {
        let mut piece = vec![0; 64 << 10];
        while !stop.load(Relaxed) {
            match page.read(&mut piece) {
                Ok(0) => panic!("the gateway ended the stream"),
                Ok(read) => {
                    let ends = piece[..read].windows(2).filter(|end| *end == b"\n\n").count();
                    events.fetch_add(ends, Relaxed);
                }
                Err(error) => assert!(error.kind() == std::io::ErrorKind::WouldBlock, "{error}"),
            }
        }
    })
}

/// The share of a core that the gateway takes until `over`, which is given the beginning.
fn cores(storm: &mut Storm, over: impl Fn(Instant) -> bool) -> f64 {
    let (begun, cpu) = (Instant::now(), storm.gateway.process().cpu());
    until(SOON, "the end of the measurement", || over(begun));
    (storm.gateway.process().cpu() - cpu).as_secs_f64() / begun.elapsed().as_secs_f64()
}

#[test]
fn open_pages_cost_what_is_declared() {
    let _alone = alone();
    let mut storm = Storm::start(64 * MIB, SERIES, &json!({}));
    let admin = storm.gateway.admin();
    // At rest and without a page, the gateway looks after itself: that is no page's.
    let cores_at_rest = cores(&mut storm, |since| since.elapsed() >= AT_REST);
    let (stop, events) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let pages: Vec<_> =
        (0..READING).map(|_| reading(admin, Arc::clone(&stop), Arc::clone(&events))).collect();
    let stalled: Vec<TcpStream> = (0..STALLED).map(|_| open(admin)).collect();
    until(SOON, "all pages to have an event", || events.load(Relaxed) >= READING);

    // With pages the gateway also makes the frames, and sends them.
    let before = events.load(Relaxed);
    let cores_with_pages = cores(&mut storm, |_| events.load(Relaxed) >= before + 10 * READING);
    let cores_of_pages = cores_with_pages - cores_at_rest;
    println!(
        "{} open pages take {:.2} % of a core; without them the gateway takes {:.2} %",
        READING + STALLED,
        cores_of_pages * 100.0,
        cores_at_rest * 100.0
    );
    assert!(cores_of_pages < 0.03, "{cores_of_pages} of a core");

    let mut report = storm.drive(&full_speed(CONNECTIONS, phase())).join().unwrap();
    println!("{report}");
    assert_eq!(report.failed, 0, "everybody is answered: {report}");
    stop.store(true, Relaxed);
    pages.into_iter().for_each(|page| page.join().unwrap());
    drop(stalled);
    storm.is_over(&report.acked);
    storm.is_normal(&mut report.acked, 1 << 40);
}
