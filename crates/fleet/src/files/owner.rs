//! The state that the files of a folder belong to, so that files are not taken for leftovers under another one.

use crate::secrets::secret;
use crate::store::{Store, StoreError};
use std::io;
use std::path::Path;
use tidegate_files::Access;

/// The name of the state's id among its secrets.
const STATE_ID: &str = "state_id";

/// Refuses a folder whose files belong to another state; one that belongs to none is this one's from now on. The id is in a file beside
/// the folder.
///
/// # Errors
/// [`StoreError::Unusable`] when it is another's, and when the state or the file cannot be read or written.
pub(super) async fn claim(folder: &Path, store: &dyn Store) -> Result<(), StoreError> {
    let id: String =
        secret(store, STATE_ID).await?.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let file = folder.with_extension("state");
    let failed = |error: io::Error| StoreError::Unavailable(format!("{}: {error}", file.display()));
    match std::fs::metadata(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            tidegate_files::replace(&file, Access::Owner, id.as_bytes()).map_err(failed)
        }
        Err(error) => Err(failed(error)),
        Ok(known)
            if known.len() == id.len() as u64 && std::fs::read(&file).map_err(failed)? == id.as_bytes() =>
        {
            Ok(())
        }
        Ok(_) => Err(StoreError::Unusable(format!(
            "the files in {} belong to another state of the fleet: configure that one again (`listen.fleet.postgres`), or move the \
             folder and {} away",
            folder.display(),
            file.display()
        ))),
    }
}
