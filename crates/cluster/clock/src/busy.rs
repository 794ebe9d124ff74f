//! Marks for components that are working.

use std::sync::Arc;

use crate::manual::Manual;

/// A mark that a component is working, until the mark is dropped. See [`Clock::busy`].
///
/// [`Clock::busy`]: crate::Clock::busy
#[derive(Debug)]
pub struct Busy {
    manual: Option<Arc<Manual>>,
    what: &'static str,
}

impl Busy {
    pub(crate) fn new(manual: Option<Arc<Manual>>, what: &'static str) -> Self {
        if let Some(manual) = &manual {
            manual.work.mark(what);
        }
        Self { manual, what }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(manual) = &self.manual {
            manual.work.unmark(self.what);
        }
    }
}
