#![allow(clippy::indexing_slicing, reason = "a test may panic")]

use super::*;
use crate::output::SliceOutput;

fn written(write: impl FnOnce(&mut SliceOutput<'_>) -> Result<(), Full>) -> String {
    let mut space = [0; 4096];
    let mut out = SliceOutput::new(&mut space);
    write(&mut out).unwrap();
    let len = out.len();
    String::from_utf8(space[..len].to_vec()).unwrap()
}

/// Every string reads back as it was, and so does one inside another.
#[test]
fn strings_read_back_as_they_were() {
    let all: String = (0..0x250).filter_map(char::from_u32).collect();
    for text in ["", "plain", "\"\\\n\r\t\u{8}\u{c}\0\u{1f}", &all] {
        let once = written(|out| string(text.as_bytes(), out));
        assert_eq!(serde_json::from_str::<String>(&once).unwrap(), text);
        let twice = written(|out| {
            out.put(b"\"")?;
            string(text.as_bytes(), &mut StringContent(out))?;
            out.put(b"\"")
        });
        assert_eq!(
            serde_json::from_str::<String>(&serde_json::from_str::<String>(&twice).unwrap()).unwrap(),
            text
        );
    }
}

/// Integers are exact, doubles too and never without a point or an exponent.
#[test]
fn numbers_read_back_as_they_were() {
    for value in [0, 1, -1, 10, i64::MAX, i64::MIN] {
        assert_eq!(written(|out| int(value, out)), value.to_string());
    }
    assert_eq!(written(|out| unsigned(u64::MAX, out)), u64::MAX.to_string());
    for value in [0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, f64::MAX, 123_456_789.123] {
        let text = written(|out| double(f64::to_bits(value), out).map(drop));
        assert!(text.contains(['.', 'e']), "{text}");
        assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
    }
    assert_eq!(written(|out| double(f64::to_bits(f64::NAN), out).map(drop)), "null");
}

/// Times are those of the proleptic Gregorian calendar, to the nanosecond.
#[test]
fn times_are_calendar_times() {
    for (nanoseconds, text) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_399_000_000_000, "2000-02-28T23:59:59.000Z"),
        (951_782_400_000_000_001, "2000-02-29T00:00:00.000000001Z"),
        (1_710_273_641_123_456_789, "2024-03-12T20:00:41.123456789Z"),
        (1_735_689_599_999_999_000, "2024-12-31T23:59:59.999999Z"),
        (4_107_542_400_000_000_000, "2100-03-01T00:00:00.000Z"),
        (u64::MAX, "2554-07-21T23:34:33.709551615Z"),
    ] {
        assert_eq!(written(|out| rfc3339(nanoseconds, out)), format!("\"{text}\""));
    }
}

/// Hexadecimal and base 64 are those of everybody.
#[test]
fn hex_and_base64_equal_those_of_other_encoders() {
    assert_eq!(
        written(|out| hex(&(0..20).collect::<Vec<_>>(), out)),
        "000102030405060708090a0b0c0d0e0f10111213"
    );
    for (bytes, text) in
        [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (&[0xff, 0xfe], "//4=")]
    {
        assert_eq!(written(|out| base64(bytes, out)), text);
    }
}
