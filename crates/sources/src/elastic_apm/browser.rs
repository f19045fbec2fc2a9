//! The client of a browser agent's request: taken from the request, since the events do not contain it.

use super::refused_lines::string;
use tidegate_arena::{Arena, Charge, Share};
use tidegate_http1::Head;
use tidegate_wire::intake::address;

/// The most bytes of what a browser calls itself.
const LONGEST_NAME: usize = 512;
/// The charge for one: its longest form in JSON, and its envelope.
const PAID: u64 = 4 << 10;

/// A member of the metadata that says where a request came from, in JSON. One pointer, since every connection's task has
/// room for it.
pub(crate) struct BrowserClient(Box<ClientMember>);

struct ClientMember {
    member: Box<[u8]>,
    _charge: Charge,
}

impl BrowserClient {
    /// The client of a request with this head. Like APM Server, it trusts proxy headers. `None` without free memory.
    pub(super) fn of(head: &Head<'_>, arena: &Arena) -> Option<BrowserClient> {
        let charge = arena.try_charge(Share::Ingest, PAID).ok()?;
        let peer = head.peer();
        let near = (peer.ip().to_canonical(), peer.port());
        let far = address::HEADERS.iter().find_map(|(name, read)| head.header(name).and_then(*read));
        let (ip, port) = far.unwrap_or(near);
        let mut out = format!("\"tidegate\":{{\"client\":\"{ip}\",\"source\":\"{ip}\"").into_bytes();
        if port > 0 {
            out.extend_from_slice(format!(",\"port\":{port}").as_bytes());
        }
        if far.is_some() {
            out.extend_from_slice(format!(",\"nat\":\"{}\"", near.0).as_bytes());
        }
        if let Some(name) = head.header("user-agent") {
            out.extend_from_slice(b",\"user_agent\":");
            string(name.get(..LONGEST_NAME).unwrap_or(name), &mut out);
        }
        out.push(b'}');
        Some(BrowserClient(Box::new(ClientMember { member: out.into(), _charge: charge })))
    }

    /// The member.
    pub(super) fn member(&self) -> &[u8] {
        &self.0.member
    }
}
