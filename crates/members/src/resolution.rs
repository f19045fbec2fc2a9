//! One round of look-ups: a name's members by its last good answers.

use crate::dns::{Lookup, LookupError, Record, RecordType, ResolverConfig, in_hosts};
use crate::entry::{Entry, Pattern};
use crate::source::Settings;
use std::net::IpAddr;

/// The last good answers about a name: its IPv4 addresses or services, and its IPv6 addresses. `None` before there
/// was one.
pub(crate) type Known = Option<[Vec<Record>; 2]>;

/// A round's result.
pub(crate) struct Round {
    /// For each entry that is looked up, in order.
    pub(crate) known: Vec<Known>,
    /// Why not all of it is new.
    pub(crate) problem: Option<String>,
}

/// Looks all names up. What fails keeps what is known.
pub(crate) async fn round(settings: std::sync::Arc<Settings>, mut known: Vec<Known>) -> Round {
    let config = if settings.name_servers.is_empty() {
        ResolverConfig::of_system()
    } else {
        ResolverConfig::with_servers(&settings.name_servers)
    };
    let entries = settings.entries.iter().filter(|entry| entry.is_looked_up());
    let mut problem = None;
    for (entry, known) in entries.zip(&mut known) {
        let result = match entry {
            Entry::Literal(_) => Ok(()),
            Entry::Addresses(pattern) => Box::pin(addresses(pattern, known, &settings, &config)).await,
            Entry::Services(pattern) => services(pattern, known, &settings, &config).await,
        };
        if let Err(error) = result {
            problem = Some(error);
        }
    }
    Round { known, problem }
}

async fn addresses(
    pattern: &Pattern,
    known: &mut Known,
    settings: &Settings,
    config: &ResolverConfig,
) -> Result<(), String> {
    let name = pattern.name();
    if settings.name_servers.is_empty() {
        let found = in_hosts(name, settings.max_members + 1);
        if !found.is_empty() {
            *known = Some([found, Vec::new()]);
            return Ok(());
        }
    }
    let lookup = |kind| Lookup { config, kind, most: settings.max_members };
    let (four, six) = Box::pin(futures_util::future::join(
        lookup(RecordType::A).records_of(name),
        lookup(RecordType::Aaaa).records_of(name),
    ))
    .await;
    let failure = four.as_ref().err().or(six.as_ref().err()).map(|error| failed(name, error));
    let [old_four, old_six] = known.as_ref().map_or([&[][..], &[]], |[four, six]| [four.as_slice(), six]);
    // One kind that is not answered does not say that those of this kind are gone.
    let four = four.unwrap_or_else(|_| old_four.to_vec());
    let six = six.unwrap_or_else(|_| old_six.to_vec());
    if four.is_empty() && six.is_empty() {
        return Err(failure.unwrap_or_else(|| format!("{name} has no addresses now")));
    }
    *known = Some([four, six]);
    failure.map_or(Ok(()), Err)
}

async fn services(
    pattern: &Pattern,
    known: &mut Known,
    settings: &Settings,
    config: &ResolverConfig,
) -> Result<(), String> {
    let name = pattern.name();
    let lookup = Lookup { config, kind: RecordType::Srv, most: settings.max_members };
    let found = lookup.records_of(name).await.map_err(|error| failed(name, &error))?;
    if found.is_empty() {
        return Err(format!("{name} has no SRV records now"));
    }
    *known = Some([found, Vec::new()]);
    Ok(())
}

fn failed(name: &str, error: &LookupError) -> String {
    format!("looking up {name}: {error}")
}

/// The addresses of an entry's members.
pub(crate) fn members<'a>(pattern: &'a Pattern, known: &'a Known) -> impl Iterator<Item = String> + 'a {
    known.iter().flatten().flatten().map(|record| match record {
        Record::Address(IpAddr::V4(address)) => pattern.with(&address.to_string()),
        Record::Address(IpAddr::V6(address)) => pattern.with(&format!("[{address}]")),
        Record::Service(host, port) => pattern.with(&format!("{host}:{port}")),
    })
}
