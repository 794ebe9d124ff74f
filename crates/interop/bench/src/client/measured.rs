//! The measured jobs, and the figures of one measurement.

use serde::{Deserialize, Serialize};

/// A measured job.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Job {
    Decode,
    Watch,
    List,
    Cache,
}

/// The figures of one measurement.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) seconds: f64,
    /// The peak memory in bytes, minus the memory of the process before the
    /// measurement.
    pub(super) memory: f64,
    /// The bytes of the heap in use after the measurement, for clients with a
    /// garbage collector.
    #[serde(default)]
    pub(super) heap: f64,
}

impl Measured {
    pub(super) fn median(all: &[Self]) -> Self {
        let middle = |figure: fn(&Self) -> f64| {
            let mut figures: Vec<f64> = all.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures.get(figures.len() / 2).copied().unwrap_or_default()
        };
        Self {
            seconds: middle(|one| one.seconds),
            memory: middle(|one| one.memory),
            heap: middle(|one| one.heap),
        }
    }
}
