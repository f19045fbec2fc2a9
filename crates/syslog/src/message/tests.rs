//! Promises: the examples of the RFCs and of known senders are read; whatever comes, the text is not lost.

use super::*;
use proptest::prelude::*;

/// 2026-11-23T09:00:00Z
const NOW: u64 = 1_795_424_400_000_000_000;
const SECOND: u64 = 1_000_000_000;

fn settings(zone: &str, is_local: bool) -> ParseSettings {
    ParseSettings { format: Format::Auto, zone: Zone::named(zone).unwrap(), is_local }
}

fn auto(text: &str) -> Message<'_> {
    parse(text.as_bytes(), &settings("UTC", false), NOW)
}

/// Host, program, process, kind and text.
fn pieces<'a>(message: &Message<'a>) -> [&'a str; 5] {
    let Message { hostname, app_name, proc_id, msg_id, text, .. } = *message;
    [hostname, app_name, proc_id, msg_id, text].map(|piece| std::str::from_utf8(piece).unwrap())
}

#[test]
fn reads_rfc_5424() {
    let message = auto(
        "<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.",
    );
    assert_eq!((message.facility, message.severity, message.version), (Some(20), Some(5), Some(1)));
    assert_eq!(message.time_ns, Some(1_061_727_255_000_003_000));
    assert_eq!(pieces(&message), ["192.0.2.1", "myproc", "8710", "", "%% It's time to make the do-nuts."]);

    let message =
        auto("<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \u{feff}'su root' failed");
    assert_eq!(pieces(&message), ["mymachine.example.com", "su", "", "ID47", "'su root' failed"]);

    let message = auto("<13>1 - - - - - -");
    assert_eq!((pieces(&message), message.time_ns), (["", "", "", "", ""], None));
}

#[test]
fn reads_structured_data() {
    let data = r#"[a@1 iut="3" text="a \"b\" \\ \] \n"][bare][c x=""]"#;
    let text = format!("<165>1 2003-10-11T22:14:15.003Z host app - ID47 {data} text");
    let message = auto(&text);
    assert_eq!(message.structured_data, data.as_bytes());
    assert_eq!(message.text, b"text");
    let mut found = Vec::new();
    for parameter in crate::rfc5424::parameters(message.structured_data) {
        let mut value = Vec::new();
        crate::rfc5424::unescaped(parameter.value, |piece| value.extend_from_slice(piece));
        let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        found.push((string(parameter.id), string(parameter.name), string(&value)));
    }
    let expected =
        [("a@1", "iut", "3"), ("a@1", "text", r#"a "b" \ ] \n"#), ("bare", "", ""), ("c", "x", "")];
    let expected = expected.map(|(id, name, value)| (id.to_owned(), name.to_owned(), value.to_owned()));
    assert_eq!(found, expected);

    let broken = auto(r#"<165>1 2003-10-11T22:14:15.003Z host app - ID47 [a@1 iut="3 text"#);
    assert_eq!((broken.structured_data, broken.text), (&b""[..], &br#"[a@1 iut="3 text"#[..]));
}

#[test]
fn reads_rfc_3164() {
    let message = auto("<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8");
    assert_eq!((message.facility, message.severity, message.version), (Some(4), Some(2), None));
    assert_eq!(message.time_ns, Some(1_791_756_855 * SECOND), "2026");
    assert_eq!(pieces(&message), ["mymachine", "su", "", "", "'su root' failed for lonvick on /dev/pts/8"]);
    let message = auto("<13>Nov  3 09:00:00 10.1.2.3 sshd[4711]: Accepted publickey");
    assert_eq!(pieces(&message), ["10.1.2.3", "sshd", "4711", "", "Accepted publickey"]);
    // rsyslog with times of RFC 3339.
    let message = auto("<13>2026-11-23T10:00:00.5+01:00 host app[1]: text");
    assert_eq!(message.time_ns, Some(NOW + SECOND / 2));
    assert_eq!(pieces(&message), ["host", "app", "1", "", "text"]);
    let message = auto("<13>Nov 23 09:00:00 host no tag: here");
    assert_eq!(pieces(&message), ["host", "", "", "", "no tag: here"]);
}

/// Programs of the same host leave out its name.
#[test]
fn local_programs_name_no_host() {
    let local = settings("UTC", true);
    let message = parse(b"<13>Nov 23 09:00:00 root: hello world", &local, NOW);
    assert_eq!(pieces(&message), ["", "root", "", "", "hello world"]);
    let message = parse(b"<30>Nov 23 09:00:00 systemd[1]: Started.", &local, NOW);
    assert_eq!(pieces(&message), ["", "systemd", "1", "", "Started."]);
    let message = parse(b"<13>Nov 23 09:00:00 host root: hello", &local, NOW);
    assert_eq!(pieces(&message), ["host", "root", "", "", "hello"]);
}

#[test]
fn reads_cisco() {
    let message =
        auto("<189>80191: 10.0.2.1: *Aug  6 18:17:40.393: %SYS-5-CONFIG_I: Configured from console");
    assert_eq!(
        pieces(&message),
        ["10.0.2.1", "", "", "SYS-5-CONFIG_I", "%SYS-5-CONFIG_I: Configured from console"]
    );
    assert_eq!(message.time_ns, Some(1_786_040_260_393_000_000));
    let message = auto("<166>Nov 23 2025 09:00:00: %ASA-6-302013: Built outbound TCP");
    assert_eq!(message.time_ns, Some(NOW - 365 * 86_400 * SECOND));
    assert_eq!(message.msg_id, b"ASA-6-302013");
    let message = auto("<187>24: Nov 23 09:00:00 UTC: %LINK-3-UPDOWN: Interface up");
    assert_eq!((message.time_ns, message.msg_id), (Some(NOW), &b"LINK-3-UPDOWN"[..]));
}

/// The year is that in which the time is nearest; the zone is that of the settings.
#[test]
fn years_and_zones_are_chosen() {
    let at = |text: &str, zone: &str, now| parse(text.as_bytes(), &settings(zone, false), now).time_ns;
    // 2026-12-31T23:59:50Z and 2027-01-01T00:00:10Z
    let (before, after) = (1_798_761_590 * SECOND, 1_798_761_610 * SECOND);
    assert_eq!(at("<13>Jan  1 00:00:10 h a: x", "UTC", before), Some(after));
    assert_eq!(at("<13>Dec 31 23:59:50 h a: x", "UTC", after), Some(before));
    assert_eq!(at("<13>Nov 23 10:00:00 h a: x", "Europe/Berlin", NOW), Some(NOW));
    assert_eq!(at("<13>Nov 23 04:00:00 h a: x", "-05:00", NOW), Some(NOW));
    assert_eq!(at("<13>Feb 29 00:00:00 h a: x", "UTC", NOW), None, "neither 2025 to 2027 has one");
    assert!(Zone::named("Nowhere/Else").is_none() && Zone::named("+99:00").is_none());
}

/// A message without a header is text.
#[test]
fn anything_is_text() {
    for (text, severity) in
        [("hello", None), ("<13>hello", Some(5)), ("<13>99 bottles", Some(5)), ("<1234>x", None)]
    {
        let message = auto(text);
        assert_eq!(message.severity, severity, "{text}");
        assert!(
            text.ends_with(std::str::from_utf8(message.text).unwrap()) && !message.text.is_empty(),
            "{text}"
        );
    }
    let message = auto("<13>prog[7]: no time");
    assert_eq!(pieces(&message), ["", "prog", "7", "", "no time"]);
}

proptest! {
    #[test]
    fn noise_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), local in any::<bool>()) {
        let _ = parse(&bytes, &settings("UTC", local), NOW);
    }

    /// Nearly valid messages are survived, and end with their text.
    #[test]
    fn the_text_stays(
        front in "(<[0-9]{1,3}>)?([0-9]{1,2} |[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} )?([a-z.]{1,9} ){0,3}([a-z]{1,5}(\\[[0-9]{1,3}\\])?: ?)?",
        text in "[ -~]{0,40}END",
    ) {
        let whole = format!("{front}{text}");
        let message = parse(whole.as_bytes(), &settings("UTC", false), NOW);
        prop_assert!(message.text.ends_with(b"END"), "{message:?}");
        for parameter in crate::rfc5424::parameters(message.structured_data) {
            prop_assert!(!parameter.id.is_empty());
        }
    }
}
