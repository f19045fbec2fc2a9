use super::*;

#[test]
fn a_full_quota_refuses_until_records_are_completed() {
    let mut rig = Rig::new(Settings { quota: 16 << 10, ..small() });
    let mut appended = 0;
    while rig.append("a:1", 1, [1; 1000]) == Ok(()) {
        appended += 1;
    }
    assert!((12..=15).contains(&appended), "{appended}");
    assert_eq!(rig.append("a:1", 1, [1; 1000]), Err(AppendError::Quota));
    rig.append("b:1", 1, [1; 1000]).unwrap();
    let log = rig.log("a:1");
    let mut space = Box::pin(log.space());
    let mut context = Context::from_waker(Waker::noop());
    assert!(space.as_mut().poll(&mut context).is_pending());
    let mut taken = 0;
    while space.as_mut().poll(&mut context).is_pending() {
        assert!(rig.take("a:1").is_some());
        rig.turn();
        taken += 1;
    }
    assert!(taken <= 4, "no second has to pass: {taken}");
    assert_eq!(rig.append("a:1", 1, [2; 1000]), Ok(()));
    assert!(rig.stats("a:1").disk_bytes <= 16 << 10);
    assert_eq!(rig.take_all("a:1").len(), appended - taken + 1);
}

#[test]
fn the_oldest_records_are_dropped_and_counted() {
    let settings = Settings { quota: 16 << 10, when_full: WhenFull::DropOldest, ..small() };
    let mut rig = Rig::new(settings);
    for number in 0..100u8 {
        rig.append("a:1", 3, vec![number; 1000]).unwrap();
        assert!(rig.stats("a:1").disk_bytes <= 16 << 10);
    }
    let stats = rig.stats("a:1");
    assert_eq!(stats.dropped.records + stats.backlog.records, 100);
    assert_eq!(stats.dropped.items, 3 * stats.dropped.records);
    let first = stats.dropped.records as u8;
    rig.reopen();
    assert_eq!(rig.take_all("a:1"), (first..100).map(|number| vec![number; 1000]).collect::<Vec<_>>());
}

#[test]
fn records_on_their_way_survive_the_drop_of_others() {
    let settings = Settings { quota: 16 << 10, when_full: WhenFull::DropOldest, ..small() };
    let mut rig = Rig::new(settings);
    for number in 0..12u8 {
        rig.append("a:1", 1, vec![number; 1000]).unwrap();
    }
    let log = rig.log("a:1");
    let mut records = vec![rig.next("a:1").unwrap()];
    for _ in 0..5 {
        records.push(rig.wait(log.after(records.last().unwrap())).unwrap().unwrap());
    }
    for number in 12..14u8 {
        rig.append("a:1", 1, vec![number; 1000]).unwrap();
    }
    let dropped = rig.stats("a:1").dropped.records;
    assert!((1..6).contains(&dropped), "{dropped}");
    assert_eq!(rig.read("a:1", &records[0]), Err(ReadError::Gone));
    assert_eq!(log.complete(&records[5]).records, 6 - dropped);
    rig.stats("a:1");
    assert_eq!(rig.take("a:1"), Some(vec![6; 1000]));
}

/// Where the second segment cannot be read it goes with the first, and what was in it counts as dropped.
#[test]
fn an_unreadable_segment_is_dropped_with_the_one_before() {
    let settings = Settings { quota: 16 << 10, when_full: WhenFull::DropOldest, ..small() };
    let mut rig = Rig::new(settings);
    for number in 0..12u8 {
        rig.append("a:1", 1, vec![number; 1000]).unwrap();
    }
    rig.close();
    let mut contents = rig.files.contents();
    contents.get_mut(&rig.segments()[1]).unwrap().fill(0xEE);
    rig.files = SimulatedFiles::of(&contents);
    rig.reopen();
    rig.append("a:1", 1, [12; 1000]).unwrap();
    assert_eq!(rig.take_all("a:1"), (6..13).map(|number| vec![number; 1000]).collect::<Vec<_>>());
    let stats = rig.stats("a:1");
    assert_eq!((stats.dropped.records, stats.damaged.records), (6, 0));
}

/// Where one record is all that fits, the segment that is written to is dropped too.
#[test]
fn the_last_segment_can_be_dropped() {
    let settings = Settings { quota: 20 << 10, when_full: WhenFull::DropOldest, ..small() };
    let mut rig = Rig::new(settings);
    for number in 0..5u8 {
        rig.append("a:1", 1, vec![number; 15_000]).unwrap();
    }
    assert_eq!(rig.append("a:1", 1, [9; 30_000]), Err(AppendError::Unfit));
    assert_eq!(rig.stats("a:1").dropped.records, 4);
    assert_eq!(rig.take_all("a:1"), [vec![4; 15_000]]);
}

#[test]
fn all_members_together_have_a_quota() {
    let mut rig = Rig::new(Settings { quota: 32 << 10, total_quota: 64 << 10, ..small() });
    let mut refused = Vec::new();
    for member in ["a:1", "b:1", "c:1"] {
        refused.push(
            std::iter::from_fn(|| {
                rig.append(member, 1, [1; 1000]).err().map_or(Some(None), |e| Some(Some(e)))
            })
            .flatten()
            .next(),
        );
    }
    assert_eq!(refused, [Some(AppendError::Quota), Some(AppendError::Quota), Some(AppendError::TotalQuota)]);
    let log = rig.log("c:1");
    assert!(rig.take_all("a:1").len() > 20);
    rig.pass(Duration::from_secs(1));
    rig.turn();
    rig.wait(log.space()).unwrap();
    assert_eq!(rig.append("c:1", 1, [1; 1000]), Ok(()));
}

#[test]
fn a_full_disk_refuses_for_a_second_and_loses_nothing() {
    let mut rig = Rig::new(small());
    rig.append("a:1", 1, [1; 1000]).unwrap();
    let stored: usize = rig.files.contents().values().map(Vec::len).sum();
    rig.files.set_room(stored + 1500);
    rig.append("a:1", 1, [2; 1000]).unwrap();
    let full = |refused| matches!(refused, Err(AppendError::Disk { trouble: DiskError::Full, .. }));
    assert!(full(rig.append("a:1", 1, [3; 1000])));
    rig.files.set_room(usize::MAX);
    assert!(full(rig.append("b:1", 1, [3; 10])), "not tried within a second");
    // Cursors need no space, so delivery goes on.
    rig.files.set_room(stored);
    assert_eq!(rig.take("a:1"), Some(vec![1; 1000]));
    rig.pass(Duration::from_secs(1));
    rig.turn();
    rig.files.set_room(usize::MAX);
    rig.append("a:1", 1, [4; 1000]).unwrap();
    rig.reopen();
    assert_eq!(rig.take_all("a:1"), [vec![2; 1000], vec![4; 1000]]);
}

/// One member's failing file refuses its own appends of the group, and no other's.
#[test]
fn appends_that_are_synced_together_fail_by_themselves() {
    let mut rig = Rig::new(small());
    for member in ["a:1", "b:1"] {
        rig.append(member, 1, [0; 10]).unwrap();
    }
    let broken = rig.segments().into_iter().find(|name| name.starts_with("a_1")).unwrap();
    rig.files.fail_writes_of(&broken);
    let logs = [rig.log("b:1"), rig.log("a:1"), rig.log("b:1")];
    let appends = logs
        .iter()
        .map(|log| Box::pin(log.append(meta(1), body([1; 10]))) as Pin<Box<dyn Future<Output = _>>>);
    let outcomes = rig.all(appends.collect());
    assert_eq!([outcomes[0], outcomes[2]], [Ok(()), Ok(())]);
    assert!(matches!(outcomes[1], Err(AppendError::Disk { trouble: DiskError::Failed(_), .. })));
    rig.append("b:1", 1, [1; 10]).unwrap();
    assert!(rig.append("a:1", 1, [1; 10]).is_err(), "not tried within a second");
    rig.pass(Duration::from_secs(1));
    rig.append("a:1", 1, [2; 10]).unwrap();
    assert_eq!(rig.take_all("a:1"), [[0; 10], [2; 10]]);
    assert_eq!(rig.take_all("b:1").len(), 4);
}

#[test]
fn quotas_do_not_hold_for_a_member_that_left_until_it_is_back() {
    let mut rig = Rig::new(Settings { quota: 16 << 10, total_quota: 16 << 10, ..small() });
    while rig.append("a:1", 1, [1; 1000]) == Ok(()) {}
    let log = rig.log("a:1");
    let mut space = Box::pin(log.space());
    let mut context = Context::from_waker(Waker::noop());
    assert!(space.as_mut().poll(&mut context).is_pending());
    log.lift_quotas();
    assert!(space.as_mut().poll(&mut context).is_ready());
    assert_eq!(rig.wait(log.append(meta(1), body([2; 1000]))), Ok(()));
    assert_eq!(rig.append("b:1", 1, [1; 1000]), Err(AppendError::TotalQuota));
    assert_eq!(rig.append("a:1", 1, [1; 1000]), Err(AppendError::Quota), "it was asked for again");
}
