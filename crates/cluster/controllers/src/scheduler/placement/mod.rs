//! Decides which nodes suit a pod by the pods that already run: affinity to pods, anti-affinity,
//! and topology spread constraints. Pure.

mod rules;
mod topology;

pub(super) use rules::Rules;
pub(super) use topology::{Neighbor, Placement};

#[cfg(test)]
mod tests;
