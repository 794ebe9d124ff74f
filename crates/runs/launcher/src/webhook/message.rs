//! The message about a state of a run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use longshore_diagnosis::explain::cut;
use serde_json::{Value, json};

use super::{WebhookFormat, WebhookState};

/// The maximum length of a reason in characters.
const LONGEST_REASON: usize = 1000;

/// A change of the state of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// The name of the run.
    pub run: String,
    /// The namespace of the run.
    pub namespace: String,
    /// The tags of the run.
    pub tags: BTreeMap<String, String>,
    /// The state of the run.
    pub state: WebhookState,
    /// The exit code, if the run has ended.
    pub exit_code: Option<i32>,
    /// The task that failed first.
    pub task: Option<String>,
    /// The cause, in one sentence.
    pub reason: String,
    /// The recommended action.
    pub remedy: Option<String>,
    /// The time when the run was submitted.
    pub started: Option<Timestamp>,
    /// The time when the run ended.
    pub finished: Option<Timestamp>,
}

impl Notice {
    /// The duration of the run in seconds, if it has ended.
    fn seconds(&self) -> Option<i64> {
        let (from, to) = self.started.zip(self.finished)?;
        Some(to.as_second().saturating_sub(from.as_second()).max(0))
    }

    /// The message in a sentence or two.
    #[must_use]
    pub fn text(&self) -> String {
        let state = match self.state {
            WebhookState::Stuck => "is stuck",
            WebhookState::Cancelled => "was cancelled",
            other => other.as_str(),
        };
        let after = self
            .seconds()
            .map_or_else(String::new, |seconds| format!(" after {}", span(seconds)));
        let mut text = format!("{} in {} {state}{after}", self.run, self.namespace);
        if self.state != WebhookState::Succeeded && !self.reason.is_empty() {
            text.push_str(&format!(": {}", plain(&self.reason)));
            if let Some(remedy) = &self.remedy {
                text.push_str(&format!(". Remedy: {}", plain(remedy)));
            }
        }
        text
    }

    /// The body of the request.
    #[must_use]
    pub fn body(&self, format: WebhookFormat) -> Value {
        let text = self.text();
        match format {
            WebhookFormat::Slack => {
                let text = text
                    .replace('&', "&amp;")
                    .replace('<', "&lt;")
                    .replace('>', "&gt;");
                json!({"text": text})
            }
            // A text of a task must not notify all users.
            WebhookFormat::Discord => {
                json!({"content": cut(&text, 1900), "allowed_mentions": {"parse": []}})
            }
            WebhookFormat::Teams => json!({
                "type": "message",
                "attachments": [{
                    "contentType": "application/vnd.microsoft.card.adaptive",
                    "content": {
                        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                        "type": "AdaptiveCard",
                        "version": "1.4",
                        "body": [{"type": "TextBlock", "wrap": true, "text": text}],
                    },
                }],
            }),
            WebhookFormat::Auto | WebhookFormat::Json => json!({
                "text": text,
                "run": self.run,
                "namespace": self.namespace,
                "tags": self.tags,
                "state": self.state.as_str(),
                "exitCode": self.exit_code,
                "task": self.task,
                "reason": plain(&self.reason),
                "remedy": self.remedy.as_deref().map(plain),
                "started": self.started,
                "finished": self.finished,
                "durationSeconds": self.seconds(),
            }),
        }
    }
}

/// A text of limited length without control characters, which may come from a task.
fn plain(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter.is_control() {
        true => ' ',
        false => letter,
    });
    cut(&letters.collect::<String>(), LONGEST_REASON)
}

fn span(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        _ if hours > 0 => format!("{hours}h{}m", minutes % 60),
        _ if minutes > 0 => format!("{minutes}m{}s", seconds % 60),
        _ => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn notice(state: WebhookState) -> Notice {
        Notice {
            run: "digits-x7k2p".to_owned(),
            namespace: "team".to_owned(),
            tags: [("a".to_owned(), "1".to_owned())].into(),
            state,
            exit_code: Some(3),
            task: Some("main/0".to_owned()),
            reason: "main/0 said <!channel>\u{1b}[2J & left".to_owned(),
            remedy: Some("read its log".to_owned()),
            started: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            finished: Some("2026-01-01T00:03:02Z".parse().unwrap()),
        }
    }

    #[test]
    fn messages_of_all_formats() {
        let failed = notice(WebhookState::Failed);
        let text = "digits-x7k2p in team failed after 3m2s: main/0 said <!channel> [2J & left. Remedy: read its log";
        let body = failed.body(WebhookFormat::Json);
        assert_eq!(body["text"], text);
        assert_eq!(
            (&body["state"], &body["durationSeconds"]),
            (&json!("failed"), &json!(182))
        );
        assert_eq!(
            (&body["task"], &body["exitCode"]),
            (&json!("main/0"), &json!(3))
        );
        let slack = failed.body(WebhookFormat::Slack);
        assert!(
            slack["text"]
                .as_str()
                .unwrap()
                .contains("&lt;!channel&gt; [2J &amp; left")
        );
        let discord = failed.body(WebhookFormat::Discord);
        assert_eq!(discord["content"], text);
        assert_eq!(discord["allowed_mentions"], json!({"parse": []}));
        let teams = failed.body(WebhookFormat::Teams);
        assert_eq!(teams["attachments"][0]["content"]["body"][0]["text"], text);
        let succeeded = notice(WebhookState::Succeeded).text();
        assert_eq!(succeeded, "digits-x7k2p in team succeeded after 3m2s");
        let long = Notice {
            reason: "ä".repeat(5000),
            ..failed
        };
        assert!(long.text().chars().count() < 1200);
    }
}
