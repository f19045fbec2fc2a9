//! Properties of all files, feeds, refusals and restarts.

use super::*;
use proptest::prelude::*;
use proptest::sample::select;

/// The next step of a reader.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Reads up to so many bytes more.
    Read(usize),
    /// The output takes so many records, then refuses one.
    Room(usize),
    /// Time passes.
    Wait,
    /// The reader is killed, and begins again from the checkpoint.
    Restart,
    /// No memory is left for unfinished records, until the reader begins again.
    NoMemory,
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    let cri = (
        select(vec!["stdout", "stderr"]),
        select(vec!["P", "F", "F", "F:x"]),
        "[a-c]{0,3}[é😀]{0,2}\r?|[a-c]{0,40}",
    )
        .prop_map(|(stream, tag, text)| {
            format!("2016-10-06T00:17:09.5Z {stream} {tag} {text}\n").into_bytes()
        });
    let docker = (select(vec!["stdout", "stderr"]), "[a-c]{0,3}(\\\\t|é|\\\\r)?(\\\\n)?|[a-c]{0,40}(\\\\n)?")
        .prop_map(|(stream, log)| {
            format!("{{\"log\":\"{log}\",\"stream\":\"{stream}\",\"time\":\"2016-10-06T00:17:09Z\"}}\n")
                .into_bytes()
        });
    let plain = "( {0,2}[a-c;]{0,5}|[a-cé]{0,40}|[a-c]{0,200})\r?\n".prop_map(String::into_bytes);
    let noise = prop::collection::vec(select(vec![b'a', b' ', b'\r', b'\n', 0xc3, 0xa9, 0xff]), 0..6);
    let last = "[a-c]{0,5}".prop_map(String::into_bytes);
    let pieces = |piece: BoxedStrategy<Vec<u8>>| {
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    };
    let body = prop_oneof![
        pieces(plain.clone().boxed()),
        pieces(prop_oneof![8 => cri.clone(), 1 => plain.clone()].boxed()),
        pieces(prop_oneof![8 => docker, 1 => plain.clone()].boxed()),
        pieces(prop_oneof![cri, plain, noise].boxed()),
    ];
    (body, last).prop_map(|(body, last)| [body, last].concat())
}

fn settings() -> impl Strategy<Value = Settings> {
    let boundary = select(vec![
        None,
        None,
        Some(starts_with("^[a-b]")),
        Some(Boundary::End(LinePattern::compile("[;c]$").unwrap())),
    ]);
    let format = select(vec![
        Format::Auto,
        Format::Auto,
        Format::Only(LineFormat::Plain),
        Format::Only(LineFormat::Cri),
    ]);
    let on_long_line = select(vec![OnLongLine::Cut, OnLongLine::Drop]);
    (boundary, format, on_long_line, select(vec![6_usize, 20, 1_000]), select(vec![10_usize, 1_000]))
        .prop_map(|(boundary, format, on_long_line, longest_line, longest)| Settings {
            multiline: boundary.map(|boundary| Multiline { boundary, timeout_ns: 10, longest }),
            partial_timeout_ns: 15,
            format,
            on_long_line,
            longest_line,
            ..Settings::default()
        })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1_usize..60).prop_map(Step::Read),
        2 => (0_usize..3).prop_map(Step::Room),
        1 => Just(Step::Wait),
        2 => Just(Step::Restart),
        1 => Just(Step::NoMemory),
    ];
    prop::collection::vec(step, 0..40)
}

/// A reader of a file that grows by steps, and what it got.
struct Reader<'a> {
    file: &'a [u8],
    /// How much of the file is written.
    written: usize,
    lines: Lines,
    workspace: Workspace,
    out: Collected,
    now_ns: u64,
}

impl<'a> Reader<'a> {
    fn new(settings: &Settings, file: &'a [u8]) -> Reader<'a> {
        Reader {
            file,
            written: 0,
            lines: Lines::resume(Arc::new(settings.clone()), &Checkpoint::at(0)),
            workspace: Workspace::default(),
            out: Collected::default(),
            now_ns: 0,
        }
    }

    fn feed(&mut self) -> Stop {
        let from = self.lines.position() as usize;
        let buffer = &self.file[from..self.written.max(from)];
        let fed = self.lines.feed(&mut self.workspace, buffer, self.now_ns, &mut self.out);
        assert_eq!(self.lines.position(), (from + fed.consumed) as u64);
        fed.stop
    }

    fn step(&mut self, step: Step, restarts: bool) {
        self.now_ns += 1;
        match step {
            Step::Read(more) => {
                self.written = self.file.len().min(self.written + more);
                assert_eq!(self.feed(), Stop::End);
            }
            Step::Room(room) => {
                self.out.room = room;
                self.written = self.file.len().min(self.written + 30);
                while self.feed() == Stop::Full {
                    self.out.room = 1;
                }
                self.out.room = usize::MAX;
            }
            Step::Wait => {
                self.now_ns += 100;
                assert_eq!(self.lines.flush(&mut self.workspace, self.now_ns, &mut self.out), Stop::End);
                assert_eq!(self.lines.deadline_ns(), None);
            }
            Step::Restart if restarts => self.restart(),
            Step::NoMemory if restarts => {
                self.written = self.file.len().min(self.written + 30);
                self.out.memory = 0;
                let stop = self.feed();
                self.out.memory = usize::MAX;
                if stop == Stop::Memory {
                    self.restart();
                    assert_eq!(self.feed(), Stop::End);
                }
            }
            Step::NoMemory => {
                self.written = self.file.len().min(self.written + 30);
                assert_eq!(self.feed(), Stop::End);
            }
            Step::Restart => {}
        }
    }

    /// Begins again at the checkpoint; nothing is delivered on the way to where it was.
    fn restart(&mut self) {
        let mut bytes = [0; Checkpoint::MOST_BYTES];
        let len = self.lines.checkpoint().encode(&mut bytes);
        let (checkpoint, _) = Checkpoint::decode(&bytes[..len]).unwrap();
        let before = self.lines.position();
        self.lines = Lines::resume(self.lines.settings.clone(), &checkpoint);
        let records = self.out.records.len();
        let buffer = &self.file[checkpoint.offset() as usize..before as usize];
        let fed = self.lines.feed(&mut self.workspace, buffer, self.now_ns, &mut self.out);
        assert_eq!(fed, Fed { consumed: buffer.len(), stop: Stop::End });
        assert_eq!(self.out.records.len(), records, "delivered twice");
    }

    fn finish(mut self) -> Vec<Owned> {
        let rest = &self.file[self.lines.position() as usize..];
        let fed = self.lines.finish(&mut self.workspace, rest, self.now_ns, &mut self.out);
        assert_eq!(fed, Fed { consumed: rest.len(), stop: Stop::End });
        assert_eq!(self.lines.checkpoint().offset(), self.file.len() as u64);
        self.out.records
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Records are those of the model, however the bytes are cut into feeds and whenever the output refuses.
    #[test]
    fn records_do_not_depend_on_feeds(file in file(), settings in settings(), steps in steps()) {
        let expected = model::records(&settings, &file);
        let mut reader = Reader::new(&settings, &file);
        for step in steps {
            if !matches!(step, Step::Wait) {
                reader.step(step, false);
            }
        }
        prop_assert_eq!(reader.finish(), expected);
    }

    /// A reader that is killed again and again delivers what one delivers that is not.
    #[test]
    fn restarts_neither_lose_nor_repeat(file in file(), settings in settings(), steps in steps()) {
        let mut steady = Reader::new(&settings, &file);
        let mut killed = Reader::new(&settings, &file);
        for step in steps {
            steady.step(step, false);
            killed.step(step, true);
        }
        prop_assert_eq!(killed.finish(), steady.finish());
    }

    /// Offsets of a stream's records rise, a checkpoint is never behind the position, and never goes back.
    #[test]
    fn offsets_rise(file in file(), settings in settings(), steps in steps()) {
        let mut reader = Reader::new(&settings, &file);
        let mut offset = 0;
        for step in steps {
            reader.step(step, false);
            let checkpoint = reader.lines.checkpoint().offset();
            prop_assert!(offset <= checkpoint && checkpoint <= reader.lines.position());
            offset = checkpoint;
            prop_assert!(reader.lines.held_bytes() <= settings.most_held() + 3 * 1_024);
        }
        let records = reader.finish();
        for stream in Stream::ALL {
            let offsets: Vec<u64> = records.iter().filter(|r| r.stream == stream).map(|r| r.offset).collect();
            prop_assert!(offsets.is_sorted_by(|a, b| a < b));
        }
    }

    /// UTF-16 gives the records of the same text in UTF-8.
    #[test]
    fn utf_16_gives_the_same_texts(
        text in "[a-c\\x0a\\x0d਀Ċ😀;]{0,60}",
        settings in settings(),
        steps in steps(),
        big in any::<bool>(),
    ) {
        let encode = if big { u16::to_be_bytes } else { u16::to_le_bytes };
        let file: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(encode).collect();
        let settings = Settings { format: Format::Only(LineFormat::Plain), ..settings };
        let mut reader = Reader::new(&settings, &file);
        for step in steps {
            if !matches!(step, Step::Wait) {
                reader.step(step, true);
            }
        }
        let records = reader.finish();
        let found: Vec<&str> = records.iter().map(|record| &*record.text).collect();
        let expected = model::records(&settings, text.as_bytes());
        let expected: Vec<&str> = expected.iter().map(|record| &*record.text).collect();
        prop_assert_eq!(found, expected);
    }
}
