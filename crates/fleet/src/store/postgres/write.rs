//! Writes batches: all that arrived while the last transaction was committed, in one.

use super::link::Link;
use super::{StoreError, of_bigint, to_bigint};
use crate::store::{Batch, Expected, Write};
use std::collections::{BTreeMap, HashMap};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

/// The most batches of a transaction, and how many bytes end one.
const TOGETHER: usize = 1024;
const LONGEST_GROUP: usize = 1 << 20;
/// The notification that something has changed.
pub(super) const CHANNEL: &str = "tidegate_fleet";
/// Takes positions, one for each batch. The row is locked until the commit is visible, so commits are in the order of their
/// positions, and whoever sees one sees all before.
const TAKE: &str = "UPDATE tidegate_fleet_meta SET position = position + $1 RETURNING position";
const VERSIONS: &str = "
    SELECT expected.number, state.version
    FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS expected (tbl, key, number)
    JOIN tidegate_fleet_state AS state USING (tbl, key) WHERE state.value IS NOT NULL";
const WRITE: &str = "
    WITH written AS (
        INSERT INTO tidegate_fleet_state (tbl, key, version, value)
        SELECT * FROM unnest($1::text[], $2::bytea[], $3::bigint[], $4::bytea[])
        ON CONFLICT (tbl, key) DO UPDATE SET version = excluded.version, value = excluded.value
    ) SELECT pg_notify($5, '')";

/// A batch, and whoever waits for it.
pub(super) struct WriteJob {
    pub(super) batch: Batch,
    pub(super) done: oneshot::Sender<Result<u64, StoreError>>,
}

/// Writes what comes, until nothing can come any more.
pub(super) async fn write_all(mut link: Link, mut queue: mpsc::Receiver<WriteJob>) {
    let mut jobs = Vec::new();
    while let Some(first) = queue.recv().await {
        let mut bytes = bytes_of(&first.batch);
        jobs.push(first);
        while jobs.len() < TOGETHER
            && bytes < LONGEST_GROUP
            && let Ok(next) = queue.try_recv()
        {
            bytes += bytes_of(&next.batch);
            jobs.push(next);
        }
        let written = link.run(async |client| commit(client, &jobs).await).await;
        for (at, job) in jobs.drain(..).enumerate() {
            let outcome = match &written {
                Ok(versions) => versions.get(at).copied().flatten().ok_or(StoreError::Conflict),
                Err(error) => Err(error.clone()),
            };
            // Whoever does not wait any more asks again.
            let _gone = job.done.send(outcome);
        }
    }
}

fn bytes_of(batch: &Batch) -> usize {
    batch.writes.iter().map(|write| write.key.len() + write.value.as_ref().map_or(0, Vec::len)).sum()
}

/// A key: its table's name, and itself.
type Place<'a> = (&'a str, &'a [u8]);

fn place(write: &Write) -> Place<'_> {
    (write.table.name(), &write.key)
}

/// Writes the batches that are as expected in one transaction; the versions of those, and none for the others. An error leaves
/// the transaction open: the connection must be closed.
async fn commit(client: &Client, jobs: &[WriteJob]) -> Result<Vec<Option<u64>>, Error> {
    // Whatever the database's default is: what is read behind the lock must be what was committed before it.
    client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let count = i64::try_from(jobs.len()).unwrap_or(i64::MAX);
    let last: i64 = client.query_typed_one(TAKE, &[(&count, Type::INT8)]).await?.try_get(0)?;
    let first = of_bigint(last - count) + 1;
    let mut versions = versions(client, jobs).await?;
    let mut values = BTreeMap::<Place<'_>, (i64, Option<&[u8]>)>::new();
    let mut outcomes = Vec::with_capacity(jobs.len());
    for (job, version) in jobs.iter().zip(first..) {
        let writes = &job.batch.writes;
        if !writes.iter().all(|write| fits(write, &versions)) {
            outcomes.push(None);
            continue;
        }
        for write in writes {
            match &write.value {
                Some(_) => versions.insert(place(write), version),
                None => versions.remove(&place(write)),
            };
            values.insert(place(write), (to_bigint(version), write.value.as_deref()));
        }
        outcomes.push(Some(version));
    }
    if !values.is_empty() {
        let (tables, keys): (Vec<&str>, Vec<&[u8]>) = values.keys().copied().unzip();
        let (numbers, values): (Vec<i64>, Vec<Option<&[u8]>>) = values.into_values().unzip();
        let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
            (&tables, Type::TEXT_ARRAY),
            (&keys, Type::BYTEA_ARRAY),
            (&numbers, Type::INT8_ARRAY),
            (&values, Type::BYTEA_ARRAY),
            (&CHANNEL, Type::TEXT),
        ];
        client.query_typed(WRITE, &parameters).await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(outcomes)
}

/// The versions of the keys of which something is expected.
async fn versions<'a>(client: &Client, jobs: &'a [WriteJob]) -> Result<HashMap<Place<'a>, u64>, Error> {
    let expected = |write: &&Write| write.expected != Expected::Anything;
    let places: Vec<Place<'_>> =
        jobs.iter().flat_map(|job| &job.batch.writes).filter(expected).map(place).collect();
    let mut versions = HashMap::new();
    if places.is_empty() {
        return Ok(versions);
    }
    let (tables, keys): (Vec<&str>, Vec<&[u8]>) = places.iter().copied().unzip();
    let rows =
        client.query_typed(VERSIONS, &[(&tables, Type::TEXT_ARRAY), (&keys, Type::BYTEA_ARRAY)]).await?;
    for row in &rows {
        // Counted from 1.
        let number = usize::try_from(row.try_get::<_, i64>(0)? - 1).ok();
        if let Some(place) = number.and_then(|number| places.get(number)) {
            versions.insert(*place, of_bigint(row.try_get(1)?));
        }
    }
    Ok(versions)
}

fn fits(write: &Write, versions: &HashMap<Place<'_>, u64>) -> bool {
    match write.expected {
        Expected::Anything => true,
        Expected::Absent => !versions.contains_key(&place(write)),
        Expected::Version(version) => versions.get(&place(write)) == Some(&version),
    }
}
