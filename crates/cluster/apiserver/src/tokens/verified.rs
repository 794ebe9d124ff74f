//! The tokens whose signature was verified: checking it again for each request would take a
//! tenth of the time of a create.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use sha2::{Digest, Sha256};

use super::AnyClaims;

/// Maximum number of cached tokens. Beyond it, the cache is cleared and tokens are verified again.
const LIMIT: usize = 4096;

/// The claims of verified tokens by the tokens' digests.
#[derive(Default)]
pub(super) struct Verified(Mutex<HashMap<[u8; 32], Arc<AnyClaims>>>);

impl Verified {
    /// Returns the claims of a token. Calls `verify` for a token that is not cached. Refused tokens
    /// are not cached.
    pub(super) fn claims(
        &self,
        token: &str,
        verify: impl FnOnce() -> Option<AnyClaims>,
    ) -> Option<Arc<AnyClaims>> {
        let digest = Sha256::digest(token).into();
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = known().get(&digest) {
            return Some(claims.clone());
        }
        let claims = Arc::new(verify()?);
        let mut known = known();
        if known.len() >= LIMIT {
            known.clear();
        }
        known.insert(digest, claims.clone());
        Some(claims)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use jiff::Timestamp;

    use super::{
        super::{Claims, Kubernetes, TokenKey},
        *,
    };

    #[test]
    fn a_token_is_verified_once_and_a_refused_token_each_time() {
        let verified = Verified::default();
        let when = (Timestamp::from_second(1000).unwrap(), 600);
        let claims = Claims::new(Kubernetes::default(), vec!["x".into()], when, "id".into());
        let claims = AnyClaims::Bound(Box::new(claims));
        let first = verified.claims("a", || Some(claims.clone())).unwrap();
        assert_eq!(*first, claims);
        let again = verified.claims("a", || panic!("verified twice"));
        assert_eq!(again, Some(first));
        assert_eq!(verified.claims("b", || None), None);
        assert!(verified.claims("b", || Some(claims.clone())).is_some());
    }

    #[test]
    fn the_number_of_kept_tokens_is_limited() {
        let verified = Verified::default();
        let key = TokenKey::ephemeral().unwrap();
        let when = (Timestamp::from_second(1000).unwrap(), 600);
        let bound = Claims::new(Kubernetes::default(), vec!["x".into()], when, "id".into());
        let claims = AnyClaims::Bound(Box::new(bound.clone()));
        for number in 0..=LIMIT {
            let kept = verified.claims(&number.to_string(), || Some(claims.clone()));
            assert!(kept.is_some());
        }
        assert_eq!(verified.0.lock().unwrap().len(), 1);
        let token = key.sign(&bound).unwrap();
        assert_eq!(key.verify(&token).as_deref(), Some(&claims));
    }
}
