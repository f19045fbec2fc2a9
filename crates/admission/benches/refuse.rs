//! The cost of a refusal, from the decision to the bytes that go out: `cargo bench -p tidegate-admission`. For
//! instructions take the difference of two counts of `<this program> --run '429 over remote write' 1000000`.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench")]

use criterion::Criterion;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tidegate_admission::otlp::Media;
use tidegate_admission::tenancy::Tenancy;
use tidegate_admission::{AnswerFormat, Caller, Gate, GateRules, Headers, answer};
use tidegate_arena::{Arena, Floors};
use tidegate_http1::DuplicateHeader;
use tidegate_journal::{Durability, Journal, Settings};
use tidegate_ledger::{Ledger, Source};
use tidegate_limit::{AdmissionTable, LimiterSettings, Moment, PerSecond, TenantLimits, Tenants};
use tidegate_meters::Registry;

struct Said;

impl Headers for Said {
    fn sole(&self, name: &str) -> Result<Option<&[u8]>, DuplicateHeader> {
        Ok(name.eq_ignore_ascii_case("x-scope-orgid").then_some(b"team-1"))
    }
}

/// A gate, and the source whose requests it is asked about.
fn gate(limits: Option<LimiterSettings>, tenants: bool) -> (Gate, Source) {
    let dir = tempfile::tempdir().unwrap();
    let arena = Arena::new(64 << 20, Floors::NONE, 4 << 20, 8, 8).unwrap();
    let settings = Settings { durability: Durability::PageCache, ..Settings::new(dir.path()) };
    let (journal, recovery) = Journal::open(settings).unwrap();
    let ledger = Ledger::new(&Registry::new(1), recovery.items);
    let source = ledger.source("prometheus_remote_write").unwrap();
    let table = tenants.then(|| Tenants::new(100, TenantLimits::default(), ledger.clone()));
    let limits = limits.map(|limits| Arc::new(AdmissionTable::new(vec![(source.clone(), limits)], table)));
    let tenancy = tenants.then(|| Tenancy { header: Some("x-scope-orgid".into()), ..Tenancy::default() });
    let rules = GateRules { tenancy, limits, ..GateRules::default() };
    (Gate::with_rules(arena, journal, Duration::ZERO, None, rules), source)
}

/// Every measured step, by name.
fn each(measure: &mut dyn FnMut(&str, &mut dyn FnMut())) {
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let caller = Caller {
        peer,
        certificate: None,
        headers: &Said,
        bytes: Some(1000),
        now: Moment::now(),
        guarded: true,
        journalled: true,
    };
    let requests = Some(PerSecond { rate: 1, burst: 1 });
    let spent = LimiterSettings { requests, ..LimiterSettings::default() };

    let (open, source) = gate(Some(LimiterSettings::default()), false);
    let mut entry = source.open();
    measure("enter, nothing limited", &mut || drop(black_box(open.admit(black_box(&caller), &mut entry))));
    measure("head alone", &mut || drop(black_box(open.check_open())));
    let many =
        LimiterSettings { concurrency: Some(1000), in_flight: Some(1 << 30), ..LimiterSettings::default() };
    let (limited, source) = gate(Some(many), false);
    let mut entry = source.open();
    measure("enter, a route's limits", &mut || {
        drop(black_box(limited.admit(black_box(&caller), &mut entry)))
    });
    let (shared, source) = gate(Some(many), true);
    let mut entry = source.open();
    measure("enter, with tenants", &mut || drop(black_box(shared.admit(black_box(&caller), &mut entry))));

    let (refusing, source) = gate(Some(spent), false);
    let mut entry = source.open();
    drop(refusing.admit(&caller, &mut entry));
    let mut out = Vec::with_capacity(4 << 10);
    for (name, protocol) in [
        ("429 over remote write", AnswerFormat::RemoteWrite),
        ("429 over OTLP in JSON", AnswerFormat::Otlp(Media::Json)),
        ("429 of Elasticsearch", AnswerFormat::Elastic),
    ] {
        measure(name, &mut || {
            out.clear();
            // As a connection does: the clock is read once, for the limits and for the date.
            let caller = Caller { now: Moment::now(), ..caller };
            if let Err(refused) = refusing.admit(black_box(&caller), &mut entry) {
                answer(refused, protocol).put(caller.now.0, &mut out);
            }
            black_box(&out);
        });
    }
    measure("the books: open, refuse", &mut || {
        source.open().refuse(tidegate_ledger::Refusal::RateLimited);
    });
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, run, wanted, times, ..] = arguments.as_slice()
        && run == "--run"
    {
        let times: u64 = times.parse().unwrap_or(0);
        each(&mut |name, step| {
            if name == wanted {
                (0..times).for_each(|_| step());
            }
        });
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    each(&mut |name, step| _ = criterion.bench_function(name, |bench| bench.iter(&mut *step)));
    criterion.final_summary();
}
