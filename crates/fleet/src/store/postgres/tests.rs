use super::*;
use crate::store::tests::{all, batches_are_whole, lists_what_a_map_has};
use crate::store::{Change, ChangedValue, Expected, Write};
use std::time::Duration;
use std::time::Instant;
use tidegate_test_postgres::PostgresServer;

const TABLES: [Table; 2] = [Table::Agents, Table::Counters];
const SOON: Duration = Duration::from_secs(60);

fn open(url: &str) -> PostgresStore {
    PostgresStore::open(&PostgresSettings { url: url.to_owned(), ca_file: None }).unwrap()
}

fn close(store: &PostgresStore) {
    assert!(store.close(Instant::now() + SOON));
}

fn run<T>(trial: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(2 * SOON, trial).await.unwrap() })
}

fn put(key: &str, value: &[u8]) -> Write {
    Write::put(Table::Agents, key, value.to_vec())
}

/// The database fulfils the contract of the embedded store.
#[test]
fn it_keeps_the_contract_of_stores() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("contract");
    let store = open(&url);
    batches_are_whole(&store);
    let texts = |keys: &[&str]| -> Vec<(String, Option<u8>)> {
        keys.iter().zip(0_u8..).map(|(key, at)| ((*key).to_owned(), (at % 5 != 4).then_some(at))).collect()
    };
    let keys = texts(&["", "a", "aa", "ab", "a", "b", "ba", "bb", "bbb", "abb", "aab", "b"]);
    for (table, (prefix, page)) in [("", 1), ("a", 2), ("b", 5), ("ab", 3)].into_iter().enumerate() {
        let store = open(&server.database(&format!("list{table}")));
        lists_what_a_map_has(&store, &keys, prefix, page);
        close(&store);
    }

    // Long values end a page early, and none is left out.
    let long = vec![7; 700 << 10];
    let batch: Vec<Write> = (0..5).map(|at| put(&format!("long{at}"), &long)).collect();
    run(store.commit(batch.into())).unwrap();
    let range = KeyRange { prefix: b"long", after: None, limit: 10 };
    let page = run(store.list(Table::Agents, range)).unwrap();
    assert_eq!(page.len(), 2);
    close(&store);
    assert!(matches!(run(store.commit(vec![put("z", b"")].into())), Err(StoreError::Unavailable(_))));

    // Committed writes are there for the next one, and a newer format is refused by its number.
    let store = open(&url);
    assert_eq!(all(&store, b"long4"), [(b"long4".to_vec(), long)]);
    close(&store);
    server.sql("contract", "UPDATE tidegate_fleet_meta SET format = 7");
    let refused = PostgresStore::open(&PostgresSettings { url, ca_file: None }).err().unwrap();
    assert!(refused.to_string().contains("has format 7, and this version knows 1"), "{refused}");
    let nowhere = PostgresSettings { url: "postgres://x@127.0.0.1:1/x".to_owned(), ca_file: None };
    assert!(matches!(PostgresStore::open(&nowhere).err(), Some(StoreError::Unavailable(_))));
    let wrong = PostgresSettings { url: "postgres://x:hunter2@[/x".to_owned(), ca_file: None };
    let refused = PostgresStore::open(&wrong).err().unwrap().to_string();
    assert!(refused.contains("the URL of the database cannot be read") && !refused.contains("hunter2"));
}

/// Writers at two gateways exclude each other, and a third learns of every change, in the order of the commits.
#[test]
fn changes_are_seen_once_and_in_order() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("changes");
    let (one, other, third) = (open(&url), open(&url), open(&url));
    run(async {
        let begin = third.watch(&TABLES, None).await.unwrap();
        assert!(!begin.is_complete);
        one.commit(vec![put("a", b"1"), Write::put(Table::Metadata, "m", Vec::new())].into()).await.unwrap();
        other.commit(vec![put("b", &[0; 5000]), Write::remove(Table::Agents, "a")].into()).await.unwrap();
        let mut seen = Vec::new();
        let mut position = begin.position;
        while seen.len() < 2 {
            let next = third.watch(&TABLES, Some(position)).await.unwrap();
            assert!(next.is_complete && next.position > position);
            position = next.position;
            seen.extend(next.changes);
        }
        // Of both commits where they were looked at one by one, of the last state where not.
        let removed = Change { table: Table::Agents, key: b"a".to_vec(), value: ChangedValue::Removed };
        let long = Change { table: Table::Agents, key: b"b".to_vec(), value: ChangedValue::Long };
        while !seen.contains(&removed) || !seen.contains(&long) {
            let next = third.watch(&TABLES, Some(position)).await.unwrap();
            position = next.position;
            seen.extend(next.changes);
        }
        assert!(seen.iter().all(|change| change.table == Table::Agents));

        // Each adds to one counter, and writes a key of its own beside it; both decide on what they have read.
        const EACH: u64 = 60;
        let add = |store: PostgresStore, name: &'static str| async move {
            for number in 0..EACH {
                loop {
                    let last = store.get(Table::Counters, b"sum").await.unwrap();
                    let sum = last
                        .as_ref()
                        .map_or(0, |last| u64::from_be_bytes(last.value[..].try_into().unwrap()));
                    let expected = last.map_or(Expected::Absent, |last| Expected::Version(last.version));
                    let write = Write::put(Table::Counters, "sum", (sum + 1).to_be_bytes().to_vec());
                    let beside = put(&format!("{name}{number}"), &sum.to_be_bytes());
                    match store.commit(vec![write.expecting(expected), beside].into()).await {
                        Ok(_) => break,
                        Err(StoreError::Conflict) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        };
        let follow = async {
            let mut sums = Vec::new();
            while sums.len() < usize::try_from(2 * EACH).unwrap() {
                let next = third.watch(&TABLES, Some(position)).await.unwrap();
                assert!(next.is_complete);
                position = next.position;
                for change in next.changes.into_iter().filter(|change| change.table == Table::Agents) {
                    let ChangedValue::Stored(stored) = change.value else { panic!("{change:?}") };
                    sums.push(u64::from_be_bytes(stored.value[..].try_into().unwrap()));
                }
            }
            sums
        };
        let ((), (), sums) = tokio::join!(add(one.clone(), "one"), add(other.clone(), "other"), follow);
        assert_eq!(sums, (0..2 * EACH).collect::<Vec<_>>());

        // A page has all of a batch that is longer.
        let batch: Vec<Write> = (0..700).map(|at| put(&format!("many{at}"), b"")).collect();
        one.commit(batch.into()).await.unwrap();
        let next = third.watch(&TABLES, Some(position)).await.unwrap();
        assert_eq!(next.changes.len(), 700);

        // Whoever comes from before a pruning reads all again.
        let (client, connection) =
            Box::pin(tokio_postgres::connect(&url, tokio_postgres::NoTls)).await.unwrap();
        let driver = tokio::runtime::Handle::current().spawn(connection);
        super::watch::prune(&client, next.position).await.unwrap();
        driver.abort();
        let late = third.watch(&TABLES, Some(begin.position)).await.unwrap();
        assert!(!late.is_complete && late.position >= next.position);
    });
    assert_eq!(
        server.sql("changes", "SELECT count(*) FROM tidegate_fleet_state WHERE value IS NULL").trim(),
        "0"
    );
    [one, other, third].iter().for_each(close);
}

/// While the server is away everything fails at once, and goes on when it is back.
#[test]
fn it_goes_on_when_the_server_is_back() {
    let Some(mut server) = PostgresServer::start() else { return };
    let store = open(&server.database("away"));
    let position = run(async {
        store.commit(vec![put("a", b"1")].into()).await.unwrap();
        store.watch(&TABLES, None).await.unwrap().position
    });
    server.stop();
    run(async {
        let outcomes = [
            store.commit(vec![put("a", b"2")].into()).await.map(|_| ()),
            store.get(Table::Agents, b"a").await.map(|_| ()),
            store.watch(&TABLES, Some(position)).await.map(|_| ()),
        ];
        assert!(
            outcomes.iter().all(|outcome| matches!(outcome, Err(StoreError::Unavailable(_)))),
            "{outcomes:?}"
        );
    });
    server.go_on();
    run(async {
        // At the latest when the pause between attempts is over.
        while store.get(Table::Agents, b"a").await.map(|found| found.unwrap().value) != Ok(b"1".to_vec()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        while store.commit(vec![put("a", b"3")].into()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let found = loop {
            match store.watch(&TABLES, Some(position)).await {
                Ok(found) => break found,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        assert!(!found.is_complete, "another server may have lost commits: all is read again");
    });
    close(&store);
}

/// TLS is what the URL says, and a server whose certificate does not fit is none.
#[test]
fn a_server_proves_its_name() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("tls");
    let required = format!("{url}?sslmode=require");
    let made = |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let (own, other) = (made("127.0.0.1"), made("db.example"));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, certificate: &rcgen::CertifiedKey<rcgen::KeyPair>| {
        let path = folder.path().join(name);
        std::fs::write(&path, certificate.cert.pem()).unwrap();
        path
    };
    let opened = |ca_file: &std::path::Path| {
        PostgresStore::open(&PostgresSettings { url: required.clone(), ca_file: Some(ca_file.to_owned()) })
    };
    let (own_file, other_file) = (file("own.pem", &own), file("other.pem", &other));
    assert!(opened(&own_file).is_err(), "the server has no TLS");

    server.encrypt(&own.cert.pem(), &own.signing_key.serialize_pem());
    let store = opened(&own_file).unwrap();
    run(store.commit(vec![put("a", b"1")].into())).unwrap();
    let encrypted =
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND datname = 'tls'";
    assert_ne!(server.sql("postgres", encrypted).trim(), "0");
    close(&store);
    assert!(opened(&other_file).is_err(), "nobody vouches for it");
    server.encrypt(&other.cert.pem(), &other.signing_key.serialize_pem());
    until_refused(|| opened(&other_file).is_err());
    assert!(opened(&folder.path().join("missing.pem")).is_err());
}

/// The server takes a new certificate some time after it is told to.
fn until_refused(is_refused: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_refused() {
        assert!(begun.elapsed() < SOON, "another's name was taken for the server's");
        std::thread::sleep(Duration::from_millis(50));
    }
}
