//! Ports that another program uses.

use super::{Cause, ClusterEvidence, Explanation, mount, text::has_any};
use longshore_model::facts::{PodFacts, Terminated};

/// The number of last lines of a container's log to check.
const LINES: usize = 5;

/// The explanation of a command that ended by itself, replaced if the command could not bind
/// its port. The embedded cluster's node reports this in an event; on other clusters, the
/// last lines of the log show it.
pub(super) fn taken(
    pod: &PodFacts,
    known: Explanation,
    ended: &Terminated,
    last_line: Option<&str>,
    cluster: &ClusterEvidence,
) -> Explanation {
    if known.kind != Cause::ExitCode {
        return known;
    }
    let events = cluster.of_pod(&pod.metadata);
    let event = events.iter().find(|event| event.reason == "AddressInUse");
    if event.is_none() && !tells(&ended.message) && !last_line.is_some_and(tells) {
        return known;
    }
    let cause = format!("{}; another program uses its port", known.cause);
    let remedy = match event {
        Some(_) => "do what the event says: choose another port, or another address to bind",
        None => "choose another port, or end the program that uses it",
    };
    let mut found = Explanation::new(Cause::AddressInUse, cause, remedy);
    found.evidence = known.evidence;
    match event {
        Some(event) => mount::seen(found, event),
        None => found,
    }
}

fn tells(said: &str) -> bool {
    let lines = said.lines().rev().filter(|line| !line.trim().is_empty());
    lines.take(LINES).any(|line| {
        has_any(line, &["address already in use", "eaddrinuse"])
            || has_any(line, &[" in use"]) && has_word(line, "port")
    })
}

fn has_word(line: &str, word: &str) -> bool {
    let mut words = line.split(|letter: char| !letter.is_alphanumeric());
    words.any(|known| known.eq_ignore_ascii_case(word))
}
