//! The addresses behind the peer's name, in bounded time, also in a forked child.
//!
//! The system's resolver takes locks that `fork` leaves as they are, so in a child it may never return; and
//! anywhere it may take minutes. It is asked on a thread of its own, one per name at a time, which nobody waits
//! for longer than the request has time. A child asks [`stub`] first, which takes no lock, and the system only
//! for names that neither `/etc/hosts` nor the name servers know.

mod known;
mod stub;

pub(crate) use known::AddressCache;

use super::Deadline;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Of the thread that asks the system, whose modules may be anybody's.
const STACK: usize = 256 << 10;
/// Addresses of a name that are tried.
const MOST: usize = 16;
/// How often the wait for the system looks whether it was called off.
const SLICE: Duration = Duration::from_millis(100);

pub(crate) struct Resolver {
    known: Arc<AddressCache>,
    /// This process is a child of the one that started the sender.
    forked: bool,
    /// Questions to the system that have no answer yet; some never get one.
    asked: Vec<ResolverRequest>,
}

struct ResolverRequest {
    host: String,
    answer: Receiver<Vec<IpAddr>>,
}

impl Resolver {
    pub(crate) fn new(known: Arc<AddressCache>, forked: bool) -> Resolver {
        Resolver { known, forked, asked: Vec::new() }
    }

    /// The addresses to try, in this order. None at all when nobody knows.
    pub(crate) fn addresses(
        &mut self,
        host: &str,
        port: u16,
        patience: Deadline<'_>,
    ) -> impl Iterator<Item = SocketAddr> + use<> {
        let found = literally(host).unwrap_or_else(|| self.look_up(host, patience));
        found.into_iter().take(MOST).map(move |address| SocketAddr::new(address, port))
    }

    fn look_up(&mut self, host: &str, patience: Deadline<'_>) -> Vec<IpAddr> {
        // The peer has the rest of the time.
        let mut found = self.forked.then(|| stub::look_up(host, half(patience))).flatten();
        if found.is_none() {
            found = self.system(host, half(patience));
        }
        let late = found.is_none() && self.asked.iter().any(|question| question.host == host);
        if late && !self.forked {
            found = stub::look_up(host, half(patience));
        }
        match found {
            Some(found) => {
                self.known.remember(host, &found);
                found
            }
            None => self.known.recall(host),
        }
    }

    /// Nothing if the system knows nothing, or has no answer in time.
    fn system(&mut self, host: &str, patience: Deadline<'_>) -> Option<Vec<IpAddr>> {
        let question = match self.asked.iter().position(|question| question.host == host) {
            Some(asked) => self.asked.swap_remove(asked),
            None => ResolverRequest::put(host)?,
        };
        loop {
            let left = match patience.left() {
                Ok(left) => left,
                Err(_) => {
                    self.asked.push(question);
                    return None;
                }
            };
            match question.answer.recv_timeout(left.min(SLICE)) {
                Ok(found) => return Some(found).filter(|found| !found.is_empty()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

impl ResolverRequest {
    fn put(host: &str) -> Option<ResolverRequest> {
        let (give, answer) = sync_channel(1);
        let name = host.to_owned();
        let ask = move || {
            let found = (name.as_str(), 0).to_socket_addrs();
            let found = found.map(|found| found.map(|address| address.ip()).take(MOST).collect());
            // Nobody waits any more when the sending thread has ended.
            let _ = give.send(found.unwrap_or_default());
        };
        tidegate_sender_fork::spawn(c"tidegate-names", STACK, ask).ok()?;
        Some(ResolverRequest { host: host.to_owned(), answer })
    }
}

/// Hosts that need no lookup: addresses, and this machine (RFC 6761, section 6.3).
fn literally(host: &str) -> Option<Vec<IpAddr>> {
    if let Ok(address) = host.parse() {
        return Some(vec![address]);
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let local = name.eq_ignore_ascii_case("localhost")
        || name.len() > 10 && name.get(name.len() - 10..)?.eq_ignore_ascii_case(".localhost");
    local.then(|| vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
}

/// Half of the time that is left.
fn half(patience: Deadline<'_>) -> Deadline<'_> {
    let left = patience.left().unwrap_or_default();
    Deadline { until: patience.until.checked_sub(left / 2).unwrap_or(patience.until), ..patience }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    static GO_ON: AtomicBool = AtomicBool::new(false);

    fn patience(time: Duration) -> Deadline<'static> {
        Deadline { until: Instant::now() + time, called_off: &GO_ON }
    }

    #[test]
    fn addresses_and_this_machine_are_not_looked_up() {
        let mut names = Resolver::new(Arc::new(AddressCache::default()), false);
        let mut of = |host: &str| -> Vec<String> {
            // No time to ask anybody.
            let found = names.addresses(host, 80, patience(Duration::ZERO));
            found.map(|address| address.to_string()).collect()
        };
        assert_eq!(of("192.0.2.7"), ["192.0.2.7:80"]);
        assert_eq!(of("2001:db8::7"), ["[2001:db8::7]:80"]);
        for name in ["localhost", "LocalHost", "localhost.", "tests.localhost"] {
            assert_eq!(of(name), ["127.0.0.1:80", "[::1]:80"], "{name}");
        }
        assert_eq!(of("notlocalhost.invalid"), [""; 0]);
    }

    #[test]
    fn a_system_that_never_answers_is_asked_once_and_costs_the_time_given() {
        // With an empty label, for which no name server is asked: one might know every name.
        let known = Arc::new(AddressCache::default());
        known.remember("stuck..invalid", &[Ipv4Addr::new(192, 0, 2, 1).into()]);
        let mut names = Resolver::new(known, false);
        let (_never, answer) = sync_channel(1);
        names.asked.push(ResolverRequest { host: "stuck..invalid".to_owned(), answer });
        for _ in 0..3 {
            let found: Vec<_> =
                names.addresses("stuck..invalid", 1, patience(Duration::from_millis(20))).collect();
            assert_eq!(found, ["192.0.2.1:1".parse().unwrap()], "what was known before the system got stuck");
            assert_eq!(names.asked.len(), 1);
        }
    }

    #[test]
    fn a_late_answer_is_used_by_the_next_query() {
        let mut names = Resolver::new(Arc::new(AddressCache::default()), false);
        let (give, answer) = sync_channel(1);
        names.asked.push(ResolverRequest { host: "late.invalid".to_owned(), answer });
        give.send(vec![Ipv4Addr::new(192, 0, 2, 2).into()]).unwrap();
        let found: Vec<_> = names.addresses("late.invalid", 1, patience(Duration::from_secs(9))).collect();
        assert_eq!(found, ["192.0.2.2:1".parse().unwrap()]);
        assert!(names.asked.is_empty());
        assert_eq!(names.known.recall("late.invalid").len(), 1);
    }
}
