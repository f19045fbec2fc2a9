//! Takes the terminal, and gives it back as it was, whatever happens.

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use std::io::{self, Stdout};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Whether the terminal is taken: it is given back once.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is taken. Dropped, it is as it was before.
pub(crate) struct TakenTerminal(pub(crate) Terminal<CrosstermBackend<Stdout>>);

impl TakenTerminal {
    /// Takes the terminal of standard output. From now on a panic gives it back before it says anything.
    ///
    /// # Errors
    /// Those of the terminal.
    pub(crate) fn new() -> io::Result<TakenTerminal> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        // Of what was taken before an error, give_back gives back all.
        let terminal = take().and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match terminal {
            Ok(terminal) => Ok(TakenTerminal(terminal)),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Takes the terminal again after [`give_back`], or after others have changed it.
    ///
    /// # Errors
    /// Those of the terminal.
    pub(crate) fn retake(&mut self) -> io::Result<()> {
        take()?;
        self.0.clear()
    }
}

impl Drop for TakenTerminal {
    fn drop(&mut self) {
        give_back();
    }
}

fn take() -> io::Result<()> {
    IS_TAKEN.store(true, SeqCst);
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide)
}

/// Gives the terminal back, if it is taken.
pub(crate) fn give_back() {
    if IS_TAKEN.swap(false, SeqCst) {
        // It may be gone: then there is nothing to give back.
        let _gone = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _gone = disable_raw_mode();
    }
}

/// Whether the terminal cannot move its cursor, by its own name.
pub fn is_dumb() -> bool {
    std::env::var("TERM").is_ok_and(|term| term == "dumb")
}
