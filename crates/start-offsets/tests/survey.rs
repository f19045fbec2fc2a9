//! Each checkpoint is told apart by the file that is there now.

use std::fs;
use tidegate_start_offsets::{Checkpoint, PREFIX_LEN, StartOffsets, State, StoredOffsets, survey};

use std::os::unix::fs::MetadataExt as _;

#[test]
fn states_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let content = "0123456789".repeat(200);
    fs::write(&path, &content).unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    let at =
        |offset| Checkpoint { path: Some(path.clone()), inode: Some(inode), offset, ..Checkpoint::default() };
    let state = |checkpoint: &Checkpoint| survey(checkpoint).state;
    assert_eq!(state(&at(2000)), State::Read);
    assert_eq!(state(&at(500)), State::Behind(1500));
    assert_eq!(state(&at(2001)), State::Truncated);
    assert_eq!(survey(&at(2001)).stored.unwrap().offset, 0);
    assert_eq!(state(&Checkpoint { inode: None, ..at(500) }), State::Behind(1500));
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    if fs::metadata(&path).unwrap().created().is_ok() {
        let found = survey(&Checkpoint { inode: None, stored_at: Some(before), ..at(500) });
        assert_eq!((found.state, found.stored.unwrap().offset), (State::Replaced, 0));
    }
    assert_eq!(state(&Checkpoint { inode: Some(inode + 1), ..at(500) }), State::Gone);
    assert_eq!(
        state(&Checkpoint { path: Some(dir.path().join("b.log")), inode: None, ..at(500) }),
        State::Gone
    );

    // It is found under another name by its inode, and another file under its name is not it.
    let renamed = dir.path().join("a.log.1");
    fs::rename(&path, &renamed).unwrap();
    fs::write(&path, "new").unwrap();
    let found = survey(&at(500));
    assert_eq!((found.path, found.state), (Some(renamed.clone()), State::Behind(1500)));

    // By its first bytes alone, or with a path that another file has by now.
    let first = content.as_bytes().get(..PREFIX_LEN - 24).unwrap().to_vec();
    let by_content = Checkpoint { path: None, inode: None, first_bytes: Some(first), ..at(700) };
    assert_eq!(state(&by_content), State::ByContent);
    assert_eq!(state(&Checkpoint { path: Some(path.clone()), ..by_content.clone() }), State::ByContent);
    assert_eq!(state(&Checkpoint { path: Some(renamed.clone()), ..by_content.clone() }), State::Behind(1300));

    // Stored and looked up again.
    let data = dir.path().join("data");
    let mut stored = StoredOffsets::default();
    stored.add(vec![survey(&by_content).stored.unwrap()]).unwrap();
    stored.write(&data).unwrap();
    let offsets = StartOffsets::read(&data).unwrap();
    let first = content.as_bytes().get(..PREFIX_LEN).unwrap();
    assert_eq!(offsets.find(&renamed, 1, 1, first), Some(700));
    assert_eq!(offsets.find(&path, 1, 1, b"new"), None);
}
