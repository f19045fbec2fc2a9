//! Who has a socket that listens at an address (`/proc/net/tcp` and its like, proc(5)).

use super::{processes, read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The state of a TCP socket that listens; a UDP socket that receives has the other one.
const LISTEN: &str = "0A";
const UNCONNECTED: &str = "07";

/// A socket that has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The address that it is bound to.
    pub(crate) address: SocketAddr,
    /// The process that has it, where that may be seen.
    pub(crate) pid: Option<u32>,
    /// The user that it belongs to.
    pub(crate) uid: u32,
}

/// The socket that keeps `address` from being bound, in the network of this process.
pub(crate) fn holder(root: &Path, address: SocketAddr, is_udp: bool) -> Option<Holder> {
    let (names, state) = if is_udp { (["udp", "udp6"], UNCONNECTED) } else { (["tcp", "tcp6"], LISTEN) };
    let found = names.iter().find_map(|name| {
        let list = read(&root.join("proc/net").join(name))?;
        list.lines().skip(1).find_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let bound = parse(words.next()?)?;
            let is_in_state = words.nth(1)? == state;
            let uid = words.nth(3)?.parse().ok()?;
            let inode: u64 = words.nth(1)?.parse().ok()?;
            (is_in_state && clashes(bound, address)).then_some((bound, uid, inode))
        })
    });
    let (bound, uid, inode) = found?;
    let (wanted, mut pid) = (format!("socket:[{inode}]"), None);
    processes::each_file(root, &mut |process, file| {
        if pid.is_none() && file == wanted {
            pid = Some(process);
        }
    });
    Some(Holder { address: bound, pid, uid })
}

/// Whether two sockets cannot have these addresses.
fn clashes(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() == other.port() && (a == b || a.is_unspecified() || b.is_unspecified())
}

/// `0100007F:10DF`: words of four bytes in the machine's order, then the port.
fn parse(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for start in (0..address.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(address.get(start..start + 8)?, 16).ok()?.to_ne_bytes());
    }
    let ip: IpAddr = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        16 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_is_found_with_its_process() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let address = listener.local_addr().unwrap();
            let found = holder(Path::new("/"), address, false).unwrap();
            assert_eq!((found.address, found.pid), (address, Some(std::process::id())));
            let everywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port());
            assert!(holder(Path::new("/"), everywhere, false).is_some(), "it clashes with all addresses");
            drop(listener);
            assert_eq!(holder(Path::new("/"), address, false), None);
        }
    }

    #[test]
    fn garbage_is_no_address() {
        for text in ["", ":", "0100007F", "0100007F:", "0100:10DF", "zz00007F:10DF", "é100007F:1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
