//! The terminal of the program: raw mode and size.

use std::io::IsTerminal as _;

use rustix::termios::{self, OptionalActions, Termios};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, Kind, Result};

/// A terminal on both stdin and stdout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal(());

/// A terminal in raw mode. Dropping this restores its settings.
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

    /// Enables raw mode.
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
        // Keep pending input.
        termios::tcsetattr(std::io::stdin(), OptionalActions::Drain, &raw).map_err(broken)?;
        Ok(Raw { before })
    }
}

impl Terminal {
    /// Makes keys available as they are typed, and does not show them. Ctrl-C and Ctrl-Z keep
    /// their meaning. `None` if another process has the terminal.
    pub(crate) fn keys() -> Option<Raw> {
        let stdin = std::io::stdin();
        let group = termios::tcgetpgrp(&stdin).ok()?;
        if !stdin.is_terminal() || group != rustix::process::getpgrp() {
            return None;
        }
        let before = termios::tcgetattr(&stdin).ok()?;
        set_keys(&before).then_some(Raw { before })
    }
}

fn set_keys(before: &Termios) -> bool {
    let mut keys = before.clone();
    keys.local_modes
        .remove(termios::LocalModes::ICANON | termios::LocalModes::ECHO);
    termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &keys).is_ok()
}

impl Raw {
    /// Applies the settings of [`Terminal::keys`] again: a shell has changed them while this
    /// program was stopped.
    pub(crate) fn keys_again(&self) {
        set_keys(&self.before);
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        match termios::tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            // The terminal does not report its size.
            _ => (80, 24),
        }
    }

    /// A signal stream that fires when the size changes.
    pub(crate) fn size_changes(&self) -> Result<Signal> {
        signal(SignalKind::window_change()).map_err(|error| {
            Error::new(
                Kind::Failed,
                format!("cannot watch the size of the terminal: {error}"),
            )
        })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(std::io::stdin(), OptionalActions::Drain, &self.before);
    }
}
