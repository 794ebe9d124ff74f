//! Progress on standard error: a spinner on a terminal, nothing elsewhere (the
//! lines that stay are the caller's).

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::ui;

/// A line that moves while something takes its time. Clones are one line.
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
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.set_message(text.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar: Some(bar) }
    }

    /// Changes the text; it is made only if it is shown.
    pub(crate) fn say(&self, text: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            bar.set_message(text());
        }
    }

    /// Writes something above the line.
    pub(crate) fn aside(&self, write: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Takes the line away until [`Spinner::resume`], for a question.
    pub(crate) fn pause(&self) {
        if let Some(bar) = &self.bar {
            bar.suspend(ui::flush);
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
    }

    /// Shows the line again.
    pub(crate) fn resume(&self) {
        if let Some(bar) = &self.bar {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Takes the line away.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
