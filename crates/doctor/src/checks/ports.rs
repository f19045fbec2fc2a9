//! Whether the addresses can be listened on: each is bound for a moment, unless a gateway runs that should have it.

use crate::finding::Finding;
use crate::subject::{Address, Listener};
use crate::system::{number, processes, sockets};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
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

/// The state of a Unix socket's path.
enum Found {
    Nothing,
    /// Something that is no socket.
    Other,
    /// A socket of which a program has the other end; and how it shows.
    Answers(&'static str),
    /// A socket that nobody has any more.
    Left(io::Error),
    /// A socket that may not be connected to.
    Closed(io::Error),
}

/// Connects without waiting: a program whose queue is full would let it wait for as long as it likes.
fn find(path: &Path) -> Found {
    // The gateway does not follow a link either.
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => return Found::Other,
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Found::Nothing,
        Err(error) => return Found::Closed(error),
    }
    let connected = Socket::new(Domain::UNIX, Type::STREAM, None).and_then(|socket| {
        socket.set_nonblocking(true)?;
        socket.connect(&socket2::SockAddr::unix(path)?)
    });
    match connected {
        Ok(()) => Found::Answers("a program accepts connections there"),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Found::Answers("a program listens there, and its queue of connections is full")
        }
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PROTOTYPE.raw_os_error()) => {
            Found::Answers("a program receives datagrams there")
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Found::Left(error),
        Err(error) => Found::Closed(error),
    }
}

fn unix(setting: &str, path: &Path, is_in_use: bool) -> Finding {
    let shown = format!("`{setting}`: {}", path.display());
    match find(path) {
        Found::Other => {
            let what = format!("{shown} is no socket, so none can be made there");
            return Finding::broken(what, "something else has this name")
                .remedy("remove it if nobody needs it, or set another path");
        }
        // Of a gateway's own socket a full queue says that it is busy.
        Found::Answers(_) if is_in_use => return Finding::fine(format!("{shown} is the gateway's"), ""),
        Found::Answers(how) => {
            return Finding::broken(format!("{shown} is in use"), how)
                .remedy("stop it (`ss -lxp` as root shows it), or set another path");
        }
        Found::Closed(error) if is_in_use => {
            let what = format!("{shown} is there, and whether the gateway has it was not seen");
            return Finding::note(what, error.to_string())
                .remedy("run the doctor as the gateway's user, or as root");
        }
        Found::Left(error) if is_in_use => {
            return Finding::at_risk(
                format!("{shown}: the running gateway does not listen there"),
                error.to_string(),
            )
            .remedy("its configuration has changed since it was started: restart it");
        }
        Found::Nothing if is_in_use => {
            return Finding::at_risk(
                format!("{shown}: the running gateway does not listen there"),
                "nothing is there",
            )
            .remedy("its configuration has changed since it was started: restart it");
        }
        // The gateway replaces a socket that is left.
        Found::Nothing | Found::Left(_) | Found::Closed(_) => {}
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
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

    /// A program that accepts nobody does not hold up the doctor.
    #[test]
    fn a_socket_with_a_full_queue_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.sock");
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        let address = socket2::SockAddr::unix(&path).unwrap();
        listener.bind(&address).unwrap();
        listener.listen(0).unwrap();
        let mut waiting = Vec::new();
        loop {
            let client = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
            client.set_nonblocking(true).unwrap();
            match client.connect(&address) {
                Ok(()) => waiting.push(client),
                Err(error) => break assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        let taken = found(Address::Unix(path.clone()), None, false);
        assert_eq!(taken.severity, Severity::Broken);
        assert!(taken.evidence.contains("queue of connections is full"), "{taken:?}");
        assert_eq!(found(Address::Unix(path.clone()), None, true).severity, Severity::Fine);
        drop((listener, waiting));
        assert_eq!(found(Address::Unix(path), None, false).severity, Severity::Fine, "it is replaced");
    }

    #[test]
    fn what_is_no_socket_is_broken_and_datagrams_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let (file, path) = (dir.path().join("file"), dir.path().join("t.sock"));
        std::fs::write(&file, "").unwrap();
        for is_in_use in [false, true] {
            assert_eq!(found(Address::Unix(file.clone()), None, is_in_use).severity, Severity::Broken);
        }
        let _receiver = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        assert_eq!(found(Address::Unix(path.clone()), None, false).severity, Severity::Broken);
        assert_eq!(found(Address::Unix(path), None, true).severity, Severity::Fine);
    }
}
