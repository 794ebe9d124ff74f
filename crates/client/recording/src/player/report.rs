//! The report of a replay: the requests that it has served, and the requests that were not
//! recorded.

use serde::Serialize;

use crate::request::Request;

/// The maximum number of different requests in a report.
const MAX_LISTED: usize = 1000;

/// A request that was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotRecorded {
    /// The method, the path and the query.
    pub request: String,
    /// The nearest recorded request and what differs, or why the response is missing.
    pub reason: String,
    /// The number of times that the request was made.
    pub count: u64,
}

/// The state of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The number of requests that were answered from the recording.
    pub served: u64,
    /// The requests that were not recorded, at most 1,000 different ones.
    pub not_recorded: Vec<NotRecorded>,
    /// The recorded requests that were not made.
    pub unused: Vec<String>,
    /// True if recorded requests that were not made are an error.
    #[serde(skip)]
    pub(crate) is_strict: bool,
}

impl Report {
    pub(super) fn add(&mut self, request: &Request, reason: &str) {
        let request = request.name();
        let mut listed = self.not_recorded.iter_mut();
        let known = listed.find(|known| known.request == request && known.reason == reason);
        if let Some(known) = known {
            known.count = known.count.saturating_add(1);
        } else if self.not_recorded.len() < MAX_LISTED {
            self.not_recorded.push(NotRecorded {
                request,
                reason: reason.to_owned(),
                count: 1,
            });
        }
    }

    /// Returns true if all requests were recorded and, in a strict replay, all recorded requests
    /// were made.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.not_recorded.is_empty() && (!self.is_strict || self.unused.is_empty())
    }
}
