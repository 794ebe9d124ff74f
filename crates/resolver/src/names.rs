//! Waits until DNS names resolve: how the tasks of a job find each other
//! without asking the API.

use std::{
    net::{IpAddr, ToSocketAddrs},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// How many names are asked for at a time.
const AT_ONCE: usize = 16;
/// The first pause between two rounds; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two rounds.
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// How many missing names an error lists.
const LISTED: usize = 20;

/// Names that did not resolve in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} of {total} peers did not appear within {} s: {}; look whether their pods run", missing.len(), waited.as_secs(), listed(missing))]
pub struct NamesError {
    /// The names, each with the last reason.
    pub missing: Vec<(String, String)>,
    /// How many names there were.
    pub total: usize,
    /// How long the wait was.
    pub waited: Duration,
}

fn listed(missing: &[(String, String)]) -> String {
    let mut texts: Vec<String> = missing
        .iter()
        .take(LISTED)
        .map(|(name, reason)| format!("{name} ({reason})"))
        .collect();
    if missing.len() > LISTED {
        texts.push(format!("and {} more", missing.len() - LISTED));
    }
    texts.join(", ")
}

/// Waits until every name resolves and gives an address for each, in order.
/// Blocks the thread.
///
/// # Errors
/// Lists the names that did not resolve within `limit`, and why not.
pub fn wait(names: &[String], limit: Duration) -> Result<Vec<IpAddr>, NamesError> {
    let ask = |name: &str| {
        let mut found = (name, 0)
            .to_socket_addrs()
            .map_err(|error| error.to_string())?;
        found
            .next()
            .map(|address| address.ip())
            .ok_or_else(|| "no address".to_owned())
    };
    wait_with(names, limit, ask)
}

fn wait_with(
    names: &[String],
    limit: Duration,
    ask: impl Fn(&str) -> Result<IpAddr, String> + Sync,
) -> Result<Vec<IpAddr>, NamesError> {
    let begin = Instant::now();
    let mut found: Vec<Option<IpAddr>> = vec![None; names.len()];
    let mut pause = FIRST_PAUSE;
    loop {
        let open: Vec<usize> = (0..names.len())
            .filter(|place| found[*place].is_none())
            .collect();
        let mut missing = Vec::new();
        for (place, answer) in ask_all(&open, names, &ask) {
            match answer {
                Ok(address) => found[place] = Some(address),
                Err(reason) => missing.push((place, reason)),
            }
        }
        if missing.is_empty() {
            return Ok(found.into_iter().flatten().collect());
        }
        let left = limit.saturating_sub(begin.elapsed());
        if left.is_zero() {
            missing.sort_unstable();
            let missing = missing
                .into_iter()
                .map(|(place, reason)| (names[place].clone(), reason))
                .collect();
            return Err(NamesError {
                missing,
                total: names.len(),
                waited: limit,
            });
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

type Answer = (usize, Result<IpAddr, String>);

fn ask_all(
    open: &[usize],
    names: &[String],
    ask: &(impl Fn(&str) -> Result<IpAddr, String> + Sync),
) -> Vec<Answer> {
    let (sender, answers) = mpsc::channel();
    let share = open.len().div_ceil(AT_ONCE).max(1);
    thread::scope(|scope| {
        for places in open.chunks(share) {
            let sender = sender.clone();
            scope.spawn(move || {
                for place in places {
                    // The receiver outlives the threads.
                    let _ = sender.send((*place, ask(&names[*place])));
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
    fn waits_until_all_are_there_and_keeps_their_order() {
        let rounds = AtomicU32::new(0);
        let ask = |name: &str| match name {
            "late" if rounds.fetch_add(1, Ordering::Relaxed) < 2 => Err("not yet".to_owned()),
            "late" => Ok([127, 0, 0, 2].into()),
            _ => Ok([127, 0, 0, 1].into()),
        };
        let found = wait_with(&names(&["late", "here"]), Duration::from_secs(60), ask).unwrap();
        assert_eq!(
            found,
            [IpAddr::from([127, 0, 0, 2]), IpAddr::from([127, 0, 0, 1])]
        );
        assert_eq!(rounds.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn the_error_lists_who_is_missing_and_why() {
        let ask = |name: &str| match name {
            "here" => Ok([127, 0, 0, 1].into()),
            _ => Err("unknown host".to_owned()),
        };
        let error = wait_with(&names(&["here", "gone"]), Duration::ZERO, ask).unwrap_err();
        assert_eq!(
            error.to_string(),
            "1 of 2 peers did not appear within 0 s: gone (unknown host); look whether their pods run"
        );
    }

    #[test]
    fn the_machine_itself_is_found() {
        let found = wait(&names(&["localhost"]), Duration::from_secs(5)).unwrap();
        assert!(found[0].is_loopback());
        assert_eq!(wait(&[], Duration::ZERO), Ok(vec![]));
    }
}
