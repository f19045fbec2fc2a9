//! Counting and observing allocate nothing, and neither does resolving a series that exists.

use tidegate_meters::{Buckets, Name, Registry};

#[test]
fn the_hot_path_allocates_nothing() {
    let registry = Registry::new(2);
    let counter = registry.counter(Name::plain("counter", "A counter"));
    let gauge = registry.gauge(Name::plain("gauge", "A gauge"));
    let computed = registry.histogram(Name::seconds("computed", "Computed buckets"), Buckets::durations());
    let listed = registry.histogram(Name::plain("listed", "Listed buckets"), Buckets::listed(&[1, 10, 100]));
    let family = registry.counters(Name::plain("family", "A family"), ["label"], 2);
    family.series(["known"]).increment();
    family.series(["also known"]).increment();
    let allocations = allocation_counter::measure(|| {
        for value in 0..1_000u64 {
            counter.add(value);
            gauge.add(-1);
            computed.observe(value << 20);
            listed.observe(value);
            family.series(["known"]).increment();
            family.series(["no room for this one"]).increment();
        }
    });
    assert_eq!(allocations.count_total, 0);
    let counted = allocation_counter::measure(|| drop(family.clone().series(["known"]).value().to_string()));
    assert_eq!(counted.count_total, 1, "the counting itself works");
}
