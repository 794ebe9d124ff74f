//! The requests that this server passes on to aggregated API servers and to ports of pods. A server
//! that sends them back to this server would take all descriptors and memory with a single request,
//! so the number of requests in progress is limited.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{limits, status_error::StatusError};

/// The requests in progress.
#[derive(Debug)]
pub(crate) struct PassedOn {
    most: usize,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    total: usize,
    by_destination: HashMap<String, usize>,
}

/// A request in progress, until its response has ended.
#[derive(Debug)]
pub(crate) struct Pass {
    all: Arc<PassedOn>,
    destination: String,
}

impl PassedOn {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            now: Mutex::default(),
        })
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request to a destination.
    ///
    /// # Errors
    /// Too many requests are in progress.
    pub(crate) fn begin(self: &Arc<Self>, destination: String) -> Result<Pass, StatusError> {
        let mut now = self.now();
        let own = now.by_destination.get(&destination).copied();
        let own = own.unwrap_or_default();
        if own >= limits::PASSED_ON_TO_ONE.min(self.most) || now.total >= self.most {
            return Err(StatusError::too_many(format!(
                "too many requests are in progress, {own} of them to {destination}: try again, and check that it does not send them back to this API server"
            )));
        }
        now.total += 1;
        now.by_destination.insert(destination.clone(), own + 1);
        drop(now);
        Ok(Pass {
            all: self.clone(),
            destination,
        })
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut now = self.all.now();
        now.total = now.total.saturating_sub(1);
        if let Some(own) = now.by_destination.get_mut(&self.destination) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                now.by_destination.remove(&self.destination);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(all: &Arc<PassedOn>, destination: &str, number: usize) -> Vec<Pass> {
        (0..number)
            .map_while(|_| all.begin(destination.to_owned()).ok())
            .collect()
    }

    #[test]
    fn each_destination_and_all_together_have_a_limit() {
        let one = limits::PASSED_ON_TO_ONE;
        let all = PassedOn::new(2 * one);
        let first = begin(&all, "a", 3 * one);
        assert_eq!(first.len(), one);
        let second = begin(&all, "b", one - 1);
        let mut third = begin(&all, "c", one);
        assert_eq!((second.len(), third.len()), (one - 1, 1));
        third.clear();
        assert_eq!(begin(&all, "a", 1).len(), 0, "its own limit remains");
        drop(first);
        assert_eq!(begin(&all, "c", 3 * one).len(), one);
        drop(second);
        let now = all.now();
        assert!(now.total == 0 && now.by_destination.is_empty());
    }
}
