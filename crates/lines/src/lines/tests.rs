//! Files as people have them, and properties of all files.

mod model;
mod properties;

use super::*;
use crate::settings::{Boundary, Multiline, OnLongLine};
use crate::{Counts, Record, Taken};
use tidegate_pipeline::LinePattern;

/// A record, owned: text, stream, offset, time, whether it was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owned {
    text: String,
    stream: Stream,
    offset: u64,
    time_ns: u64,
    is_cut: bool,
}

/// Collects records, up to `room` of them, and grants `memory` bytes.
#[derive(Debug)]
struct Collected {
    records: Vec<Owned>,
    room: usize,
    memory: usize,
}

impl Default for Collected {
    fn default() -> Collected {
        Collected { records: Vec::new(), room: usize::MAX, memory: usize::MAX }
    }
}

impl Output for Collected {
    fn record(&mut self, record: &Record<'_>) -> Taken {
        let Some(room) = self.room.checked_sub(1) else { return Taken::Full };
        self.room = room;
        let Record { text, time_ns, stream, offset, is_cut } = *record;
        self.records.push(Owned { text: text.to_owned(), stream, offset, time_ns, is_cut });
        Taken::Yes
    }

    fn hold(&mut self, more: usize) -> bool {
        match self.memory.checked_sub(more) {
            Some(left) => {
                self.memory = left;
                true
            }
            None => false,
        }
    }
}

/// The texts of a whole file, and the counts.
fn texts(settings: Settings, file: &[u8]) -> (Vec<String>, Counts) {
    let mut lines = Lines::resume(Arc::new(settings), &Checkpoint::at(0));
    let (mut workspace, mut out) = (Workspace::default(), Collected::default());
    let fed = lines.finish(&mut workspace, file, 0, &mut out);
    assert_eq!(fed, Fed { consumed: file.len(), stop: Stop::End });
    assert_eq!(lines.checkpoint().offset(), file.len() as u64);
    assert_eq!(lines.held_bytes(), 0);
    (out.records.into_iter().map(|record| record.text).collect(), workspace.counts)
}

fn short(longest_line: usize, on_long_line: OnLongLine) -> Settings {
    Settings { longest_line, on_long_line, ..Settings::default() }
}

fn grouped(boundary: Boundary, longest: usize) -> Settings {
    let multiline = Some(Multiline { boundary, timeout_ns: 1_000, longest });
    Settings { multiline, ..Settings::default() }
}

fn starts_with(pattern: &str) -> Boundary {
    Boundary::Start(LinePattern::compile(pattern).unwrap())
}

#[test]
fn line_ends_are_no_part_of_records() {
    let (found, counts) = texts(Settings::default(), b"one\r\n\ntwo\rx\nlast");
    assert_eq!(found, ["one", "", "two\rx", "last"]);
    assert_eq!(counts, Counts::default());
}

#[test]
fn long_lines_are_cut_or_dropped() {
    let file = "12345\n123456\n1234é\nx\n12345\r\n".as_bytes();
    let (found, counts) = texts(short(5, OnLongLine::Cut), file);
    assert_eq!(found, ["12345", "12345", "1234", "x", "12345"]);
    assert_eq!(counts, Counts { cut: 2, ..Counts::default() });
    let (found, counts) = texts(short(5, OnLongLine::Drop), file);
    assert_eq!(found, ["12345", "x", "12345"]);
    assert_eq!(counts, Counts { dropped: 2, ..Counts::default() });
}

/// A line of any length needs no more memory than the longest line, and its rest is skipped after a restart, too.
#[test]
fn the_rest_of_a_long_line_is_skipped_after_a_restart() {
    let settings =
        Arc::new(Settings { format: Format::Only(LineFormat::Plain), ..short(5, OnLongLine::Cut) });
    let mut lines = Lines::resume(settings.clone(), &Checkpoint::at(0));
    let (mut workspace, mut out) = (Workspace::default(), Collected::default());
    for piece in [&b"1234567890"[..], b"1234567890"] {
        assert_eq!(lines.feed(&mut workspace, piece, 0, &mut out), Fed { consumed: 10, stop: Stop::End });
    }
    let mut lines = Lines::resume(settings, &lines.checkpoint());
    assert_eq!(lines.position(), 20);
    lines.feed(&mut workspace, b"123\nnext\n", 0, &mut out);
    let found: Vec<&str> = out.records.iter().map(|record| &*record.text).collect();
    assert_eq!(found, ["12345", "next"]);
}

#[test]
fn invalid_utf_8_is_replaced_and_counted() {
    let (found, counts) = texts(Settings::default(), b"caf\xe9\nok\n");
    assert_eq!(found, ["caf\u{fffd}", "ok"]);
    assert_eq!(counts, Counts { invalid_text: 1, ..Counts::default() });
}

#[test]
fn other_encodings_become_utf_8() {
    let text = "\u{feff}aéਊ\r\n😀\n\nlast";
    let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (encoding, file) in [
        (Encoding::Utf8, text.as_bytes()),
        (Encoding::Utf8, &le),
        (Encoding::Utf8, &be),
        (Encoding::Utf16Le, &le),
        (Encoding::Utf16Be, &be),
    ] {
        let (found, counts) = texts(Settings { encoding, ..Settings::default() }, file);
        assert_eq!(found, ["aéਊ", "😀", "", "last"], "{encoding:?}");
        assert_eq!(counts, Counts::default());
    }
    let latin1 = Settings { encoding: Encoding::Latin1, ..Settings::default() };
    assert_eq!(texts(latin1, b"caf\xe9\n").0, ["café"]);
}

#[test]
fn cri_parts_are_joined_by_stream() {
    let file = b"2016-10-06T00:17:09.1Z stdout P one \n\
        2016-10-06T00:17:09.2Z stderr P err \n\
        2016-10-06T00:17:09.3Z stdout P two \n\
        2016-10-06T00:17:09.4Z stderr F or\n\
        2016-10-06T00:17:09.5Z stdout F three\r\n\
        what is this\n\
        2016-10-06T00:17:09.6Z stdout F whole\n";
    let mut lines = Lines::resume(Arc::new(Settings::default()), &Checkpoint::at(0));
    let (mut workspace, mut out) = (Workspace::default(), Collected::default());
    lines.feed(&mut workspace, file, 0, &mut out);
    let found: Vec<_> =
        out.records.iter().map(|r| (&*r.text, r.stream, r.offset, r.time_ns % 1_000_000_000)).collect();
    assert_eq!(
        found,
        [
            ("err or", Stream::Stderr, 37, 200_000_000),
            ("one two three", Stream::Stdout, 0, 100_000_000),
            ("what is this", Stream::None, 185, 0),
            ("whole", Stream::Stdout, 198, 600_000_000),
        ]
    );
    assert_eq!(workspace.counts, Counts { malformed: 1, ..Counts::default() });
}

#[test]
fn a_character_may_be_cut_between_parts() {
    let text = "é".as_bytes();
    let mut file = Vec::new();
    for (tag, byte) in [("P", text[0]), ("F", text[1])] {
        file.extend_from_slice(format!("2016-10-06T00:17:09Z stdout {tag} ").as_bytes());
        file.extend_from_slice(&[byte, b'\n']);
    }
    let (found, counts) = texts(Settings::default(), &file);
    assert_eq!((found, counts), (vec!["é".to_owned()], Counts::default()));
}

#[test]
fn docker_parts_are_joined() {
    let file = br#"{"log":"one \"","stream":"stdout","time":"2016-10-06T00:17:09Z"}
{"log":"\" two\r\n","stream":"stdout","attrs":{"tag":"x"},"time":"2016-10-06T00:17:10Z"}
{"log":"an error\n","stream":"stderr","time":"2016-10-06T00:17:11Z"}
"#;
    assert_eq!(texts(Settings::default(), file).0, [r#"one "" two"#, "an error"]);
}

/// The format is that of each file, not of the first file of a source.
#[test]
fn a_file_of_json_lines_is_plain() {
    let (found, counts) = texts(Settings::default(), b"{\"msg\":\"x\"}\n{}\n");
    assert_eq!(found, ["{\"msg\":\"x\"}", "{}"]);
    assert_eq!(counts, Counts::default());
}

#[test]
fn a_line_that_matches_begins_a_record() {
    let file = b" before\n2024 one\n  at x\n  at y\n2024 two\n";
    let (found, _) = texts(grouped(starts_with(r"^\d"), 1_000), file);
    assert_eq!(found, [" before", "2024 one\n  at x\n  at y", "2024 two"]);
}

#[test]
fn a_line_that_matches_ends_a_record() {
    let boundary = Boundary::End(LinePattern::compile(";$").unwrap());
    let (found, _) = texts(grouped(boundary, 1_000), b"select\n1;\nselect 2;\nrest");
    assert_eq!(found, ["select\n1;", "select 2;", "rest"]);
}

#[test]
fn a_long_record_is_split_between_lines() {
    let (found, counts) = texts(grouped(starts_with("^[a-z]"), 7), b"a\n 1\n 2\n 3\nb\n");
    assert_eq!(found, ["a\n 1\n 2", " 3", "b"]);
    assert_eq!(counts, Counts { split: 1, ..Counts::default() });
}

#[test]
fn multiline_follows_the_joining_of_parts() {
    let file = b"2016-10-06T00:17:09Z stdout F 1 first\n\
        2016-10-06T00:17:09Z stdout P   at\n\
        2016-10-06T00:17:09Z stderr F 2 error\n\
        2016-10-06T00:17:09Z stdout F  x\n\
        2016-10-06T00:17:09Z stdout F 3 next\n";
    let (found, _) = texts(grouped(starts_with(r"^\d"), 1_000), file);
    assert_eq!(found, ["1 first\n  at x", "3 next", "2 error"]);
}

#[test]
fn a_record_ends_when_its_next_line_is_late() {
    let mut lines = Lines::resume(Arc::new(grouped(starts_with("^[a-z]"), 1_000)), &Checkpoint::at(0));
    let (mut workspace, mut out) = (Workspace::default(), Collected::default());
    assert_eq!(lines.deadline_ns(), None);
    lines.feed(&mut workspace, b"a\n 1\n", 5, &mut out);
    assert_eq!((lines.deadline_ns(), lines.checkpoint().offset()), (Some(1_005), 0));
    lines.flush(&mut workspace, 1_004, &mut out);
    assert_eq!(out.records.len(), 0);
    lines.flush(&mut workspace, 1_005, &mut out);
    assert_eq!(out.records[0].text, "a\n 1");
    assert_eq!((lines.deadline_ns(), lines.checkpoint().offset(), lines.held_bytes()), (None, 5, 0));
}

/// Without memory for an unfinished record nothing is lost: the reader begins again at the checkpoint.
#[test]
fn without_memory_the_file_is_read_again() {
    let file = b"2016-10-06T00:17:09Z stdout P one \n2016-10-06T00:17:09Z stderr F x\n";
    let settings = Arc::new(Settings::default());
    let mut lines = Lines::resume(settings.clone(), &Checkpoint::at(0));
    let mut workspace = Workspace::default();
    let mut out = Collected { memory: 10, ..Collected::default() };
    assert_eq!(lines.feed(&mut workspace, file, 0, &mut out), Fed { consumed: 0, stop: Stop::Memory });
    out.memory = 256;
    assert_eq!(lines.feed(&mut workspace, file, 0, &mut out), Fed { consumed: file.len(), stop: Stop::End });
    assert!(lines.held_bytes() >= 256);
    let lines = Lines::resume(settings, &lines.checkpoint());
    assert_eq!((lines.held_bytes(), lines.position(), out.records.len()), (0, 0, 1));
}

#[test]
fn an_idle_file_is_small() {
    assert!(size_of::<Lines>() <= 160, "{}", size_of::<Lines>());
}

#[test]
fn a_line_allocates_nothing() {
    struct Counter(usize);
    impl Output for Counter {
        fn record(&mut self, record: &Record<'_>) -> Taken {
            self.0 += record.text.len();
            Taken::Yes
        }
    }
    let plain = b"some line of a file\n".repeat(100);
    let cri = b"2016-10-06T00:17:09.669794202Z stdout F a message\n".repeat(100);
    let docker =
        b"{\"log\":\"a message\\n\",\"stream\":\"stdout\",\"time\":\"2016-10-06T00:17:09Z\"}\n".repeat(100);
    for file in [&plain, &cri, &docker] {
        let mut lines = Lines::resume(Arc::new(Settings::default()), &Checkpoint::at(0));
        let (mut workspace, mut out) = (Workspace::default(), Counter(0));
        let allocated = allocation_counter::measure(|| {
            assert_eq!(lines.feed(&mut workspace, file, 0, &mut out).consumed, file.len());
        });
        assert_eq!(allocated.count_total, 0);
        assert!(out.0 > 0);
    }
}
