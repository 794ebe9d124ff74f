//! Tokens of a pod's service account: asked of the API server as the kubelet
//! does, bound to the pod, and renewed before they expire.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, ServiceAccountTokenProjection};
use longshore_client::{Cluster, Error};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

/// How long the token lives that clients find at the usual place: the kubelet's
/// hour, and 7 seconds by which API servers know it.
pub(crate) const USUAL_LIFE_SECONDS: i64 = 3607;

/// How long one lives that is projected without saying so: Kubernetes' default.
const DEFAULT_LIFE_SECONDS: i64 = 3600;

/// A token is renewed after this share of its life, or after this time.
const RENEW_AFTER_PERCENT: i128 = 80;
const RENEW_AFTER: SignedDuration = SignedDuration::from_hours(24);
/// And not more often, whatever the clocks of server and node say.
const RENEW_AT_MOST_EVERY: SignedDuration = SignedDuration::from_secs(1);
/// How long to wait after a renewal that failed.
const RENEW_AGAIN: Duration = Duration::from_secs(10);
/// Times are compared at least so often: a timer stands still while the machine
/// sleeps.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(60);

/// Which token of the pod's service account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanted {
    /// Whom it is for; `None`: the API server.
    pub(crate) audience: Option<String>,
    /// How long it should live.
    pub(crate) seconds: i64,
}

impl Wanted {
    /// The one for the API server.
    pub(crate) fn usual() -> Self {
        Self {
            audience: None,
            seconds: USUAL_LIFE_SECONDS,
        }
    }

    /// Those that a pod's volumes ask for.
    pub(crate) fn of_volumes(pod: &Pod) -> BTreeSet<Self> {
        let spec = pod.spec.iter();
        let volumes = spec.flat_map(|spec| spec.volumes.iter().flatten());
        let projected = volumes.filter_map(|volume| volume.projected.as_ref());
        let sources = projected.flat_map(|projected| projected.sources.iter().flatten());
        sources
            .filter_map(|source| source.service_account_token.as_ref())
            .map(Self::of)
            .collect()
    }

    /// The one that a part of a projected volume asks for.
    pub(crate) fn of(source: &ServiceAccountTokenProjection) -> Self {
        Self {
            audience: source.audience.clone().filter(|name| !name.is_empty()),
            seconds: source.expiration_seconds.unwrap_or(DEFAULT_LIFE_SECONDS),
        }
    }
}

/// Tokens by what they are for.
pub(crate) type Issued = BTreeMap<Wanted, String>;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TokenError {
    /// The API server has no such request at all.
    #[error("the API server does not issue tokens for service accounts")]
    NotOffered,
    /// It refuses this one, or cannot be reached.
    #[error("failed to fetch token: {0}")]
    Refused(#[from] Error),
}

#[derive(Debug, Clone)]
struct Kept {
    token: String,
    expires: Timestamp,
    renew_at: Timestamp,
}

/// The tokens of one pod.
#[derive(Debug)]
pub(crate) struct Tokens {
    cluster: Cluster,
    path: String,
    account: String,
    /// The pod that they are bound to.
    pod: serde_json::Value,
    kept: Mutex<BTreeMap<Wanted, Kept>>,
}

/// Part of a TokenRequest's answer.
#[derive(Debug, Deserialize)]
struct Answer {
    status: AnswerStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerStatus {
    token: String,
    expiration_timestamp: Timestamp,
}

impl Tokens {
    pub(crate) fn new(cluster: Cluster, pod: &Pod) -> Self {
        let metadata = &pod.metadata;
        let account = account(pod).to_owned();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        Self {
            cluster,
            path: format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"),
            account,
            pod: json!({
                "apiVersion": "v1", "kind": "Pod",
                "name": metadata.name, "uid": metadata.uid,
            }),
            kept: Mutex::default(),
        }
    }

    /// All of `wanted`: those that were issued, renewed where it is time. One
    /// that cannot be renewed is given for as long as it is valid.
    pub(crate) async fn issue(&self, wanted: BTreeSet<Wanted>) -> Result<Issued, TokenError> {
        let mut issued = Issued::new();
        for wanted in wanted {
            let now = Timestamp::now();
            let kept = self.kept.lock().get(&wanted).cloned();
            let kept = match kept {
                Some(kept) if now < kept.renew_at => kept,
                kept => match (self.request(&wanted, now).await, kept) {
                    (Ok(fresh), _) => {
                        self.kept.lock().insert(wanted.clone(), fresh.clone());
                        fresh
                    }
                    (Err(error), Some(kept)) if now < kept.expires => {
                        tracing::warn!(
                            account = self.account, pod = %self.pod["name"], %error,
                            "a token is not renewed yet"
                        );
                        kept
                    }
                    (Err(error), _) => return Err(error),
                },
            };
            issued.insert(wanted, kept.token);
        }
        Ok(issued)
    }

    async fn request(&self, wanted: &Wanted, now: Timestamp) -> Result<Kept, TokenError> {
        let audiences: Vec<_> = wanted.audience.iter().collect();
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {
                "audiences": audiences,
                "expirationSeconds": wanted.seconds,
                "boundObjectRef": self.pod,
            },
        });
        let answer = self.cluster.proxy().post(&self.path, &[], &request).await;
        let answer = answer.map_err(|error| match self.is_unknown(&error) {
            true => TokenError::NotOffered,
            false => TokenError::Refused(error),
        })?;
        let answer: Answer = serde_json::from_value(answer).map_err(|error| {
            TokenError::Refused(Error::Decode {
                what: self.path.clone(),
                problem: error.to_string(),
            })
        })?;
        let expires = answer.status.expiration_timestamp;
        Ok(Kept {
            token: answer.status.token,
            expires,
            renew_at: renew_at(now, expires, wanted.seconds),
        })
    }

    /// Whether an error means that the server knows no such request: it has not
    /// looked for the account, which its answer would name.
    fn is_unknown(&self, error: &Error) -> bool {
        if error.code() == Some(405) {
            return true;
        }
        let details = error.status().and_then(|status| status.details.as_ref());
        error.is_not_found() && details.is_none_or(|details| details.name.is_empty())
    }

    /// How long nothing is to be done; `None` when there are no tokens.
    fn rest(&self, now: Timestamp) -> Option<Duration> {
        let kept = self.kept.lock();
        let next = kept.values().map(|kept| kept.renew_at).min()?;
        Some(Duration::try_from(next.duration_since(now)).unwrap_or_default())
    }

    /// Calls `due` whenever a token is to be renewed, until it says that nobody
    /// listens any more.
    pub(crate) async fn follow<F: Future<Output = bool>>(&self, due: impl Fn() -> F) {
        while let Some(rest) = self.rest(Timestamp::now()) {
            tokio::time::sleep(rest.min(LOOK_AT_CLOCK)).await;
            if self.rest(Timestamp::now()) != Some(Duration::ZERO) {
                continue;
            }
            if !due().await {
                return;
            }
            // It is being renewed, or that has failed.
            tokio::time::sleep(RENEW_AGAIN.min(rest.max(Duration::from_secs(1)))).await;
        }
    }
}

/// The name of a pod's service account.
pub(crate) fn account(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    let name = spec.and_then(|spec| spec.service_account_name.as_deref());
    name.filter(|name| !name.is_empty()).unwrap_or("default")
}

/// When a token is to be renewed that is issued `now`.
fn renew_at(now: Timestamp, expires: Timestamp, seconds: i64) -> Timestamp {
    let mut life = expires.duration_since(now);
    if life <= SignedDuration::ZERO {
        // The server's clock is behind.
        life = SignedDuration::from_secs(seconds);
    }
    let share = life.as_millis().saturating_mul(RENEW_AFTER_PERCENT) / 100;
    let share = SignedDuration::from_millis(i64::try_from(share).unwrap_or(i64::MAX));
    let wait = share.clamp(RENEW_AT_MOST_EVERY, RENEW_AFTER);
    now.saturating_add(wait).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tokens_are_renewed_as_by_the_kubelet() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let after = |life: i64, asked: i64| {
            let expires = now.saturating_add(SignedDuration::from_secs(life)).unwrap();
            renew_at(now, expires, asked).duration_since(now).as_secs()
        };
        assert_eq!(after(600, 600), 480);
        assert_eq!(after(3607, 3607), 2885);
        assert_eq!(after(365 * 86_400, 3607), 86_400);
        // A clock that is an hour behind.
        assert_eq!(after(-3600, 600), 480);
        assert_eq!(after(0, i64::MAX), 86_400);
        assert_eq!(after(1, 1), 1);
    }

    fn server(key: Option<longshore_apiserver::TokenKey>) -> Cluster {
        let options = longshore_engine::Options::default();
        let server = longshore_apiserver::ApiServer::new(longshore_apiserver::Options {
            engine: longshore_engine::Engine::open(options).unwrap(),
            token: None,
            token_key: key,
            node_logs: std::sync::Arc::new(longshore_apiserver::NoLogs),
            node_streams: std::sync::Arc::new(longshore_apiserver::NoStreams),
            faults: false,
            warn_idle: false,
        });
        Cluster::from_service(server.service(), "default")
    }

    async fn tokens(cluster: &Cluster, account: &str) -> Tokens {
        let pod = json!({"metadata": {"name": "p", "namespace": "default"},
            "spec": {"serviceAccountName": account,
                "containers": [{"name": "c", "image": "i"}]}});
        let pods = cluster.pods().in_namespace("default").unwrap();
        let pod = pods.create(&pod).await.unwrap();
        Tokens::new(cluster.clone(), &pod.typed().unwrap())
    }

    fn keep(tokens: &Tokens, wanted: &Wanted, expires_in: i64, renew_in: i64) {
        let at = |seconds| {
            let wait = SignedDuration::from_secs(seconds);
            Timestamp::now().saturating_add(wait).unwrap()
        };
        let kept = Kept {
            token: "old".to_owned(),
            expires: at(expires_in),
            renew_at: at(renew_in),
        };
        tokens.kept.lock().insert(wanted.clone(), kept);
    }

    #[tokio::test]
    async fn tokens_are_kept_renewed_and_given_as_long_as_they_are_valid() {
        let wanted = Wanted::usual();
        let ask = async |tokens: &Tokens| tokens.issue([wanted.clone()].into()).await;
        let key = longshore_apiserver::TokenKey::ephemeral().unwrap();
        let tokens_of = tokens(&server(Some(key)), "default").await;
        keep(&tokens_of, &wanted, 3600, 600);
        assert_eq!(ask(&tokens_of).await.unwrap()[&wanted], "old");
        keep(&tokens_of, &wanted, 3600, -1);
        let fresh = ask(&tokens_of).await.unwrap()[&wanted].clone();
        assert_eq!(fresh.split('.').count(), 3, "a JSON Web Token");
        // Kept, and not asked for again.
        assert_eq!(ask(&tokens_of).await.unwrap()[&wanted], fresh);

        let without = tokens(&server(None), "default").await;
        assert!(matches!(ask(&without).await, Err(TokenError::NotOffered)));
        keep(&without, &wanted, 3600, -1);
        assert_eq!(ask(&without).await.unwrap()[&wanted], "old");
        keep(&without, &wanted, -1, -1);
        assert!(matches!(ask(&without).await, Err(TokenError::NotOffered)));
    }

    #[tokio::test]
    async fn an_account_that_is_missing_is_not_a_server_without_tokens() {
        let key = longshore_apiserver::TokenKey::ephemeral().unwrap();
        let tokens = tokens(&server(Some(key)), "missing").await;
        let refused = tokens.issue([Wanted::usual()].into()).await.unwrap_err();
        let text = refused.to_string();
        assert!(matches!(refused, TokenError::Refused(_)), "{text}");
        assert!(text.contains("\"missing\" not found"), "{text}");
    }

    #[tokio::test]
    async fn renewal_is_due_when_its_time_has_come() {
        let tokens = tokens(&server(None), "default").await;
        // Without tokens there is nothing to do.
        tokens.follow(async || true).await;
        keep(&tokens, &Wanted::usual(), 3600, 1);
        let calls = std::sync::atomic::AtomicU32::new(0);
        let due = async || calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        let all = tokens.follow(due);
        tokio::time::timeout(Duration::from_secs(60), all)
            .await
            .unwrap();
        assert_eq!(calls.into_inner(), 2);
    }

    #[test]
    fn what_volumes_ask_for() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {}, "spec": {
            "serviceAccountName": "",
            "containers": [{"name": "c"}],
            "volumes": [{"name": "a", "projected": {"sources": [
                {"serviceAccountToken": {"path": "t"}},
                {"serviceAccountToken": {"path": "u", "audience": "vault", "expirationSeconds": 600}},
            ]}}],
        }}))
        .unwrap();
        let wanted: Vec<_> = Wanted::of_volumes(&pod).into_iter().collect();
        let one = |audience: Option<&str>, seconds| Wanted {
            audience: audience.map(str::to_owned),
            seconds,
        };
        assert_eq!(wanted, [one(None, 3600), one(Some("vault"), 600)]);
        assert_eq!(account(&pod), "default");
    }
}
