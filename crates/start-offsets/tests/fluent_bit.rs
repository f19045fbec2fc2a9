//! The reader of SQLite agrees with SQLite itself, by Python's module: with large tables, long names, deleted rows, and commits that are in
//! the write-ahead log alone.

use std::path::Path;
use std::process::Command;
use tidegate_start_offsets::{Checkpoint, fluent_bit};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS in_tail_files (  id      INTEGER PRIMARY KEY,  name    TEXT NOT NULL,  \
                     offset  INTEGER,  inode   INTEGER,  created INTEGER,  rotated INTEGER DEFAULT 0);";

/// Runs `script` with `db` opened, and `path` its path; it ends without closing the database, as a killed program does.
fn sqlite(path: &Path, script: &str) {
    let program = format!(
        "import os, sqlite3, sys\npath = sys.argv[1]\ndb = sqlite3.connect(path)\ndb.execute('PRAGMA page_size=1024')\n{script}\nos._exit(0)\n"
    );
    let status = Command::new("python3").arg("-c").arg(program).arg(path).status().expect("python3 is there");
    assert!(status.success());
}

fn files(path: &Path) -> Vec<Checkpoint> {
    fluent_bit(path).expect("it is a database").files
}

fn file(name: String, offset: u64, inode: u64) -> Checkpoint {
    Checkpoint { path: Some(name.into()), inode: Some(inode), offset, ..Checkpoint::default() }
}

/// 5,000 rows are a tree of three levels; names of 3,000 bytes are on pages of their own.
#[test]
fn reads_large_tables() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flb.db");
    let script = format!(
        r#"
db.execute('CREATE TABLE other (a, b)')
db.execute("""{TABLE}""")
for i in range(1, 5001):
    name = '/var/log/' + 'x' * (3000 if i % 500 == 0 else i % 90) + str(i)
    db.execute('INSERT INTO in_tail_files (name, offset, inode, created) VALUES (?, ?, ?, 1)', (name, i * i * i, i * 7))
db.execute('DELETE FROM in_tail_files WHERE id % 5 = 0 AND id % 500 != 0')
db.commit()
"#
    );
    sqlite(&path, &script);
    let expected: Vec<Checkpoint> = (1..=5000_u64)
        .filter(|i| i % 5 != 0 || i % 500 == 0)
        .map(|i| {
            let long = "x".repeat(if i % 500 == 0 { 3000 } else { (i % 90) as usize });
            file(format!("/var/log/{long}{i}"), i * i * i, i * 7)
        })
        .collect();
    assert!(files(&path) == expected);
}

/// Fluent Bit commits to a write-ahead log, which a killed one leaves behind; the newest row of an inode counts.
#[test]
fn reads_the_write_ahead_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flb.db");
    let script = format!(
        r#"
db.execute('PRAGMA journal_mode=WAL')
db.execute("""{TABLE}""")
db.execute("INSERT INTO in_tail_files (name, offset, inode, created) VALUES ('/a', 1, 10, 1), ('/b', 2, 11, 1)")
db.commit()
db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
db.execute("UPDATE in_tail_files SET offset = 100 WHERE inode = 10")
db.execute("INSERT INTO in_tail_files (name, offset, inode, created) VALUES ('/b', 3, 11, 2)")
db.commit()
db.execute("UPDATE in_tail_files SET offset = 999")
"#
    );
    sqlite(&path, &script);
    assert!(path.with_extension("db-wal").metadata().unwrap().len() > 0);
    assert_eq!(files(&path), [file("/a".to_owned(), 100, 10), file("/b".to_owned(), 3, 11)]);
}

#[test]
fn names_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.db");
    sqlite(&path, "db.execute('CREATE TABLE other (a)')\ndb.commit()");
    assert!(fluent_bit(&path).unwrap_err().to_string().contains("no table `in_tail_files`"));
    std::fs::write(&path, "text").unwrap();
    assert!(fluent_bit(&path).unwrap_err().to_string().contains("no SQLite database"));
    std::fs::write(dir.path().join("other.db-journal"), "x").unwrap();
    assert!(fluent_bit(&path).unwrap_err().to_string().contains("transaction"));
}
