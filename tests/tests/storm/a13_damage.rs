//! P2, P4: whatever happens to the bytes of a journal at rest, the gateway starts on it, delivers everything
//! outside the damaged records, counts what is lost, and goes on.

use crate::segments::{Image, StoredRecords, kept, read, segments, write};
use crate::support::{MIB, Storm, TIMELINE, alone};
use rand::RngExt;
use serde_json::{Value, json};
use std::path::Path;
use tidegate_load::{Arrivals, Behaviour, Check, LoadProfile, OnRefused, RunLimit, VerifyingReceiver};

const SERIES: usize = 2000;
const PASSES: u64 = 50;

fn settings() -> Value {
    json!({ "journal": { "segment": "1MiB" } })
}

/// One damage: what it is, and how it changes the files.
struct Damage {
    name: String,
    done: Box<dyn Fn(&mut Image)>,
}

fn damage(name: impl Into<String>, done: impl Fn(&mut Image) + 'static) -> Damage {
    Damage { name: name.into(), done: Box::new(done) }
}

/// Every damage to every part: the first, a middle and the last segment; the first, a middle and the last
/// record there; header and body.
fn damages(whole: &Image) -> Vec<Damage> {
    let records = kept(whole);
    let files = segments(whole);
    let mut all = Vec::new();
    for (place, file) in [("first", 0), ("middle", files.len() / 2), ("last", files.len() - 1)] {
        let name = files[file].clone();
        let here: Vec<&StoredRecords> = records.iter().filter(|record| record.file == name).collect();
        for (which, record) in [("first", 0), ("middle", here.len() / 2), ("last", here.len() - 1)] {
            let StoredRecords { from, to, .. } = *here[record];
            let what = format!("{which} record of the {place} segment");
            let at = |part: &str, offset: usize| {
                let name = name.clone();
                damage(format!("a bit in the {part} of the {what}"), move |image| {
                    image.get_mut(&name).unwrap()[from + offset] ^= 0x10;
                })
            };
            all.extend([at("magic", 1), at("length", 45), at("checksum", 60), at("body", (to - from) - 100)]);
            let torn = name.clone();
            all.push(damage(format!("zeros from half of the {what} on"), move |image| {
                image.get_mut(&torn).unwrap()[(from + to) / 2..].fill(0);
            }));
            let cut = name.clone();
            all.push(damage(format!("an end within the {what}"), move |image| {
                image.get_mut(&cut).unwrap().truncate(from + 70);
            }));
        }
        let deleted = name.clone();
        all.push(damage(format!("no {place} segment"), move |image| {
            image.remove(&deleted);
        }));
        let emptied = name.clone();
        all.push(damage(format!("an empty {place} segment"), move |image| {
            image.get_mut(&emptied).unwrap().clear();
        }));
        let garbage = name.clone();
        all.push(damage(format!("noise instead of the {place} segment"), move |image| {
            rand::rng().fill(&mut image.get_mut(&garbage).unwrap()[..]);
        }));
        let longer = name.clone();
        all.push(damage(format!("noise behind the {place} segment"), move |image| {
            let mut noise = [0; 5000];
            rand::rng().fill(&mut noise[..]);
            image.get_mut(&longer).unwrap().extend_from_slice(&noise);
        }));
    }
    all.push(damage("forty bits anywhere", move |image| {
        for name in segments(image) {
            let bytes = image.get_mut(&name).unwrap();
            for _ in 0..10 {
                let at = rand::random_range(0..bytes.len());
                bytes[at] ^= 1 << rand::random_range(0..8);
            }
        }
    }));
    for (name, spoil) in [
        ("noise instead of the cursor", (|bytes| rand::rng().fill(&mut bytes[..])) as fn(&mut Vec<u8>)),
        ("an empty cursor", Vec::clear),
        ("half a cursor", |bytes| bytes.truncate(bytes.len() / 2)),
    ] {
        all.push(damage(name, move |image| {
            let cursors = image.iter_mut().filter(|(name, _)| name.contains("up"));
            assert!(cursors.map(|(_, bytes)| spoil(bytes)).count() > 0, "there is a cursor");
        }));
    }
    all.push(damage("no cursor", |image| image.retain(|name, _| !name.contains("up"))));
    all.push(damage("nothing at all", Image::clear));
    all
}

fn arrived(arrivals: &Arrivals, record: &StoredRecords) -> usize {
    let there = |(key, number): &(u64, u64)| {
        arrivals.series.get(key).is_some_and(|series| series.numbers.within(*number, number + 1) == 1)
    };
    record.samples.iter().filter(|sample| there(sample)).count()
}

/// Starts the gateway on the damaged journal, and checks what arrives and what the books say.
fn survives(storm: &mut Storm, whole: &Image, damage: &Damage) {
    let mut image = whole.clone();
    (damage.done)(&mut image);
    write(&image, &journal(storm));
    let records = kept(whole);
    let intact =
        |record: &StoredRecords| image.get(&record.file).and_then(|file| file.get(record.from..record.to));
    let whole_of = |record: &StoredRecords| whole[&record.file].get(record.from..record.to);
    let (good, lost): (Vec<&StoredRecords>, Vec<&StoredRecords>) =
        records.iter().partition(|record| intact(record) == whole_of(record));
    let last_good = records.iter().rposition(|record| intact(record) == whole_of(record));

    storm.sink = VerifyingReceiver::start(Behaviour::Healthy, Check::Timed(TIMELINE)).unwrap();
    storm.configure(&settings());
    storm.gateway.start();
    // Data sent from now on arrives as usual.
    let profile = LoadProfile { first: PASSES, on_refused: OnRefused::Count, ..LoadProfile::default() };
    let report = storm.drive(&profile).join().unwrap();
    assert_eq!((report.refused(), report.failed), (0, 0), "{}: {report}", damage.name);
    let status = storm.gateway.at_rest(crate::support::drained());
    storm.gateway.books_close();
    let arrivals = storm.sink.report();
    let counted = status["books"]["sinks"][0]["dropped"]["damaged"].as_u64().unwrap_or(0);
    let items = |records: &[&StoredRecords]| records.iter().map(|record| record.items).sum::<u64>();
    // Behind the last record that can be read, nobody knows what there was.
    let between =
        records.iter().take(last_good.unwrap_or(0)).filter(|record| intact(record) != whole_of(record));
    let between = between.map(|record| record.items).sum::<u64>();
    println!(
        "{}: {} of {} records lost, {counted} samples counted, {}",
        damage.name,
        lost.len(),
        records.len(),
        status["journal"]["damage"]
    );
    for record in &good {
        assert_eq!(arrived(&arrivals, record), record.samples.len(), "{}: {record:?}", damage.name);
    }
    for record in &lost {
        assert_eq!(arrived(&arrivals, record), 0, "{}: a damaged record arrived: {record:?}", damage.name);
    }
    assert_eq!((arrivals.malformed, arrivals.unnumbered), (0, 0), "{}", damage.name);
    assert_eq!(arrivals.samples(), items(&good) + report.samples, "{}", damage.name);
    assert!((between..=items(&lost)).contains(&counted), "{}: {between} ≤ {counted}", damage.name);
    let doubled: u64 = arrivals.series.values().map(|series| series.duplicates + series.out_of_order).sum();
    assert_eq!(doubled, 0, "{}: each sample once, and in order", damage.name);
    assert_eq!(storm.gateway.term(), 0);
}

fn journal(storm: &Storm) -> std::path::PathBuf {
    Path::new(&storm.gateway.data()).join("journal")
}

#[test]
fn only_the_damaged_records_are_lost() {
    let _alone = alone();
    let mut storm = Storm::plan(64 * MIB, SERIES, &settings());
    storm.sink.set(Behaviour::Refuse);
    storm.gateway.start();
    let profile = LoadProfile {
        connections: 4,
        series_per_request: 100,
        limit: RunLimit::Passes(PASSES),
        on_refused: OnRefused::Count,
        ..LoadProfile::default()
    };
    let report = storm.drive(&profile).join().unwrap();
    assert_eq!((report.refused(), report.failed), (0, 0), "{report}");
    assert_eq!(storm.gateway.term(), 0);
    let whole = read(&journal(&storm));
    let records = kept(&whole);
    let items: u64 = records.iter().map(|record| record.items).sum();
    assert_eq!(items, report.samples, "this test reads the journal as it is written");
    assert!(segments(&whole).len() >= 3, "{:?}", whole.keys());
    let nothing = damage("no damage", |_| {});
    survives(&mut storm, &whole, &nothing);
    for damage in damages(&whole) {
        survives(&mut storm, &whole, &damage);
    }
}
