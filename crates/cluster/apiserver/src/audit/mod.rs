//! The audit log: one line of JSON for each stage of a request, as `audit.k8s.io/v1` defines it. A
//! policy decides which requests are recorded, and in how much detail. A separate thread writes the
//! lines, so that requests do not wait for the file.

mod bodies;
mod event;
mod level;
mod parse;
mod policy;
mod record;
mod sources;
mod writer;

use std::{
    fmt::{self, Write as _},
    io::Write,
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use longshore_engine::{Ids as _, RandomIds};

pub use parse::PolicyError;
pub use policy::Policy;

pub(crate) use record::{Record, Request};

use writer::Writer;

use crate::metrics;

/// The header with the ID of a request.
pub(crate) const AUDIT_ID: &str = "audit-id";

/// Writes the audit log of a server. Cheap to clone.
#[derive(Clone)]
pub struct AuditLog(Arc<Log>);

struct Log {
    policy: Policy,
    writer: Writer,
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").finish_non_exhaustive()
    }
}

impl AuditLog {
    /// Starts a log that writes the events of a policy to `out`.
    ///
    /// # Errors
    /// The operating system cannot start another thread.
    pub fn start(policy: Policy, out: impl Write + Send + 'static) -> std::io::Result<Self> {
        let writer = Writer::start(Box::new(out))?;
        Ok(Self(Arc::new(Log { policy, writer })))
    }

    /// Waits until all events so far are written.
    pub async fn flush(&self) {
        self.0.writer.flush().await;
    }

    /// The number of lost events. Events are lost if the file cannot be written, or if they come
    /// faster than they are written.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.writer.lost()
    }

    /// Counters in Prometheus' text format, with Kubernetes' names.
    pub(crate) fn metrics(&self) -> String {
        let mut out = String::new();
        let (created, lost) = (self.0.writer.created(), self.lost());
        let name = "apiserver_audit_event_total";
        metrics::head(&mut out, name, "counter", "Events of the audit log.");
        let _ = writeln!(out, "{name} {created}");
        let name = "apiserver_audit_error_total";
        let help = "Events that are missing in the audit log.";
        metrics::head(&mut out, name, "counter", help);
        let _ = writeln!(out, "{name}{{plugin=\"log\"}} {lost}");
        out
    }
}

/// Returns the ID of a request: the ID in its header, or a new ID.
pub(crate) fn id_of(headers: &HeaderMap) -> HeaderValue {
    match headers.get(AUDIT_ID).filter(|value| !value.is_empty()) {
        Some(id) => id.clone(),
        None => HeaderValue::from_maybe_shared(Bytes::from(RandomIds.uid()))
            .unwrap_or_else(|_| HeaderValue::from_static("")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_the_client_is_kept() {
        let mut headers = HeaderMap::new();
        headers.insert(AUDIT_ID, HeaderValue::from_static("mine"));
        assert_eq!(id_of(&headers), "mine");
        headers.insert(AUDIT_ID, HeaderValue::from_static(""));
        assert_eq!(id_of(&headers).len(), 36);
    }
}
