//! Waits until DNS names resolve, so that the tasks of a job find each other
//! without access to the API.

use std::{
    net::{IpAddr, ToSocketAddrs},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// The number of names to resolve in parallel.
const CONCURRENCY: usize = 16;
/// The pause after the first round of lookups. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The maximum pause between two rounds of lookups.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// The maximum number of names that an error lists.
const MAX_LISTED: usize = 20;

/// Some names did not resolve within the time limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} of {total} peer names did not resolve within {} s: {}; check that their pods are running", missing.len(), waited.as_secs(), listed(missing))]
pub struct NamesError {
    /// The names, each with the error of its last lookup.
    pub missing: Vec<(String, String)>,
    /// The total number of names.
    pub total: usize,
    /// The time for which the lookups were retried.
    pub waited: Duration,
}

fn listed(missing: &[(String, String)]) -> String {
    let mut texts: Vec<String> = missing
        .iter()
        .take(MAX_LISTED)
        .map(|(name, reason)| format!("{name} ({reason})"))
        .collect();
    if missing.len() > MAX_LISTED {
        texts.push(format!("and {} more", missing.len() - MAX_LISTED));
    }
    texts.join(", ")
}

/// Waits until every name resolves. Returns an address for each name, in the same
/// order. Blocks the thread.
///
/// # Errors
/// Lists the names that did not resolve within `limit`, and the reasons.
pub fn wait(names: &[String], limit: Duration) -> Result<Vec<IpAddr>, NamesError> {
    let resolve = |name: &str| {
        let mut found = (name, 0)
            .to_socket_addrs()
            .map_err(|error| error.to_string())?;
        found
            .next()
            .map(|address| address.ip())
            .ok_or_else(|| "no address".to_owned())
    };
    wait_with(names, limit, resolve)
}

fn wait_with(
    names: &[String],
    limit: Duration,
    resolve: impl Fn(&str) -> Result<IpAddr, String> + Sync,
) -> Result<Vec<IpAddr>, NamesError> {
    let start = Instant::now();
    let mut found: Vec<Option<IpAddr>> = vec![None; names.len()];
    let mut pause = FIRST_PAUSE;
    loop {
        let unresolved: Vec<usize> = (0..names.len())
            .filter(|index| found[*index].is_none())
            .collect();
        let mut missing = Vec::new();
        for (index, answer) in resolve_all(&unresolved, names, &resolve) {
            match answer {
                Ok(address) => found[index] = Some(address),
                Err(reason) => missing.push((index, reason)),
            }
        }
        if missing.is_empty() {
            return Ok(found.into_iter().flatten().collect());
        }
        let left = limit.saturating_sub(start.elapsed());
        if left.is_zero() {
            missing.sort_unstable();
            let missing = missing
                .into_iter()
                .map(|(index, reason)| (names[index].clone(), reason))
                .collect();
            return Err(NamesError {
                missing,
                total: names.len(),
                waited: limit,
            });
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

type Answer = (usize, Result<IpAddr, String>);

fn resolve_all(
    unresolved: &[usize],
    names: &[String],
    resolve: &(impl Fn(&str) -> Result<IpAddr, String> + Sync),
) -> Vec<Answer> {
    let (sender, answers) = mpsc::channel();
    let chunk_size = unresolved.len().div_ceil(CONCURRENCY).max(1);
    thread::scope(|scope| {
        for indices in unresolved.chunks(chunk_size) {
            let sender = sender.clone();
            scope.spawn(move || {
                for index in indices {
                    // The receiver outlives the threads.
                    let _ = sender.send((*index, resolve(&names[*index])));
                }
            });
        }
    });
    drop(sender);
    answers.into_iter().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_wait_ends_when_all_names_resolve_and_keeps_their_order() {
        let rounds = AtomicU32::new(0);
        let resolve = |name: &str| match name {
            "late" if rounds.fetch_add(1, Ordering::Relaxed) < 2 => Err("not yet".to_owned()),
            "late" => Ok([127, 0, 0, 2].into()),
            _ => Ok([127, 0, 0, 1].into()),
        };
        let found = wait_with(&names(&["late", "here"]), Duration::from_secs(60), resolve).unwrap();
        assert_eq!(
            found,
            [IpAddr::from([127, 0, 0, 2]), IpAddr::from([127, 0, 0, 1])]
        );
        assert_eq!(rounds.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn the_error_lists_unresolved_names_with_reasons() {
        let resolve = |name: &str| match name {
            "here" => Ok([127, 0, 0, 1].into()),
            _ => Err("unknown host".to_owned()),
        };
        let error = wait_with(&names(&["here", "gone"]), Duration::ZERO, resolve).unwrap_err();
        assert_eq!(
            error.to_string(),
            "1 of 2 peer names did not resolve within 0 s: gone (unknown host); check that their pods are running"
        );
    }

    #[test]
    fn localhost_resolves() {
        let found = wait(&names(&["localhost"]), Duration::from_secs(5)).unwrap();
        assert!(found[0].is_loopback());
        assert_eq!(wait(&[], Duration::ZERO), Ok(vec![]));
    }
}
