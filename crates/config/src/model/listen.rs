use std::net::{Ipv4Addr, SocketAddr};

use crate::declare::settings;

settings! {
    /// Where to listen.
    pub struct Listen {
        /// Every HTTP protocol, told apart by path.
        http: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 4318)),
        /// Operation: `/metrics`, `/status`, `/health`, `/ready`. Not to be reachable by strangers.
        admin: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 4319)),
    }
}
