//! By which names the admin address may be asked, and by which pages: what a browser does for a page that is not ours
//! ends here.
//!
//! Two ways lead a foreign page to an address that only this machine reaches. It can have the browser send a request and
//! not read the answer; browsers say so (`Origin`, `Sec-Fetch-Site`). Or it lets its own name lead to this address
//! ("DNS rebinding"), and then it is of the same origin and reads everything; but the name is in `Host`, and a page
//! cannot change that. An address in `Host` is never a name that was made to lead here.

use std::net::IpAddr;
use tidegate_config::{HostName, Listen};
use tidegate_http1::{Head, Reply, Version};

/// Access control of the admin address.
pub(super) struct AdminAccess {
    /// The one that it listens on.
    address: IpAddr,
    /// Names besides.
    names: Vec<HostName>,
}

/// Pages that change nothing, but start a watch: no other site may lead there, not even by a link.
const WATCHES: [&str; 2] = ["/tap", "/console/events"];

impl AdminAccess {
    pub(super) fn of(listen: &Listen) -> AdminAccess {
        AdminAccess {
            address: listen.admin.ip().to_canonical(),
            names: listen.admin_hosts.clone().unwrap_or_default(),
        }
    }

    /// Whether the request with this head is answered.
    ///
    /// # Errors
    /// The answer to one that is not.
    pub(super) fn check(&self, head: &Head<'_>) -> Result<(), Reply> {
        // The codec sees to it that there is one in HTTP/1.1. Browsers speak nothing older.
        let is_old = head.version() == Version::Http10 && head.host().is_empty();
        if head.host().is_empty() && !is_old {
            return Err(
                Reply::new(400).text("the header `Host` is empty; say which address this request is for\n")
            );
        }
        if !is_old && !self.is_ours(host_of(head.host())) {
            return Err(Reply::new(421).content(format!(
                "the header `Host` names {:.200}, but this address answers only to localhost, its own addresses, and the names in `listen.admin_hosts`; if that name is this gateway's, add it there\n",
                head.host()
            )));
        }
        if comes_from_afar(head) {
            return Err(Reply::new(403).text(
                "requests from other sites' pages are refused; type the address, or follow a link to /status\n",
            ));
        }
        Ok(())
    }

    fn is_ours(&self, host: &str) -> bool {
        if let Ok(address) = host.parse::<IpAddr>().map(|address| address.to_canonical()) {
            let is_own = address == self.address || self.address.is_unspecified();
            return address.is_loopback() || is_own || self.is_listed(host);
        }
        // The dot says that nothing follows, and so nothing.
        let host = host.strip_suffix('.').unwrap_or(host);
        host.eq_ignore_ascii_case("localhost") || self.is_listed(host)
    }

    fn is_listed(&self, host: &str) -> bool {
        let listed = |name: &HostName| name.as_str().trim_end_matches('.').eq_ignore_ascii_case(host);
        self.names.iter().any(listed)
    }
}

/// The host in a `Host`, without the port and the brackets.
pub(super) fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[').and_then(|literal| literal.split_once(']')) {
        Some((address, _port)) => address,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Whether a browser sends this for a page of another site, or of one that it cannot tell.
fn comes_from_afar(head: &Head<'_>) -> bool {
    let is = |name: &str, value: &str| matches!(head.sole_header(name), Ok(Some(said)) if said == value.as_bytes());
    // A typed address, or a request of our own page; clients that are not browsers send no such headers.
    let is_near = head.values("sec-fetch-site").all(|site| site == b"none" || site == b"same-origin");
    // A link, which shows the page to the person and nothing to the page that it was on.
    let is_link = is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
        && matches!(head.method(), "GET" | "HEAD")
        && !WATCHES.contains(&head.path());
    let same_origin = head.values("origin").all(|origin| is_origin(origin, head.host()));
    !same_origin || !(is_near || is_link)
}

/// Whether an `Origin` is that of the address which is asked.
fn is_origin(origin: &[u8], host: &str) -> bool {
    let authority = [&b"http://"[..], b"https://"].into_iter().find_map(|scheme| origin.strip_prefix(scheme));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host.as_bytes()))
}

#[cfg(test)]
mod tests;
