//! The memory of files that nobody writes to.

use super::*;
use crate::FILE_BYTES;

/// A file that is read to its end keeps less than is planned for one, with its names and its place in every index.
#[test]
fn a_file_at_rest_is_small() {
    const FILES: usize = 2_000;
    let mut house = House::new();
    house.settings.max_files = FILES;
    house.settings.inputs[0].start_at = StartAt::End;
    house.memory.store.borrow_mut().forgets = true;
    for n in 0..FILES {
        // Names as long as those of containers.
        let name = format!("{n:0100}.log");
        write(&house.path(&name), [format!("{n} of many"), "x".repeat(2000)]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = LocalSet::new();
    let mut kept = None;
    let used = allocation_counter::measure(|| {
        let settled = async {
            let running = house.start();
            // The changes of their checkpoints are kept for three seconds.
            let settled = async {
                while house.meters.files() < FILES as u64 {
                    running.status().await;
                }
                tokio::time::pause();
                tokio::time::sleep(Duration::from_secs(4)).await;
                tokio::time::resume();
                running.status().await;
            };
            assert!(tokio::time::timeout(SOON, settled).await.is_ok(), "{} files", house.meters.files());
            kept = Some(running);
        };
        local.block_on(&runtime, settled);
    });
    let each = usize::try_from(used.bytes_current).unwrap() / FILES;
    println!("{each} bytes for each idle file");
    assert!(each < FILE_BYTES, "{each} bytes for each file");
    drop(kept);
}
