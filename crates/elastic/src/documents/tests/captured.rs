//! Bodies as SDKs and agents send them become the documents that are kept in `tests/golden`. `UPDATE_GOLDEN=1` writes
//! them anew; what changed is then for eyes to judge.

use super::super::*;
use serde_json::Value;
use std::path::Path;

const OTLP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/tests/data/otlp");
const INTAKE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../load/data/apm");
const RECEIVED: u64 = 1_795_201_900_000_000_000;

/// The first two documents of each kind in each data stream: the others are like them.
fn picked(documents: &[u8]) -> String {
    let mut known = std::collections::HashMap::new();
    let text = std::str::from_utf8(documents).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut kept = String::new();
    for pair in lines.chunks(2) {
        let [action, document]: [Value; 2] = [0, 1].map(|at| serde_json::from_str(pair[at]).unwrap());
        let kind = (action["create"]["_index"].to_string(), document["processor"]["event"].to_string());
        let count = known.entry(kind).or_insert(0);
        *count += 1;
        if *count <= 2 {
            kept.extend(pair.iter().copied());
        }
    }
    kept
}

/// Compares with what is kept, line by line, so that a difference is one line.
fn compare(name: &str, documents: &[u8]) {
    let found = picked(documents);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.ndjson"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &found).unwrap();
    }
    let kept = std::fs::read_to_string(&path).expect("the kept documents; UPDATE_GOLDEN=1 writes them");
    for (number, (found, kept)) in found.lines().zip(kept.lines()).enumerate() {
        assert_eq!(found, kept, "{name}, line {}", number + 1);
    }
    assert_eq!(found.lines().count(), kept.lines().count(), "{name}");
}

fn all(
    write: impl Fn(DocumentPosition, &mut DocumentBuffer<'_>) -> Result<WriteResult, Full>,
) -> (Vec<u8>, WriteResult) {
    let mut space = vec![0; 8 << 20];
    let mut page = DocumentBuffer::new(&mut space);
    let written = write(DocumentPosition::START, &mut page).unwrap();
    assert_eq!(written.next, None);
    (page.written().to_vec(), written)
}

fn valid(documents: &[u8]) -> Vec<Value> {
    documents
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Requests of an OpenTelemetry SDK, in both mappings.
#[test]
fn bodies_of_an_sdk_become_the_kept_documents() {
    for (signal, name) in [(Signal::Logs, "logs"), (Signal::Traces, "traces"), (Signal::Metrics, "metrics")] {
        let raw = std::fs::read(format!("{OTLP}/python-{name}.pb")).unwrap();
        for (mapping, word) in [(Mapping::Otel, "otel"), (Mapping::Ecs, "ecs")] {
            let settings = DocumentSettings { mapping, received: RECEIVED, ..DocumentSettings::default() };
            let (documents, written) =
                all(|from, page| from_otlp(signal, &raw, from, "0-1", &settings, page));
            assert_eq!(
                written.items + written.untranslatable.items,
                tidegate_wire::otlp::items(signal, &raw)
            );
            assert_eq!(valid(&documents).len() as u64, 2 * written.documents);
            compare(&format!("python-{name}-{word}"), &documents);
        }
    }
}

/// Requests of four Elastic agents.
#[test]
fn bodies_of_agents_become_the_kept_documents() {
    for agent in ["go", "java", "nodejs", "python"] {
        for number in 0..2 {
            let raw = std::fs::read(format!("{INTAKE}/{agent}-{number}.ndjson")).unwrap();
            let counts =
                tidegate_wire::intake::check(&raw, usize::MAX, |_, error| panic!("{error:?}")).unwrap();
            let settings = DocumentSettings { received: RECEIVED, ..DocumentSettings::default() };
            let (documents, written) = all(|from, page| from_intake(&raw, from, "0-1", &settings, page));
            assert_eq!((written.items, written.documents), (counts.events, counts.events));
            assert_eq!(written.untranslatable, Untranslatable::default(), "{agent} {number}");
            let lines = valid(&documents);
            assert_eq!(lines.len() as u64, 2 * counts.events);
            compare(&format!("{agent}-intake-{number}"), &documents);
        }
    }
}
