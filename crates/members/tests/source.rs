//! Members from lists, from DNS and from files: what changes is reported, and what fails changes nothing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use std::io::Write as _;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;
use tidegate_members::simulated::{Fault, NameServer, Zone};
use tidegate_members::{Entry, Event, MemberSource, Settings};

const SOON: Duration = Duration::from_secs(60);

fn settings(entries: &[&str], server: Option<&NameServer>) -> Settings {
    Settings {
        entries: entries.iter().map(|entry| Entry::parse(entry).unwrap()).collect(),
        file: None,
        check: |address| if address.contains(':') { Ok(()) } else { Err("the port is missing".to_owned()) },
        max_members: 4,
        interval: Duration::from_millis(20),
        name_servers: server.map(NameServer::address).into_iter().collect(),
    }
}

fn addresses(last: &[u8]) -> Vec<IpAddr> {
    last.iter().map(|last| [192, 0, 2, *last].into()).collect()
}

async fn next(source: &mut MemberSource) -> Event {
    tokio::time::timeout(SOON, source.next()).await.expect("an event in time")
}

#[track_caller]
fn members(event: Event) -> Vec<String> {
    match event {
        Event::Members(members) => members,
        other => panic!("no members, but {other:?}"),
    }
}

#[track_caller]
fn failure(event: Event) -> String {
    match event {
        Event::Failed(problem) => problem,
        other => panic!("no failure, but {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_is_known_at_once_and_stays() {
    let mut source = MemberSource::new(settings(&["b:1", "a:1", "b:1"], None));
    assert_eq!(members(next(&mut source).await), ["a:1", "b:1"]);
    assert!(tokio::time::timeout(Duration::from_secs(3600), source.next()).await.is_err());
}

#[tokio::test]
async fn addresses_come_and_go() {
    let server = NameServer::start().unwrap();
    server.set_addresses("store.ns", &addresses(&[2, 1]));
    let mut source = MemberSource::new(settings(
        &["dns+http://store.ns:9090/write", "http://fixed:1/write"],
        Some(&server),
    ));
    let url = |last: u8| format!("http://192.0.2.{last}:9090/write");
    let fixed = "http://fixed:1/write".to_owned();
    assert_eq!(members(next(&mut source).await), [url(1), url(2), fixed.clone()]);
    let more = [addresses(&[1, 3]), vec!["fd00::1".parse().unwrap()]].concat();
    server.set_addresses("store.ns", &more);
    let six = "http://[fd00::1]:9090/write".to_owned();
    assert_eq!(members(next(&mut source).await), [url(1), url(3), six, fixed.clone()]);
    server.set_addresses("store.ns", &addresses(&[3]));
    assert_eq!(members(next(&mut source).await), [url(3), fixed]);
}

#[tokio::test]
async fn the_order_of_an_answer_does_not_matter() {
    let server = NameServer::start().unwrap();
    server.set_addresses("store", &addresses(&[1, 2]));
    let mut source = MemberSource::new(settings(&["dns+store:1"], Some(&server)));
    assert_eq!(members(next(&mut source).await).len(), 2);
    server.set_addresses("store", &addresses(&[2, 1, 2]));
    // A name whose answer differs only in order causes no event: the next one is of the third member.
    let same = tokio::time::timeout(Duration::from_millis(200), source.next()).await;
    assert!(same.is_err(), "{same:?}");
    server.set_addresses("store", &addresses(&[2, 3, 1]));
    assert_eq!(members(next(&mut source).await).len(), 3);
}

#[tokio::test]
async fn services_give_hosts_and_ports() {
    let server = NameServer::start().unwrap();
    let services = vec![("pod-1.store.ns".to_owned(), 10901), ("pod-0.store.ns".to_owned(), 10902)];
    server.set("_grpc._tcp.store.ns", Zone { services, ..Zone::default() });
    let mut source = MemberSource::new(settings(&["dnssrv+_grpc._tcp.store.ns"], Some(&server)));
    assert_eq!(members(next(&mut source).await), ["pod-0.store.ns:10902", "pod-1.store.ns:10901"]);
}

#[tokio::test]
async fn an_alias_is_followed() {
    let server = NameServer::start().unwrap();
    server.set_addresses("real.ns", &addresses(&[7]));
    server.set("store", Zone { alias: Some("real.ns".to_owned()), ..Zone::default() });
    let mut source = MemberSource::new(settings(&["dns+STORE:1"], Some(&server)));
    assert_eq!(members(next(&mut source).await), ["192.0.2.7:1"]);
}

#[tokio::test]
async fn failures_keep_the_members_and_are_reported_once() {
    let server = NameServer::start().unwrap();
    server.set_addresses("store", &addresses(&[1]));
    let mut source = MemberSource::new(settings(&["dns+store:1"], Some(&server)));
    assert_eq!(members(next(&mut source).await), ["192.0.2.1:1"]);
    let fault = |fault| Zone { addresses: addresses(&[1]), fault: Some(fault), ..Zone::default() };
    for (zone, problem) in [
        (Zone::default(), "store has no addresses now"),
        (fault(Fault::Code(2)), "SERVFAIL"),
        (fault(Fault::Code(5)), "REFUSED"),
        (fault(Fault::Garbage), "malformed"),
        (fault(Fault::Silence), "no answer from"),
        (fault(Fault::TruncatedEverywhere), "asking 127.0.0.1"),
    ] {
        server.set("store", zone);
        let reported = failure(next(&mut source).await);
        assert!(reported.contains(problem), "{reported}");
        server.set_addresses("store", &addresses(&[1]));
        assert_eq!(next(&mut source).await, Event::Recovered);
    }
    // What comes during a failure is one event, and the recovery another.
    server.set("store", fault(Fault::Code(2)));
    failure(next(&mut source).await);
    server.set_addresses("store", &addresses(&[2]));
    assert_eq!(members(next(&mut source).await), ["192.0.2.2:1"]);
    assert_eq!(next(&mut source).await, Event::Recovered);
}

#[tokio::test]
async fn answers_that_do_not_fit_a_datagram_come_over_tcp() {
    let server = NameServer::start().unwrap();
    let zone = Zone { addresses: addresses(&[1, 2, 3]), fault: Some(Fault::Truncated), ..Zone::default() };
    server.set("store", zone);
    let mut source = MemberSource::new(settings(&["dns+store:1"], Some(&server)));
    assert_eq!(members(next(&mut source).await).len(), 3);
}

#[tokio::test]
async fn answers_to_other_questions_are_ignored() {
    let server = NameServer::start().unwrap();
    let zone = Zone { addresses: addresses(&[1]), fault: Some(Fault::Strangers), ..Zone::default() };
    server.set("store", zone);
    let mut source = MemberSource::new(settings(&["dns+store:1"], Some(&server)));
    assert_eq!(members(next(&mut source).await), ["192.0.2.1:1"]);
}

#[tokio::test]
async fn silence_about_one_kind_of_addresses_keeps_those_of_this_kind() {
    let server = NameServer::start().unwrap();
    let both = [addresses(&[1, 2]), vec!["fd00::1".parse().unwrap()]].concat();
    server.set_addresses("store", &both);
    let mut source = MemberSource::new(settings(&["dns+store:1"], Some(&server)));
    assert_eq!(members(next(&mut source).await).len(), 3);
    let zone = Zone { addresses: addresses(&[2]), fault: Some(Fault::SilenceAboutIpv6), ..Zone::default() };
    server.set("store", zone);
    assert_eq!(members(next(&mut source).await), ["192.0.2.2:1", "[fd00::1]:1"]);
}

#[tokio::test]
async fn too_many_members_change_nothing() {
    let server = NameServer::start().unwrap();
    server.set_addresses("store", &addresses(&[1, 2]));
    let mut source = MemberSource::new(settings(&["dns+store:1"], Some(&server)));
    assert_eq!(members(next(&mut source).await).len(), 2);
    let many: Vec<u8> = (0..200).collect();
    // So many that the answer does not fit the datagram that most servers send.
    server.set_addresses("store", &addresses(&many));
    assert!(failure(next(&mut source).await).contains("max_members"));
    server.set_addresses("store", &addresses(&[1]));
    assert_eq!(members(next(&mut source).await), ["192.0.2.1:1"]);
    assert_eq!(next(&mut source).await, Event::Recovered);
}

#[tokio::test]
async fn the_first_list_is_whole() {
    let server = NameServer::start().unwrap();
    server.set_addresses("one", &addresses(&[1]));
    let mut source = MemberSource::new(settings(&["dns+one:1", "dns+two:1", "fixed:1"], Some(&server)));
    assert!(failure(next(&mut source).await).contains("two has no addresses"));
    server.set_addresses("two", &addresses(&[2]));
    assert_eq!(members(next(&mut source).await), ["192.0.2.1:1", "192.0.2.2:1", "fixed:1"]);
    assert_eq!(next(&mut source).await, Event::Recovered);
}

#[tokio::test]
async fn a_name_server_that_is_gone_is_survived() {
    let server = NameServer::start().unwrap();
    server.set_addresses("store", &addresses(&[1]));
    let mut source = MemberSource::new(settings(&["dns+store:1"], Some(&server)));
    assert_eq!(members(next(&mut source).await), ["192.0.2.1:1"]);
    drop(server);
    assert!(failure(next(&mut source).await).contains("127.0.0.1"));
}

/// Replaces the file as a mounted `ConfigMap` does: by another one of its name.
fn replace(path: &Path, text: &str) {
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.persist(path).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_file_is_read_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("members");
    let mut source = MemberSource::new(Settings { file: Some(path.clone()), ..settings(&["z:1"], None) });
    assert!(failure(next(&mut source).await).contains("reading the file"));
    replace(&path, "b:1\na:1 # the first\n");
    assert_eq!(members(next(&mut source).await), ["a:1", "b:1", "z:1"]);
    assert_eq!(next(&mut source).await, Event::Recovered);
    for (text, problem) in [
        ("b:1\na\n", "the port is missing"),
        ("", "empty"),
        ("{\"members\": []}", "neither"),
        ("a:1\nb:1\nc:1\nd:1\n", "max_members"),
        (&"# long\n".repeat(40 << 10), "256 KiB"),
    ] {
        replace(&path, text);
        let reported = failure(next(&mut source).await);
        assert!(reported.contains(problem), "{reported}");
        replace(&path, "[\"a:1\", \"b:1\"]");
        assert_eq!(next(&mut source).await, Event::Recovered);
    }
    replace(&path, "- c:1\n");
    assert_eq!(members(next(&mut source).await), ["c:1", "z:1"]);
    // Of the same length, within the same instant of a coarse clock: the file is another.
    replace(&path, "- d:1\n");
    assert_eq!(members(next(&mut source).await), ["d:1", "z:1"]);
}
