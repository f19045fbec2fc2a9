//! Whatever a file contains, its records do not depend on how it is cut into feeds, and a reader that is restarted in between
//! delivers each of them once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use tidegate_lines::{
    Boundary, Checkpoint, Encoding, Lines, Multiline, OnLongLine, Output, Record, Settings, Stop, Taken, Workspace,
};
use tidegate_pipeline::LinePattern;

/// Records, and after how many the next is refused.
#[derive(Default)]
struct Collected(Vec<(String, u64, bool)>, usize);

impl Output for Collected {
    fn record(&mut self, record: &Record<'_>) -> Taken {
        let Some(room) = self.1.checked_sub(1) else { return Taken::Full };
        self.1 = room;
        self.0.push((record.text.to_owned(), record.offset, record.is_cut));
        Taken::Yes
    }
}

fn settings(flags: u8) -> Settings {
    let boundary = |pattern: &str| LinePattern::compile(pattern).expect("it is a pattern");
    let multiline = match flags & 3 {
        0 => Some(Boundary::Start(boundary(r"^\S"))),
        1 => Some(Boundary::End(boundary(";$"))),
        _ => None,
    };
    Settings {
        multiline: multiline.map(|boundary| Multiline { boundary, timeout_ns: 1, longest: 64 }),
        encoding: [Encoding::Utf8, Encoding::Utf8, Encoding::Utf16Le, Encoding::Latin1][usize::from(flags >> 2 & 3)],
        on_long_line: if flags & 16 == 0 { OnLongLine::Cut } else { OnLongLine::Drop },
        longest_line: if flags & 32 == 0 { 16 } else { 1_000 },
        ..Settings::default()
    }
}

fuzz_target!(|input: &[u8]| {
    let [flags, seed, file @ ..] = input else { return };
    let settings = Arc::new(settings(*flags));
    let mut workspace = Workspace::default();
    let mut whole = Collected(Vec::new(), usize::MAX);
    let fed = Lines::resume(settings.clone(), &Checkpoint::at(0)).finish(&mut workspace, file, 0, &mut whole);
    assert_eq!((fed.consumed, fed.stop), (file.len(), Stop::End));

    let mut lines = Lines::resume(settings.clone(), &Checkpoint::at(0));
    let mut cut = Collected::default();
    let mut random = u32::from(*seed) | 1;
    let mut written = 0;
    while written < file.len() {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        written = file.len().min(written + 1 + (random >> 26) as usize);
        cut.1 = (random >> 20 & 3) as usize;
        let from = lines.position() as usize;
        lines.feed(&mut workspace, &file[from..written.max(from)], 0, &mut cut);
        if random >> 16 & 3 == 0 {
            let mut bytes = [0; Checkpoint::MOST_BYTES];
            let len = lines.checkpoint().encode(&mut bytes);
            let (checkpoint, read) = Checkpoint::decode(&bytes[..len]).expect("it was encoded");
            assert_eq!(read, len);
            lines = Lines::resume(settings.clone(), &checkpoint);
        }
    }
    cut.1 = usize::MAX;
    let from = lines.position() as usize;
    lines.finish(&mut workspace, &file[from..], 0, &mut cut);
    assert_eq!(cut.0, whole.0);
    _ = Checkpoint::decode(file);
});
