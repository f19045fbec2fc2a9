//! Promise: each screen shows what it should at every size, and nothing from outside can break it.

use super::*;
use crate::app::Sort;
use crate::frame::{Frame, LastError, Sink, Tenant, Tenants};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use std::time::Duration;

const HEALTHY: &str = include_str!("../../../console/src/tests/golden/healthy.json");
const TROUBLED: &str = include_str!("../../../console/src/tests/golden/troubled.json");
/// Clears the screen, in seven and in eight bits; turns the text around; rings; goes back.
const NASTY: &str = "a\u{1b}[2J\u{9b}2J\u{202e}b\u{2066}\u{7}\u{8}\r\n\tz漢👩\u{200d}💻e\u{301}";

fn parsed(text: &str) -> Frame {
    Frame::parse(text).unwrap()
}

/// An app that has had this answer twice, a second apart, with these items and refusals more.
fn app(frame: &Frame, theme: Theme) -> App {
    let mut app = App::new("127.0.0.1:4319".to_owned(), theme);
    app.answered(frame.clone(), Instant::now());
    let mut later = frame.clone();
    later.uptime_seconds += 1.0;
    for source in &mut later.books.sources {
        *source.items.entry("metrics".to_owned()).or_default() += 12_345;
        *source.refused.entry("memory".to_owned()).or_default() += 7;
        source.bytes = source.bytes.saturating_add(3_250_586);
    }
    later.sinks.iter_mut().for_each(|sink| sink.delivered = sink.delivered.saturating_add(6_000));
    app.answered(later, Instant::now());
    app
}

fn press(app: &mut App, codes: &[KeyCode]) {
    for code in codes {
        app.key(KeyEvent::new(*code, KeyModifiers::NONE));
    }
}

/// The lines of the screen.
fn shown(app: &App, width: u16, height: u16, now: Instant) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(app, now, frame.area(), frame.buffer_mut())).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned()).collect()
}

/// The whole of a screen, as it stood when somebody last looked at it and found it good. After a change that is meant:
/// `TIDEGATE_BLESS=1 cargo test -p tidegate-top`, and look at the difference.
#[track_caller]
fn assert_golden(name: &str, lines: &[String]) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/screens/golden").join(name);
    let shown = lines.join("\n") + "\n";
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(&path, &shown).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == golden, "{name} has changed; it is now:\n{shown}");
}

/// A gateway with three tenants.
fn with_tenants() -> Frame {
    let tenant = |name: &str, (bytes, items, refused, held): (u64, u64, u64, u64)| Tenant {
        name: name.to_owned(),
        received: 40,
        refused,
        mostly: (refused > 0).then(|| "tenant_rate".to_owned()),
        open: 2,
        items,
        bytes,
        held,
    };
    let shown = vec![
        tenant("shop", (9_000_000, 100, 0, 4_096)),
        tenant("bank", (5_000_000, 900, 7, 0)),
        tenant("a-tenant-with-quite-a-long-name-indeed", (7_000_000, 500, 3, 65_536)),
    ];
    Frame { tenants: Some(Tenants { known: 3, most: 1_000, shown }), ..parsed(HEALTHY) }
}

#[test]
fn screens_are_as_they_were() {
    let (healthy, troubled, tenants) = (parsed(HEALTHY), parsed(TROUBLED), with_tenants());
    let flow_of_sink = [KeyCode::Char('2'), KeyCode::End];
    for (name, frame, keys, size, theme) in [
        ("overview.txt", &healthy, &[][..], (80, 24), Theme::FULL),
        ("overview-troubled.txt", &troubled, &[], (120, 30), Theme::FULL),
        ("overview-small.txt", &troubled, &[], (60, 15), Theme::PLAIN),
        ("flow.txt", &troubled, &flow_of_sink, (80, 24), Theme::FULL),
        ("flow-source.txt", &healthy, &[KeyCode::Char('2')], (120, 30), Theme::FULL),
        ("flow-small.txt", &troubled, &flow_of_sink, (60, 15), Theme::PLAIN),
        ("tenants.txt", &tenants, &[KeyCode::Char('3')], (80, 24), Theme::FULL),
        ("tenants-small.txt", &tenants, &[KeyCode::Char('3'), KeyCode::Char('s')], (60, 15), Theme::PLAIN),
        ("help-small.txt", &healthy, &[KeyCode::Char('?')], (60, 15), Theme::PLAIN),
    ] {
        let mut app = app(frame, theme);
        press(&mut app, keys);
        assert_golden(name, &shown(&app, size.0, size.1, Instant::now()));
    }
}

#[test]
fn tenants_are_in_the_chosen_order() {
    let mut app = app(&with_tenants(), Theme::FULL);
    press(&mut app, &[KeyCode::Char('3')]);
    for (sort, first) in
        [(Sort::Bytes, "shop"), (Sort::Items, "bank"), (Sort::Refused, "bank"), (Sort::Held, "a-tenant")]
    {
        assert_eq!(app.sort, sort);
        let lines = shown(&app, 80, 24, Instant::now());
        assert!(lines[5].contains(sort.word()) && lines[7].starts_with(first), "{sort:?}: {lines:#?}");
        press(&mut app, &[KeyCode::Char('s')]);
    }
}

/// While there are no answers, the last numbers stay, and the reason and the time are beside them.
#[test]
fn missing_answers_are_said() {
    let mut app = app(&parsed(HEALTHY), Theme::FULL);
    let start = Instant::now();
    app.missed(format!("connecting: {NASTY}"), start);
    let lines = shown(&app, 80, 24, start + Duration::from_secs(75));
    assert!(lines[2].starts_with("NO ANSWER for 1 min 15 s: connecting:"), "{lines:#?}");
    assert!(lines[3].starts_with("a\\u{1b}[2J"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("in        12.3k items/s")), "{lines:#?}");
    app.answered(parsed(HEALTHY), Instant::now());
    assert!(!shown(&app, 80, 24, start).join("").contains("NO ANSWER"));
}

#[test]
fn says_that_it_is_paused() {
    let mut app = app(&parsed(HEALTHY), Theme::FULL);
    press(&mut app, &[KeyCode::Char('p')]);
    let lines = shown(&app, 60, 15, Instant::now());
    assert!(lines[1].ends_with("PAUSED") && lines[14].contains("p go on"), "{lines:#?}");
}

/// Sinks, tenants and errors of somebody who would like to have the terminal.
fn hostile() -> Frame {
    let mut frame = with_tenants();
    frame.state = NASTY.to_owned();
    frame.reason = NASTY.repeat(50);
    frame.version = NASTY.to_owned();
    frame.memory.payload.shares[0].name = NASTY.to_owned();
    frame.journal.trouble = Some(NASTY.to_owned());
    frame.books.sources[0].name = NASTY.to_owned();
    frame.books.sources[0].refused.insert(NASTY.to_owned(), 1);
    let error = LastError { message: NASTY.repeat(20), at: NASTY.to_owned() };
    frame.sinks[0] = Sink {
        name: NASTY.to_owned(),
        kind: NASTY.to_owned(),
        target: NASTY.to_owned(),
        last_error: Some(error),
        retry_at: Some(NASTY.to_owned()),
        delivered: u64::MAX,
        in_flight: u64::MAX,
        concurrency_limit: Some(f64::MAX),
        ..frame.sinks[0].clone()
    };
    frame.tenants.as_mut().unwrap().shown[0].name = NASTY.to_owned();
    frame
}

/// Every screen, with everything that keys can choose.
fn every_screen(app: &mut App, mut see: impl FnMut(&mut App)) {
    for screen in ['1', '2', '3'] {
        press(app, &[KeyCode::Char(screen), KeyCode::Home]);
        for _ in 0..8 {
            see(app);
            press(app, &[KeyCode::Down]);
        }
        press(app, &[KeyCode::End]);
        see(app);
    }
    press(app, &[KeyCode::Char('?')]);
    see(app);
    press(app, &[KeyCode::Esc]);
}

#[test]
fn nothing_from_outside_reaches_the_terminal() {
    let is_bad = |c: char| tidegate_plain::is_control(c);
    for theme in [Theme::FULL, Theme::PLAIN] {
        let mut app = app(&hostile(), theme);
        app.missed(NASTY.to_owned(), Instant::now());
        let mut saw_name = false;
        every_screen(&mut app, |app| {
            for (width, height) in [(80, 24), (60, 15), (200, 60)] {
                let text = shown(app, width, height, Instant::now()).concat();
                assert!(!text.contains(is_bad), "{text:?}");
                assert!(theme == Theme::FULL || text.is_ascii(), "{text:?}");
                saw_name |= text.contains("a\\u{1b}[2J");
            }
        });
        assert!(saw_name);
    }
}

/// What is chosen is on the screen, among 64 sinks too.
#[test]
fn many_sinks_scroll() {
    let mut frame = parsed(HEALTHY);
    let sink = |number| Sink { name: format!("sink-{number:02}"), ..frame.sinks[1].clone() };
    frame.sinks = (0..64).map(sink).collect();
    let mut app = app(&frame, Theme::FULL);
    for (screen, steps) in [('1', 63), ('2', 65)] {
        press(&mut app, &[KeyCode::Char(screen)]);
        for (key, name) in [(KeyCode::Home, None), (KeyCode::End, Some("sink-63"))] {
            press(&mut app, &[key]);
            let text = shown(&app, 60, 15, Instant::now()).join("\n");
            assert!(name.is_none_or(|name| text.contains(name)), "{text}");
        }
        press(&mut app, &[KeyCode::Home]);
        (0..steps).for_each(|_| press(&mut app, &[KeyCode::Char('j')]));
        let text = shown(&app, 60, 15, Instant::now()).join("\n");
        assert!(text.contains("sink-63") && !text.contains("sink-01 "), "{text}");
    }
}

#[test]
fn no_sinks_and_no_answer_yet() {
    let mut frame = parsed(HEALTHY);
    frame.sinks.clear();
    frame.books.sources.clear();
    frame.memory = crate::frame::Memory::default();
    let mut app = app(&frame, Theme::FULL);
    let text = shown(&app, 80, 24, Instant::now()).join("\n");
    assert!(text.contains("no sink is configured"), "{text}");
    every_screen(&mut app, |app| drop(shown(app, 60, 15, Instant::now())));
    let mut empty = App::new(String::new(), Theme::FULL);
    every_screen(&mut empty, |app| drop(shown(app, 60, 15, Instant::now())));
}

#[test]
fn says_when_a_terminal_is_too_small() {
    let app = app(&parsed(HEALTHY), Theme::FULL);
    for size in [(59, 15), (60, 14), (1, 1), (0, 0), (9, 40), (300, 1)] {
        let text = shown(&app, size.0, size.1, Instant::now()).join("\n");
        assert!(size.0 < 10 || text.starts_with("too small"), "{size:?}: {text}");
    }
    let text = shown(&app, 60, 15, Instant::now()).join("\n");
    assert!(!text.contains("too small"));
}

/// What has to be looked at is told apart without colours, too.
#[test]
fn states_have_words_and_weight_without_colours() {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let app = app(&parsed(TROUBLED), Theme::PLAIN);
    terminal.draw(|frame| draw(&app, Instant::now(), frame.area(), frame.buffer_mut())).unwrap();
    let buffer = terminal.backend().buffer();
    assert!(buffer.content().iter().all(|cell| cell.fg == ratatui_core::style::Color::Reset));
    assert!(buffer[(0, 2)].modifier.contains(ratatui_core::style::Modifier::BOLD));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No size, no name and no number ends the program.
    #[test]
    fn no_size_and_no_text_panics(
        (width, height) in (0_u16..200, 0_u16..60),
        name in any::<String>(),
        numbers in prop::array::uniform4(any::<u64>()),
    ) {
        let mut frame = hostile();
        let [a, b, c, d] = numbers;
        frame.reason.clone_from(&name);
        frame.sinks[1].name.clone_from(&name);
        frame.sinks[1].lag.age_seconds = Some(a as f64);
        (frame.journal.bytes, frame.journal.quota) = (a, b);
        (frame.memory.limit, frame.books.difference) = (c, d);
        frame.memory.resident.as_mut().unwrap().now = d;
        frame.memory.resident.as_mut().unwrap().peak = a;
        frame.books.sources[0].bytes = b / 2;
        let mut app = app(&frame, Theme::FULL);
        every_screen(&mut app, |app| drop(shown(app, width, height, Instant::now())));
    }
}
