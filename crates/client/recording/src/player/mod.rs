//! Chooses the recorded response to a request. Pure: requests are values, and nothing waits.

mod report;

use std::{collections::HashMap, sync::Arc};

use http::Method;

pub use report::{NotRecorded, Report};

use crate::{
    difference::{differences, nearest},
    recording::{Answer, Exchange, Recording},
    request::{Key, Request},
    resource::{Form, has_volatile_body},
};

/// The rules for matching requests with recorded ones.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Matching {
    /// Each response is used once, and each must be used.
    pub(crate) strict: bool,
    /// If no recorded request has the same body, another one with the same method, path and
    /// query matches.
    pub(crate) ignore_bodies: bool,
}

/// The response to a request.
#[derive(Debug)]
pub(crate) enum Decision {
    /// The response of an exchange, by its index.
    Serve(usize),
    /// A watch that continues a replayed one: it sends nothing.
    Idle,
    /// The message of the error.
    NotRecorded(String),
}

/// A recording that is being replayed.
#[derive(Debug)]
pub(crate) struct Player {
    recording: Arc<Recording>,
    matching: Matching,
    /// The indices of exchanges, in the order of their requests.
    by_key: HashMap<Key, Vec<usize>>,
    watches: HashMap<Key, usize>,
    used: Vec<bool>,
    report: Report,
}

impl Player {
    pub(crate) fn new(recording: Arc<Recording>, matching: Matching) -> Self {
        let mut by_key: HashMap<Key, Vec<usize>> = HashMap::new();
        let mut watches = HashMap::new();
        for (index, exchange) in recording.exchanges.iter().enumerate() {
            by_key
                .entry(exchange.request.key())
                .or_default()
                .push(index);
            let watch = exchange.request.watch_key();
            if let Some(key) = watch.filter(|_| is_stream(exchange)) {
                watches.entry(key).or_insert(index);
            }
        }
        Self {
            used: vec![false; recording.exchanges.len()],
            recording,
            matching,
            by_key,
            watches,
            report: Report::default(),
        }
    }

    /// Chooses the response.
    pub(crate) fn respond(&mut self, request: &Request) -> Decision {
        let index = match self.choose(request) {
            Some(index) => index,
            None if self.continues_watch(request) => {
                self.report.served = self.report.served.saturating_add(1);
                return Decision::Idle;
            }
            None => return self.not_recorded(request, None),
        };
        if let Some(used) = self.used.get_mut(index) {
            *used = true;
        }
        let recording = self.recording.clone();
        let exchange = recording.exchanges.get(index);
        match exchange.and_then(|exchange| Some((exchange.id, exchange.omission()?))) {
            Some((id, reason)) => {
                let reason =
                    format!("the response to request {id} is not in the recording: {reason}");
                self.not_recorded(request, Some(reason))
            }
            None => {
                self.report.served = self.report.served.saturating_add(1);
                Decision::Serve(index)
            }
        }
    }

    fn choose(&self, request: &Request) -> Option<usize> {
        let candidates = self.by_key.get(&request.key())?;
        let is_unused = |index: &&usize| self.used.get(**index) == Some(&false);
        let with_body = || {
            candidates.iter().filter(|index| {
                let exchange = self.recording.exchanges.get(**index);
                exchange.is_some_and(|exchange| request.has_body_of(&exchange.request))
            })
        };
        let any_body = self.matching.ignore_bodies || has_volatile_body(&request.path);
        let next = with_body().find(is_unused);
        let next = next.or_else(|| candidates.iter().filter(|_| any_body).find(is_unused));
        let is_read = matches!(request.method, Method::GET | Method::HEAD);
        if next.is_some() || self.matching.strict || !is_read {
            return next.copied();
        }
        let last = with_body().next_back().copied();
        last.filter(|index| {
            let exchange = self.recording.exchanges.get(*index);
            // The events of a watch are those after one version: they are not sent again.
            exchange.is_some_and(|exchange| request.form() != Form::Watch || !is_stream(exchange))
        })
    }

    /// Returns true if a watch continues one that has been recorded, from a later version.
    fn continues_watch(&self, request: &Request) -> bool {
        let key = request.watch_key().filter(|_| !self.matching.strict);
        let first = key.and_then(|key| self.watches.get(&key));
        first.is_some_and(|index| self.used.get(*index) == Some(&true))
    }

    fn not_recorded(&mut self, request: &Request, reason: Option<String>) -> Decision {
        let reason = reason.unwrap_or_else(|| {
            let exchanges = &self.recording.exchanges;
            nearest(request, exchanges).map_or_else(
                || "the recording has no requests".to_owned(),
                |nearest| explain(request, nearest),
            )
        });
        self.report.add(request, &reason);
        Decision::NotRecorded(format!("{} was not recorded: {reason}", request.name()))
    }

    /// Returns the state of the replay.
    pub(crate) fn report(&self) -> Report {
        let exchanges = self.recording.exchanges.iter().zip(&self.used);
        let unused = exchanges.filter(|(_, used)| !**used);
        Report {
            unused: unused
                .map(|(exchange, _)| exchange.request.name())
                .collect(),
            is_strict: self.matching.strict,
            ..self.report.clone()
        }
    }
}

fn is_stream(exchange: &Exchange) -> bool {
    matches!(exchange.answer, Answer::Stream(_))
}

/// Describes the differences between a request and the nearest recorded one.
fn explain(request: &Request, nearest: &Exchange) -> String {
    let differences = differences(request, &nearest.request);
    if differences.is_empty() {
        return format!(
            "all recorded responses to it have been used; the first is that of request {}",
            nearest.id
        );
    }
    format!(
        "the nearest recorded request is {}, {}: {}",
        nearest.id,
        nearest.request.name(),
        differences.join("; ")
    )
}

#[cfg(test)]
mod tests;
