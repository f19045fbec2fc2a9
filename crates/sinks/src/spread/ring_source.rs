//! Members on one ring of consistent hashing: from a list, from DNS or from a file.

use super::protocol::{MemberAddress, MemberSource, Membership, SpreadProtocol};
use crate::secrets::Shown;
use hyper::Uri;
use std::time::Duration;
use tidegate_members::{Event, MemberSource as Addresses, Settings};
use tidegate_ring::{Endpoint, Ring, RingError};
use tokio::time::Instant;

/// How long to wait before members that could not be used are tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The source of a ring's members.
pub(crate) struct RingSource {
    addresses: Addresses,
    replication: usize,
    /// The members that were returned last.
    returned: Vec<String>,
    /// When they are returned again, where they could not be used.
    retry_at: Option<Instant>,
}

/// Why a ring cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum RingSourceError {
    /// Too few members for the copies, or too many.
    #[error("the members: {0}")]
    Ring(#[from] RingError),
    /// Logs and pages could not tell two members apart.
    #[error("two members at {0} differ only in their query or password")]
    Indistinct(Box<str>),
}

impl RingSource {
    /// The source, and the members that are known without a look-up: none where there are names or a file.
    ///
    /// # Errors
    /// [`RingSourceError`], of a list.
    pub(crate) fn open(
        settings: Settings,
        replication: usize,
    ) -> Result<(RingSource, Membership<Option<Ring>>), RingSourceError> {
        let mut literal = Vec::new();
        let is_fixed = settings.file.is_none() && !settings.entries.iter().any(|entry| entry.is_looked_up());
        if is_fixed {
            literal.extend(settings.entries.iter().map(|entry| entry.example()));
            literal.sort_unstable();
            literal.dedup();
        }
        let membership = match literal.is_empty() {
            true => Membership { placement: None, addresses: Vec::new() },
            false => membership(literal, replication)?,
        };
        let addresses = Addresses::new(settings);
        Ok((RingSource { addresses, replication, returned: Vec::new(), retry_at: None }, membership))
    }
}

impl<P: SpreadProtocol<Placement = Option<Ring>>> MemberSource<P> for RingSource {
    async fn changed(&mut self, _: &P) -> Result<Membership<Option<Ring>>, String> {
        loop {
            let retry_at = self.retry_at;
            tokio::select! {
                biased;
                event = self.addresses.next() => match event {
                    Event::Members(found) => self.returned = found,
                    Event::Failed(problem) => return Err(problem),
                    Event::Recovered => continue,
                },
                () = tokio::time::sleep_until(retry_at.unwrap_or_else(Instant::now)), if retry_at.is_some() => {}
            }
            self.retry_at = None;
            return membership(self.returned.clone(), self.replication).map_err(|error| error.to_string());
        }
    }

    fn settled(&mut self, is_used: bool) {
        self.retry_at = (!is_used).then(|| Instant::now() + RETRY_AFTER);
    }
}

/// The ring of these URLs or addresses.
fn membership(found: Vec<String>, replication: usize) -> Result<Membership<Option<Ring>>, RingSourceError> {
    let addresses: Vec<_> = found.into_iter().map(address).collect();
    let mut names: Vec<_> = addresses.iter().map(|address| &address.name).collect();
    names.sort_unstable();
    if let Some([name, _]) = names.array_windows().find(|[one, other]| one == other) {
        return Err(RingSourceError::Indistinct((*name).clone()));
    }
    let endpoints: Vec<_> = addresses.iter().map(|address| Endpoint::new(&*address.name)).collect();
    let ring = Ring::ketama(&endpoints, replication)?;
    Ok(Membership { placement: Some(ring), addresses })
}

/// A member's address, with a name that has no secrets.
fn address(target: String) -> MemberAddress {
    MemberAddress { name: member_name(&target).into(), target: target.into() }
}

/// The name of the member at a URL on the ring, on pages and on disk: the URL without its secrets.
#[must_use]
pub fn member_name(url: &str) -> String {
    url.parse::<Uri>().map_or_else(|_| url.to_owned(), |uri| Shown(&uri).to_string())
}
