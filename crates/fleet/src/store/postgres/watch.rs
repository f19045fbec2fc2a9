//! Watches for changes: a notification says that there are some, and a poll finds them where the notification was lost.

use super::link::Link;
use super::write::CHANNEL;
use super::{StoreError, of_bigint, to_bigint};
use crate::store::{Change, ChangedValue, Changes, Stored, Table};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

/// How often it is looked without a notification.
const POLL: Duration = Duration::from_secs(1);
/// The least time between two looks: commits that come close together are read together.
const LEAST_INTERVAL: Duration = Duration::from_millis(20);
/// A removal can be learned for at least so long; whoever comes later reads the tables again.
const KEPT: Duration = Duration::from_secs(600);
/// Changes of a page, with all of its last batch.
const PAGE: i64 = 256;
/// A longer value is read by itself.
const LONGEST_VALUE: i32 = 4 << 10;
/// One statement, so that the position is that of the changes.
const CHANGES: &str = "
    SELECT meta.position, meta.floor, found.tbl, found.key, found.version, found.is_removed, found.value
    FROM tidegate_fleet_meta AS meta LEFT JOIN LATERAL (
        SELECT tbl, key, version, value IS NULL AS is_removed,
            CASE WHEN octet_length(value) <= $4 THEN value END AS value
        FROM tidegate_fleet_state WHERE version > $1 AND tbl = ANY($2)
        ORDER BY version FETCH FIRST ($3) ROWS WITH TIES
    ) AS found ON true ORDER BY found.version";
/// The floor first: its row is what writers lock, so no key comes back in between.
const PRUNE: [&str; 2] = [
    "UPDATE tidegate_fleet_meta SET floor = greatest(floor, $1)",
    "DELETE FROM tidegate_fleet_state WHERE value IS NULL AND version <= $1",
];

/// A wait for changes.
pub(super) struct WatchJob {
    pub(super) tables: &'static [Table],
    pub(super) after: Option<u64>,
    pub(super) done: oneshot::Sender<Result<Changes, StoreError>>,
}

/// Answers waits, one after the other.
pub(super) async fn watch_all(mut link: Link, mut jobs: mpsc::Receiver<WatchJob>) {
    let mut watcher = Watcher { connects: 0, prune_at: Instant::now() + KEPT, prunable: None };
    while let Some(mut job) = jobs.recv().await {
        // Nothing where nobody waits any more.
        if let Some(changes) = watcher.changes(&mut link, &mut job).await {
            let _gone = job.done.send(changes);
        }
    }
}

struct Watcher {
    /// The connection that all before was read by.
    connects: u64,
    prune_at: Instant,
    /// All up to this was there when it was last thought of.
    prunable: Option<u64>,
}

impl Watcher {
    async fn changes(&mut self, link: &mut Link, job: &mut WatchJob) -> Option<Result<Changes, StoreError>> {
        loop {
            let (after, tables) = (job.after, job.tables);
            let mut found = match link.run(async |client| look(client, tables, after).await).await {
                Ok(found) => found,
                Err(error) => return Some(Err(error)),
            };
            if self.connects != link.connects() {
                // Another server may have taken the place of the one before, without its last commits.
                self.connects = link.connects();
                if let Err(error) = link.run(listen).await {
                    self.connects = 0;
                    return Some(Err(error));
                }
                found.is_complete = false;
            }
            self.prune(link, found.position).await;
            if !found.is_complete || !found.changes.is_empty() {
                return Some(Ok(found));
            }
            job.after = Some(found.position);
            let changed = link.changed();
            tokio::select! {
                () = changed.notified() => tokio::time::sleep(LEAST_INTERVAL).await,
                () = tokio::time::sleep(POLL) => {}
                () = job.done.closed() => return None,
            }
        }
    }

    /// Lets removals go that everybody has had the time to learn of.
    async fn prune(&mut self, link: &mut Link, position: u64) {
        if Instant::now() < self.prune_at {
            return;
        }
        self.prune_at = Instant::now() + KEPT;
        if let Some(upto) = self.prunable.replace(position)
            && let Err(error) = link.run(async |client| prune(client, upto).await).await
        {
            tracing::debug!(%error, "could not prune removals of the fleet; trying again in 10 min");
        }
    }
}

async fn listen(client: &Client) -> Result<(), Error> {
    client.batch_execute(&format!("LISTEN {CHANNEL}")).await
}

/// Lets removals go up to a position.
pub(super) async fn prune(client: &Client, upto: u64) -> Result<(), Error> {
    client.batch_execute("BEGIN").await?;
    for statement in PRUNE {
        client.execute_typed(statement, &[(&to_bigint(upto), Type::INT8)]).await?;
    }
    client.batch_execute("COMMIT").await
}

/// The changes behind a position; without one, the present position.
async fn look(client: &Client, tables: &[Table], after: Option<u64>) -> Result<Changes, Error> {
    let names: Vec<&str> = tables.iter().map(|table| table.name()).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
        // Nothing is behind the last.
        (&after.map_or(i64::MAX, to_bigint), Type::INT8),
        (&names, Type::TEXT_ARRAY),
        (&PAGE, Type::INT8),
        (&LONGEST_VALUE, Type::INT4),
    ];
    let rows = client.query_typed(CHANGES, &parameters).await?;
    let mut found = Changes::default();
    for row in &rows {
        found.position = of_bigint(row.try_get(0)?);
        let floor = of_bigint(row.try_get(1)?);
        found.is_complete = after.is_some_and(|after| after >= floor && after <= found.position);
        // Tables of a later version are nothing to this one.
        if let Some(table) = row.try_get::<_, Option<&str>>(2)?.and_then(Table::named) {
            found.changes.push(Change { table, key: row.try_get(3)?, value: value(row)? });
        }
    }
    // There is more behind a full page.
    if rows.len() >= usize::try_from(PAGE).unwrap_or(usize::MAX)
        && let Some(last) = rows.last()
    {
        found.position = of_bigint(last.try_get(4)?);
    }
    Ok(found)
}

fn value(row: &Row) -> Result<ChangedValue, Error> {
    let version = of_bigint(row.try_get(4)?);
    Ok(match (row.try_get(5)?, row.try_get::<_, Option<Vec<u8>>>(6)?) {
        (true, _) => ChangedValue::Removed,
        (false, Some(value)) => ChangedValue::Stored(Stored { version, value }),
        (false, None) => ChangedValue::Long,
    })
}
