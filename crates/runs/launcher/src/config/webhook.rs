//! The webhook that is called from the cluster when a run ends or is stuck.

use std::time::Duration;

use super::{
    ConfigError, RunOptions, Text,
    layers::Layers,
    values::{duration_at, invalid_at, subdomain},
};
use crate::{
    store::check_url,
    webhook::{WebhookFormat, WebhookState},
};

/// The default time that a task may wait before the run is stuck.
const DEFAULT_STUCK_AFTER: Duration = Duration::from_secs(120);
/// The default key of a Secret.
const DEFAULT_KEY: &str = "url";
/// The longest key of a Secret.
const LONGEST_KEY: usize = 253;

/// The webhook of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSpec {
    /// The URL of the webhook.
    pub url: WebhookUrl,
    /// The form of the message.
    pub format: WebhookFormat,
    /// The states in which the webhook is called.
    pub on: Vec<WebhookState>,
    /// The time that a task may wait before the run is stuck.
    pub stuck_after: Duration,
    /// The service account of the pod that calls the webhook. `None` to create one.
    pub account: Option<String>,
}

/// The URL of a webhook.
#[derive(Clone, PartialEq, Eq)]
pub enum WebhookUrl {
    /// A key of a Secret of the run's namespace.
    Secret {
        /// The name of the Secret.
        name: String,
        /// The key.
        key: String,
    },
    /// The URL itself.
    Plain(String),
}

impl std::fmt::Debug for WebhookUrl {
    /// Omits the URL, which may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Secret { name, key } => write!(f, "Secret({name}/{key})"),
            Self::Plain(_) => f.write_str("Plain(…)"),
        }
    }
}

/// Merges and checks the options.
pub(super) fn resolve<const N: usize>(
    options: Layers<'_, RunOptions, N>,
) -> Result<Option<WebhookSpec>, ConfigError> {
    let Some(text) = options
        .value(|run| &run.webhook)
        .filter(|text| !text.is_empty())
    else {
        return Ok(None);
    };
    let format = options.value(|run| &run.webhook_format);
    let format = format.map_or(Ok(WebhookFormat::Auto), |text| {
        let parsed = text.parse();
        parsed.map_err(|rule: String| invalid_at("webhook_format", text, rule))
    });
    let mut on = Vec::new();
    for text in options.entries(|run| &run.webhook_on) {
        for word in text.split(',') {
            let state = word.trim().parse();
            let state = state.map_err(|rule: String| invalid_at("webhook_on", text, rule))?;
            if !on.contains(&state) {
                on.push(state);
            }
        }
    }
    if on.is_empty() {
        on.extend(WebhookState::ALL);
    }
    let stuck_after = options.value(|run| &run.webhook_stuck_after);
    let stuck_after = stuck_after.map(|text| duration_at("webhook_stuck_after", text));
    let account = options.value(|run| &run.webhook_account);
    if let Some(account) = account {
        subdomain("webhook_account", account)?;
    }
    Ok(Some(WebhookSpec {
        url: url(text)?,
        format: format?,
        on,
        stuck_after: stuck_after.transpose()?.unwrap_or(DEFAULT_STUCK_AFTER),
        account: account.map(ToString::to_string),
    }))
}

fn url(text: &Text) -> Result<WebhookUrl, ConfigError> {
    let Some(secret) = text.strip_prefix("secret:") else {
        // The error must not contain the URL, which may be secret.
        let checked = check_url(text);
        checked.map_err(|rule| {
            let rule = format!("{rule}, or secret:NAME/KEY for a key of a Secret");
            invalid_at("webhook", &text.replaced(String::new()), rule)
        })?;
        return Ok(WebhookUrl::Plain(text.to_string()));
    };
    let (name, key) = secret.split_once('/').unwrap_or((secret, DEFAULT_KEY));
    subdomain("webhook", &text.replaced(name.to_owned()))?;
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() || key.len() > LONGEST_KEY || !key.bytes().all(is_key) {
        let rule = "the key of a Secret has letters, digits, '-', '_' and '.'";
        return Err(invalid_at("webhook", text, rule));
    }
    Ok(WebhookUrl::Secret {
        name: name.to_owned(),
        key: key.to_owned(),
    })
}
