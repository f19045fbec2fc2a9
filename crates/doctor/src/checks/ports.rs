//! Whether the addresses can be listened on: each is bound for a moment, unless a gateway runs that should have it.

use crate::finding::Finding;
use crate::subject::{Address, Listener};
use crate::system::{number, processes, sockets};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Looks at the addresses; `gateway` is the process that has the data folder.
pub(crate) fn check(
    listeners: &[Listener],
    root: &Path,
    gateway: Option<u32>,
    is_in_use: bool,
) -> Vec<Finding> {
    let look = |listener: &Listener| {
        let setting = &listener.setting;
        match &listener.address {
            Address::Tcp(address) => network(setting, *address, false, root, gateway, is_in_use),
            Address::Udp(address) => network(setting, *address, true, root, gateway, is_in_use),
            Address::Unix(path) => unix(setting, path, is_in_use),
        }
    };
    let mut findings: Vec<Finding> = listeners.iter().map(look).collect();
    // One line for all that can be listened on.
    let fine: Vec<String> = findings
        .extract_if(.., |finding| finding.severity == crate::Severity::Fine)
        .map(|f| f.what)
        .collect();
    if !fine.is_empty() {
        findings.push(Finding::fine(fine.join("; "), "each was bound for a moment, or is the gateway's"));
    }
    findings
}

fn network(
    setting: &str,
    address: SocketAddr,
    is_udp: bool,
    root: &Path,
    gateway: Option<u32>,
    is_in_use: bool,
) -> Finding {
    let shown = format!("`{setting}`: {}{address}", if is_udp { "udp://" } else { "" });
    let holder = sockets::holder(root, address, is_udp);
    if is_in_use {
        return match holder {
            Some(holder) if gateway.is_none() || holder.pid.is_none() || holder.pid == gateway => {
                Finding::fine(format!("{shown} is the gateway's"), "")
            }
            Some(holder) => taken(&shown, root, address, &holder),
            None => Finding::at_risk(format!("{shown}: the running gateway does not listen there"), "/proc/net")
                .remedy("its configuration has changed since it was started, or it runs in another network (a container): restart it, or look there"),
        };
    }
    match bind(address, is_udp) {
        Ok(()) => Finding::fine(format!("{shown} is free"), ""),
        Err(error) => match (error.kind(), holder) {
            (ErrorKind::AddrInUse, Some(holder)) => taken(&shown, root, address, &holder),
            (ErrorKind::AddrInUse, None) => Finding::broken(format!("{shown} is in use"), error.to_string())
                .remedy(format!("find the program (`ss -lntup 'sport = :{}'` as root) and stop it, or set another address", address.port())),
            (ErrorKind::AddrNotAvailable, _) => {
                Finding::broken(format!("{shown}: this machine does not have the address {}", address.ip()), error.to_string())
                    .remedy("set an address that `ip addr` shows, or 0.0.0.0 or [::] for all of them")
            }
            (ErrorKind::PermissionDenied, _) => {
                let least = number(&root.join("proc/sys/net/ipv4/ip_unprivileged_port_start")).unwrap_or(1024);
                let evidence = format!("{error}; net.ipv4.ip_unprivileged_port_start is {least}");
                let remedy = "set a port from there on, or give the gateway the right: `AmbientCapabilities=CAP_NET_BIND_SERVICE` of \
                              systemd, `setcap cap_net_bind_service=+ep` on the program";
                Finding::broken(format!("{shown}: this user may not listen on port {}", address.port()), evidence).remedy(remedy)
            }
            _ => Finding::broken(format!("{shown} cannot be listened on"), error.to_string()).remedy("set another address"),
        },
    }
}

fn taken(shown: &str, root: &Path, address: SocketAddr, holder: &sockets::Holder) -> Finding {
    let (who, stop) = match holder.pid {
        Some(pid) => (format!("process {}", processes::shown(root, pid)), format!("stop process {pid}")),
        None => (
            format!("a program of user {}", holder.uid),
            format!("find it as root (`ss -lntup 'sport = :{}'`) and stop it", address.port()),
        ),
    };
    let evidence = format!("{} is bound by it (/proc/net)", holder.address);
    Finding::broken(format!("{shown} is in use by {who}"), evidence)
        .remedy(format!("{stop}, or set another address"))
}

/// Binds as the gateway does, and lets go. Nothing listens, so no client is accepted.
fn bind(address: SocketAddr, is_udp: bool) -> io::Result<()> {
    let (kind, protocol) = if is_udp { (Type::DGRAM, Protocol::UDP) } else { (Type::STREAM, Protocol::TCP) };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if !is_udp {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())
}

fn unix(setting: &str, path: &Path, is_in_use: bool) -> Finding {
    let shown = format!("`{setting}`: {}", path.display());
    let answers = UnixStream::connect(path);
    if answers.is_ok() {
        return match is_in_use {
            true => Finding::fine(format!("{shown} is the gateway's"), ""),
            false => Finding::broken(format!("{shown} is in use"), "a program accepts connections there")
                .remedy("stop it (`ss -lxp` as root shows it), or set another path"),
        };
    }
    if is_in_use {
        let error = answers.err().map(|error| error.to_string()).unwrap_or_default();
        // Sockets of datagrams do not accept connections.
        return if path.exists() {
            Finding::fine(format!("{shown} is there"), "")
        } else {
            Finding::at_risk(format!("{shown}: the running gateway does not listen there"), error)
                .remedy("its configuration has changed since it was started: restart it")
        };
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    match rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK) {
        Ok(()) => Finding::fine(format!("{shown} can be made"), ""),
        Err(error) => Finding::broken(
            format!("{shown}: no socket can be made there"),
            format!("{}: {error}", folder.display()),
        )
        .remedy("make the folder, and give it to the gateway's user (`RuntimeDirectory=` of systemd)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;
    use std::net::TcpListener;

    fn found(address: Address, gateway: Option<u32>, is_in_use: bool) -> Finding {
        let listener = Listener { setting: "listen.http".into(), address };
        check(&[listener], Path::new("/"), gateway, is_in_use).remove(0)
    }

    #[test]
    fn a_port_that_is_taken_has_its_holder() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let taken = found(Address::Tcp(address), None, false);
        assert_eq!(taken.severity, Severity::Broken);
        assert!(taken.what.contains(&std::process::id().to_string()), "{taken:?}");
        assert_eq!(
            found(Address::Tcp(address), Some(std::process::id()), true).severity,
            Severity::Fine,
            "its own"
        );
        assert_eq!(found(Address::Tcp(address), Some(1), true).severity, Severity::Broken, "another's");
        drop(listener);
        assert_eq!(found(Address::Tcp(address), None, false).severity, Severity::Fine);
        assert_eq!(found(Address::Tcp(address), Some(1), true).severity, Severity::AtRisk, "nobody's");
    }

    #[test]
    fn udp_ports_are_looked_at_too() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = Address::Udp(socket.local_addr().unwrap());
        assert_eq!(found(address.clone(), None, false).severity, Severity::Broken);
        drop(socket);
        assert_eq!(found(address, None, false).severity, Severity::Fine);
    }

    #[test]
    fn an_address_of_another_machine_is_broken() {
        // TEST-NET-1, RFC 5737.
        let found = found(Address::Tcp("192.0.2.7:4318".parse().unwrap()), None, false);
        assert_eq!(found.severity, Severity::Broken);
        assert!(found.what.contains("does not have the address 192.0.2.7"), "{found:?}");
    }

    #[test]
    fn unix_sockets_need_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.sock");
        assert_eq!(found(Address::Unix(path.clone()), None, false).severity, Severity::Fine);
        assert_eq!(
            found(Address::Unix(dir.path().join("no/t.sock")), None, false).severity,
            Severity::Broken
        );
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(found(Address::Unix(path.clone()), None, false).severity, Severity::Broken);
        assert_eq!(found(Address::Unix(path), None, true).severity, Severity::Fine);
    }
}
