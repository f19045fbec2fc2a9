//! Files that are compressed when they are rotated.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Compresses a file as gzip does: beside it, and then the plain file goes.
fn gzip(house: &House, name: &str) {
    let plain = fs::read(house.path(name)).unwrap();
    let mut encoder =
        GzEncoder::new(File::create(house.path(&format!("{name}.gz"))).unwrap(), Compression::fast());
    encoder.write_all(&plain).unwrap();
    encoder.finish().unwrap();
    fs::remove_file(house.path(name)).unwrap();
}

fn zstd(house: &House, name: &str) {
    let plain = fs::read(house.path(name)).unwrap();
    let mut out = vec![0; zstd_safe::compress_bound(plain.len())];
    let len = zstd_safe::compress(out.as_mut_slice(), &plain, 3).unwrap();
    fs::write(house.path(&format!("{name}.zst")), &out[..len]).unwrap();
    fs::remove_file(house.path(name)).unwrap();
}

fn house() -> House {
    let mut house = House::new();
    house.settings.inputs[0].compressed = true;
    house.settings.rotate_wait = Duration::from_millis(1);
    house
}

/// A file that was read is not read again when it is compressed.
#[test]
fn does_not_read_again() {
    for compress in [gzip, zstd] {
        run(async {
            let house = house();
            let lines = numbered("a", 0..500);
            write(&house.path("a.log"), &lines);
            let running = house.start();
            house.expect(lines.clone()).await;
            fs::rename(house.path("a.log"), house.path("a.log.1")).unwrap();
            compress(&house, "a.log.1");
            while running.status().await.iter().any(|file| file.path.ends_with(".1")) {}
            house.expect_no_more(&running).await;
            running.stop().await;
            let running = house.start();
            house.expect_no_more_but(&running, 2).await;
            running.stop().await;
        });
    }
}

/// Lines that were not read before a file was compressed are read from the compressed one.
#[test]
fn reads_the_rest() {
    for compress in [gzip, zstd] {
        run(async {
            let house = house();
            let lines = numbered("a", 0..5000);
            write(&house.path("a.log"), &lines[..1000]);
            let running = house.start();
            house.expect(lines[..1000].to_vec()).await;
            running.stop().await;
            write(&house.path("a.log"), &lines[1000..]);
            compress(&house, "a.log");
            let running = house.start();
            house.expect(lines).await;
            house.expect_no_more(&running).await;
            running.stop().await;
        });
    }
}

/// A file that was compressed before anything was read of it is read where that is asked for, also through kills.
#[test]
fn reads_unseen_ones_where_asked_for() {
    for wanted in [true, false] {
        run(async {
            let mut house = house();
            house.settings.inputs[0].compressed = wanted;
            house.settings.batch = 64 << 10;
            let lines = numbered("a", 0..20_000);
            write(&house.path("a.log"), &lines);
            gzip(&house, "a.log");
            let running = house.start();
            if wanted {
                house.until("some", |store| store.records.len() > 5000).await;
                running.kill().await;
                let running = house.start();
                house.expect(lines).await;
                house.expect_no_more(&running).await;
                running.stop().await;
            } else {
                house.expect_no_more(&running).await;
                assert_eq!(house.meters.skipped_compressed(), 1);
                running.stop().await;
            }
        });
    }
}

/// A damaged file is counted as lost, and others are read.
#[test]
fn counts_damage() {
    run(async {
        let house = house();
        let lines = numbered("a", 0..5000);
        write(&house.path("a.log"), &lines);
        gzip(&house, "a.log");
        let mut bytes = fs::read(house.path("a.log.gz")).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 100].fill(0xff);
        fs::write(house.path("a.log.gz"), &bytes).unwrap();
        let running = house.start();
        while house.meters.lost(crate::LossReason::Unreadable) == 0 {
            tokio::task::yield_now().await;
        }
        write(&house.path("b.log"), ["other"]);
        house.until("the other", |store| store.records.iter().any(|(_, text)| text == "other")).await;
        running.stop().await;
    });
}

impl House {
    /// Nothing comes in a later life either.
    async fn expect_no_more_but(&self, running: &Running, settled: usize) {
        let before = self.texts().len();
        running.status().await;
        write(&self.path("settled.log"), ["settled"]);
        let count = |store: &Store| store.records.iter().filter(|(_, text)| text == "settled").count();
        self.until("the line behind", |store| count(store) == settled).await;
        assert_eq!(self.texts().len(), before + 1);
    }
}

/// A compressed file that is found before it has its first bytes is known as one later.
#[test]
fn knows_one_that_was_empty_when_it_was_found() {
    run(async {
        let house = house();
        let lines = numbered("a", 0..500);
        write(&house.path("a.log"), &lines);
        let running = house.start();
        house.expect(lines.clone()).await;
        File::create(house.path("a.log.gz")).unwrap();
        while !running.status().await.iter().any(|file| file.path.ends_with("a.log.gz")) {}
        gzip(&house, "a.log");
        while running.status().await.iter().any(|file| file.path.ends_with("a.log")) {}
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}

/// A compressed file that has no end yet is not taken for an unknown one: its plain file was read.
#[test]
fn waits_for_the_end_of_one_that_is_being_written() {
    run(async {
        let house = house();
        let lines = numbered("a", 0..5000);
        write(&house.path("a.log"), &lines);
        let running = house.start();
        house.expect(lines.clone()).await;
        running.stop().await;
        gzip(&house, "a.log");
        let whole = fs::read(house.path("a.log.gz")).unwrap();
        fs::write(house.path("a.log.gz"), &whole[..whole.len() / 2]).unwrap();
        let running = house.start();
        house.expect_no_more(&running).await;
        fs::write(house.path("a.log.gz"), &whole).unwrap();
        house.expect_no_more_but(&running, 2).await;
        running.stop().await;
    });
}

/// The content that a truncated file had is known after another life too, when its compressed copy comes.
#[test]
fn remembers_what_was_overwritten() {
    for compress in [gzip, zstd] {
        run(async {
            let house = house();
            let old = numbered("old", 0..500);
            write(&house.path("a.log"), &old[..300]);
            let running = house.start();
            house.expect(old[..300].to_vec()).await;
            running.stop().await;
            // Copied, truncated and written again while nobody looked; the copy is not there yet.
            write(&house.path("a.log"), &old[300..]);
            fs::copy(house.path("a.log"), house.path("elsewhere")).unwrap();
            let new = numbered("new", 0..100);
            fs::write(house.path("a.log"), new.join("\n") + "\n").unwrap();
            let running = house.start();
            house.expect([&old[..300], &new].concat()).await;
            running.kill().await;
            fs::rename(house.path("elsewhere"), house.path("a.log.1")).unwrap();
            compress(&house, "a.log.1");
            let running = house.start();
            house.expect([old, new].concat()).await;
            house.expect_no_more(&running).await;
            running.stop().await;
        });
    }
}

/// Of several files that a compressed one may be made of, the one that was read furthest counts.
#[test]
fn goes_on_where_most_was_read() {
    run(async {
        let house = house();
        let lines = numbered("a", 0..1000);
        write(&house.path("a.log"), &lines[..300]);
        let running = house.start();
        house.expect(lines[..300].to_vec()).await;
        write(&house.path("a.log"), &lines[300..]);
        // The copy is read from where the original was truncated.
        running.kill().await;
        fs::copy(house.path("a.log"), house.path("a.log.1")).unwrap();
        File::create(house.path("a.log")).unwrap();
        let running = house.start();
        house.expect(lines.clone()).await;
        running.stop().await;
        gzip(&house, "a.log.1");
        let running = house.start();
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}
