//! Who may ask: whoever shows the bearer token. A few paths tell nothing
//! private and are open, as probes need them.

use http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use crate::{fault::Fault, route::Route};

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

    /// Refuses requests that show another token or none.
    pub(crate) fn check(&self, headers: &HeaderMap, route: Option<&Route>) -> Result<(), Fault> {
        if matches!(route, Some(Route::Health(..) | Route::Version)) {
            return Ok(());
        }
        let shown = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim());
        match shown {
            Some(shown) if self.matches(shown) => Ok(()),
            _ => Err(Fault::unauthorized()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_the_token_opens_the_door() {
        let token = Token::new("secret");
        let check = |value: &str, route: &Route| {
            let mut headers = HeaderMap::new();
            if !value.is_empty() {
                headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            }
            token
                .check(&headers, Some(route))
                .map_err(|fault| fault.status().code)
        };
        assert_eq!(check("Bearer secret", &Route::Groups), Ok(()));
        assert_eq!(check("bearer secret", &Route::Groups), Ok(()));
        for wrong in [
            "",
            "Bearer secre",
            "Bearer secrett",
            "Basic secret",
            "secret",
            "Bearer ",
        ] {
            assert_eq!(check(wrong, &Route::Groups), Err(401), "{wrong:?}");
        }
        assert_eq!(check("", &Route::Health("livez", None)), Ok(()));
    }
}
