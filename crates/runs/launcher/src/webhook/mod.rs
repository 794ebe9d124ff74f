//! The messages of webhooks about a run: the states that are sent, and the formats that services
//! expect. Pure.

mod message;

use std::{fmt, str::FromStr};

pub use message::Notice;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$each])* $variant,)*
        }

        impl $name {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name of the value.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().find(|known| known.as_str() == text);
                found.copied().ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|known| known.as_str()).collect();
                    format!("use one of {}", known.join(", "))
                })
            }
        }
    };
}

words! {
    /// A state of a run about which a webhook is called.
    WebhookState {
        /// All tasks have succeeded.
        Succeeded = "succeeded",
        /// A task failed, or could not start.
        Failed = "failed",
        /// The user cancelled the run.
        Cancelled = "cancelled",
        /// A task cannot start, for a cause that may be temporary.
        Stuck = "stuck",
    }
}

words! {
    /// The form of the message.
    WebhookFormat {
        /// The format of the service, by the host of the URL, or JSON for unknown hosts.
        Auto = "auto",
        /// All data, and a text.
        Json = "json",
        /// A text as Slack, Mattermost and Google Chat expect it.
        Slack = "slack",
        /// A text as Discord expects it.
        Discord = "discord",
        /// A card as Microsoft Teams expects it.
        Teams = "teams",
    }
}

impl WebhookFormat {
    /// The format for a host.
    #[must_use]
    pub fn of_host(self, host: &str) -> Self {
        let is_of = |domain: &str| {
            let rest = host.strip_suffix(domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        match self {
            Self::Auto if is_of("slack.com") || is_of("chat.googleapis.com") => Self::Slack,
            Self::Auto if is_of("discord.com") || is_of("discordapp.com") => Self::Discord,
            Self::Auto
                if is_of("webhook.office.com")
                    || is_of("logic.azure.com")
                    || is_of("api.powerplatform.com") =>
            {
                Self::Teams
            }
            Self::Auto => Self::Json,
            given => given,
        }
    }
}

/// Returns true if knowledge of the URL seems to be sufficient for posting. Such a URL belongs into
/// a Secret.
#[must_use]
pub fn looks_secret(url: &str, host: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_random = |part: &str| part.len() >= 16 && part.bytes().any(|byte| byte.is_ascii_digit());
    WebhookFormat::Auto.of_host(host) != WebhookFormat::Json
        || authority.contains('@')
        || path.contains('?')
        || path.split('/').any(is_random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_follows_from_the_host() {
        for (host, format) in [
            ("hooks.slack.com", "slack"),
            ("discord.com", "discord"),
            ("team.webhook.office.com", "teams"),
            ("evilslack.com", "json"),
            ("runs.example", "json"),
        ] {
            assert_eq!(WebhookFormat::Auto.of_host(host).as_str(), format);
        }
        assert_eq!(
            WebhookFormat::Slack.of_host("runs.example"),
            WebhookFormat::Slack
        );
        assert!("x".parse::<WebhookState>().is_err());
    }

    #[test]
    fn urls_with_secrets_are_recognized() {
        for url in [
            "https://hooks.slack.com/services/T/B/x",
            "https://user:pass@runs.example/",
            "https://runs.example/?key=x",
            "https://runs.example/a1b2c3d4e5f6g7h8",
        ] {
            let host = longshore_bundles::store::check_url(url).unwrap_or_default();
            assert!(looks_secret(url, &host), "{url}");
        }
        assert!(!looks_secret(
            "http://alerts.team.svc:8080/runs",
            "alerts.team.svc"
        ));
    }
}
