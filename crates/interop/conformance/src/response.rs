//! A response and assertions about it.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

/// The response to a request.
#[derive(Debug, Clone)]
pub struct Response {
    /// Method and path of the request, for assertion messages.
    pub(crate) request: String,
    /// The status code.
    pub code: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub bytes: Bytes,
}

impl Response {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// A header; empty if absent.
    #[must_use]
    pub fn header(&self, name: &str) -> String {
        let value = self.headers.get(name);
        value.map_or_else(String::new, |value| {
            String::from_utf8_lossy(value.as_bytes()).into_owned()
        })
    }

    /// All values of a header.
    #[must_use]
    pub fn headers(&self, name: &str) -> Vec<String> {
        let values = self.headers.get_all(name).iter();
        values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If the body is not JSON.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{}: {error}: {}", self.request, self.text()))
    }

    /// Asserts the status code and returns the body.
    ///
    /// # Panics
    /// If the code differs or the body is not JSON.
    #[track_caller]
    #[allow(clippy::must_use_candidate, reason = "it is also an assertion")]
    pub fn is(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}: {}", self.request, self.text());
        self.json()
    }

    /// Asserts status code 200 and returns the body.
    ///
    /// # Panics
    /// The same as [`Response::is`].
    #[track_caller]
    #[allow(clippy::must_use_candidate, reason = "it is also an assertion")]
    pub fn ok(&self) -> Value {
        self.is(200)
    }

    /// Asserts an error: this code, and a complete `Status` (rule 29) with this reason; an empty
    /// `reason` stands for a missing one. Returns the `Status`.
    ///
    /// # Panics
    /// If anything differs.
    #[track_caller]
    #[allow(clippy::must_use_candidate, reason = "it is also an assertion")]
    pub fn refused(&self, code: u16, reason: &str) -> Value {
        let status = self.is(code);
        let shown = || format!("{}: {status}", self.request);
        assert_eq!(status["kind"], "Status", "{}", shown());
        assert_eq!(status["apiVersion"], "v1", "{}", shown());
        assert_eq!(status["status"], "Failure", "{}", shown());
        assert_eq!(status["code"], code, "{}", shown());
        let given = status["reason"].as_str().unwrap_or_default();
        assert_eq!(given, reason, "{}", shown());
        assert!(status["metadata"].is_object(), "{}", shown());
        let message = status["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty(), "{}", shown());
        status
    }

    /// Asserts an error with exactly these causes, each as (reason, field), in any order;
    /// duplicates are ignored. Returns the `Status`.
    ///
    /// # Panics
    /// If anything differs.
    #[track_caller]
    #[allow(clippy::must_use_candidate, reason = "it is also an assertion")]
    pub fn refused_for(&self, code: u16, reason: &str, causes: &[(&str, &str)]) -> Value {
        let status = self.refused(code, reason);
        let given = status["details"]["causes"].as_array();
        let mut given: Vec<_> = given
            .into_iter()
            .flatten()
            .map(|cause| {
                let word = |name: &str| cause[name].as_str().unwrap_or_default();
                (word("reason"), word("field"))
            })
            .collect();
        given.sort_unstable();
        // Kubernetes validates metadata twice and returns some causes twice.
        given.dedup();
        let mut wanted = causes.to_vec();
        wanted.sort_unstable();
        assert_eq!(given, wanted, "{}: {status}", self.request);
        status
    }
}
