//! Promises: the table is of fixed size whatever names come; a flood of one tenant leaves room for the others; what a
//! hold has comes back, also across a change of the limits.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use super::*;
use crate::limiter::Limit;
use crate::rate::PerSecond;
use crate::tenants::{OTHER, TenantAllowance};
use std::collections::BTreeMap;
use tidegate_ledger::Ledger;
use tidegate_meters::Registry;

const NOW: Moment = Moment(1_000_000_000);

fn ledger() -> Ledger {
    Ledger::new(&Registry::new(1), 0)
}

fn table(limits: LimiterSettings, most: u16, allowed: TenantLimits) -> (Arc<AdmissionTable>, RouteId) {
    let ledger = ledger();
    let books = ledger.source("otlp").unwrap();
    let tenants = Tenants::new(most, allowed, ledger);
    let table = Arc::new(AdmissionTable::new(vec![(books.clone(), limits)], Some(tenants)));
    let route = table.route(&books).unwrap();
    (table, route)
}

fn find(table: &AdmissionTable, name: &str) -> TenantId {
    table.tenants().unwrap().find(name)
}

#[test]
fn a_hold_is_small() {
    assert_eq!(size_of::<Option<RequestPermit>>(), 16, "it lies in the task of every connection");
}

#[test]
fn names_beyond_the_table_share_one_entry() {
    let pinned = BTreeMap::from([("known".to_owned(), TenantAllowance::default())]);
    let (table, _) =
        table(LimiterSettings::default(), 8, TenantLimits { overrides: pinned, ..Default::default() });
    let tenants = table.tenants().unwrap();
    let bytes = Tenants::bytes(8);
    for name in 0..100_000 {
        let _ = tenants.find(&format!("invented-{name}"));
    }
    assert!(tenants.is_full() && Tenants::bytes(8) == bytes);
    assert_eq!(tenants.accounts().count(), 9);
    assert_ne!(tenants.find("known"), TenantId::OTHER, "who is in the configuration has an entry");
    assert_ne!(tenants.find("invented-3"), TenantId::OTHER, "so has who was there early");
    assert_eq!(tenants.find("invented-3"), tenants.find("invented-3"));
    let late = tenants.find("invented-50000");
    assert_eq!(late, TenantId::OTHER);
    let page = tenants.ledger(late, "invented-50000").unwrap();
    assert_eq!((page.name(), page.title()), ("invented-50000", OTHER), "its data keeps its own name");
    assert_eq!(tenants.find(OTHER), TenantId::OTHER);
}

#[test]
fn each_tenant_has_limits_of_its_own_beside_those_of_the_route() {
    let of = |concurrency| LimiterSettings { concurrency: Some(concurrency), ..LimiterSettings::default() };
    let large = TenantAllowance { limits: of(4), weight: 1 };
    let allowed = TenantLimits {
        default: TenantAllowance { limits: of(1), weight: 1 },
        overrides: BTreeMap::from([("large".to_owned(), large)]),
    };
    let (table, route) = table(of(5), 8, allowed);
    let enter = |name| table.admit(NOW, route, Some(find(&table, name)), 10, u64::MAX);
    let small = enter("small").unwrap();
    assert!(matches!(enter("small"), Err(Denied::Tenant(reached)) if reached.limit == Limit::Concurrency));
    let holds: Vec<RequestPermit> = (0..4).map(|_| enter("large").unwrap()).collect();
    assert!(matches!(enter("third"), Err(Denied::Route(reached)) if reached.limit == Limit::Concurrency));
    drop(holds);
    drop(small);
    assert!(enter("third").is_ok());
    let unused = |account: &TenantAccount| account.held() == 0 && account.limiter().concurrency() == 0;
    assert!(table.tenants().unwrap().accounts().all(unused));
}

#[test]
fn a_refusal_takes_no_token_of_the_other_limit() {
    let requests = |rate| Some(PerSecond { rate, burst: rate });
    let limits = LimiterSettings { requests: requests(100), ..LimiterSettings::default() };
    let allowed = TenantLimits {
        default: TenantAllowance {
            limits: LimiterSettings { requests: requests(1), ..LimiterSettings::default() },
            weight: 1,
        },
        ..TenantLimits::default()
    };
    let (table, route) = table(limits, 8, allowed);
    let enter = |name: &str| table.admit(NOW, route, Some(find(&table, name)), 0, u64::MAX).map(drop);
    let flood = (0..1000).filter(|_| enter("flood").is_ok()).count();
    assert_eq!(flood, 1);
    let others = (0..200).filter(|name| enter(&format!("{}", name % 7)).is_ok()).count();
    assert_eq!(others, 7, "all that the others may send passes the route");
}

/// Weighted max-min: whoever wants more gets parts by weight, whoever wants less gets all of it, and there is
/// always something left for the next.
#[test]
fn memory_is_shared_by_weight_and_demand() {
    const TOTAL: u64 = 1_000_000;
    let heavy = TenantAllowance { weight: 2, ..TenantAllowance::default() };
    let allowed =
        TenantLimits { overrides: BTreeMap::from([("heavy".to_owned(), heavy)]), ..Default::default() };
    let (table, route) = table(LimiterSettings::default(), 8, allowed);
    let held = |name: &str| table.tenants().unwrap().account(find(&table, name)).unwrap().held();
    let used = || table.tenants().unwrap().accounts().map(TenantAccount::held).sum::<u64>();
    let enter = |name: &str| table.admit(NOW, route, Some(find(&table, name)), 1000, TOTAL - used()).ok();
    let mut holds = Vec::new();
    // Alone, it may have four fifths.
    while let Some(hold) = enter("flood") {
        holds.push(hold);
    }
    assert!((790_000..=800_000).contains(&held("flood")), "{}", held("flood"));
    let trickle = enter("trickle").expect("a quiet tenant passes");
    // The flood goes on while two more want everything: it gets nothing new until it holds its part.
    let mut random = 1_u64;
    for _ in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if !holds.is_empty() {
            let _ = holds.swap_remove((random >> 33) as usize % holds.len());
        }
        holds.extend(["heavy", "flood", "second"].into_iter().filter_map(enter));
    }
    let level = held("flood") as f64;
    assert!((held("second") as f64 / level - 1.0).abs() < 0.1, "{} {level}", held("second"));
    assert!((held("heavy") as f64 / level - 2.0).abs() < 0.2, "{} {level}", held("heavy"));
    assert!(TOTAL - used() > TOTAL / 20, "{} are free", TOTAL - used());
    drop((holds, trickle));
    assert_eq!(used(), 0);
}

#[test]
fn bytes_beyond_the_announced_length_are_charged_once_and_returned() {
    let limits = LimiterSettings { in_flight: Some(1000), ..LimiterSettings::default() };
    let (table, route) = table(limits, 8, TenantLimits::default());
    let enter = |bytes| table.admit(NOW, route, Some(find(&table, "a")), bytes, 10_000).unwrap();
    let (hold, other) = (enter(0), enter(200));
    for bytes in [100, 100, 500, 400] {
        hold.grow(NOW, bytes, 10_000).unwrap();
    }
    assert_eq!((hold.bytes(), table.routes[0].limiter.in_flight()), (500, 700));
    assert!(matches!(hold.grow(NOW, 2000, 10_000), Err(Denied::Route(_))));
    assert!(matches!(hold.grow(NOW, 700, 0), Err(Denied::Share { held: 700 })));
    assert_eq!((hold.bytes(), table.routes[0].limiter.in_flight()), (500, 700));
    drop(other);
    // Alone it may be larger than all the room, and than its part, as it might have been at once.
    hold.grow(NOW, 2000, 0).unwrap();
    table.set_limits(|_| LimiterSettings::default(), TenantLimits::default());
    drop(hold);
    assert_eq!(table.routes[0].limiter.in_flight(), 0);
}

/// A body that has begun to pass a rate passes it, and those behind it pay: else it never would.
#[test]
fn a_body_is_not_cut_off_by_the_rate_that_it_has_passed() {
    let bytes = Some(PerSecond { rate: 100, burst: 100 });
    let (table, route) =
        table(LimiterSettings { bytes, ..LimiterSettings::default() }, 8, TenantLimits::default());
    let enter = |at| table.admit(at, route, Some(find(&table, "a")), 0, u64::MAX).unwrap();
    let (hold, late) = (enter(NOW), enter(NOW));
    for bytes in [50, 500, 1000] {
        hold.grow(NOW, bytes, u64::MAX).unwrap();
    }
    let denied = late.grow(NOW, 50, u64::MAX).unwrap_err();
    assert!(matches!(denied, Denied::Route(reached) if reached.limit == Limit::Bytes));
    late.grow(Moment(NOW.0 + 10_000_000_000), 50, u64::MAX).unwrap();
}

#[test]
fn a_table_without_limits_is_inactive() {
    let books = ledger().source("otlp").unwrap();
    let table = AdmissionTable::new(vec![(books, LimiterSettings::default())], None);
    assert!(!table.is_active());
    let some = LimiterSettings { concurrency: Some(1), ..LimiterSettings::default() };
    table.set_limits(
        |name| if name == "otlp" { some } else { LimiterSettings::default() },
        TenantLimits::default(),
    );
    assert!(table.is_active());
}

/// Items are those that the books have accepted.
#[test]
fn item_rates_follow_the_accepted_items_of_the_books() {
    let ledger = ledger();
    let books = ledger.source("otlp").unwrap();
    let items = Some(PerSecond { rate: 10, burst: 10 });
    let limits = LimiterSettings { items, ..LimiterSettings::default() };
    let table = Arc::new(AdmissionTable::new(vec![(books.clone(), limits)], None));
    let route = table.route(&books).unwrap();
    let counts = tidegate_ledger::Counts::of(tidegate_ledger::Signal::Logs, 50, 1);
    let hold = table.admit(NOW, route, None, 1, u64::MAX).unwrap();
    books.open().submit(counts).accept();
    drop(hold);
    let denied = table.admit(NOW, route, None, 1, u64::MAX).unwrap_err();
    assert!(matches!(denied, Denied::Route(reached) if reached.limit == Limit::Items));
    let later = Moment(NOW.0 + 5_000_000_000);
    assert!(table.admit(later, route, None, 1, u64::MAX).is_ok());
}

/// A decompressed body counts as well as the received bytes: a tenant that has decompressed up to its share is
/// refused more memory and new requests, while another tenant passes; and all of it is returned.
#[test]
fn decompressed_bytes_count_for_their_tenant() {
    const TOTAL: u64 = 1_000_000;
    let (table, route) = table(LimiterSettings::default(), 8, TenantLimits::default());
    let account = |name: &str| table.tenants().unwrap().account(find(&table, name)).unwrap();
    let free = || TOTAL - account("flood").decoding() - account("trickle").decoding();
    let enter = |name: &str| table.admit(NOW, route, Some(find(&table, name)), 10, free());
    let holds: Vec<RequestPermit> = (0..50).map(|_| enter("flood").unwrap()).collect();
    let mut parts: Vec<DecodeShare> = Vec::new();
    let denied = holds.iter().find_map(|hold| match hold.decode_share(20_000, free()) {
        Ok(part) => {
            parts.extend(part);
            None
        }
        Err(denied) => Some(denied),
    });
    assert_eq!(denied, Some(Denied::Share { held: 800_500 }), "four fifths, and the bodies themselves");
    assert_eq!((parts.len(), free()), (40, 200_000));
    assert!(parts[0].is_alone() && parts[1..].iter().all(|part| !part.is_alone()), "one of them may wait");
    assert!(matches!(enter("flood"), Err(Denied::Share { .. })), "its next is refused from its head");
    let trickle = enter("trickle").unwrap();
    assert!(trickle.decode_share(20_000, free()).unwrap().unwrap().is_alone(), "the other does not notice");
    // Larger than its part, but there is nothing else of its tenant.
    let mut part = trickle.decode_share(190_000, free()).unwrap().unwrap();
    part.grow(400_000, free()).unwrap();
    part.settle(100_000);
    assert_eq!(account("trickle").decoding(), 100_000);
    drop(part);
    assert!(parts[1].grow(20_000, 200_000).is_err());
    parts.truncate(30);
    parts[1].grow(20_000, free()).unwrap();
    drop((parts, holds, trickle));
    assert_eq!((account("flood").held(), account("trickle").held(), free()), (0, 0, TOTAL));
}

/// A translation counts for its tenant and not for its rates; refused, it keeps what it had; and all of it comes back.
#[test]
fn translated_bytes_count_for_their_tenant() {
    let slow =
        LimiterSettings { bytes: Some(PerSecond { rate: 1, burst: 100 }), ..LimiterSettings::default() };
    let (table, route) = table(slow, 8, TenantLimits::default());
    let account = table.tenants().unwrap().account(find(&table, "flood")).unwrap();
    let enter = || table.admit(NOW, route, Some(find(&table, "flood")), 10, 1_000).unwrap();
    let alone = enter();
    let mut extra = alone.translation_share().unwrap();
    extra.grow(5_000, 0).unwrap();
    assert_eq!(account.held(), 5_010, "one that has nothing else may have more than its part");
    let entered = table.admit(NOW, route, Some(find(&table, "flood")), 10, 10_000);
    let other = entered.unwrap();
    let mut second = other.translation_share().unwrap();
    assert_eq!(second.grow(1_000, 1_000), Err(Denied::Share { held: 5_020 }));
    extra.grow(1, 10_000).unwrap();
    extra.shrink(500);
    extra.shrink(700);
    assert_eq!(account.held(), 520);
    second.grow(1_000, 2_000).unwrap();
    drop((other, extra));
    assert_eq!(account.held(), 1_010);
    drop((second, alone));
    assert_eq!((account.held(), account.limiter().in_flight()), (0, 0));
    for _ in 0..8 {
        drop(enter());
    }
    assert!(table.admit(NOW, route, Some(find(&table, "flood")), 10, 1_000).is_err(), "ten of ten bytes");
}

/// Where there are no tenants there are no parts.
#[test]
fn without_tenants_no_account_is_charged() {
    let (table, route) = table(LimiterSettings::default(), 8, TenantLimits::default());
    let hold = table.admit(NOW, route, None, 10, 0).unwrap();
    assert!(hold.decode_share(1 << 40, 0).unwrap().is_none());
    assert!(hold.translation_share().is_none());
}

#[test]
fn a_part_is_small() {
    assert_eq!(size_of::<Option<DecodeShare>>(), 16, "it lies in the task of every connection");
}
