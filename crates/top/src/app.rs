//! What is shown, and what keys change of it.

use crate::frame::Frame;
use crate::model::Model;
use crate::theme::Theme;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::Instant;

/// Everything that a screen is drawn from.
#[derive(Debug)]
pub(crate) struct App {
    /// Where the gateway is.
    pub(crate) address: String,
    pub(crate) theme: Theme,
    live: Model,
    /// As it was when it was paused.
    frozen: Option<Box<Model>>,
    /// When the last answer came.
    answered_at: Option<Instant>,
    /// Why there are no answers now.
    pub(crate) lost: Option<Lost>,
    pub(crate) screen: Screen,
    /// The chosen line of each screen.
    chosen: [usize; 3],
    pub(crate) sort: Sort,
    pub(crate) is_helping: bool,
}

/// Answers stopped coming.
#[derive(Debug)]
pub(crate) struct Lost {
    /// When the last one came.
    pub(crate) since: Instant,
    pub(crate) reason: String,
}

/// The screens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    Overview,
    Flow,
    Tenants,
}

/// The order of tenants: the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Bytes,
    Items,
    Refused,
    Held,
}

/// What a key asks of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// Draw again.
    Draw,
    /// Nothing has changed.
    Nothing,
    /// The end.
    Quit,
    /// Give the terminal back for a while (Ctrl-Z).
    Suspend,
}

/// Lines that Page Up and Page Down move by.
const PAGE: isize = 10;

impl Screen {
    pub(crate) const ALL: [Screen; 3] = [Screen::Overview, Screen::Flow, Screen::Tenants];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Screen::Overview => "Overview",
            Screen::Flow => "Flow",
            Screen::Tenants => "Tenants",
        }
    }

    fn turned(self, by: usize) -> Screen {
        let all = Screen::ALL;
        all.get((self as usize + by) % all.len()).copied().unwrap_or(self)
    }
}

impl Sort {
    const fn next(self) -> Sort {
        match self {
            Sort::Bytes => Sort::Items,
            Sort::Items => Sort::Refused,
            Sort::Refused => Sort::Held,
            Sort::Held => Sort::Bytes,
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Sort::Bytes => "bytes",
            Sort::Items => "items",
            Sort::Refused => "refused",
            Sort::Held => "held",
        }
    }
}

impl App {
    pub(crate) fn new(address: String, theme: Theme) -> App {
        App {
            address,
            theme,
            live: Model::default(),
            frozen: None,
            answered_at: None,
            lost: None,
            screen: Screen::Overview,
            chosen: [0; 3],
            sort: Sort::Bytes,
            is_helping: false,
        }
    }

    /// What is shown: as it is, or as it was when it was paused.
    pub(crate) fn model(&self) -> &Model {
        self.frozen.as_deref().unwrap_or(&self.live)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.frozen.is_some()
    }

    /// The chosen line of the screen, of so many.
    pub(crate) fn chosen(&self, lines: usize) -> usize {
        let chosen = self.chosen.get(self.screen as usize).copied().unwrap_or(0);
        chosen.min(lines.saturating_sub(1))
    }

    /// Takes in an answer that came at `now`.
    pub(crate) fn answered(&mut self, frame: Frame, now: Instant) {
        self.live.take(frame);
        self.answered_at = Some(now);
        self.lost = None;
    }

    /// There was no answer at `now`.
    pub(crate) fn missed(&mut self, reason: String, now: Instant) {
        match &mut self.lost {
            Some(lost) => lost.reason = reason,
            None => self.lost = Some(Lost { since: self.answered_at.unwrap_or(now), reason }),
        }
    }

    /// A key was pressed.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Request {
        if key.kind == KeyEventKind::Release {
            return Request::Nothing;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => Request::Quit,
                KeyCode::Char('z') => Request::Suspend,
                KeyCode::Char('l') => Request::Draw,
                _ => Request::Nothing,
            };
        }
        if self.is_helping {
            if key.code == KeyCode::Char('q') {
                return Request::Quit;
            }
            self.is_helping = false;
            return Request::Draw;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Request::Quit,
            KeyCode::Char('1') => self.screen = Screen::Overview,
            KeyCode::Char('2') => self.screen = Screen::Flow,
            KeyCode::Char('3') => self.screen = Screen::Tenants,
            KeyCode::Tab | KeyCode::Right => self.screen = self.screen.turned(1),
            KeyCode::BackTab | KeyCode::Left => self.screen = self.screen.turned(Screen::ALL.len() - 1),
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::PageDown => self.choose(PAGE),
            KeyCode::PageUp => self.choose(-PAGE),
            KeyCode::Home => self.choose(isize::MIN),
            KeyCode::End => self.choose(isize::MAX),
            KeyCode::Char('s') if self.screen == Screen::Tenants => self.sort = self.sort.next(),
            KeyCode::Char('p') => {
                self.frozen = match self.frozen.take() {
                    Some(_) => None,
                    None => Some(Box::new(self.live.clone())),
                };
            }
            KeyCode::Char('?' | 'h') => self.is_helping = true,
            _ => return Request::Nothing,
        }
        Request::Draw
    }

    fn choose(&mut self, by: isize) {
        let lines = self.lines();
        let chosen = self.chosen(lines).saturating_add_signed(by).min(lines.saturating_sub(1));
        if let Some(place) = self.chosen.get_mut(self.screen as usize) {
            *place = chosen;
        }
    }

    /// How many lines of the screen can be chosen.
    fn lines(&self) -> usize {
        let frame = &self.model().frame;
        match self.screen {
            Screen::Overview => frame.sinks.len(),
            Screen::Flow => frame.books.sources.len() + 1 + frame.sinks.len(),
            Screen::Tenants => frame.tenants.as_ref().map_or(0, |tenants| tenants.shown.len()),
        }
    }
}

#[cfg(test)]
mod tests;
