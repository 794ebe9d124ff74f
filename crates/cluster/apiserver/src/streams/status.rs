//! The exit of a command, in the form that the error channel reports.

use serde_json::json;

use super::protocol::Report;
use longshore_node_api::SessionError;

/// The way in which a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The command exited with this code.
    Code(i32),
    /// The command failed to start, or its session failed.
    Failed(String),
}

impl From<SessionError> for Outcome {
    fn from(error: SessionError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Outcome {
    /// Returns the text for the error channel, or `None` if success is not reported.
    pub(super) fn report(&self, report: Report, what: &str) -> Option<String> {
        match (self, report) {
            (Self::Code(0), Report::Text) => None,
            (Self::Code(0), Report::Status) => {
                Some(json!({"metadata": {}, "status": "Success"}).to_string())
            }
            (Self::Code(code), report) => {
                let message =
                    format!("command terminated with non-zero exit code: exit status {code}");
                let status = json!({
                    "metadata": {},
                    "status": "Failure",
                    "message": message,
                    "reason": "NonZeroExitCode",
                    "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
                });
                Some(if report == Report::Text {
                    message
                } else {
                    status.to_string()
                })
            }
            (Self::Failed(why), report) => {
                let message = format!("Internal error occurred: error {what} container: {why}");
                let status = json!({
                    "metadata": {},
                    "status": "Failure",
                    "message": message,
                    "reason": "InternalError",
                    "details": {"causes": [{"message": format!("error {what} container: {why}")}]},
                    "code": 500,
                });
                Some(if report == Report::Text {
                    message
                } else {
                    status.to_string()
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::Value;

    use super::*;

    #[test]
    fn codes_and_failures() {
        let status = |outcome: Outcome| -> Value {
            let text = outcome.report(Report::Status, "executing command in");
            serde_json::from_str(&text.unwrap()).unwrap()
        };
        assert_eq!(status(Outcome::Code(0))["status"], "Success");
        let failed = status(Outcome::Code(3));
        assert_eq!(failed["reason"], "NonZeroExitCode");
        let cause = json!({"reason": "ExitCode", "message": "3"});
        assert_eq!(failed["details"]["causes"][0], cause);
        assert_eq!(
            status(Outcome::Failed("gone".into()))["message"],
            "Internal error occurred: error executing command in container: gone"
        );
        assert_eq!(Outcome::Code(0).report(Report::Text, ""), None);
    }
}
