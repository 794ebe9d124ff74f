//! Authentication: determines the user who sends a request. The administrator presents the
//! cluster's bearer token or a client certificate signed by the cluster's authority; a service
//! account presents its token. `authorization` decides which requests the user may send. A few
//! paths that expose no private data are open, because probes need them.

use std::sync::{Arc, LazyLock};

use http::{HeaderMap, header};
use longshore_engine::Engine;
use sha2::{Digest, Sha256};

use crate::{
    route::Route,
    status_error::StatusError,
    tokens::{self, ISSUER, Refusal, TokenKey},
    user::User,
};

/// A bearer token, stored as its digest.
#[derive(Clone)]
pub(crate) struct Token([u8; 32]);

impl Token {
    pub(crate) fn new(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Compares digests in constant time.
    fn matches(&self, shown: &str) -> bool {
        let shown: [u8; 32] = Sha256::digest(shown).into();
        self.0
            .iter()
            .zip(shown)
            .fold(0, |differs, (a, b)| differs | (a ^ b))
            == 0
    }
}

/// The origin of a request.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// This process, which may send any request.
    InProcess,
    /// A network connection, with the user of its client certificate.
    Network(Option<Arc<User>>),
}

impl Caller {
    /// The kinds of credentials that a request contains.
    pub(crate) fn attempted(&self, headers: &HeaderMap) -> Vec<&'static str> {
        let scheme = headers.get(header::AUTHORIZATION);
        let scheme = scheme.and_then(|value| value.to_str().ok()?.split_once(' '));
        let scheme = scheme.map(|(scheme, _)| scheme.to_ascii_lowercase());
        let mut found = Vec::new();
        match scheme.as_deref() {
            Some("basic") => found.push("basic"),
            Some("bearer") => found.push("bearer"),
            _ => {}
        }
        if matches!(self, Self::Network(Some(_))) {
            found.push("x509");
        }
        found
    }
}

/// Checks credentials.
pub(crate) struct Authenticator {
    /// Holds the service accounts and the objects that their tokens are bound
    /// to.
    pub(crate) engine: Engine,
    /// The administrator's token. If `None`, network clients need no token.
    pub(crate) token: Option<Token>,
    /// Signs the tokens of service accounts.
    pub(crate) token_key: Option<TokenKey>,
    /// True if requests without credentials belong to the anonymous user.
    pub(crate) allows_anonymous: bool,
}

impl Authenticator {
    /// Returns the user of a request, or the anonymous user if the request has no credentials. A
    /// token takes precedence: the connection's certificate counts only for requests without a
    /// token, and an invalid token is answered with 401 on each path. As in Kubernetes, an
    /// `Authorization` header of another scheme is ignored.
    pub(crate) fn authenticate(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        route: Option<&Route>,
    ) -> Result<Arc<User>, StatusError> {
        let Caller::Network(certified) = caller else {
            return Ok(User::administrator());
        };
        if self.token.is_none() {
            return Ok(User::administrator());
        }
        let header = headers.get(header::AUTHORIZATION);
        let header = header.map(|value| String::from_utf8_lossy(value.as_bytes()));
        if let Some(token) = header.as_deref().and_then(bearer) {
            let found = self.user_of(token, own_audience());
            return found
                .map(|(user, _)| user)
                .map_err(|_| StatusError::unauthorized());
        }
        let is_open = || matches!(route, Some(Route::Health(..) | Route::Version));
        match certified {
            Some(user) => Ok(user.clone()),
            None if self.allows_anonymous || is_open() => Ok(User::anonymous()),
            None => Err(StatusError::unauthorized()),
        }
    }

    /// Returns the user of a token, and the elements of `audiences` for which the token is valid.
    pub(crate) fn user_of(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<(Arc<User>, Vec<String>), Refusal> {
        if self.token.as_ref().is_some_and(|own| own.matches(token)) {
            // The administrator's token is valid for every audience.
            return Ok((User::administrator(), audiences.to_vec()));
        }
        let key = self.token_key.as_ref().ok_or(Refusal::Foreign)?;
        let found = tokens::authenticate(&self.engine, key, token, audiences);
        found.map(|(user, common)| (Arc::new(user), common))
    }
}

/// The token in the value of an `Authorization` header; `None` if the header has no token.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The audiences of this server.
pub(crate) fn own_audience() -> &'static [String] {
    static OWN: LazyLock<[String; 1]> = LazyLock::new(|| [ISSUER.to_owned()]);
    &*OWN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_matches() {
        let token = Token::new("secret");
        assert!(token.matches("secret"));
        for wrong in ["", "secre", "secrett", "Secret"] {
            assert!(!token.matches(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn bearer_tokens() {
        assert_eq!(bearer("Bearer secret"), Some("secret"));
        assert_eq!(bearer("bearer  secret "), Some("secret"));
        for wrong in ["Basic secret", "secret", "", "Bearer", "Bearer  "] {
            assert_eq!(bearer(wrong), None, "{wrong:?}");
        }
    }
}
