//! The tables in the database, and the version of their layout.

use super::StoreError;
use super::link::{Link, words_of};
use tokio_postgres::{Client, Error};

/// The layout that this version knows.
const FORMAT: i64 = 1;
/// Takes the lock under which tables are created: gateways that start together create them once.
const LOCK: &str = "BEGIN; SELECT pg_advisory_xact_lock(7310577245911240773)";
/// `version` of a value is the position of its commit; a key that was removed keeps a row without a value for a while, so that
/// others learn of it. Changes up to `floor` may be missing.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS tidegate_fleet_meta (
        sole boolean PRIMARY KEY DEFAULT true CHECK (sole),
        format bigint NOT NULL, position bigint NOT NULL, floor bigint NOT NULL
    ) WITH (fillfactor = 10);
    INSERT INTO tidegate_fleet_meta (format, position, floor) VALUES (1, 0, 0) ON CONFLICT DO NOTHING;
    CREATE TABLE IF NOT EXISTS tidegate_fleet_state (
        tbl text NOT NULL, key bytea NOT NULL, version bigint NOT NULL, value bytea, PRIMARY KEY (tbl, key)
    );
    CREATE INDEX IF NOT EXISTS tidegate_fleet_changes ON tidegate_fleet_state (version);
    COMMIT";
const IS_THERE: &str = "SELECT to_regclass('tidegate_fleet_meta') IS NOT NULL";

/// Makes the tables where there are none, and looks at their version.
pub(super) async fn prepare(link: &mut Link) -> Result<(), StoreError> {
    let make = async |client: &Client| -> Result<(), Error> {
        let is_there: bool = client.query_typed_one(IS_THERE, &[]).await?.try_get(0)?;
        if is_there {
            return Ok(());
        }
        client.batch_execute(LOCK).await?;
        client.batch_execute(TABLES).await
    };
    link.run_unprepared(make).await?;
    let format = link.run(format).await?;
    known(format)
}

/// Looks at the version of the tables.
pub(super) async fn check(client: &Client) -> Result<(), StoreError> {
    let format = format(client).await.map_err(|error| StoreError::Unavailable(words_of(&error)))?;
    known(format)
}

async fn format(client: &Client) -> Result<i64, Error> {
    client.query_typed_one("SELECT format FROM tidegate_fleet_meta", &[]).await?.try_get(0)
}

fn known(format: i64) -> Result<(), StoreError> {
    match format {
        FORMAT => Ok(()),
        _ => Err(StoreError::Unusable(format!(
            "the state of the fleet in the database has format {format}, and this version knows {FORMAT}: it was written by a newer tidegate"
        ))),
    }
}
