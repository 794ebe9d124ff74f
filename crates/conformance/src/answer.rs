//! An answer, and what every answer must be.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

/// What a request was answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Method and path, for messages.
    pub(crate) asked: String,
    /// The status code.
    pub code: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub bytes: Bytes,
}

impl Answer {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// A header; empty when it is not there.
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
    /// When it is none.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{}: {error}: {}", self.asked, self.text()))
    }

    /// Expects this code; gives the body.
    ///
    /// # Panics
    /// When it is another, or the body is no JSON.
    #[track_caller]
    #[allow(clippy::must_use_candidate, reason = "it is an assertion as well")]
    pub fn is(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}: {}", self.asked, self.text());
        self.json()
    }

    /// Expects success, 200; gives the body.
    ///
    /// # Panics
    /// As [`Answer::is`].
    #[track_caller]
    #[allow(clippy::must_use_candidate, reason = "it is an assertion as well")]
    pub fn ok(&self) -> Value {
        self.is(200)
    }

    /// Expects a refusal: this code, and a `Status` of this reason (empty: of
    /// none) that is whole (rule 29). Gives the `Status`.
    ///
    /// # Panics
    /// When anything of it differs.
    #[track_caller]
    #[allow(clippy::must_use_candidate, reason = "it is an assertion as well")]
    pub fn refused(&self, code: u16, reason: &str) -> Value {
        let status = self.is(code);
        let shown = || format!("{}: {status}", self.asked);
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

    /// Expects a refusal with exactly these causes, each as (reason, field), in
    /// any order, told once or twice. Gives the `Status`.
    ///
    /// # Panics
    /// When anything of it differs.
    #[track_caller]
    #[allow(clippy::must_use_candidate, reason = "it is an assertion as well")]
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
        // Kubernetes checks metadata twice, and tells some causes twice.
        given.dedup();
        let mut wanted = causes.to_vec();
        wanted.sort_unstable();
        assert_eq!(given, wanted, "{}: {status}", self.asked);
        status
    }
}
