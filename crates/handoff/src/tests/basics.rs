use super::*;

#[test]
fn records_come_back_in_order_and_bit_for_bit() {
    let mut rig = Rig::new(small());
    let sizes = [0usize, 1, 7, 8, 100, 5000, 40_000];
    for size in sizes {
        rig.append("a:1", 10, vec![size as u8; size]).unwrap();
    }
    assert_eq!(rig.stats("a:1").backlog.items, 70);
    let record = rig.next("a:1").unwrap();
    assert_eq!((record.sequence, record.meta, record.body_len), (0, meta(10), 0));
    assert_eq!(rig.next("a:1"), Some(record), "the same until it is completed");
    assert_eq!(rig.take_all("a:1"), sizes.map(|size| vec![size as u8; size]));
    let stats = rig.stats("a:1");
    assert_eq!((stats.backlog, stats.oldest_received_at_ns), (Totals::ZERO, None));
    assert_eq!((stats.completed.records, stats.completed.items), (7, 70));
}

#[test]
fn members_do_not_see_each_others_records() {
    let mut rig = Rig::new(small());
    for number in 0..20u8 {
        let member = ["a:1", "b:1", "c:1"][usize::from(number % 3)];
        rig.append(member, 1, [number]).unwrap();
    }
    let waiting: Vec<String> =
        rig.handoffs().members_with_backlog().iter().map(|log| log.address().to_owned()).collect();
    assert_eq!(waiting, ["a:1", "b:1", "c:1"]);
    assert_eq!(rig.take_all("b:1"), [1, 4, 7, 10, 13, 16, 19].map(|number: u8| vec![number]));
    assert_eq!(rig.handoffs().members_with_backlog().len(), 2);
}

#[test]
fn several_records_can_be_on_their_way() {
    let mut rig = Rig::new(small());
    for number in 0..10u8 {
        rig.append("a:1", 2, vec![number; 1500]).unwrap();
    }
    let log = rig.log("a:1");
    let mut records = vec![rig.next("a:1").unwrap()];
    while let Some(record) = rig.wait(log.after(records.last().unwrap())).unwrap() {
        records.push(record);
    }
    assert_eq!(records.len(), 10);
    for (number, record) in records.iter().enumerate().rev() {
        assert_eq!(rig.read("a:1", record).unwrap(), vec![number as u8; 1500]);
    }
    assert_eq!(log.complete(&records[6]).records, 7, "all before it are completed too");
    assert_eq!(log.complete(&records[3]), Totals::ZERO, "a record is completed once");
    assert_eq!(rig.read("a:1", &records[3]), Err(ReadError::Gone));
    assert_eq!(rig.next("a:1").unwrap().sequence, 7);
}

#[test]
fn a_restart_resumes_at_the_cursor_with_the_same_counts() {
    let mut rig = Rig::new(small());
    for number in 0..10u8 {
        rig.append("a:1", 3, vec![number; 1500]).unwrap();
    }
    for _ in 0..4 {
        rig.take("a:1");
    }
    let before = rig.stats("a:1").backlog;
    rig.close();
    let recovery = rig.reopen();
    assert_eq!((recovery.members, recovery.backlog, recovery.torn_bytes), (1, before, 0));
    assert!(!recovery.lost_cursors);
    rig.append("a:1", 3, [10; 1500]).unwrap();
    assert_eq!(rig.stats("a:1").oldest_received_at_ns, Some(meta(3).received_at_ns));
    assert_eq!(rig.take_all("a:1"), (4..=10).map(|number| vec![number; 1500]).collect::<Vec<_>>());
}

#[test]
fn a_delivered_log_takes_no_disk_and_can_be_used_again() {
    let mut rig = Rig::new(small());
    for round in 0..3 {
        for number in 0..10u8 {
            rig.append("a:1", 1, vec![number; 1500]).unwrap();
        }
        assert!(rig.segments().len() >= 4);
        assert_eq!(rig.take_all("a:1").len(), 10);
        rig.pass(Duration::from_secs(1));
        rig.turn();
        assert_eq!(rig.segments().len(), 0, "round {round}");
        assert_eq!(rig.stats("a:1").disk_bytes, 0);
        if round == 1 {
            rig.reopen();
        }
    }
}

#[test]
fn cursors_are_saved_once_a_second() {
    let mut rig = Rig::new(small());
    let saves = |rig: &Rig| {
        rig.files.contents().into_iter().filter(|(name, _)| name.starts_with("cursors")).collect::<Vec<_>>()
    };
    for number in 0..10u8 {
        rig.append("a:1", 1, [number]).unwrap();
    }
    let before = saves(&rig);
    for _ in 0..5 {
        rig.take("a:1");
    }
    rig.turn();
    assert_eq!(saves(&rig), before);
    rig.pass(Duration::from_secs(1));
    rig.turn();
    assert_ne!(saves(&rig), before);
    rig.reopen();
    assert_eq!(rig.take("a:1"), Some(vec![5]), "killed, it goes on where it was saved");
}

#[test]
fn a_forgotten_log_is_empty_and_stays_so() {
    let mut rig = Rig::new(small());
    for number in 0..10u8 {
        rig.append("a:1", 5, vec![number; 1500]).unwrap();
        rig.append("b:1", 5, vec![number; 1500]).unwrap();
    }
    let stale = rig.next("a:1").unwrap();
    let log = rig.log("a:1");
    assert_eq!(rig.wait(log.forget()).unwrap().items, 50);
    assert_eq!(log.complete(&stale), Totals::ZERO);
    assert_eq!(rig.read("a:1", &stale), Err(ReadError::Gone));
    assert_eq!(rig.stats("a:1").forgotten.records, 10);
    rig.append("a:1", 1, [99]).unwrap();
    rig.reopen();
    assert_eq!(rig.take_all("a:1"), [[99]]);
    assert_eq!(rig.take_all("b:1").len(), 10);
}

/// Members come and go by address for ever; the table does not grow, and an old cursor never fits a new log.
#[test]
fn places_of_gone_members_are_given_to_new_ones() {
    let mut rig = Rig::new(small());
    for round in 0..12u8 {
        for member in 0..4 {
            let address = format!("member-{}-{member}:1", round % 5);
            rig.append(&address, 1, vec![round; 100]).unwrap();
            assert_eq!(rig.take(&address), Some(vec![round; 100]));
        }
        rig.pass(Duration::from_secs(1));
        rig.turn();
    }
    let address = "member-0-0:1";
    rig.append(address, 1, [1]).unwrap();
    rig.files.restart_process();
    rig.reopen();
    assert_eq!(rig.take(address), Some(vec![1]));
    rig.pass(Duration::from_secs(1));
    rig.turn();
    let logs: Vec<MemberLog> = (0..4).map(|member| rig.log(&format!("used-{member}:1"))).collect();
    assert_eq!(rig.handoffs().member("one-more:1").unwrap_err(), MemberError::Crowded(4));
    drop(logs);
    rig.handoffs().member("one-more:1").unwrap();
    assert_eq!(rig.handoffs().member("").unwrap_err(), MemberError::Address(String::new()));
}

/// A save names a member's log that has ended since; its next log begins at other numbers.
#[test]
fn an_old_cursor_never_fits_a_new_log() {
    let mut rig = Rig::new(Settings { members: 1, ..small() });
    for number in 0..5u8 {
        rig.append("a:1", 1, vec![number; 1500]).unwrap();
    }
    assert_eq!(rig.take_all("a:1").len(), 5);
    rig.pass(Duration::from_secs(1));
    rig.turn();
    assert_eq!(rig.next("b:1"), None, "takes the place of a");
    rig.append("a:1", 1, [7; 1500]).unwrap();
    rig.reopen();
    assert_eq!(rig.take_all("a:1"), [[7; 1500]]);
    assert_eq!(rig.stats("a:1").damaged, Totals::ZERO);
}

/// The memory of a body is its owner's: it is free again when the record is durable.
#[test]
fn a_window_is_a_body_and_is_given_back() {
    let mut rig = Rig::new(small());
    let mut window = rig.arena.try_window(Share::Egress, 5000).unwrap();
    window.append(&[7; 5000]).unwrap();
    let log = rig.log("a:1");
    rig.wait(log.append(meta(1), Arc::new(window))).unwrap();
    assert_eq!(rig.arena.usage().shares[Share::Egress as usize].used, 0);
    assert_eq!(rig.take("a:1"), Some(vec![7; 5000]));
}

#[test]
fn a_window_without_room_is_refused() {
    let mut rig = Rig::new(small());
    rig.append("a:1", 1, [7; 9000]).unwrap();
    let record = rig.next("a:1").unwrap();
    let log = rig.log("a:1");
    let window = rig.arena.try_window(Share::Egress, 1).unwrap();
    assert_eq!(rig.wait(log.read(&record, window)).unwrap_err(), ReadError::WindowTooSmall);
    assert_eq!(rig.read("a:1", &record).unwrap(), [7; 9000]);
}

#[test]
fn a_member_costs_some_hundred_bytes() {
    let bytes = |members| {
        let settings = Settings { members, ..small() };
        settings.overhead().iter().map(|declared| declared.bytes()).sum::<u64>()
    };
    let each = bytes(101) - bytes(100);
    assert!(each < 2500, "{each}");
    let known = size_of::<crate::state::MemberState>() + crate::worker::LOG_BYTES;
    assert!(known < 900, "{known}");
    assert_eq!(Settings { members: 100, ..small() }.descriptors(), 205);
}
