//! A name server on loopback, over UDP and TCP, whose answers tests choose.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

const LONGEST_QUESTION: usize = 512;

/// A name server. It ends when it is dropped.
pub struct NameServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// How it treats a name.
#[derive(Debug, Clone, Default)]
pub struct Zone {
    /// Its addresses, of both kinds.
    pub addresses: Vec<IpAddr>,
    /// Its SRV records: targets and ports.
    pub services: Vec<(String, u16)>,
    /// The name that it is an alias of, whose addresses follow in the answer.
    pub alias: Option<String>,
    /// Its fault.
    pub fault: Option<Fault>,
}

/// How an answer is spoilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// There is none.
    Silence,
    /// There is none about IPv6 addresses.
    SilenceAboutIpv6,
    /// The response code, such as 2 for SERVFAIL.
    Code(u8),
    /// Its records are cut off.
    Garbage,
    /// Before it come answers to other questions.
    Strangers,
    /// Over UDP it is cut off, and says so.
    Truncated,
    /// The same, and over TCP there is none.
    TruncatedEverywhere,
}

#[derive(Default)]
struct Shared {
    zones: Mutex<HashMap<String, Zone>>,
    is_stopping: AtomicBool,
}

impl NameServer {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// When there is none.
    pub fn start() -> io::Result<NameServer> {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = tcp.local_addr()?;
        let udp = UdpSocket::bind(address)?;
        let shared = Arc::new(Shared::default());
        let threads = vec![
            std::thread::spawn({
                let shared = Arc::clone(&shared);
                move || shared.serve_udp(&udp)
            }),
            std::thread::spawn({
                let shared = Arc::clone(&shared);
                move || shared.serve_tcp(&tcp)
            }),
        ];
        Ok(NameServer { address, shared, threads })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets what is known of `name`, in lower case without the last dot.
    pub fn set(&self, name: &str, zone: Zone) {
        self.shared.zones.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), zone);
    }

    /// Sets the addresses of `name`.
    pub fn set_addresses(&self, name: &str, addresses: &[IpAddr]) {
        self.set(name, Zone { addresses: addresses.to_vec(), ..Zone::default() });
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::Release);
        // Both threads wait for a question: one that wakes them.
        let woken =
            UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.send_to(&[], self.address));
        if woken.is_ok() && std::net::TcpStream::connect(self.address).is_ok() {
            for thread in self.threads.drain(..) {
                _ = thread.join();
            }
        }
    }
}

impl Shared {
    fn serve_udp(&self, socket: &UdpSocket) {
        let mut datagram = [0; LONGEST_QUESTION];
        while let Ok((length, from)) = socket.recv_from(&mut datagram) {
            if self.is_stopping.load(Ordering::Acquire) {
                return;
            }
            for answer in
                datagram.get(..length).and_then(|question| self.answers(question, false)).unwrap_or_default()
            {
                _ = socket.send_to(&answer, from);
            }
        }
    }

    fn serve_tcp(&self, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.is_stopping.load(Ordering::Acquire) {
                return;
            }
            let Ok(mut stream) = stream else { continue };
            let mut length = [0; 2];
            let mut question = [0; LONGEST_QUESTION];
            let Ok(()) = stream.read_exact(&mut length) else { continue };
            let Some(question) = question.get_mut(..usize::from(u16::from_be_bytes(length))) else {
                continue;
            };
            let Ok(()) = stream.read_exact(question) else { continue };
            for answer in self.answers(question, true).unwrap_or_default() {
                let length = u16::try_from(answer.len()).unwrap_or(u16::MAX);
                _ = stream.write_all(&[&length.to_be_bytes()[..], &answer].concat());
            }
        }
    }

    /// The messages that answer `question`; nothing if it is none.
    fn answers(&self, question: &[u8], is_tcp: bool) -> Option<Vec<Vec<u8>>> {
        let (name, end) = read_name(question)?;
        let kind = u16::from_be_bytes([*question.get(end)?, *question.get(end + 1)?]);
        let zones = self.zones.lock().unwrap_or_else(PoisonError::into_inner);
        let zone = zones.get(&name);
        let fault = zone.and_then(|zone| zone.fault);
        let mut answer = question.get(..end + 4)?.to_vec();
        // A response, with recursion desired and available.
        *answer.get_mut(2)? = 0x81;
        *answer.get_mut(3)? = 0x80 | if zone.is_none() { 3 } else { 0 };
        let mut count = 0_u16;
        if let Some(zone) = zone {
            let (mut owner, mut end_of_chain) = (name.as_str(), zone);
            if let Some(alias) = &zone.alias {
                append(&mut answer, owner, 5, &encoded(alias));
                count += 1;
                (owner, end_of_chain) = (alias, zones.get(alias)?);
                // Of somebody else: to be ignored.
                append(&mut answer, &name, 1, &[203, 0, 113, 1]);
                count += 1;
            }
            for data in end_of_chain.data(kind) {
                append(&mut answer, owner, kind, &data);
                count += 1;
            }
        }
        answer.get_mut(6..8)?.copy_from_slice(&count.to_be_bytes());
        let mut answers = Vec::new();
        match fault {
            Some(Fault::Silence) => return None,
            Some(Fault::SilenceAboutIpv6) if kind == 28 => return None,
            Some(Fault::TruncatedEverywhere) if is_tcp => return None,
            Some(Fault::Code(code)) => *answer.get_mut(3)? = 0x80 | code,
            Some(Fault::Garbage) => answer.truncate(answer.len() - 3),
            Some(Fault::Truncated | Fault::TruncatedEverywhere) if !is_tcp => *answer.get_mut(2)? |= 2,
            Some(Fault::Strangers) => {
                let mut other_id = answer.clone();
                *other_id.get_mut(0)? ^= 1;
                let mut other_name = answer.clone();
                *other_name.get_mut(13)? ^= 1;
                answers.extend([b"?".to_vec(), question.to_vec(), other_id, other_name]);
            }
            _ => {}
        }
        answers.push(answer);
        Some(answers)
    }
}

impl Zone {
    fn data(&self, kind: u16) -> Vec<Vec<u8>> {
        let of_address = |address: &IpAddr| match (address, kind) {
            (IpAddr::V4(address), 1) => Some(address.octets().to_vec()),
            (IpAddr::V6(address), 28) => Some(address.octets().to_vec()),
            _ => None,
        };
        let of_service =
            |(host, port): &(String, u16)| [&[0, 1, 0, 1], &port.to_be_bytes()[..], &encoded(host)].concat();
        if kind == 33 {
            self.services.iter().map(of_service).collect()
        } else {
            self.addresses.iter().filter_map(of_address).collect()
        }
    }
}

/// The name in a question in lower case, and where it ends.
fn read_name(question: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), 12);
    loop {
        let length = usize::from(*question.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        labels.push(String::from_utf8_lossy(question.get(at..at + length)?).to_lowercase());
        at += length;
    }
}

fn encoded(name: &str) -> Vec<u8> {
    let mut encoded = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        encoded.push(u8::try_from(label.len()).unwrap_or(0));
        encoded.extend(label.as_bytes());
    }
    encoded.push(0);
    encoded
}

fn append(answer: &mut Vec<u8>, owner: &str, kind: u16, data: &[u8]) {
    answer.extend(encoded(owner));
    answer.extend(kind.to_be_bytes());
    answer.extend([0, 1, 0, 0, 0, 30]);
    answer.extend(u16::try_from(data.len()).unwrap_or(0).to_be_bytes());
    answer.extend(data);
}
