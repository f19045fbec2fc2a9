//! A resolver that takes no lock: `/etc/hosts`, then the name servers of `/etc/resolv.conf`.
//!
//! For forked children, and for when the system's resolver has no answer in time. It knows what it needs:
//! RFC 1035 over UDP, A and AAAA, search lists; what is cut off is taken as far as it goes.

use super::{Deadline, MOST};
use crate::random;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// How long one server has for one answer.
const TRY: Duration = Duration::from_secs(1);
/// Name servers and search domains, as the C library counts them.
const SERVERS: usize = 3;
const DOMAINS: usize = 6;

const A: u16 = 1;
const AAAA: u16 = 28;

pub(super) fn look_up(host: &str, patience: Deadline<'_>) -> Option<Vec<IpAddr>> {
    patience.left().ok()?;
    let from_hosts = lines("/etc/hosts").map(|lines| in_hosts(lines, host)).unwrap_or_default();
    if !from_hosts.is_empty() {
        return Some(from_hosts);
    }
    Settings::read(lines("/etc/resolv.conf")?).ask(host, patience)
}

fn lines(path: &str) -> Option<impl Iterator<Item = String>> {
    Some(BufReader::new(File::open(path).ok()?).lines().map_while(Result::ok))
}

/// The addresses that have this name, or alias.
fn in_hosts(lines: impl Iterator<Item = String>, host: &str) -> Vec<IpAddr> {
    let of_line = |line: String| {
        let mut words = line.split('#').next()?.split_ascii_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
    };
    lines.filter_map(of_line).take(MOST).collect()
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Settings {
    servers: Vec<SocketAddr>,
    domains: Vec<String>,
    dots: usize,
}

impl Settings {
    fn read(lines: impl Iterator<Item = String>) -> Settings {
        let mut settings = Settings { dots: 1, ..Settings::default() };
        for line in lines {
            let mut words = line.split(['#', ';']).next().unwrap_or_default().split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let address: Option<IpAddr> = words.next().and_then(|address| address.parse().ok());
                    settings.servers.extend(address.map(|address| SocketAddr::new(address, 53)));
                }
                Some("search" | "domain") => {
                    settings.domains = words.take(DOMAINS).map(str::to_owned).collect();
                }
                Some("options") => {
                    let dots =
                        words.filter_map(|option| option.strip_prefix("ndots:")?.parse().ok()).next_back();
                    settings.dots = dots.unwrap_or(settings.dots).min(15);
                }
                _ => {}
            }
        }
        settings.servers.truncate(SERVERS);
        if settings.servers.is_empty() {
            settings.servers.push((Ipv4Addr::LOCALHOST, 53).into());
        }
        settings
    }

    /// Names to ask for, in the order of resolv.conf(5).
    fn candidates(&self, host: &str) -> Vec<String> {
        if let Some(whole) = host.strip_suffix('.') {
            return vec![whole.to_owned()];
        }
        let mut names: Vec<_> =
            self.domains.iter().map(|domain| format!("{host}.{}", domain.trim_matches('.'))).collect();
        let dots = host.bytes().filter(|byte| *byte == b'.').count();
        names.insert(if dots >= self.dots { 0 } else { names.len() }, host.to_owned());
        names
    }

    fn ask(&self, host: &str, patience: Deadline<'_>) -> Option<Vec<IpAddr>> {
        for name in self.candidates(host) {
            for server in &self.servers {
                // Whether it knows addresses of the one kind, the other, or none.
                let answers = [A, AAAA].map(|kind| ask(*server, &name, kind, patience));
                let answered = answers.iter().any(Option::is_some);
                let found: Vec<_> = answers.into_iter().flatten().flatten().take(MOST).collect();
                if !found.is_empty() {
                    return Some(found);
                }
                patience.left().ok()?;
                if answered {
                    break;
                }
            }
        }
        None
    }
}

/// Nothing when there is no answer; an empty list when the server knows no such address.
fn ask(server: SocketAddr, name: &str, kind: u16, patience: Deadline<'_>) -> Option<Vec<IpAddr>> {
    let id = random::next() as u16;
    let query = query(id, name, kind)?;
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(server).ok()?;
    socket.send(&query).ok()?;
    let until = std::time::Instant::now() + TRY.min(patience.left().ok()?);
    let mut room = vec![0; 1500];
    loop {
        let left = until.saturating_duration_since(std::time::Instant::now());
        socket.set_read_timeout(Some(left).filter(|left| !left.is_zero())).ok()?;
        if left.is_zero() {
            return None;
        }
        let read = socket.recv(&mut room).ok()?;
        // Ignore answers to other questions.
        if let Some(found) = room.get(..read).and_then(|answer| answered(answer, &query)) {
            return found;
        }
    }
}

/// One question, recursion desired. Nothing for what is no name.
fn query(id: u16, name: &str, kind: u16) -> Option<Vec<u8>> {
    let mut query = Vec::with_capacity(name.len() + 18);
    query.extend(id.to_be_bytes());
    query.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..64).contains(length))?;
        query.push(length);
        query.extend(label.as_bytes());
    }
    query.push(0);
    query.extend(kind.to_be_bytes());
    query.extend([0, 1]);
    (name.len() < 254).then_some(query)
}

/// `None` when this is no answer to the query; `Some(None)` when the server failed.
fn answered(answer: &[u8], query: &[u8]) -> Option<Option<Vec<IpAddr>>> {
    let (head, rest) = answer.split_at_checked(12)?;
    let (&[_, _, flags, code, ..], question) = (head, query.get(12..)?) else { return None };
    let (asked, mut rest) = rest.split_at_checked(question.len())?;
    if head.get(..2)? != query.get(..2)? || flags & 0x80 == 0 || !asked.eq_ignore_ascii_case(question) {
        return None;
    }
    // No such name is an answer; a server that fails or refuses has none.
    if !matches!(code & 15, 0 | 3) {
        return Some(None);
    }
    let records = u16::from_be_bytes([*head.get(6)?, *head.get(7)?]);
    let mut found = Vec::new();
    for _ in 0..records {
        let Some(address) = record(&mut rest) else { break };
        found.extend(address);
    }
    Some(Some(found))
}

/// The next record: an address if it is one.
fn record(rest: &mut &[u8]) -> Option<Option<IpAddr>> {
    loop {
        match take(rest, 1)? {
            [0] => break,
            [length] if length & 0xc0 == 0xc0 => {
                take(rest, 1)?;
                break;
            }
            [length] => take(rest, usize::from(*length))?,
            _ => return None,
        };
    }
    let &[kind, also, _, class, _, _, _, _, high, low] = take(rest, 10)? else { return None };
    let data = take(rest, usize::from(u16::from_be_bytes([high, low])))?;
    let address = match (u16::from_be_bytes([kind, also]), class) {
        (A, 1) => <[u8; 4]>::try_from(data).ok().map(IpAddr::from),
        (AAAA, 1) => <[u8; 16]>::try_from(data).ok().map(IpAddr::from),
        _ => None,
    };
    Some(address)
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    static GO_ON: AtomicBool = AtomicBool::new(false);

    fn patience() -> Deadline<'static> {
        Deadline { until: Instant::now() + Duration::from_secs(30), called_off: &GO_ON }
    }

    fn text(text: &str) -> impl Iterator<Item = String> {
        text.lines().map(str::to_owned)
    }

    #[test]
    fn hosts_are_found_by_name_and_alias() {
        let hosts = "# shop 192.0.2.9\n127.0.0.1 localhost\n192.0.2.1 gateway.example Gateway # the one\n\
                     2001:db8::1\tgateway\nnonsense gateway\n";
        let found = in_hosts(text(hosts), "gateway");
        assert_eq!(found, ["192.0.2.1", "2001:db8::1"].map(|address| address.parse::<IpAddr>().unwrap()));
        assert!(in_hosts(text(hosts), "shop").is_empty());
    }

    #[test]
    fn settings_and_search_lists_are_as_resolv_conf_has_them() {
        let settings = Settings::read(text(
            "; comment\nnameserver 192.0.2.53\nnameserver 2001:db8::53\nsearch a.example b.example.\n\
             options timeout:1 ndots:2\n",
        ));
        assert_eq!(settings.servers.len(), 2);
        assert_eq!(settings.candidates("gw"), ["gw.a.example", "gw.b.example", "gw"]);
        assert_eq!(settings.candidates("x.y.z"), ["x.y.z", "x.y.z.a.example", "x.y.z.b.example"]);
        assert_eq!(settings.candidates("x.y."), ["x.y"]);
        assert_eq!(Settings::read(text("")).servers, ["127.0.0.1:53".parse().unwrap()]);
    }

    #[test]
    fn the_name_server_is_asked_and_foreign_answers_are_ignored() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let settings =
            Settings { servers: vec![server.local_addr().unwrap()], domains: vec!["test".into()], dots: 1 };
        let serving = std::thread::spawn(move || {
            let mut room = [0; 512];
            // Both kinds, of the name in the search list.
            for _ in 0..2 {
                let (read, from) = server.recv_from(&mut room).unwrap();
                let query = &room[..read];
                assert!(query.windows(8).any(|part| part == b"\x02gw\x04test"), "{query:?}");
                let data: &[u8] = if query[read - 3] == 1 { &[192, 0, 2, 4] } else { &[0xfd; 16] };
                let mut answer = query.to_vec();
                (answer[2], answer[3], answer[7]) = (0x81, 0x80, 2);
                // An alias first, as name servers give them.
                answer.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 2, 0xc0, 12]);
                answer.extend([0xc0, 12, 0, query[read - 3], 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
                answer.extend(data);
                let mut strange = answer.clone();
                strange[0] ^= 1;
                for answer in [&strange[..], b"short", &answer] {
                    server.send_to(answer, from).unwrap();
                }
            }
        });
        let found = settings.ask("gw", patience()).unwrap();
        assert_eq!(found, [IpAddr::from([192, 0, 2, 4]), IpAddr::from([0xfd; 16])]);
        serving.join().unwrap();
    }

    #[test]
    fn garbled_answers_are_no_addresses_and_no_panic() {
        let query = query(7, "gw.test", A).unwrap();
        let mut answer = query.clone();
        (answer[2], answer[3], answer[7]) = (0x81, 0x80, 9);
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
        for len in 0..answer.len() {
            let got = answered(&answer[..len], &query);
            assert!(got.flatten().unwrap_or_default().is_empty(), "{len}");
        }
        assert_eq!(answered(&answer, &query).flatten().unwrap().len(), 1);
        answer[3] = 0x82;
        assert_eq!(answered(&answer, &query), Some(None), "a server that fails");
        assert!(super::query(1, "a..b", A).is_none());
        assert!(super::query(1, &"x".repeat(64), A).is_none());
    }
}
