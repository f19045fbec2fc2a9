//! A table writes what was not changed as it came, and the rest as its values say.

use super::MapTable;
use crate::any_value::Outside;
use crate::memory::{Memory, Slice, Space};
use tidegate_wire::output::{Output, SliceOutput};

/// Two fields 6 with oddities: a field that no schema has, and a length in more bytes than it needs.
const BODY: &[u8] =
    b"\x32\x0a\x0a\x01a\x12\x03\x0a\x01x\x48\x07\x08\x01\x32\x88\x00\x0a\x01b\x12\x03\x0a\x01y";

fn body() -> Slice {
    Slice { start: 0, len: BODY.len() as u32, space: Space::Body }
}

fn written(table: &MapTable, memory: &Memory<'_>, number: u32) -> Vec<u8> {
    let mut space = vec![0; 1 << 10];
    let mut out = SliceOutput::new(&mut space);
    table.write(number, &mut Outside { memory, out: &mut out }).unwrap();
    let len = out.len();
    space.truncate(len);
    space
}

#[test]
fn unchanged_neighbours_are_one_copy() {
    struct Calls(Vec<usize>);
    impl Output for Calls {
        fn put(&mut self, bytes: &[u8]) -> Result<(), tidegate_wire::output::Full> {
            self.0.push(bytes.len());
            Ok(())
        }
    }
    let fields = b"\x32\x05\x0a\x01a\x12\x00\x32\x05\x0a\x01b\x12\x00\x32\x05\x0a\x01c\x12\x00";
    let memory = Memory::new(fields, b"", &mut []);
    let mut table = MapTable::new();
    let whole = Slice { start: 0, len: fields.len() as u32, space: Space::Body };
    table.load(&memory, whole, 6).unwrap();
    let mut calls = Calls(Vec::new());
    table.write(6, &mut Outside { memory: &memory, out: &mut calls }).unwrap();
    assert_eq!(calls.0, [21]);
}

#[test]
fn fields_that_did_not_change_keep_their_bytes() {
    let mut temporary = [0; 64];
    let mut memory = Memory::new(BODY, b"", &mut temporary);
    let key = memory.store(b"a").unwrap();
    let mut table = MapTable::new();
    table.load(&memory, body(), 6).unwrap();
    assert_eq!(table.len(), 2);
    let second = b"\x32\x88\x00\x0a\x01b\x12\x03\x0a\x01y";
    table.remove(&memory, key);
    assert!(table.is_changed());
    assert_eq!(written(&table, &memory, 6), second);
    // As a map, the number differs.
    assert_eq!(written(&table, &memory, 1), b"\x0a\x08\x0a\x01b\x12\x03\x0a\x01y");
}

#[test]
fn a_full_table_refuses_more() {
    let mut table = MapTable::new();
    let mut temporary = vec![0; 1 << 16];
    let mut memory = Memory::new(b"", b"", &mut temporary);
    for at in 0..=MapTable::CAPACITY {
        let key = memory.store(&at.to_le_bytes()).unwrap();
        let done = table.set(&memory, key, crate::value::Value::Nil);
        assert_eq!(done.is_ok(), at < MapTable::CAPACITY);
    }
    assert_eq!(table.len(), MapTable::CAPACITY);
}
