//! Tokens of links, and sessions. The time is an argument.

use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// The lifetime of a link.
pub(crate) const LINK_LIFETIME: Duration = Duration::from_secs(300);
/// The lifetime of a session.
pub(crate) const SESSION_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// The maximum number of sessions and of links. The oldest are removed first.
const MOST: usize = 32;

/// Secrets are compared by their hash, so that the time of a comparison reveals nothing.
type Hash = [u8; 32];

fn hash(text: &[u8]) -> Hash {
    Sha256::digest(text).into()
}

/// 32 random bytes as text.
pub(crate) fn random_text() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// A session of a browser.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    id: Hash,
    csrf: String,
    expires: Instant,
}

impl Session {
    /// The token for changes, which the session's pages contain.
    pub(crate) fn csrf(&self) -> &str {
        &self.csrf
    }

    pub(super) fn has_csrf(&self, token: &[u8]) -> bool {
        hash(token) == hash(self.csrf.as_bytes())
    }
}

/// The valid links and sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    links: Vec<(Hash, Instant)>,
    sessions: Vec<Session>,
}

impl Sessions {
    /// Creates the token of a link.
    pub(crate) fn new_link(&mut self, now: Instant) -> String {
        let token = random_text();
        self.links.retain(|(_, expires)| *expires > now);
        if self.links.len() >= MOST {
            self.links.remove(0);
        }
        self.links
            .push((hash(token.as_bytes()), now + LINK_LIFETIME));
        token
    }

    /// Exchanges the token of a link for a new session, and returns the value of its cookie.
    pub(crate) fn exchange(&mut self, token: &str, now: Instant) -> Option<String> {
        let wanted = hash(token.as_bytes());
        let position = self.links.iter().position(|(known, _)| *known == wanted)?;
        let (_, expires) = self.links.remove(position);
        if expires <= now {
            return None;
        }
        self.sessions.retain(|session| session.expires > now);
        if self.sessions.len() >= MOST {
            self.sessions.remove(0);
        }
        let id = random_text();
        self.sessions.push(Session {
            id: hash(id.as_bytes()),
            csrf: random_text(),
            expires: now + SESSION_LIFETIME,
        });
        Some(id)
    }

    /// The session of a cookie.
    pub(crate) fn find(&self, cookie: &str, now: Instant) -> Option<Session> {
        let wanted = hash(cookie.as_bytes());
        let mut sessions = self.sessions.iter();
        let found = sessions.find(|session| session.id == wanted && session.expires > now);
        found.cloned()
    }
}
