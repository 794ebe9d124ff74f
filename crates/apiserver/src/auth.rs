//! Authentication: who sends a request. The administrator shows the cluster's
//! bearer token or a client certificate of the cluster's authority, a service
//! account a token of its own. Until there is authorization, every
//! authenticated user may do everything. A few paths show nothing private and
//! are open, as probes need them.

use std::sync::{Arc, LazyLock};

use http::{HeaderMap, header};
use longshore_engine::Engine;
use sha2::{Digest, Sha256};

use crate::{
    fault::Fault,
    route::Route,
    tokens::{self, ISSUER, Refusal, TokenKey},
    user::User,
};

/// A bearer token, kept as its digest.
#[derive(Clone)]
pub(crate) struct Token([u8; 32]);

impl Token {
    pub(crate) fn new(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Compares digests, in a time that does not depend on where they differ.
    fn matches(&self, shown: &str) -> bool {
        let shown: [u8; 32] = Sha256::digest(shown).into();
        self.0
            .iter()
            .zip(shown)
            .fold(0, |differs, (a, b)| differs | (a ^ b))
            == 0
    }
}

/// Where requests come from.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// From this process, which may do everything.
    InProcess,
    /// From a connection, with the user of its client certificate.
    Network(Option<Arc<User>>),
}

/// Knows the credentials that the server accepts.
pub(crate) struct Authenticator {
    /// Has the service accounts, and the objects that their tokens are bound to.
    pub(crate) engine: Engine,
    /// The administrator's; the network's clients need none without it.
    pub(crate) token: Option<Token>,
    /// Signs the tokens of service accounts.
    pub(crate) token_key: Option<TokenKey>,
}

impl Authenticator {
    /// The user of a request; 401 when it shows no valid credentials. A token
    /// decides alone; the connection's certificate counts for requests without.
    pub(crate) fn authenticate(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        route: Option<&Route>,
    ) -> Result<Arc<User>, Fault> {
        let Caller::Network(certified) = caller else {
            return Ok(User::administrator());
        };
        if self.token.is_none() {
            return Ok(User::administrator());
        }
        let user = match headers.get(header::AUTHORIZATION) {
            Some(value) => {
                let token = value.to_str().ok().and_then(bearer);
                let found = token.and_then(|token| self.user_of(token, own_audience()).ok());
                found.map(|(user, _)| user)
            }
            None => certified.clone(),
        };
        match user {
            Some(user) => Ok(user),
            None if matches!(route, Some(Route::Health(..) | Route::Version)) => {
                Ok(User::anonymous())
            }
            None => Err(Fault::unauthorized()),
        }
    }

    /// The user of a token for one of `audiences`, and which of these it is for.
    pub(crate) fn user_of(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<(Arc<User>, Vec<String>), Refusal> {
        if self.token.as_ref().is_some_and(|own| own.matches(token)) {
            // It is for every audience.
            return Ok((User::administrator(), audiences.to_vec()));
        }
        let key = self.token_key.as_ref().ok_or(Refusal::Foreign)?;
        let found = tokens::authenticate(&self.engine, key, token, audiences);
        found.map(|(user, common)| (Arc::new(user), common))
    }
}

/// The token in the value of an `Authorization` header.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
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
        for wrong in ["Basic secret", "secret", "", "Bearer"] {
            assert_eq!(bearer(wrong), None, "{wrong:?}");
        }
    }
}
