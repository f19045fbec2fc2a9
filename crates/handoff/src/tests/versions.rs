use super::*;
use crate::segment::HEAD;

fn with_version(bytes: &mut [u8], version: u32, sum_at: usize) {
    bytes[4..8].copy_from_slice(&version.to_le_bytes());
    let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..sum_at]), &bytes[sum_at + 4..]);
    bytes[sum_at..sum_at + 4].copy_from_slice(&sum.to_le_bytes());
}

/// Another version is no damage: nothing may be changed or deleted.
fn assert_refused(mut rig: Rig, name: &str, change: impl Fn(&mut Vec<u8>)) {
    rig.open = None;
    let mut contents = rig.files.contents();
    change(contents.get_mut(name).unwrap());
    rig.files = SimulatedFiles::of(&contents);
    let refused = rig.try_open().err().unwrap().to_string();
    assert!(refused.contains(&format!("/simulated/{name} has version 9")), "{refused}");
    assert_eq!(rig.files.contents(), contents);
}

fn rig() -> Rig {
    let mut rig = Rig::new(small());
    for number in 0..2 {
        rig.append("a:1", 1, [number; 10]).unwrap();
    }
    // So that both files are written to: one at opening, one at closing.
    rig.take("a:1");
    rig.close();
    rig
}

#[test]
fn a_segment_of_another_version_is_refused_by_name() {
    let rig = rig();
    let name = rig.segments().remove(0);
    assert_refused(rig, &name, |bytes| with_version(&mut bytes[..HEAD], 9, HEAD - 4));
}

#[test]
fn cursors_of_another_version_are_refused_by_name() {
    for name in crate::cursors::NAMES {
        let rig = rig();
        assert_refused(rig, name, |bytes| {
            let used = u32::from_le_bytes(*bytes[28..].first_chunk().unwrap()) as usize;
            with_version(&mut bytes[..used], 9, 32);
        });
    }
}
