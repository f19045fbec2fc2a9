//! How things look: colours of the terminal's own palette, and characters that it can show.

use ratatui_core::style::{Color, Modifier, Style};
use std::borrow::Cow;

/// What a terminal can show. Colours are those of its palette, so that light and dark terminals both are readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    has_colours: bool,
    is_ascii: bool,
}

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_BLOCKS: [char; 9] = [' ', '.', ',', '-', '=', '+', '*', '%', '#'];

impl Theme {
    /// The theme for this process's environment: `NO_COLOR` turns colours off, a locale without UTF-8 or a simple terminal
    /// gets ASCII.
    pub fn of_environment() -> Theme {
        Theme::of(|name| std::env::var(name).ok())
    }

    /// The same for any environment.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Theme {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        let is_utf8 = locale.contains("utf-8") || locale.contains("utf8");
        let term = set("TERM").unwrap_or_else(|| "dumb".to_owned());
        // The console of Linux and old terminals have few of the characters.
        let is_simple = term == "dumb" || term == "linux" || term.starts_with("vt");
        Theme { has_colours: set("NO_COLOR").is_none() && term != "dumb", is_ascii: !is_utf8 || is_simple }
    }

    /// Without colours, in ASCII.
    pub(crate) const PLAIN: Theme = Theme { has_colours: false, is_ascii: true };

    /// All that there is.
    #[cfg(test)]
    pub(crate) const FULL: Theme = Theme { has_colours: true, is_ascii: false };

    /// Text from anywhere, as this terminal can show it, with nothing in it that the terminal obeys.
    pub(crate) fn clean(self, text: &str) -> Cow<'_, str> {
        let text = tidegate_plain::line(text);
        if !self.is_ascii || text.is_ascii() {
            return text;
        }
        let ascii = |c: char| match c {
            '…' => '~',
            '→' => '>',
            '─' => '-',
            '·' => ',',
            'µ' => 'u',
            c if c.is_ascii() => c,
            _ => '?',
        };
        Cow::Owned(text.chars().map(ascii).collect())
    }

    /// The end of a text that was cut.
    pub(crate) const fn ellipsis(self) -> &'static str {
        if self.is_ascii { "~" } else { "…" }
    }

    /// A column of a graph, `eighths` high.
    pub(crate) fn column(self, eighths: usize) -> char {
        let columns = if self.is_ascii { ASCII_BLOCKS } else { BLOCKS };
        columns.get(eighths.min(8)).copied().unwrap_or(' ')
    }

    /// The full and the empty part of a gauge, and the mark of its peak.
    pub(crate) const fn gauge(self) -> (char, char, char) {
        if self.is_ascii { ('#', '.', '|') } else { ('█', '░', '│') }
    }

    const fn colour(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// What is as it should be.
    pub(crate) const fn good(self) -> Style {
        self.colour(Color::Green)
    }

    /// What somebody should look at: not by its colour alone.
    pub(crate) const fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// What may become bad.
    pub(crate) const fn warning(self) -> Style {
        self.colour(Color::Magenta).add_modifier(Modifier::BOLD)
    }

    /// Graphs.
    pub(crate) const fn graph(self) -> Style {
        self.colour(Color::Cyan)
    }

    /// Titles.
    pub(crate) const fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What the cursor keys have chosen.
    pub(crate) const fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What is less important.
    pub(crate) const fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theme(variables: &[(&str, &str)]) -> (bool, bool) {
        let theme = Theme::of(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        (theme.has_colours, theme.is_ascii)
    }

    #[test]
    fn the_environment_decides() {
        let term = ("TERM", "xterm-256color");
        for (variables, expected) in [
            (&[term, ("LANG", "en_US.UTF-8")][..], (true, false)),
            (&[term, ("LANG", "C.utf8"), ("LC_ALL", "")], (true, false)),
            (&[term, ("LANG", "en_US.UTF-8"), ("LC_ALL", "C")], (true, true)),
            (&[term], (true, true)),
            (&[term, ("LC_CTYPE", "de_DE.UTF-8"), ("NO_COLOR", "1")], (false, false)),
            (&[term, ("LC_CTYPE", "de_DE.UTF-8"), ("NO_COLOR", "")], (true, false)),
            (&[("TERM", "linux"), ("LANG", "C.UTF-8")], (true, true)),
            (&[("TERM", "dumb"), ("LANG", "C.UTF-8")], (false, true)),
            (&[("LANG", "C.UTF-8")], (false, true)),
        ] {
            assert_eq!(theme(variables), expected, "{variables:?}");
        }
    }

    #[test]
    fn hostile_text_is_escaped_and_ascii_is_ascii() {
        assert_eq!(Theme::FULL.clean("a\u{1b}[2Jé"), "a\\u{1b}[2Jé");
        assert_eq!(Theme::PLAIN.clean("é\u{9b}→ 漢"), "?\\u{9b}> ?");
    }
}
