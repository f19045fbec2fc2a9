use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Ports below those that the kernel gives to outgoing connections: so a port stays free while a server is
/// being restarted.
const RANGE: std::ops::Range<u16> = 10_000..32_000;

/// The locks of the ports that this process was given, until it ends.
static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// An address on loopback where nobody listens, and which no other test is given while this process lives.
///
/// # Panics
/// When there is none to be had.
pub fn free_address() -> SocketAddr {
    let ports = (0..1000).map(|_| rand::random_range(RANGE));
    ports.into_iter().find_map(reserved).expect("no free port on loopback")
}

/// The address with this port, if nobody has it.
fn reserved(port: u16) -> Option<SocketAddr> {
    let folder = std::env::temp_dir().join("tidegate-test-ports");
    fs::create_dir_all(&folder).expect("a folder for the locks of ports");
    let lock = File::options().create(true).truncate(false).write(true).open(folder.join(port.to_string()));
    let lock = lock.ok().filter(|lock| lock.try_lock().is_ok())?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpListener::bind(address).ok()?;
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner).push(lock);
    Some(address)
}
