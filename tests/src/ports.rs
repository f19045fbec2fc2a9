use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Ports below those that the kernel gives to outgoing connections: so a port stays free while a server is
/// being restarted.
const RANGE: std::ops::Range<u16> = 10_000..32_000;

/// An address on loopback where nobody listens.
///
/// # Panics
/// When there is none to be had.
pub fn free_address() -> SocketAddr {
    let tried = (0..1000).map(|_| SocketAddr::from((Ipv4Addr::LOCALHOST, rand::random_range(RANGE))));
    tried.into_iter().find(|address| TcpListener::bind(address).is_ok()).expect("no free port on loopback")
}
