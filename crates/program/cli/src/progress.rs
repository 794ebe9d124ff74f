//! Progress on standard error: a spinner on a terminal, and nothing otherwise. The caller prints
//! permanent lines.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use longshore::launcher::bundle::Progress;

use crate::ui;

/// The interval of the spinner's animation.
const TICK: Duration = Duration::from_millis(100);

/// The progress of packing, in files and bytes.
pub(crate) fn packing(progress: Progress) -> String {
    format!(
        "packing: {} of {}, {} of {}",
        progress.files,
        ui::count(progress.total_files, "file"),
        ui::size(progress.bytes),
        ui::size(progress.total_bytes)
    )
}

/// An animated progress line. Clones share the line.
#[derive(Clone)]
pub(crate) struct Spinner {
    bar: Option<ProgressBar>,
}

impl Spinner {
    /// Shows a line, on a terminal.
    pub(crate) fn start(text: &str) -> Self {
        if !ui::draws_progress() {
            return Self { bar: None };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{prefix}{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.set_message(text.to_owned());
        bar.enable_steady_tick(TICK);
        Self { bar: Some(bar) }
    }

    /// Changes the text, which is created only if it is shown.
    pub(crate) fn say(&self, text: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            bar.set_message(text());
        }
    }

    /// Shows lines above the spinner until the next call. Each must fit the terminal and have no
    /// colours, because their width determines how much is cleared.
    pub(crate) fn above(&self, lines: &[String]) {
        if let Some(bar) = &self.bar {
            bar.set_prefix(
                lines
                    .iter()
                    .fold(String::new(), |text, line| text + line + "\n"),
            );
        }
    }

    /// Prints above the line.
    pub(crate) fn aside(&self, write: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Hides the line until [`Spinner::resume`], for a prompt.
    pub(crate) fn pause(&self) {
        self.end();
    }

    /// Shows the line again.
    pub(crate) fn resume(&self) {
        if let Some(bar) = &self.bar {
            bar.reset();
            bar.enable_steady_tick(TICK);
        }
    }

    /// Removes the line.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
