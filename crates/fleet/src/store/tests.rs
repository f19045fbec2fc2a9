use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn open(folder: &tempfile::TempDir) -> EmbeddedStore {
    EmbeddedStore::open(&folder.path().join("state.redb")).unwrap()
}

pub(super) fn all(store: &dyn Store, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let range = KeyRange { prefix, after: None, limit: usize::MAX };
    let listed = runtime().block_on(store.list(Table::Agents, range)).unwrap();
    listed.into_iter().map(|(key, stored)| (key, stored.value)).collect()
}

/// A batch whose expectation fails leaves nothing behind, and the ones beside it are written.
#[test]
fn a_batch_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    batches_are_whole(&open(&folder));
}

pub(super) fn batches_are_whole(store: &dyn Store) {
    runtime().block_on(async {
        let new = || Write::put(Table::Agents, "a", b"1".to_vec()).expecting(Expected::Absent);
        let beside = |value: &[u8]| Write::put(Table::Tokens, "t", value.to_vec());
        store.commit(vec![new(), beside(b"first")].into()).await.unwrap();
        let again = store.commit(vec![beside(b"second"), new()].into()).await;
        assert_eq!(again, Err(StoreError::Conflict));
        assert_eq!(store.get(Table::Tokens, b"t").await.unwrap().unwrap().value, b"first");

        let found = store.get(Table::Agents, b"a").await.unwrap().unwrap();
        let change =
            || Write::put(Table::Agents, "a", b"2".to_vec()).expecting(Expected::Version(found.version));
        // Both were decided on the same version: one of them wins, also where they are written together.
        let (one, other) =
            tokio::join!(store.commit(vec![change()].into()), store.commit(vec![change()].into()));
        assert!(
            matches!((&one, &other), (Ok(_), Err(StoreError::Conflict)) | (Err(StoreError::Conflict), Ok(_))),
            "{one:?} {other:?}"
        );
        // The version that a commit returns is that of its values, and higher than all before.
        let version = one.or(other).unwrap();
        let changed = store.get(Table::Agents, b"a").await.unwrap().unwrap();
        assert_eq!((changed.version, changed.value), (version, b"2".to_vec()));
        assert!(version > found.version);
        store
            .commit(vec![Write::remove(Table::Agents, "a").expecting(Expected::Version(version))].into())
            .await
            .unwrap();
        assert_eq!(store.get(Table::Agents, b"a").await.unwrap(), None);
        store.commit(vec![new()].into()).await.unwrap();
    });
}

/// Committed writes are there after reopening the file.
#[test]
fn commits_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let write = |key: &str| Write::put(Table::Agents, key, key.as_bytes().to_vec());
    runtime().block_on(store.commit(vec![write("x"), write("y")].into())).unwrap();
    assert!(store.close(std::time::Instant::now() + std::time::Duration::from_secs(60)));
    assert!(matches!(
        runtime().block_on(store.commit(vec![write("z")].into())),
        Err(StoreError::Unavailable(_))
    ));
    let store = open(&folder);
    assert_eq!(all(&store, b""), [(b"x".to_vec(), b"x".to_vec()), (b"y".to_vec(), b"y".to_vec())]);
}

/// Policies may hold credentials: the file is the owner's, and where a link is in its place nothing is opened.
#[test]
fn the_file_is_the_owners() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fleet/state.redb");
    let store = EmbeddedStore::open(&path).unwrap();
    for (path, expected) in [(path.as_path(), 0o600), (path.parent().unwrap(), 0o700)] {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, expected);
    }
    drop(store);
    let link = folder.path().join("link");
    symlink(folder.path().join("elsewhere"), &link).unwrap();
    assert!(EmbeddedStore::open(&link).err().unwrap().to_string().contains("a link"));
}

/// A file of a later format is refused by its number.
#[test]
fn a_newer_format_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.redb");
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let versions: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("versions");
    transaction.open_table(versions).unwrap().insert("format", 7).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let refused = EmbeddedStore::open(&path).err().unwrap();
    assert!(refused.to_string().contains("has format 7, and this version knows 1"), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    /// The store has what a map has, page by page and by prefix.
    #[test]
    fn it_lists_what_a_map_has(
        writes in prop::collection::vec(("[ab]{0,3}", prop::option::of(any::<u8>())), 1..40),
        prefix in "[ab]{0,2}",
        page in 1_usize..5,
    ) {
        let folder = tempfile::tempdir().unwrap();
        lists_what_a_map_has(&open(&folder), &writes, &prefix, page);
    }
}

/// Writes of one batch, and what is listed behind it by a prefix, so many at a time.
pub(super) fn lists_what_a_map_has(
    store: &dyn Store,
    writes: &[(String, Option<u8>)],
    prefix: &str,
    page: usize,
) {
    let mut model = BTreeMap::new();
    let mut batch = Vec::new();
    for (key, value) in writes {
        let key = key.as_bytes().to_vec();
        match value {
            Some(value) => {
                model.insert(key.clone(), vec![*value]);
                batch.push(Write::put(Table::Agents, key, vec![*value]));
            }
            None => {
                model.remove(&key);
                batch.push(Write::remove(Table::Agents, key));
            }
        }
    }
    let listed = runtime().block_on(async {
        store.commit(batch.into()).await.unwrap();
        let mut listed: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        loop {
            let after = listed.last().map(|(key, _)| key.clone());
            let range = KeyRange { prefix: prefix.as_bytes(), after: after.as_deref(), limit: page };
            let next = store.list(Table::Agents, range).await.unwrap();
            if next.is_empty() {
                break listed;
            }
            listed.extend(next.into_iter().map(|(key, stored)| (key, stored.value)));
        }
    });
    let expected: Vec<_> = model.into_iter().filter(|(key, _)| key.starts_with(prefix.as_bytes())).collect();
    assert_eq!(listed, expected);
}
