//! `/etc/resolv.conf` and `/etc/hosts`.

use super::Record;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The most bytes that are read of either file: the rest is ignored.
const LONGEST_FILE: u64 = 256 << 10;
/// Name servers and search domains, as the C library counts them.
const SERVERS: usize = 3;
const DOMAINS: usize = 6;
/// The longest wait for one answer. The C library has 30 s; what changes nothing need not wait for it.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How names are looked up: resolv.conf(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolverConfig {
    pub(crate) servers: Vec<SocketAddr>,
    pub(crate) domains: Vec<String>,
    /// A name with at least so many dots is tried as it is before the search domains.
    pub(crate) dots: usize,
    pub(crate) timeout: Duration,
    /// How often each server is asked.
    pub(crate) attempts: usize,
}

impl Default for ResolverConfig {
    fn default() -> ResolverConfig {
        ResolverConfig {
            servers: Vec::new(),
            domains: Vec::new(),
            dots: 1,
            timeout: Duration::from_secs(2),
            attempts: 2,
        }
    }
}

impl ResolverConfig {
    /// As the system has it now: it may have changed since the last time.
    pub(crate) fn of_system() -> ResolverConfig {
        lines("/etc/resolv.conf")
            .map_or_else(|| ResolverConfig::read(std::iter::empty()), ResolverConfig::read)
    }

    /// These servers, and names as they are.
    pub(crate) fn with_servers(servers: &[SocketAddr]) -> ResolverConfig {
        ResolverConfig { servers: servers.to_vec(), dots: 0, ..ResolverConfig::default() }
    }

    fn read(lines: impl Iterator<Item = String>) -> ResolverConfig {
        let mut config = ResolverConfig::default();
        for line in lines {
            if line.starts_with(['#', ';']) {
                continue;
            }
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") if config.servers.len() < SERVERS => {
                    let address = words.next().and_then(|address| address.parse::<IpAddr>().ok());
                    config.servers.extend(address.map(|address| SocketAddr::new(address, 53)));
                }
                Some("search" | "domain") => {
                    config.domains = words
                        .filter(|domain| super::is_name(domain))
                        .take(DOMAINS)
                        .map(str::to_owned)
                        .collect();
                }
                Some("options") => words.for_each(|option| config.set(option)),
                _ => {}
            }
        }
        if config.servers.is_empty() {
            config.servers.push((Ipv4Addr::LOCALHOST, 53).into());
        }
        config
    }

    fn set(&mut self, option: &str) {
        let Some((name, value)) = option.split_once(':') else { return };
        let Ok(value) = value.parse::<u32>() else { return };
        match name {
            "ndots" => self.dots = value.min(15) as usize,
            "timeout" => self.timeout = Duration::from_secs(u64::from(value.max(1))).min(LONGEST_TIMEOUT),
            "attempts" => self.attempts = value.clamp(1, 5) as usize,
            _ => {}
        }
    }

    /// The names to ask for, in this order, until one has records.
    pub(crate) fn candidates(&self, name: &str) -> Vec<String> {
        if name.ends_with('.') {
            return vec![name.to_owned()];
        }
        let mut names: Vec<_> = self
            .domains
            .iter()
            .map(|domain| format!("{name}.{domain}"))
            .filter(|name| super::is_name(name))
            .collect();
        let dots = name.bytes().filter(|byte| *byte == b'.').count();
        names.insert(if dots >= self.dots { 0 } else { names.len() }, name.to_owned());
        names
    }
}

/// The addresses that `name` has in `/etc/hosts`.
pub(crate) fn in_hosts(name: &str, most: usize) -> Vec<Record> {
    lines("/etc/hosts").map(|lines| addresses_of(lines, name, most)).unwrap_or_default()
}

fn addresses_of(lines: impl Iterator<Item = String>, name: &str, most: usize) -> Vec<Record> {
    let of_line = |line: String| {
        let mut words = line.split('#').next()?.split_ascii_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|word| word.eq_ignore_ascii_case(name)).then_some(Record::Address(address))
    };
    lines.filter_map(of_line).take(most).collect()
}

fn lines(path: &str) -> Option<impl Iterator<Item = String>> {
    Some(BufReader::new(File::open(path).ok()?.take(LONGEST_FILE)).lines().map_while(Result::ok))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> impl Iterator<Item = String> {
        text.lines().map(str::to_owned)
    }

    #[test]
    fn the_file_of_a_pod_is_understood() {
        let config = ResolverConfig::read(text(
            "# a comment\nsearch ns.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\n\
             nameserver fd00::a\noptions ndots:5 timeout:1 attempts:3 edns0\n",
        ));
        assert_eq!(config.servers, ["10.96.0.10:53".parse().unwrap(), "[fd00::a]:53".parse().unwrap()]);
        assert_eq!((config.dots, config.timeout, config.attempts), (5, Duration::from_secs(1), 3));
        let names = config.candidates("store");
        assert_eq!(
            names,
            ["store.ns.svc.cluster.local", "store.svc.cluster.local", "store.cluster.local", "store"]
        );
        assert_eq!(config.candidates("a.b.c.d.e.f")[0], "a.b.c.d.e.f");
        assert_eq!(config.candidates("store."), ["store."]);
        assert_eq!(ResolverConfig::read(text("")).servers, ["127.0.0.1:53".parse().unwrap()]);
    }

    #[test]
    fn hosts_are_found_by_name_and_alias() {
        let hosts =
            "127.0.0.1 localhost\n192.0.2.1 store.example Store # one\nfd00::1 store\nnonsense store\n";
        let found = addresses_of(text(hosts), "store", 9);
        assert_eq!(found, ["192.0.2.1", "fd00::1"].map(|address| Record::Address(address.parse().unwrap())));
        assert_eq!(addresses_of(text(hosts), "store", 1).len(), 1);
        assert!(addresses_of(text(hosts), "one", 9).is_empty());
    }
}
