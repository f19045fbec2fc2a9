//! Single entries, the renderings and the tables.

use std::collections::HashSet;

use tidegate_meters::Registry;

use super::{ledger, metrics};
use crate::{
    Counts, Dropped, Fate, ItemRefusal, Ledger, MAX_SOURCES, PipelineBalance, PipelineItems, Refusal,
    Settlement, Signal, SinkLedger, SourceBalance,
};

/// A request that nobody closed is refused as abandoned.
#[test]
fn a_forgotten_request_is_abandoned() {
    let ledger = ledger(0);
    let source = ledger.source("s").unwrap();
    drop(source.open());
    let balance = ledger.balance();
    assert_eq!(balance.sources[0].refused, [(Refusal::Abandoned, 1)]);
    assert!(balance.difference() == 0 && balance.at_rest());
}

/// Items that the journal has are accepted even when nobody waits for the answer any more.
#[test]
fn a_forgotten_hand_over_is_accepted() {
    let ledger = ledger(7);
    let handed_over = ledger.source("s").unwrap().open().submit(metrics(3));
    assert_eq!(ledger.balance().journal.handed_over, 3);
    ledger.head().advance_to(10);
    drop(handed_over);
    let balance = ledger.balance();
    assert_eq!((balance.journal.accepted, balance.journal.appended), (3, 3));
    assert!(balance.difference() == 0 && balance.at_rest());
}

/// Items of one request are booked each by its signal, and by the tenant's too.
#[test]
fn items_of_several_signals_are_accepted_together() {
    let ledger = ledger(0);
    let (source, tenant) = (ledger.source("s").unwrap(), ledger.tenant("t").unwrap());
    let mut open = source.open();
    open.belongs_to(tenant.clone());
    let counts = Counts::of(Signal::Traces, 5, 70).and(Signal::Logs, 2).and(Signal::Metrics, 1);
    assert_eq!((counts.items(), counts.bytes()), (8, 70));
    let handed_over = open.submit(counts);
    assert_eq!(ledger.balance().journal.handed_over, 8);
    ledger.head().advance_to(8);
    handed_over.accept();
    let balance = ledger.balance();
    assert_eq!(balance.sources[0].items, [(Signal::Metrics, 1), (Signal::Logs, 2), (Signal::Traces, 5)]);
    assert_eq!((balance.sources[0].bytes, tenant.items(), balance.difference()), (70, 8, 0));
}

/// Items that are forwarded are not for the journal; each has one fate, whatever becomes of its request.
#[test]
fn forwarded_items_have_one_fate_each() {
    let ledger = ledger(0);
    let source = ledger.source("s").unwrap();
    let fates = |fates: &[Fate]| {
        let mut forwarded = source.open().forward(4);
        fates.iter().for_each(|fate| forwarded.enter(*fate));
        forwarded
    };
    let open = fates(&[Fate::Answered]);
    let balance = ledger.balance();
    assert_eq!((balance.sources[0].forwarded.open, balance.difference()), (4, 0));
    assert!(!balance.at_rest());
    open.accept(Counts::of(Signal::Logs, 1, 50));
    fates(&[Fate::Rejected, Fate::Unanswered]).refuse(Refusal::Destination);
    drop(fates(&[Fate::Answered]));
    let balance = ledger.balance();
    let SourceBalance { accepted, bytes, refused, items, forwarded, .. } = &balance.sources[0];
    assert_eq!((*accepted, *bytes, items.len()), (1, 50, 0), "nothing is for the journal");
    assert_eq!(*refused, [(Refusal::Abandoned, 1), (Refusal::Destination, 1)]);
    let wanted = [
        (Fate::Answered, 2),
        (Fate::Rejected, 1),
        (Fate::Unanswered, 1),
        (Fate::Refused, 5),
        (Fate::Abandoned, 3),
    ];
    assert_eq!((forwarded.received, forwarded.open, &forwarded.fates[..]), (12, 0, &wanted[..]));
    assert_eq!((balance.difference(), source.items()), (0, 4), "a limit counts what was sent");
    assert!(balance.to_string().contains("  s: 12 = 12 (answered 2, rejected 1, "), "{balance}");
    assert!(
        balance.json().contains("\"forwarded\":12,\"forwarded_open\":0,\"forwarded_fates\":{\"answered\":2,")
    );
}

/// Items that a source's pipeline drops are on its page and the tenant's once the rest is accepted, and a limit of items
/// counts them.
#[test]
fn items_that_a_pipeline_drops_are_counted_with_those_that_are_left() {
    let ledger = ledger(0);
    let source = ledger.source("s").unwrap();
    let tenant = ledger.tenant("t").unwrap();
    let items = PipelineItems { received: 10, filtered: 5, sampled_out: 2 };
    let open = || {
        let mut open = source.open();
        open.belongs_to(tenant.clone());
        open
    };
    open().submit_from_pipeline(metrics(3), items).refuse(Refusal::Disk);
    assert_eq!(ledger.balance().sources[0].pipeline, PipelineBalance::default(), "it comes again");
    let submitted = open().submit_from_pipeline(metrics(3), items);
    assert!(!ledger.balance().json().contains("pipeline"), "no pipeline, nothing to show");
    ledger.head().advance_to(3);
    submitted.accept();
    open()
        .submit_from_pipeline(
            Counts::of(Signal::Metrics, 0, 70),
            PipelineItems { received: 4, filtered: 4, sampled_out: 0 },
        )
        .accept();
    let balance = ledger.balance();
    let pipeline = PipelineBalance { received: 14, accepted: 3, filtered: 9, sampled_out: 2, difference: 0 };
    assert_eq!((&balance.sources[0].pipeline, balance.difference()), (&pipeline, 0));
    assert_eq!((source.items(), tenant.items(), tenant.book().dropped), (14, 14, 11));
    assert!(balance.to_string().contains("\n  s: 14 = 3 + 9 + 2\n"), "{balance}");
    let json = r#""pipeline":{"received":14,"accepted":3,"filtered":9,"sampled_out":2,"difference":0}"#;
    assert!(balance.json().contains(json), "{}", balance.json());
    open()
        .submit_from_pipeline(
            Counts::of(Signal::Metrics, 0, 1),
            PipelineItems { received: 1, ..PipelineItems::default() },
        )
        .accept();
    assert_eq!(ledger.balance().difference(), 1, "an item that is nowhere is a difference");
}

/// Items that are left out of a request are refused if the rest is accepted; else the request is.
#[test]
fn items_that_are_left_out_are_refused_with_the_others_accepted() {
    let ledger = ledger(0);
    let source = ledger.source("s").unwrap();
    let mut open = source.open();
    open.refuse_items(ItemRefusal::Malformed, 3);
    let handed_over = open.submit(metrics(4));
    assert!(ledger.balance().sources[0].items_refused.is_empty());
    ledger.head().advance_to(4);
    handed_over.accept();
    for refused in [true, false] {
        let mut open = source.open();
        open.refuse_items(ItemRefusal::Malformed, 5);
        match refused {
            true => open.refuse(Refusal::Memory),
            false => open.submit(metrics(2)).refuse(Refusal::Disk),
        }
    }
    let balance = ledger.balance();
    assert_eq!(balance.sources[0].items_refused, [(Refusal::Malformed, 3)]);
    assert!(
        balance.to_string().contains("; items refused of those accepted: 3 (malformed 3)\n"),
        "{balance}"
    );
    assert!(balance.json().contains("\"items_refused\":{\"malformed\":3}"));
    assert!(balance.difference() == 0 && balance.at_rest());
}

/// A request can have items that are refused for two reasons, and each counts under its own.
#[test]
fn items_are_refused_for_two_reasons_of_one_request() {
    let ledger = ledger(0);
    let source = ledger.source("s").unwrap();
    let mut open = source.open();
    open.refuse_items(ItemRefusal::Malformed, 3);
    open.refuse_items(ItemRefusal::Forbidden, 2);
    open.submit(metrics(0)).accept();
    let mut open = source.open();
    open.refuse_items(ItemRefusal::Malformed, 0);
    open.refuse_items(ItemRefusal::Forbidden, 4);
    open.accept_empty(crate::Signal::Logs);
    let balance = ledger.balance();
    assert_eq!(balance.sources[0].items_refused, [(Refusal::Malformed, 3), (Refusal::Forbidden, 6)]);
    assert!(balance.difference() == 0 && balance.at_rest());
}

/// An item acknowledged but not written, or written but not acknowledged, shows.
#[test]
fn the_journal_must_agree_with_the_sources() {
    let ledger = ledger(0);
    let source = ledger.source("s").unwrap();
    source.open().submit(metrics(5)).accept();
    assert_eq!(ledger.balance().journal.difference, -5);
    ledger.head().advance_to(6);
    assert_eq!(ledger.balance().journal.difference, 1);
    ledger.head().advance_to(5);
    assert_eq!(ledger.balance().difference(), 0);
}

/// A cursor that moves without saying what became of the items, or says it twice, shows.
#[test]
fn the_cursor_must_agree_with_the_book() {
    let ledger = ledger(100);
    let sink = ledger.attach("s", SinkLedger::new(90), 90, 0).unwrap();
    assert_eq!(ledger.balance().sinks[0].queued, 10);
    sink.settle(Settlement { delivered: 3, position: 94, ..Settlement::default() });
    assert_eq!(ledger.balance().sinks[0].difference, 1);
    sink.settle(Settlement {
        delivered: 1,
        dropped: &[(Dropped::Rejected, 2)],
        position: 94,
        ..Settlement::default()
    });
    assert_eq!(ledger.balance().sinks[0].difference, -2);
    sink.settle(Settlement { position: 94, ahead: 2, ..Settlement::default() });
    assert_eq!(ledger.balance().difference(), 0);
    assert_eq!(ledger.balance().sinks[0].queued, 4);
}

/// Items that were sent again are accepted, settled and queued as others are, and counted beside that.
#[test]
fn replayed_items_are_among_the_accepted_ones() {
    let ledger = ledger(100);
    let sink = ledger.attach("s", SinkLedger::new(0), 0, 0).unwrap();
    sink.settle(Settlement { delivered: 60, replayed: 25, position: 60, ..Settlement::default() });
    let balance = ledger.balance().sinks.remove(0);
    assert_eq!((balance.accepted, balance.replayed, balance.queued, balance.difference), (100, 25, 40, 0));
}

/// The page shows the equations, and shouts when one does not hold.
#[test]
fn the_text_shows_the_equations() {
    let ledger = ledger(0);
    let source = ledger.source("remote_write").unwrap();
    let sink = ledger.attach("lake", SinkLedger::new(0), 0, 0).unwrap();
    ledger.head().advance_to(5);
    source.open().submit(metrics(5)).accept();
    source.open().refuse(Refusal::Memory);
    source.open().refuse(Refusal::Memory);
    source.open().refuse(Refusal::Disk);
    let _open = source.open();
    sink.settle(Settlement {
        delivered: 2,
        dropped: &[(Dropped::Damaged, 1)],
        position: 3,
        ..Settlement::default()
    });
    let expected = "\
requests: received = accepted + refused + open
  remote_write: 5 = 1 + 3 (memory 2, disk 1) + 1
items: accepted <= appended <= accepted + handed over, since start
  journal: 5 <= 5 <= 5 + 0
items: accepted = delivered + passed over + queued + dropped, since attached
  lake: 5 = 2 + 0 + 2 + 1 (damaged 1)
the books close
";
    assert_eq!(ledger.balance().to_string(), expected);
    sink.settle(Settlement { position: 5, ..Settlement::default() });
    let text = ledger.balance().to_string();
    assert!(text.contains("lake: 5 = 2 + 0 + 0 + 1 (damaged 1)  DIFFERENCE +2\n"), "{text}");
    assert!(text.contains("THE BOOKS DO NOT CLOSE: 2 unexplained"), "{text}");
}

/// The JSON is JSON, whatever the names, and says the same.
#[test]
fn the_json_can_be_read() {
    let ledger = ledger(0);
    let source = ledger.source("odd \"name\\\n").unwrap();
    ledger.attach("lake", SinkLedger::new(0), 0, 0).unwrap();
    ledger.head().advance_to(4);
    source.open().submit(metrics(4)).accept();
    source.open().refuse(Refusal::TooLarge);
    let json: serde_json::Value = serde_json::from_str(&ledger.balance().json()).unwrap();
    assert_eq!(json["difference"], 0);
    assert_eq!(json["sources"][0]["name"], "odd \"name\\\n");
    assert_eq!(json["sources"][0]["refused"]["too_large"], 1);
    assert_eq!(json["sources"][0]["items"]["metrics"], 4);
    assert_eq!(json["journal"]["appended"], 4);
    assert_eq!(json["sinks"][0]["queued"], 4);
}

/// Everything in the books is published.
#[test]
fn the_books_are_published() {
    let registry = Registry::new(1);
    let ledger = Ledger::new(&registry, 10);
    let source = ledger.source("rw").unwrap();
    let sink = ledger.attach("up", SinkLedger::new(10), 10, 0).unwrap();
    ledger.head().advance_to(14);
    source.open().submit(metrics(4)).accept();
    source.open().refuse(Refusal::Timeout);
    sink.settle(Settlement {
        delivered: 1,
        dropped: &[(Dropped::Quota, 2)],
        position: 13,
        ..Settlement::default()
    });
    let mut text = String::new();
    registry.encode(&mut text).unwrap();
    for line in [
        "tidegate_requests_received_total{source=\"rw\"} 2",
        "tidegate_items_refused_total{source=\"rw\",reason=\"malformed\"} 0",
        "tidegate_requests_accepted_total{source=\"rw\"} 1",
        "tidegate_requests_refused_total{source=\"rw\",reason=\"timeout\"} 1",
        "tidegate_requests_refused_total{source=\"rw\",reason=\"memory\"} 0",
        "tidegate_requests_open{source=\"rw\"} 0",
        "tidegate_accepted_bytes_total{source=\"rw\"} 120",
        "tidegate_items_accepted_total{source=\"rw\",signal=\"metrics\"} 4",
        "tidegate_sink_items_delivered_total{sink=\"up\"} 1",
        "tidegate_sink_items_passed_total{sink=\"up\"} 0",
        "tidegate_sink_items_replayed_total{sink=\"up\"} 0",
        "tidegate_sink_items_queued{sink=\"up\"} 1",
        "tidegate_sink_items_dropped_total{sink=\"up\",reason=\"quota\"} 2",
        "tidegate_books_difference 0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
    }
}

/// Names are unique, fit for labels, and every reason is explained by a sentence.
#[test]
fn every_reason_is_named_and_explained() {
    let refusals = Refusal::ALL.iter().map(|r| (r.name(), r.description()));
    let dropped = Dropped::ALL.iter().map(|r| (r.name(), r.description()));
    let numbers = Refusal::ALL.iter().map(|r| *r as usize).eq(0..Refusal::COUNT);
    assert!(numbers && Dropped::ALL.iter().map(|r| *r as usize).eq(0..Dropped::COUNT));
    for table in [refusals.collect::<Vec<_>>(), dropped.collect()] {
        assert_eq!(table.iter().map(|(name, _)| name).collect::<HashSet<_>>().len(), table.len());
        for (name, sentence) in table {
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert!(sentence.ends_with('.') && sentence.starts_with(char::is_uppercase), "{sentence}");
        }
    }
}

/// The books do not grow beyond their pages.
#[test]
fn pages_are_bounded() {
    let ledger = ledger(0);
    for n in 0..MAX_SOURCES {
        ledger.source(&n.to_string()).unwrap();
    }
    assert_eq!(
        ledger.source("one more").unwrap_err().to_string(),
        "the books have pages for 32 sources; configure fewer"
    );
    ledger.source("0").unwrap();
    for n in 0..1_000 {
        ledger.attach("again", SinkLedger::new(n), n, 0).unwrap();
    }
    assert_eq!(ledger.balance().sinks.len(), 1);
    ledger.detach("again");
    assert_eq!(ledger.balance().sinks.len(), 0);
}

/// Entering a request and settling items allocates nothing.
#[test]
fn entries_allocate_nothing() {
    let ledger = ledger(0);
    let source = ledger.source("s").unwrap();
    let sink = ledger.attach("s", SinkLedger::new(0), 0, 0).unwrap();
    let head = ledger.head();
    let allocations = allocation_counter::measure(|| {
        for n in 1..100 {
            let handed_over = source.open().submit(metrics(1));
            head.advance_to(n);
            handed_over.accept();
            source.open().refuse(Refusal::Memory);
            sink.settle(Settlement { delivered: 1, position: n, ..Settlement::default() });
            let _ = sink.book().to_bytes();
        }
    });
    assert_eq!(allocations.count_total, 0);
}

/// Items of a known tenant are also on the tenant's page, settled like the source's page; tenants that share a page
/// keep their names.
#[test]
fn a_tenants_page_balances_by_itself() {
    let ledger = ledger(0);
    let source = ledger.source("otlp").unwrap();
    let tenant = ledger.tenant("other").unwrap();
    let mut open = source.open();
    assert!(open.tenant().is_none());
    open.belongs_to(tenant.called("invented"));
    assert_eq!(open.tenant().map(|tenant| tenant.name().to_owned()), Some("invented".to_owned()));
    assert_eq!((tenant.book().open, tenant.book().difference()), (1, 0));
    let handed_over = open.submit(metrics(5));
    ledger.head().advance_to(5);
    assert_eq!(tenant.book().open, 1);
    handed_over.accept();
    for refuse in [true, false] {
        let mut open = source.open();
        open.belongs_to(tenant.clone());
        if refuse {
            open.submit(metrics(7)).refuse(Refusal::Disk);
        } else {
            open.refuse(Refusal::RateLimited);
        }
    }
    source.open().refuse(Refusal::Tenant);
    let book = tenant.book();
    assert_eq!((book.received, book.accepted, book.open, book.difference()), (3, 1, 0, 0));
    assert_eq!((tenant.items(), source.items(), book.bytes), (5, 5, 150));
    assert_eq!(book.refused[Refusal::Disk as usize] + book.refused[Refusal::RateLimited as usize], 2);
    assert_eq!(ledger.balance().difference(), 0);
}
