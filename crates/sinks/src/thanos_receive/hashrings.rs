//! The hashrings in use, and the file that they come from.

use super::forwarding::{Forwarding, Look, hash_of};
use super::protocol::ThanosProtocol;
use super::settings::{Hashrings, Settings};
use crate::spread::{MemberAddress, MemberSource, Membership};
use hyper::http::uri::Authority;
use std::fmt::Display;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tidegate_ring::{MultiRing, RingConfig, RingSettings, parse_hashrings};
use tokio::time::Instant;

/// How often the file of hashrings is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The longest file of hashrings, in bytes: some ten thousand endpoints.
const LONGEST: u64 = 4 << 20;

/// The identity of a file: it changes when the file is written or replaced.
type Stamp = Option<(SystemTime, u64, u64)>;

/// The hashrings of a sink, as they are described now.
pub(super) struct HashringSource {
    hashrings: Hashrings,
    seen: Stamp,
    /// The hashrings in use.
    configs: Vec<RingConfig>,
    /// Of the content of their file.
    hash: u64,
    offered: Option<Offer>,
    forwarding: Arc<Forwarding>,
    /// When the file is looked at next.
    look_at: Instant,
}

/// Hashrings that are described, until it is known whether they are used.
struct Offer {
    configs: Vec<RingConfig>,
    /// Of the content of their file.
    hash: u64,
    warnings: Vec<String>,
}

/// Why there are no new rings.
#[derive(Debug, thiserror::Error)]
pub enum HashringError {
    /// The file cannot be read.
    #[error("reading the hashring file {file}: {source}")]
    Read {
        /// Its path.
        file: String,
        /// The error.
        source: std::io::Error,
    },
    /// The file is longer than any that makes sense.
    #[error("the hashring file {0} is longer than 4 MiB")]
    Length(String),
    /// It is none.
    #[error("the hashring file {file}: {source}")]
    Parse {
        /// Its path.
        file: String,
        /// The error.
        source: tidegate_ring::ConfigError,
    },
    /// Rings cannot be built from it.
    #[error("the hashrings: {0}")]
    Ring(#[from] tidegate_ring::RingError),
    /// A member cannot be connected to.
    #[error(
        "the hashrings: `{0}` is not the address of an ingestor; write it as host:port, for example `receive-0.receive:10901`"
    )]
    Address(String),
    /// More members than are planned for.
    #[error("the hashrings have {members} members, and memory is planned for {most}: raise `max_members`")]
    Members {
        /// How many there are.
        members: usize,
        /// How many there may be.
        most: usize,
    },
}

impl HashringSource {
    /// The source with its first rings.
    ///
    /// # Errors
    /// [`HashringError`].
    pub(super) fn open(
        settings: &Settings,
    ) -> Result<(HashringSource, Membership<MultiRing>), HashringError> {
        let hashrings = settings.hashrings.clone();
        let Contents { seen, hash, configs } = read(&hashrings)?;
        let rings = check(&configs, &settings.ring, settings.max_members)?;
        warn(MultiRing::warnings(&configs, &settings.ring));
        let look_at = Instant::now() + LOOK_EVERY;
        let forwarding = Arc::new(Forwarding::new(settings, &configs, hash));
        let offered = None;
        let source = HashringSource { hashrings, seen, configs, hash, offered, forwarding, look_at };
        Ok((source, membership(rings)))
    }

    /// The numbers that it counts in.
    pub(super) fn forwarding(&self) -> &Arc<Forwarding> {
        &self.forwarding
    }

    /// New rings, if the file has changed since the last call and describes others.
    ///
    /// # Errors
    /// [`HashringError`], once for each change of the file.
    fn look(&mut self, settings: &Settings) -> Result<Option<MultiRing>, HashringError> {
        let Hashrings::File(path) = &self.hashrings else { return Ok(None) };
        let now = stamp(path);
        if now == self.seen {
            return Ok(None);
        }
        self.seen = now;
        let contents = read(&self.hashrings);
        if let Err(HashringError::Read { .. }) = contents {
            // A file that may be read later looks the same then.
            self.seen = None;
        }
        let Contents { hash, configs, .. } = contents?;
        if configs == self.configs {
            self.hash = hash;
            return Ok(None);
        }
        let rings = check(&configs, &settings.ring, settings.max_members)?;
        let warnings =
            MultiRing::warnings(&configs, &settings.ring).iter().map(ToString::to_string).collect();
        self.offered = Some(Offer { configs, hash, warnings });
        Ok(Some(rings))
    }
}

impl MemberSource<ThanosProtocol> for HashringSource {
    async fn changed(&mut self, protocol: &ThanosProtocol) -> Result<Membership<MultiRing>, String> {
        loop {
            tokio::time::sleep_until(self.look_at).await;
            self.look_at = Instant::now() + LOOK_EVERY;
            let before = self.seen;
            let found = self.look(&protocol.0);
            match &found {
                Err(_) => self.forwarding.looked(Look::Unusable),
                // Counted when it is known whether they are used.
                Ok(Some(_)) => {}
                Ok(None) if self.seen != before => {
                    self.forwarding.looked(Look::Changed(&self.configs, self.hash));
                }
                Ok(None) => self.forwarding.looked(Look::Same),
            }
            if let Some(found) = found.transpose() {
                return found.map(membership).map_err(|error| error.to_string());
            }
        }
    }

    fn settled(&mut self, is_used: bool) {
        let Some(Offer { configs, hash, warnings }) = self.offered.take() else { return };
        if is_used {
            warn(warnings);
            (self.configs, self.hash) = (configs, hash);
            self.forwarding.looked(Look::Changed(&self.configs, self.hash));
        } else {
            self.forwarding.looked(Look::Unusable);
            self.seen = None;
        }
    }
}

/// The rings with the addresses of their members.
fn membership(placement: MultiRing) -> Membership<MultiRing> {
    let addresses = placement.members().iter().map(|member| MemberAddress::from(&*member.address)).collect();
    Membership { placement, addresses }
}

/// The rings that `hashrings` describes.
///
/// # Errors
/// [`HashringError`].
pub fn describe(hashrings: &Hashrings) -> Result<Vec<RingConfig>, HashringError> {
    Ok(read(hashrings)?.configs)
}

/// Hashrings as they were described at some time.
struct Contents {
    seen: Stamp,
    /// Of the file's content.
    hash: u64,
    configs: Vec<RingConfig>,
}

fn read(hashrings: &Hashrings) -> Result<Contents, HashringError> {
    let path = match hashrings {
        Hashrings::Inline(configs) => return Ok(Contents { seen: None, hash: 0, configs: configs.clone() }),
        Hashrings::File(path) => path,
    };
    let name = || path.display().to_string();
    let failed = |source| HashringError::Read { file: name(), source };
    // Before the content: a change in between is seen as one.
    let seen = stamp(path);
    let file = std::fs::File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length > LONGEST {
        return Err(HashringError::Length(name()));
    }
    let mut text = vec![0; usize::try_from(length).unwrap_or(0)];
    (&file).read_exact(&mut text).map_err(failed)?;
    let configs = parse_hashrings(&text).map_err(|source| HashringError::Parse { file: name(), source })?;
    Ok(Contents { seen, hash: hash_of(&text), configs })
}

fn warn(warnings: impl IntoIterator<Item: Display>) {
    for warning in warnings {
        tracing::warn!("the hashrings are used, but {warning}");
    }
}

/// The rings of these hashrings, with at most so many members.
///
/// # Errors
/// [`HashringError`] where a sink could not use them.
pub fn check(
    configs: &[RingConfig],
    settings: &RingSettings,
    most: usize,
) -> Result<MultiRing, HashringError> {
    let rings = MultiRing::new(configs, settings)?;
    if let Some(member) = rings.members().iter().find(|member| !is_address(&member.address)) {
        return Err(HashringError::Address(member.address.to_string()));
    }
    let members = rings.members().len();
    if members > most {
        return Err(HashringError::Members { members, most });
    }
    Ok(rings)
}

/// Whether this is a host and a port.
fn is_address(text: &str) -> bool {
    let Ok(authority) = text.parse::<Authority>() else { return false };
    let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let host = authority.host();
    let is_host = host.starts_with('[') || (!host.is_empty() && host.bytes().all(is_of_a_name));
    is_host && authority.port_u16().is_some_and(|port| port > 0) && !text.contains('@')
}

fn stamp(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}
