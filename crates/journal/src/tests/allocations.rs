//! The promise: an append, the group commit, and a sink's way over a record allocate nothing.

use super::crashes::Driven;
use super::{arena, batch};
use crate::writer::WriteGroup;
use crate::*;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tidegate_arena::Share;
use tidegate_files::folder::RealFiles;

#[test]
fn a_record_costs_no_allocation_from_append_to_commit() {
    let (dir, arena) = (tempfile::tempdir().unwrap(), arena());
    let settings = Settings { durability: Durability::PageCache, ..Settings::new(dir.path()) };
    let files = Arc::new(RealFiles::new(dir.path().to_owned()));
    let (journal, mut writer, _) = Journal::assemble(settings, files, Arc::<Driven>::default()).unwrap();
    let mut sink = journal.follow("sink", StartAt::Oldest, WhenFull::Block).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut flight = WriteGroup::new(writer.shared.clone(), 0);
    let mut round = || {
        let mut first = pin!(journal.append(batch(&arena, 1, &[1; 1000])));
        let mut second = pin!(journal.append(batch(&arena, 1, &[2; 20_000])));
        assert!(first.as_mut().poll(&mut context).is_pending());
        writer.step_with(&mut flight, Some(Duration::ZERO));
        assert!(first.as_mut().poll(&mut context).is_ready());
        assert!(second.as_mut().poll(&mut context).is_ready());
        for _ in 0..2 {
            let Poll::Ready(Ok(Some(Event::Record(record)))) = sink.poll_next(&mut context) else {
                panic!("a record")
            };
            let mut window = arena.try_window(Share::Egress, record.body_len as usize).unwrap();
            sink.read_into(&mut window).unwrap();
            assert!(sink.commit_with(record.sequence, &[0; CURSOR_METADATA_LEN]));
        }
    };
    (0..50).for_each(|_| round());
    let counted = allocation_counter::measure(|| (0..200).for_each(|_| round()));
    assert_eq!(counted.count_total, 0);
}
