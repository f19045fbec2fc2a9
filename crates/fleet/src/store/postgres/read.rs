//! Reads values and pages of tables.

use super::link::Link;
use super::{StoreError, of_bigint};
use crate::store::{KeyRange, Stored, Table};
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

/// The bytes of a page; its first value is there in any case.
const PAGE_BYTES: i64 = 1 << 20;
const GET: &str =
    "SELECT key, version, value FROM tidegate_fleet_state WHERE tbl = $1 AND key = $2 AND value IS NOT NULL";
/// The lengths are known without the values.
const LIST: &str = "
    SELECT key, version, value FROM (
        SELECT key, version, value, sum(octet_length(value)) OVER (ORDER BY key) - octet_length(value) AS before FROM (
            SELECT key, version, value FROM tidegate_fleet_state
            WHERE tbl = $1 AND key >= $2 AND ($3::bytea IS NULL OR key > $3) AND ($4::bytea IS NULL OR key < $4)
                AND value IS NOT NULL
            ORDER BY key LIMIT $5
        ) AS page
    ) AS measured WHERE before < $6 ORDER BY key";

/// A read to be done.
pub(super) enum Read {
    Get { table: Table, key: Vec<u8>, done: oneshot::Sender<Result<Option<Stored>, StoreError>> },
    List { table: Table, range: ListedRange, done: oneshot::Sender<Result<Page, StoreError>> },
}

type Page = Vec<(Vec<u8>, Stored)>;

/// A part of a table that is listed.
pub(super) struct ListedRange {
    from: Vec<u8>,
    after: Option<Vec<u8>>,
    /// The first key behind it; none where there is no end.
    end: Option<Vec<u8>>,
    limit: i64,
}

impl ListedRange {
    pub(super) fn of(range: KeyRange<'_>) -> ListedRange {
        let after = range.after.filter(|after| *after >= range.prefix);
        ListedRange {
            from: after.unwrap_or(range.prefix).to_vec(),
            after: after.map(<[u8]>::to_vec),
            end: end_of(range.prefix),
            limit: i64::try_from(range.limit).unwrap_or(i64::MAX),
        }
    }
}

/// The first key behind all that begin with this prefix.
fn end_of(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix.get(..=kept)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

/// Reads what is asked for, one after the other.
pub(super) async fn read_all(mut link: Link, jobs: Arc<Mutex<mpsc::Receiver<Read>>>) {
    loop {
        // In a statement of its own, so that the other readers have their turn while this one reads.
        let next = jobs.lock().await.recv().await;
        match next {
            Some(Read::Get { table, key, done }) => {
                if !done.is_closed() {
                    // Whoever does not wait any more asks again.
                    let _gone = done.send(link.run(async |client| get(client, table, &key).await).await);
                }
            }
            Some(Read::List { table, range, done }) => {
                if !done.is_closed() {
                    let _gone = done.send(link.run(async |client| list(client, table, &range).await).await);
                }
            }
            None => return,
        }
    }
}

async fn get(client: &Client, table: Table, key: &[u8]) -> Result<Option<Stored>, Error> {
    let found = client.query_typed(GET, &[(&table.name(), Type::TEXT), (&key, Type::BYTEA)]).await?;
    found.first().map(|row| Ok(entry(row)?.1)).transpose()
}

async fn list(client: &Client, table: Table, range: &ListedRange) -> Result<Page, Error> {
    let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
        (&table.name(), Type::TEXT),
        (&range.from, Type::BYTEA),
        (&range.after, Type::BYTEA),
        (&range.end, Type::BYTEA),
        (&range.limit, Type::INT8),
        (&PAGE_BYTES, Type::INT8),
    ];
    client.query_typed(LIST, &parameters).await?.iter().map(entry).collect()
}

fn entry(row: &Row) -> Result<(Vec<u8>, Stored), Error> {
    let version = of_bigint(row.try_get(1)?);
    Ok((row.try_get(0)?, Stored { version, value: row.try_get(2)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_no_key_begins_with_it() {
        for (prefix, end) in [
            (&b""[..], None),
            (b"a", Some(&b"b"[..])),
            (b"a\xff", Some(b"b")),
            (b"\xff\xff", None),
            (b"a\x00", Some(b"a\x01")),
        ] {
            assert_eq!(end_of(prefix).as_deref(), end, "{prefix:?}");
        }
    }
}
