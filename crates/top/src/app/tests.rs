//! Promise: keys do what the footer says, whatever is shown.

use super::*;
use crate::frame::{Sink, Tenant, Tenants};

fn app(sinks: usize) -> App {
    let mut app = App::new("127.0.0.1:4319".to_owned(), Theme::FULL);
    let frame = Frame { sinks: vec![Sink::default(); sinks], ..Frame::default() };
    let tenants = Some(Tenants { shown: vec![Tenant::default(); 5], ..Tenants::default() });
    app.answered(Frame { tenants, ..frame }, Instant::now());
    app
}

fn press(app: &mut App, code: KeyCode) -> Request {
    app.key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn numbers_and_tab_change_screens() {
    let mut app = app(2);
    for (code, screen) in [
        (KeyCode::Char('2'), Screen::Flow),
        (KeyCode::Tab, Screen::Tenants),
        (KeyCode::Tab, Screen::Overview),
        (KeyCode::BackTab, Screen::Tenants),
        (KeyCode::Char('1'), Screen::Overview),
        (KeyCode::Char('3'), Screen::Tenants),
    ] {
        assert_eq!((press(&mut app, code), app.screen), (Request::Draw, screen), "{code:?}");
    }
}

/// The choice stays within the lines that there are, also after they became fewer.
#[test]
fn the_choice_stays_within_the_lines() {
    let mut app = app(64);
    press(&mut app, KeyCode::Up);
    assert_eq!(app.chosen(64), 0);
    (0..100).for_each(|_| assert_eq!(press(&mut app, KeyCode::Char('j')), Request::Draw));
    assert_eq!(app.chosen(64), 63);
    app.answered(Frame { sinks: vec![Sink::default(); 3], ..Frame::default() }, Instant::now());
    assert_eq!(app.chosen(3), 2);
    press(&mut app, KeyCode::Char('k'));
    assert_eq!(app.chosen(3), 1);
    for (code, line) in [(KeyCode::End, 2), (KeyCode::Home, 0), (KeyCode::PageDown, 2), (KeyCode::PageUp, 0)]
    {
        press(&mut app, code);
        assert_eq!(app.chosen(3), line, "{code:?}");
    }
    app.answered(Frame::default(), Instant::now());
    press(&mut app, KeyCode::Down);
    assert_eq!(app.chosen(0), 0);
}

#[test]
fn quits_by_each_of_its_keys() {
    for (code, modifiers) in [
        (KeyCode::Char('q'), KeyModifiers::NONE),
        (KeyCode::Esc, KeyModifiers::NONE),
        (KeyCode::Char('c'), KeyModifiers::CONTROL),
    ] {
        assert_eq!(app(1).key(KeyEvent::new(code, modifiers)), Request::Quit);
    }
    assert_eq!(app(1).key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE)), Request::Nothing);
    assert_eq!(app(1).key(KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL)), Request::Suspend);
}

/// Escape leaves the help first.
#[test]
fn any_key_ends_the_help() {
    let mut app = app(1);
    press(&mut app, KeyCode::Char('?'));
    assert!(app.is_helping);
    assert_eq!((press(&mut app, KeyCode::Esc), app.is_helping), (Request::Draw, false));
    assert_eq!(press(&mut app, KeyCode::Esc), Request::Quit);
}

/// Paused, the numbers stay; afterwards they are the present ones, without a gap in their history.
#[test]
fn a_pause_keeps_the_numbers_and_their_history() {
    let mut app = app(1);
    let frame = |uptime, items| {
        let mut frame = Frame { uptime_seconds: uptime, ..Frame::default() };
        frame.journal.items_total = items;
        frame
    };
    app.answered(frame(1.0, 10), Instant::now());
    press(&mut app, KeyCode::Char('p'));
    app.answered(frame(2.0, 20), Instant::now());
    assert!(app.is_paused());
    assert_eq!(app.model().frame.journal.items_total, 10);
    press(&mut app, KeyCode::Char('p'));
    assert!(!app.is_paused());
    assert_eq!(app.model().frame.journal.items_total, 20);
    assert_eq!(app.model().received.newest(300).count(), 3);
}

#[test]
fn tenants_are_sorted_by_each_column_in_turn() {
    let mut app = app(1);
    assert_eq!(press(&mut app, KeyCode::Char('s')), Request::Nothing, "only tenants are sorted");
    press(&mut app, KeyCode::Char('3'));
    let words: Vec<_> = (0..5)
        .map(|_| {
            press(&mut app, KeyCode::Char('s'));
            app.sort.word()
        })
        .collect();
    assert_eq!(words, ["items", "refused", "held", "bytes", "items"]);
}

#[test]
fn remembers_since_when_answers_are_missing() {
    let mut app = app(1);
    let start = Instant::now();
    app.answered(Frame::default(), start);
    app.missed("connection refused".to_owned(), start + std::time::Duration::from_secs(3));
    app.missed("timed out".to_owned(), start + std::time::Duration::from_secs(9));
    let lost = app.lost.as_ref().unwrap();
    assert_eq!((lost.since, lost.reason.as_str()), (start, "timed out"));
    app.answered(Frame::default(), Instant::now());
    assert!(app.lost.is_none());
}
