//! Rotations in quick succession, by a thread that waits for nobody, while the reader is killed, stopped and refused.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io;
use std::thread;

/// Houses at a time.
const AT_ONCE: u64 = 10;
/// Times that the file is rotated.
const ROTATIONS: u32 = 8;

/// Small random numbers that a seed determines.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// A program that writes a log, and rotates it as logrotate does.
struct Rotator {
    folder: PathBuf,
    numbers: Numbers,
    copies: bool,
    compresses: bool,
    /// The newest rotated file is compressed by the next rotation.
    delays: bool,
    /// Lines that a truncation took are not written again.
    written: Vec<String>,
}

impl Rotator {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn run(mut self) -> Vec<String> {
        for _ in 0..ROTATIONS {
            for _ in 0..=self.numbers.below(3) {
                let next = u32::try_from(self.written.len()).unwrap();
                let count = [1, 20, 400, 3000][self.numbers.below(4) as usize];
                let lines = numbered("line", next..next + count);
                write(&self.path("a.log"), &lines);
                self.written.extend(lines);
                self.pause();
            }
            self.rotate().unwrap();
            self.pause();
        }
        self.written
    }

    fn rotate(&mut self) -> io::Result<()> {
        if self.delays && self.path("a.log.1").exists() {
            self.compress("a.log.1")?;
        }
        for n in (1..=ROTATIONS).rev() {
            for end in ["", ".gz"] {
                let (from, to) = (format!("a.log.{n}{end}"), format!("a.log.{}{end}", n + 1));
                if self.path(&from).exists() {
                    fs::rename(self.path(&from), self.path(&to))?;
                }
            }
        }
        if self.copies {
            self.copy()?;
            self.pause();
            OpenOptions::new().write(true).truncate(true).open(self.path("a.log"))?;
        } else {
            fs::rename(self.path("a.log"), self.path("a.log.1"))?;
        }
        self.pause();
        if self.compresses && !self.delays {
            self.compress("a.log.1")?;
        }
        Ok(())
    }

    /// Copies piece by piece, as programs do.
    fn copy(&mut self) -> io::Result<()> {
        let bytes = fs::read(self.path("a.log"))?;
        let mut copy = File::create(self.path("a.log.1"))?;
        for piece in bytes.chunks(64 << 10) {
            copy.write_all(piece)?;
            self.pause();
        }
        Ok(())
    }

    /// Compresses a file beside it, in two pieces, and removes it.
    fn compress(&mut self, name: &str) -> io::Result<()> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&fs::read(self.path(name))?)?;
        let bytes = encoder.finish()?;
        let mut file = File::create(self.path(&format!("{name}.gz")))?;
        let (one, two) = bytes.split_at(bytes.len() / 2);
        file.write_all(one)?;
        self.pause();
        file.write_all(two)?;
        self.pause();
        fs::remove_file(self.path(name))
    }

    /// Lets the reader do something, or a little, or nothing.
    fn pause(&mut self) {
        match self.numbers.below(6) {
            0 => thread::sleep(Duration::from_micros(self.numbers.below(20_000))),
            1 | 2 => thread::sleep(Duration::from_micros(self.numbers.below(500))),
            _ => {}
        }
    }
}

/// One life of a log; says what is wrong with what was read of it.
async fn life(seed: u64) -> Result<(), String> {
    let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..10 {
        numbers.below(2);
    }
    let mut house = House::new();
    house.settings.inputs[0].compressed = true;
    house.settings.batch = [16 << 10, 256 << 10, 1 << 20][numbers.below(3) as usize];
    house.settings.turn = [2 << 10, 32 << 10, 256 << 10][numbers.below(3) as usize];
    house.settings.linger = Duration::from_millis(numbers.below(25));
    if numbers.one_in(2) {
        // Long enough for a kill before: what nobody has open any more is for the checkpoint to know.
        house.settings.rotate_wait = Duration::from_millis(500);
    }
    let (copies, compresses) = (numbers.one_in(2), !numbers.one_in(4));
    let delays = compresses && numbers.one_in(2);
    let kills = numbers.one_in(2);
    let way = format!("copies {copies}, compresses {compresses}, delays {delays}, kills {kills}");
    let rotator = Rotator {
        folder: house.path(""),
        numbers: Numbers(numbers.below(u64::MAX) | 1),
        copies,
        compresses,
        delays,
        written: Vec::new(),
    };
    let writer = thread::spawn(|| rotator.run());
    let mut running = house.start();
    while !writer.is_finished() {
        tokio::time::sleep(Duration::from_micros(numbers.below(10_000))).await;
        if kills && numbers.one_in(4) {
            running.kill().await;
            running = house.start();
        } else if numbers.one_in(10) {
            let refusal = AppendError::Retry(Duration::from_millis(1));
            house.memory.store.borrow_mut().answers.push(refusal);
        }
    }
    let mut written = writer.join().unwrap();
    written.sort();
    let enough = async {
        while house.memory.store.borrow().records.len() < written.len() {
            house.memory.changed.notified().await;
        }
        // Files that are held end, and then their compressed copies are looked at.
        let waits = |file: &FileStatus| file.state == crate::FileState::Rotated || file.lag > 0;
        while house.settings.rotate_wait < SOON && running.status().await.iter().any(waits) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = tokio::time::timeout(SOON, enough).await;
    running.look_again(&house).await;
    let files = running.status().await;
    let files: Vec<_> = files
        .iter()
        .map(|file| {
            let name = file.path.rsplit('/').next().unwrap_or_default().to_owned();
            (name, file.state.as_str(), file.offset, file.size, file.lag)
        })
        .collect();
    running.stop().await;
    let mut found = house.texts();
    found.sort();
    if found == written && in_time.is_ok() {
        return Ok(());
    }
    let missing: Vec<_> = written.iter().filter(|text| found.binary_search(text).is_err()).collect();
    let twice = found.windows(2).filter(|two| two[0] == two[1]).count();
    Err(format!(
        "seed {seed}: {way}: {} of {} records, {twice} twice, {} missing from {:?} on; files {files:?}",
        found.len(),
        written.len(),
        missing.len(),
        missing.first(),
    ))
}

/// Whatever the order in which the reader sees a rotation, each line comes exactly once.
///
/// `TIDEGATE_ROTATION_SEEDS` lives are lived, from the seed `TIDEGATE_ROTATION_SEED` on.
#[test]
fn every_line_once() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (first, lives) = (number("TIDEGATE_ROTATION_SEED", 1), number("TIDEGATE_ROTATION_SEEDS", 20));
    let seeds: Vec<u64> = (first..first + lives).collect();
    let mut faults = Vec::new();
    for seeds in seeds.chunks(AT_ONCE as usize) {
        run(async {
            let lives: Vec<_> = seeds.iter().map(|seed| spawn_local(life(*seed))).collect();
            for life in lives {
                let fault = life.await.unwrap().err();
                fault.iter().for_each(|fault| eprintln!("{fault}"));
                faults.extend(fault);
            }
        });
    }
    assert!(faults.is_empty(), "{} of {lives} lives:\n{}", faults.len(), faults.join("\n"));
}
