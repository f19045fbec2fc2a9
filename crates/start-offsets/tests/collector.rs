//! A database that bbolt 1.4.3 wrote: three transactions of two files each, as the Collector's `file_storage` writes them.

use std::path::Path;
use tidegate_start_offsets::{Checkpoint, collector};

#[test]
fn reads_a_file_storage() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let file = |number: u64| Checkpoint {
        path: Some(format!("/var/log/{number}.log").into()),
        first_bytes: Some(format!("file {number} begins here\n").into_bytes()),
        offset: number * 1000 + 2,
        ..Checkpoint::default()
    };
    for path in [folder.clone(), folder.join("receiver_filelog_")] {
        assert_eq!(collector(&path).unwrap().files, [file(0), file(1)]);
    }
}

#[test]
fn names_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    assert!(collector(dir.path()).unwrap_err().to_string().contains("no file of a receiver"));
    std::fs::write(dir.path().join("receiver_filelog_"), "text").unwrap();
    assert!(collector(dir.path()).unwrap_err().to_string().contains("no bbolt database"));
}
