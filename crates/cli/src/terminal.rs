//! The terminal that the program runs in: raw input, and its size.

use std::io::IsTerminal as _;

use rustix::termios::{self, OptionalActions, Termios};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, Kind, Result};

/// A terminal at both ends: input and output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal(());

/// The terminal while what is typed comes as it is; dropping this makes it as it
/// was before.
#[derive(Debug)]
pub(crate) struct Raw {
    before: Termios,
}

impl Terminal {
    /// The terminal, if there is one.
    pub(crate) fn find() -> Option<Self> {
        let both = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        both.then_some(Self(()))
    }

    /// Makes what is typed come as it is.
    pub(crate) fn raw(self) -> Result<Raw> {
        let broken = |error: rustix::io::Errno| {
            Error::new(
                Kind::Failed,
                format!("the terminal cannot be used: {error}"),
            )
        };
        let before = termios::tcgetattr(std::io::stdin()).map_err(broken)?;
        let mut raw = before.clone();
        raw.make_raw();
        // What was typed before is not thrown away.
        termios::tcsetattr(std::io::stdin(), OptionalActions::Drain, &raw).map_err(broken)?;
        Ok(Raw { before })
    }
}

impl Raw {
    /// Columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        match termios::tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            // A terminal that does not know its size.
            _ => (80, 24),
        }
    }

    /// Told each time that the size changes.
    pub(crate) fn size_changes(&self) -> Result<Signal> {
        signal(SignalKind::window_change())
            .map_err(|error| Error::new(Kind::Failed, format!("no word of the terminal: {error}")))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(std::io::stdin(), OptionalActions::Drain, &self.before);
    }
}
