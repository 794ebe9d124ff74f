//! Sends messages to a webhook until it accepts them.

use std::time::Duration;

use tokio::time::Instant;

use super::{NotifyError, say};
use crate::{
    store::{SignedUrl, post_json},
    webhook::{Notice, WebhookFormat},
};

/// The first wait between attempts. It doubles each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The longest wait that a server may ask for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// The destination of messages.
pub(super) struct Delivery {
    pub(super) url: SignedUrl,
    pub(super) host: String,
    pub(super) format: WebhookFormat,
}

impl Delivery {
    /// Sends a message, and repeats it until the timeout.
    pub(super) async fn send(&self, notice: &Notice, timeout: Duration) -> Result<(), NotifyError> {
        let body = notice.body(self.format).to_string().into_bytes();
        let (host, state) = (&self.host, notice.state.as_str());
        let end = Instant::now() + timeout;
        let (mut wait, mut attempts) = (FIRST_WAIT, 0_u32);
        loop {
            attempts = attempts.saturating_add(1);
            let Err(error) = post_json(&self.url, body.clone()).await else {
                say(&format!(
                    "{host} accepted the message about the state {state}"
                ));
                return Ok(());
            };
            let asked = error
                .retry_after
                .map(|asked| asked.min(LONGEST_RETRY_AFTER));
            let pause = asked.map_or(wait, |asked| asked.max(wait));
            if !error.is_temporary || Instant::now() + pause > end {
                return Err(NotifyError::Undelivered {
                    host: host.clone(),
                    state,
                    problem: error.problem,
                    attempts,
                });
            }
            say(&format!(
                "{host}: {}; trying again in {} s",
                error.problem,
                pause.as_secs()
            ));
            tokio::time::sleep(pause).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }
}
