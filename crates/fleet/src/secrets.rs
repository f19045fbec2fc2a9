//! Random bytes that the state has for the fleet as a whole: made once, the same for all gateways on it.

use crate::record::{SecretRecord, decode, encode};
use crate::store::{Expected, Store, StoreError, Table, Write};

/// Bytes of a secret.
pub(crate) const SECRET_BYTES: usize = 32;

/// The secret of this name; it is made where there is none.
///
/// # Errors
/// When the state cannot be read or written.
pub(crate) async fn secret(store: &dyn Store, name: &str) -> Result<[u8; SECRET_BYTES], StoreError> {
    loop {
        if let Some(stored) = store.get(Table::Secrets, name.as_bytes()).await? {
            let record: SecretRecord = decode(&stored.value)?;
            return Ok(record.secret);
        }
        let record = SecretRecord { secret: rand::random() };
        let write = Write::put(Table::Secrets, name, encode(&record)).expecting(Expected::Absent);
        match store.commit(vec![write].into()).await {
            // Another gateway on the same state was faster.
            Err(StoreError::Conflict) => {}
            outcome => return outcome.map(|_| record.secret),
        }
    }
}
