//! The state of a certificate of a pod, and the times of its requests, as in the kubelet. Pure.

use jiff::{SignedDuration, Timestamp};

use super::key::PrivateKey;
use crate::events::Note;

/// A request that does not exist after this time and a random delay is repeated.
const ASSUME_DELETED: SignedDuration = SignedDuration::from_mins(10);
/// If a certificate becomes valid later than after this time, the clock was set back: API servers
/// do not accept such certificates from signers.
const SET_BACK: SignedDuration = SignedDuration::from_mins(10);
/// The time after which the renewal of a certificate is overdue.
const OVERDUE: SignedDuration = SignedDuration::from_mins(10);

/// A private key and the certificates of its public key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) key: PrivateKey,
    pub(crate) chain: String,
}

/// The reason why a pod has no certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CertificateError {
    #[error("credential bundle is not issued yet")]
    NotIssued,
    #[error("PodCertificateRequest was permanently {word}: reason={reason:?} message={message:?}")]
    Refused {
        word: &'static str,
        reason: String,
        message: String,
    },
}

/// A request that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) name: String,
    pub(super) key: PrivateKey,
    /// The time after which a request that does not exist counts as deleted.
    abandon_at: Timestamp,
}

impl Pending {
    pub(super) fn new(
        name: String,
        key: PrivateKey,
        created: Timestamp,
        delay: SignedDuration,
    ) -> Self {
        Self {
            name,
            key,
            abandon_at: later(created, ASSUME_DELETED.saturating_add(delay)),
        }
    }
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The request does not exist.
    Missing,
    /// The signer has not decided.
    Open,
    Denied {
        reason: String,
        message: String,
    },
    Failed {
        reason: String,
        message: String,
    },
    Issued {
        chain: String,
        not_before: Timestamp,
        refresh_at: Timestamp,
        not_after: Timestamp,
    },
}

/// The state of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// The certificate has not been requested.
    Initial,
    /// The certificate has been requested.
    Waiting(Pending),
    /// The signer has refused the certificate, which is final.
    Refused(CertificateError),
    Issued {
        credentials: Credentials,
        not_before: Timestamp,
        refresh_at: Timestamp,
        not_after: Timestamp,
        /// The request for the next certificate.
        renewal: Option<Pending>,
        /// True after an event that the renewal is overdue.
        noted_overdue: bool,
        /// True after an event that the certificate has expired.
        noted_expiry: bool,
    },
}

impl State {
    pub(super) fn credentials(&self) -> Result<Credentials, CertificateError> {
        match self {
            Self::Initial | Self::Waiting(_) => Err(CertificateError::NotIssued),
            Self::Refused(error) => Err(error.clone()),
            Self::Issued { credentials, .. } => Ok(credentials.clone()),
        }
    }

    /// Returns true if a certificate must be requested. This also holds after the clock was set
    /// back, because the current certificate may not be valid yet.
    pub(super) fn is_request_due(&self, now: Timestamp) -> bool {
        match self {
            Self::Initial => true,
            Self::Issued {
                not_before,
                refresh_at,
                renewal: None,
                ..
            } => *refresh_at <= now || later(now, SET_BACK) < *not_before,
            _ => false,
        }
    }

    /// Returns the request without an outcome.
    pub(super) fn pending(&self) -> Option<&Pending> {
        match self {
            Self::Waiting(pending) => Some(pending),
            Self::Issued { renewal, .. } => renewal.as_ref(),
            _ => None,
        }
    }

    /// Returns the time at which a certificate must be requested, or `None` if that depends on a
    /// signer.
    pub(super) fn next_request(&self) -> Option<Timestamp> {
        match self {
            Self::Issued {
                refresh_at,
                renewal: None,
                ..
            } => Some(*refresh_at),
            _ => None,
        }
    }

    /// Records that a certificate was requested.
    pub(super) fn requested(&mut self, pending: Pending) {
        match self {
            Self::Issued { renewal, .. } => *renewal = Some(pending),
            _ => *self = Self::Waiting(pending),
        }
    }

    /// Applies the outcome of the pending request of a pod in `namespace`. A renewal is
    /// delayed by `delay`. Returns an event about a refusal.
    pub(super) fn decide(
        &mut self,
        outcome: Outcome,
        namespace: &str,
        now: Timestamp,
        delay: SignedDuration,
    ) -> Option<Note> {
        let pending = self.pending()?.clone();
        let (condition, word, verb, reason, message) = match outcome {
            Outcome::Open => return None,
            Outcome::Missing if now <= pending.abandon_at => return None,
            Outcome::Missing => {
                match self {
                    Self::Issued { renewal, .. } => *renewal = None,
                    _ => *self = Self::Initial,
                }
                return None;
            }
            Outcome::Issued {
                chain,
                not_before,
                refresh_at,
                not_after,
            } => {
                let key = pending.key;
                *self = Self::Issued {
                    credentials: Credentials { key, chain },
                    not_before,
                    refresh_at: later(refresh_at, delay),
                    not_after,
                    renewal: None,
                    noted_overdue: false,
                    noted_expiry: false,
                };
                return None;
            }
            Outcome::Denied { reason, message } => {
                ("Denied", "denied", "was denied", reason, message)
            }
            Outcome::Failed { reason, message } => ("Failed", "failed", "failed", reason, message),
        };
        // The kubelet uses the reason as a format string, which results in this text.
        let text = format!(
            "{reason}%!(EXTRA string=PodCertificateRequest {namespace}/{} {verb}, reason={reason:?}, message={message:?})",
            pending.name,
        );
        *self = Self::Refused(CertificateError::Refused {
            word,
            reason,
            message,
        });
        Some(warning(condition, text))
    }

    /// Returns events about a certificate that is not renewed in time. Each event is returned once.
    pub(super) fn overdue(&mut self, now: Timestamp) -> Vec<Note> {
        let Self::Issued {
            refresh_at,
            not_after,
            noted_overdue,
            noted_expiry,
            ..
        } = self
        else {
            return Vec::new();
        };
        let mut notes = Vec::new();
        if now < *refresh_at {
            return notes;
        }
        if now > later(*refresh_at, OVERDUE) && !*noted_overdue {
            *noted_overdue = true;
            let text = "PodCertificate refresh overdue".to_owned();
            notes.push(warning("CertificateOverdueForRefresh", text));
        }
        if now > *not_after && !*noted_expiry {
            *noted_expiry = true;
            notes.push(warning(
                "CertificateExpired",
                "PodCertificate expired".to_owned(),
            ));
        }
        notes
    }
}

fn later(at: Timestamp, delay: SignedDuration) -> Timestamp {
    at.checked_add(delay).unwrap_or(Timestamp::MAX)
}

fn warning(reason: &'static str, message: String) -> Note {
    Note {
        warning: true,
        reason,
        message,
        container: None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
    }

    fn pending(name: &str, created: i64) -> Pending {
        let key = PrivateKey(format!("key of {name}"));
        Pending::new(name.to_owned(), key, at(created), SignedDuration::ZERO)
    }

    fn issued(chain: &str) -> Outcome {
        Outcome::Issued {
            chain: chain.to_owned(),
            not_before: at(0),
            refresh_at: at(100),
            not_after: at(200),
        }
    }

    fn decide(state: &mut State, outcome: Outcome, minutes: i64) -> Option<Note> {
        let delay = SignedDuration::from_mins(1);
        state.decide(outcome, "ns", at(minutes), delay)
    }

    fn fresh() -> State {
        let mut state = State::Initial;
        assert!(state.is_request_due(at(0)));
        state.requested(pending("a", 0));
        assert!(!state.is_request_due(at(0)));
        assert_eq!(state.credentials(), Err(CertificateError::NotIssued));
        assert_eq!(decide(&mut state, Outcome::Open, 1), None);
        assert_eq!(state.pending().unwrap().name, "a");
        assert_eq!(decide(&mut state, issued("one"), 1), None);
        state
    }

    #[test]
    fn a_certificate_is_renewed_with_another_key() {
        let mut state = fresh();
        let first = state.credentials().unwrap();
        assert_eq!((first.key.pem(), &*first.chain), ("key of a", "one"));
        // The time from the signer, and the delay.
        assert_eq!(state.next_request(), Some(at(101)));
        assert!(!state.is_request_due(at(100)));
        assert!(state.is_request_due(at(101)));
        // The clock is set back.
        assert!(!state.is_request_due(at(-10)));
        assert!(state.is_request_due(at(-11)));
        state.requested(pending("b", 101));
        assert!(!state.is_request_due(at(150)));
        assert_eq!(state.credentials().unwrap(), first);
        decide(&mut state, issued("two"), 102);
        let second = state.credentials().unwrap();
        assert_eq!((second.key.pem(), &*second.chain), ("key of b", "two"));
    }

    #[test]
    fn a_deleted_request_is_made_again_after_ten_minutes() {
        let mut state = State::Initial;
        state.requested(pending("a", 0));
        decide(&mut state, Outcome::Missing, 10);
        assert_eq!(state.pending().unwrap().name, "a");
        decide(&mut state, Outcome::Missing, 11);
        assert_eq!(state, State::Initial);

        let mut state = fresh();
        state.requested(pending("b", 101));
        decide(&mut state, Outcome::Missing, 112);
        assert!(state.is_request_due(at(112)));
        assert_eq!(state.credentials().unwrap().chain, "one");
    }

    #[test]
    fn a_refusal_is_final() {
        let denied = Outcome::Denied {
            reason: "UnsupportedKeyType".to_owned(),
            message: "try \"ED25519\"".to_owned(),
        };
        let mut state = State::Initial;
        state.requested(pending("a", 0));
        let note = decide(&mut state, denied, 1).unwrap();
        assert_eq!((note.warning, note.reason), (true, "Denied"));
        assert_eq!(
            note.message,
            r#"UnsupportedKeyType%!(EXTRA string=PodCertificateRequest ns/a was denied, reason="UnsupportedKeyType", message="try \"ED25519\"")"#
        );
        assert_eq!(
            state.credentials().unwrap_err().to_string(),
            r#"PodCertificateRequest was permanently denied: reason="UnsupportedKeyType" message="try \"ED25519\"""#
        );
        assert!(!state.is_request_due(at(1000)));
        assert_eq!(decide(&mut state, issued("late"), 2), None);
        assert!(state.credentials().is_err());

        let failed = Outcome::Failed {
            reason: "Why".to_owned(),
            message: String::new(),
        };
        let mut state = fresh();
        state.requested(pending("b", 101));
        let note = decide(&mut state, failed, 102).unwrap();
        assert_eq!(note.reason, "Failed");
        assert!(
            note.message
                .contains("ns/b failed, reason=\"Why\", message=\"\"")
        );
        assert!(state.credentials().is_err());
    }

    #[test]
    fn late_renewals_are_reported_once() {
        let mut state = fresh();
        let reasons = |state: &mut State, minutes: i64| {
            let notes = state.overdue(at(minutes)).into_iter();
            notes.map(|note| note.reason).collect::<Vec<_>>()
        };
        assert_eq!(reasons(&mut state, 100), [""; 0]);
        state.requested(pending("b", 101));
        assert_eq!(reasons(&mut state, 111), [""; 0]);
        assert_eq!(reasons(&mut state, 112), ["CertificateOverdueForRefresh"]);
        assert_eq!(reasons(&mut state, 200), [""; 0]);
        assert_eq!(reasons(&mut state, 201), ["CertificateExpired"]);
        assert_eq!(reasons(&mut state, 202), [""; 0]);
    }
}
