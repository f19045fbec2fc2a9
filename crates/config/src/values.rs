//! The types of single values, each with its notation.

mod bytes;
mod content_type;
mod dns_url;
mod duration;
mod fixture;
mod glob;
mod hashring;
mod host;
mod index;
mod name;
mod secret;
mod shard_by;
mod standard;
mod syslog_address;
mod tenant;
mod text;
mod unix_socket;
mod url;

pub use bytes::Bytes;
pub use content_type::ContentType;
pub use dns_url::DnsUrl;
pub use duration::Duration;
pub use fixture::Fixture;
pub use glob::IndexGlob;
pub use hashring::Hashring;
pub use host::HostName;
pub use index::{IndexPattern, IndexPiece};
pub use name::{HeaderName, Name};
pub use secret::Secret;
pub use shard_by::ShardBy;
pub use syslog_address::SyslogAddress;
pub use tenant::TenantName;
pub use text::{Condition, Decimal, Integer, Modulus, Percentage, Ratio, Statement, Text};
pub use unix_socket::UnixSocket;
pub use url::Url;

use crate::error::{Invalid, any_of, quote};
use crate::suggest::nearest;

/// The error message for a word that is not one of the choices.
pub(crate) fn no_such_word(text: &str, words: &[&str]) -> Invalid {
    let help = match nearest(text, words.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("write {}", any_of(words)),
    };
    Invalid::new(format!("{} is not one of the possible values", quote(text)), help)
}
