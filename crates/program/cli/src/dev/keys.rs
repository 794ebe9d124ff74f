//! The keys of `longshore dev`.

use std::io::Read as _;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use crate::terminal::{Raw, Terminal};

/// The action of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Restart the commands.
    Restart,
    /// Leave, and keep the pods.
    Detach,
    /// Leave, and end the run.
    Quit,
    /// Show the keys.
    Help,
}

/// The keys in one line.
pub(super) const KEYS: &str = "r restarts, q ends the run, d leaves and keeps it";

/// The terminal, whose keys are read. Dropping this restores its settings.
pub(super) struct Keys {
    raw: Raw,
    typed: mpsc::Receiver<u8>,
}

impl Keys {
    /// Starts reading keys. `None` without a terminal.
    pub(super) fn start() -> Option<Self> {
        let raw = Terminal::keys()?;
        let (send, typed) = mpsc::channel(8);
        // Never joined: a terminal's input has no end.
        std::thread::spawn(move || {
            let mut byte = [0];
            while let Ok(1) = std::io::stdin().lock().read(&mut byte) {
                if send.blocking_send(byte[0]).is_err() {
                    return;
                }
            }
        });
        Some(Self { raw, typed })
    }

    /// The next key that has a meaning. Cancel-safe.
    pub(super) async fn next(&mut self) -> Key {
        let Ok(mut continued) =
            signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))
        else {
            return std::future::pending().await;
        };
        loop {
            tokio::select! {
                byte = self.typed.recv() => match byte {
                    Some(b'r' | b'R') => return Key::Restart,
                    Some(b'd' | b'D') => return Key::Detach,
                    Some(b'q' | b'Q') => return Key::Quit,
                    Some(b'h' | b'?') => return Key::Help,
                    Some(_) => {}
                    None => return std::future::pending().await,
                },
                _ = continued.recv() => self.raw.keys_again(),
            }
        }
    }
}
