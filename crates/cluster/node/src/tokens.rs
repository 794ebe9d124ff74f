//! Tokens of a pod's service account. Like in the kubelet, they are requested from the API server,
//! bound to the pod, and renewed before they expire.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, ServiceAccountTokenProjection, Volume};
use longshore_client::{Cluster, Error};
use longshore_clock::Clock;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use crate::access;

/// Default lifetime of a projected token (as in Kubernetes).
const DEFAULT_LIFETIME_SECONDS: i64 = 3600;

/// A token is renewed after this percentage of its lifetime, or after [`RENEW_AFTER`].
const RENEW_AFTER_PERCENT: i128 = 80;
const RENEW_AFTER: SignedDuration = SignedDuration::from_hours(24);
/// The minimum time between renewals, independent of the clocks of the server and the node.
const MIN_RENEWAL_INTERVAL: SignedDuration = SignedDuration::from_secs(1);
/// The time before its issue at which a server still accepts a token.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_mins(1);
/// Delay after a failed renewal.
const RENEWAL_RETRY_DELAY: Duration = Duration::from_secs(10);
/// The maximum time between checks of the clock, because timers stop while the machine is
/// suspended.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The parameters of a token of the pod's service account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TokenSpec {
    /// The audience; `None` is the API server.
    pub(crate) audience: Option<String>,
    /// The requested lifetime.
    pub(crate) seconds: i64,
}

impl TokenSpec {
    /// The token that API servers add to pods.
    #[cfg(test)]
    fn for_api_server() -> Self {
        Self {
            audience: None,
            seconds: 3607,
        }
    }

    /// Returns the tokens that a pod's volumes request, in addition to the token of its service
    /// account.
    pub(crate) fn of_pod(pod: &Pod) -> BTreeSet<Self> {
        let spec = pod.spec.iter();
        let volumes = spec.flat_map(|spec| spec.volumes.iter().flatten());
        Self::of_volumes(volumes.filter(|volume| !access::is_account_volume(volume)))
    }

    /// Returns the tokens that volumes request.
    pub(crate) fn of_volumes<'a>(volumes: impl IntoIterator<Item = &'a Volume>) -> BTreeSet<Self> {
        let volumes = volumes.into_iter();
        let projected = volumes.filter_map(|volume| volume.projected.as_ref());
        let sources = projected.flat_map(|projected| projected.sources.iter().flatten());
        sources
            .filter_map(|source| source.service_account_token.as_ref())
            .map(Self::of)
            .collect()
    }

    /// Returns the token that a source of a projected volume requests.
    pub(crate) fn of(source: &ServiceAccountTokenProjection) -> Self {
        Self {
            audience: source.audience.clone().filter(|name| !name.is_empty()),
            seconds: source
                .expiration_seconds
                .unwrap_or(DEFAULT_LIFETIME_SECONDS),
        }
    }
}

/// Issued tokens by their parameters.
pub(crate) type Issued = BTreeMap<TokenSpec, String>;

/// The reason why a token is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TokenError {
    /// The API server does not support token requests.
    #[error("the API server does not issue tokens for service accounts")]
    NotOffered,
    /// The API server rejected the request or cannot be reached.
    #[error("failed to fetch token: {0}")]
    Refused(#[from] Error),
}

#[derive(Debug, Clone)]
struct CachedToken {
    token: String,
    issued: Timestamp,
    expires: Timestamp,
    renew_at: Timestamp,
}

impl CachedToken {
    /// Returns the time until the renewal. After the clock was set back, a token from a later time
    /// is renewed immediately, because servers reject it until then.
    fn time_to_renewal(&self, now: Timestamp) -> Duration {
        if self.issued.duration_since(now) > CLOCK_TOLERANCE {
            return Duration::ZERO;
        }
        Duration::try_from(self.renew_at.duration_since(now)).unwrap_or_default()
    }
}

/// The tokens of one pod.
#[derive(Debug)]
pub(crate) struct Tokens {
    cluster: Cluster,
    path: String,
    account: String,
    /// Reference to the pod that the tokens are bound to.
    pod: serde_json::Value,
    cached: Mutex<BTreeMap<TokenSpec, CachedToken>>,
    clock: Clock,
}

/// The relevant part of a TokenRequest response.
#[derive(Debug, Deserialize)]
struct TokenResponse {
    status: TokenResponseStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenResponseStatus {
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
            cached: Mutex::default(),
            clock: Clock::system(),
        }
    }

    /// Sets the clock of the server.
    pub(crate) fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Returns all `wanted` tokens, issued or renewed if necessary. A token
    /// that cannot be renewed is used until it expires.
    pub(crate) async fn issue(&self, wanted: BTreeSet<TokenSpec>) -> Result<Issued, TokenError> {
        let mut issued = Issued::new();
        for wanted in wanted {
            let now = self.clock.now();
            let cached = self.cached.lock().get(&wanted).cloned();
            let cached = match cached {
                Some(cached) if !cached.time_to_renewal(now).is_zero() => cached,
                cached => match (self.request(&wanted, now).await, cached) {
                    (Ok(fresh), _) => {
                        self.cached.lock().insert(wanted.clone(), fresh.clone());
                        fresh
                    }
                    (Err(error), Some(cached)) if now < cached.expires => {
                        tracing::warn!(
                            account = self.account, pod = %self.pod["name"], %error,
                            "cannot renew a token; using the current one"
                        );
                        cached
                    }
                    (Err(error), _) => return Err(error),
                },
            };
            issued.insert(wanted, cached.token);
        }
        Ok(issued)
    }

    async fn request(&self, wanted: &TokenSpec, now: Timestamp) -> Result<CachedToken, TokenError> {
        let audiences: Vec<_> = wanted.audience.iter().collect();
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {
                "audiences": audiences,
                "expirationSeconds": wanted.seconds,
                "boundObjectRef": self.pod,
            },
        });
        let response = self.cluster.proxy().post(&self.path, &[], &request).await;
        let response = response.map_err(|error| match self.is_unknown(&error) {
            true => TokenError::NotOffered,
            false => TokenError::Refused(error),
        })?;
        let response: TokenResponse = serde_json::from_value(response).map_err(|error| {
            TokenError::Refused(Error::Decode {
                what: self.path.clone(),
                problem: error.to_string(),
            })
        })?;
        let expires = response.status.expiration_timestamp;
        Ok(CachedToken {
            token: response.status.token,
            issued: now,
            expires,
            renew_at: renew_at(now, expires, wanted.seconds),
        })
    }

    /// Returns true if an error means that the server does not support token requests. Otherwise
    /// the error names the account.
    fn is_unknown(&self, error: &Error) -> bool {
        if error.code() == Some(405) {
            return true;
        }
        let details = error.status().and_then(|status| status.details.as_ref());
        error.is_not_found() && details.is_none_or(|details| details.name.is_empty())
    }

    /// Returns the time until the next renewal, or `None` without tokens.
    fn time_to_renewal(&self, now: Timestamp) -> Option<Duration> {
        let cached = self.cached.lock();
        let times = cached.values().map(|cached| cached.time_to_renewal(now));
        times.min()
    }

    /// Calls `due` when a token must be renewed, until `due` returns false because its receiver was
    /// dropped.
    pub(crate) async fn follow<F: Future<Output = bool>>(&self, due: impl Fn() -> F) {
        loop {
            let begin = self.clock.instant();
            let Some(time_to_renewal) = self.time_to_renewal(self.clock.now()) else {
                return;
            };
            let wait = time_to_renewal.min(CLOCK_CHECK_INTERVAL);
            self.clock.sleep_after(begin, wait).await;
            if self.time_to_renewal(self.clock.now()) != Some(Duration::ZERO) {
                continue;
            }
            if !due().await {
                return;
            }
            // The token is being renewed, or its renewal has failed.
            tokio::time::sleep(
                RENEWAL_RETRY_DELAY.min(time_to_renewal.max(Duration::from_secs(1))),
            )
            .await;
        }
    }
}

/// Returns the name of a pod's service account.
pub(crate) fn account(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    let name = spec.and_then(|spec| spec.service_account_name.as_deref());
    name.filter(|name| !name.is_empty()).unwrap_or("default")
}

/// Returns the time at which a token that is issued `now` is renewed.
fn renew_at(now: Timestamp, expires: Timestamp, seconds: i64) -> Timestamp {
    let mut lifetime = expires.duration_since(now);
    if lifetime <= SignedDuration::ZERO {
        // The server's clock is behind.
        lifetime = SignedDuration::from_secs(seconds);
    }
    let share = lifetime.as_millis().saturating_mul(RENEW_AFTER_PERCENT) / 100;
    let share = SignedDuration::from_millis(i64::try_from(share).unwrap_or(i64::MAX));
    let wait = share.clamp(MIN_RENEWAL_INTERVAL, RENEW_AFTER);
    now.saturating_add(wait).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tokens_are_renewed_like_by_the_kubelet() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let after = |lifetime: i64, asked: i64| {
            let expires = now
                .saturating_add(SignedDuration::from_secs(lifetime))
                .unwrap();
            renew_at(now, expires, asked).duration_since(now).as_secs()
        };
        assert_eq!(after(600, 600), 480);
        assert_eq!(after(3607, 3607), 2885);
        assert_eq!(after(365 * 86_400, 3607), 86_400);
        // The clock is an hour behind.
        assert_eq!(after(-3600, 600), 480);
        assert_eq!(after(0, i64::MAX), 86_400);
        assert_eq!(after(1, 1), 1);
    }

    fn server(key: Option<longshore_apiserver::TokenKey>) -> Cluster {
        let options = longshore_engine::Options::default();
        let server = longshore_apiserver::ApiServer::new(longshore_apiserver::Options {
            engine: longshore_engine::Engine::open(options).unwrap(),
            token: None,
            authorization: longshore_apiserver::AuthorizationMode::Rbac,
            token_key: key,
            node_logs: std::sync::Arc::new(longshore_apiserver::NoLogs),
            node_streams: std::sync::Arc::new(longshore_apiserver::NoStreams),
            faults: false,
            warn_unhandled_kinds: false,
        });
        Cluster::from_service(server.service(), "default")
    }

    async fn tokens(cluster: &Cluster, account: &str) -> Tokens {
        let pod = json!({"metadata": {"name": "p", "namespace": "default"},
            "spec": {"serviceAccountName": account,
                "containers": [{"name": "c", "image": "i"}]}});
        let pods = cluster.pods().in_namespace("default").unwrap();
        let accounts = cluster.serviceaccounts().in_namespace("default").unwrap();
        if account != "default" {
            let account = json!({"metadata": {"name": account}});
            accounts.create(&account).await.unwrap();
        }
        let pod = pods.create(&pod).await.unwrap();
        if account != "default" {
            // The pod outlives its account.
            let options = longshore_client::DeleteOptions::default();
            accounts.delete(account, &options).await.unwrap();
        }
        Tokens::new(cluster.clone(), &pod.object().unwrap())
    }

    fn cache(tokens: &Tokens, wanted: &TokenSpec, expires_in: i64, renew_in: i64) {
        cache_issued(tokens, wanted, 0, expires_in, renew_in);
    }

    fn cache_issued(
        tokens: &Tokens,
        wanted: &TokenSpec,
        issued_in: i64,
        expires_in: i64,
        renew_in: i64,
    ) {
        let at = |seconds| {
            let wait = SignedDuration::from_secs(seconds);
            Timestamp::now().saturating_add(wait).unwrap()
        };
        let cached = CachedToken {
            token: "old".to_owned(),
            issued: at(issued_in),
            expires: at(expires_in),
            renew_at: at(renew_in),
        };
        tokens.cached.lock().insert(wanted.clone(), cached);
    }

    #[tokio::test]
    async fn tokens_are_cached_renewed_and_used_until_they_expire() {
        let wanted = TokenSpec::for_api_server();
        let ask = async |tokens: &Tokens| tokens.issue([wanted.clone()].into()).await;
        let key = longshore_apiserver::TokenKey::ephemeral().unwrap();
        let tokens_of = tokens(&server(Some(key)), "default").await;
        cache(&tokens_of, &wanted, 3600, 600);
        assert_eq!(ask(&tokens_of).await.unwrap()[&wanted], "old");
        cache(&tokens_of, &wanted, 3600, -1);
        let fresh = ask(&tokens_of).await.unwrap()[&wanted].clone();
        assert_eq!(fresh.split('.').count(), 3, "a JSON Web Token");
        // The token was kept and not requested again.
        assert_eq!(ask(&tokens_of).await.unwrap()[&wanted], fresh);
        // The clock was set back by an hour.
        cache_issued(&tokens_of, &wanted, 3600, 7200, 6500);
        let now = Timestamp::now();
        assert_eq!(tokens_of.time_to_renewal(now), Some(Duration::ZERO));
        assert_ne!(ask(&tokens_of).await.unwrap()[&wanted], "old");

        let without = tokens(&server(None), "default").await;
        assert!(matches!(ask(&without).await, Err(TokenError::NotOffered)));
        cache(&without, &wanted, 3600, -1);
        assert_eq!(ask(&without).await.unwrap()[&wanted], "old");
        cache(&without, &wanted, -1, -1);
        assert!(matches!(ask(&without).await, Err(TokenError::NotOffered)));
    }

    #[tokio::test]
    async fn a_missing_account_differs_from_unsupported_token_requests() {
        let key = longshore_apiserver::TokenKey::ephemeral().unwrap();
        let tokens = tokens(&server(Some(key)), "missing").await;
        let refused = tokens
            .issue([TokenSpec::for_api_server()].into())
            .await
            .unwrap_err();
        let text = refused.to_string();
        assert!(matches!(refused, TokenError::Refused(_)), "{text}");
        assert!(text.contains("\"missing\" not found"), "{text}");
    }

    #[tokio::test]
    async fn renewal_is_due_on_time() {
        let tokens = tokens(&server(None), "default").await;
        // Without tokens, this returns immediately.
        tokens.follow(async || true).await;
        cache(&tokens, &TokenSpec::for_api_server(), 3600, 1);
        let calls = std::sync::atomic::AtomicU32::new(0);
        let due = async || calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        let all = tokens.follow(due);
        tokio::time::timeout(Duration::from_secs(60), all)
            .await
            .unwrap();
        assert_eq!(calls.into_inner(), 2);
    }

    #[test]
    fn tokens_requested_by_volumes() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {}, "spec": {
            "serviceAccountName": "",
            "containers": [{"name": "c"}],
            "volumes": [{"name": "a", "projected": {"sources": [
                {"serviceAccountToken": {"path": "t"}},
                {"serviceAccountToken": {"path": "u", "audience": "vault", "expirationSeconds": 600}},
            ]}}],
        }}))
        .unwrap();
        let wanted: Vec<_> = TokenSpec::of_pod(&pod).into_iter().collect();
        let one = |audience: Option<&str>, seconds| TokenSpec {
            audience: audience.map(str::to_owned),
            seconds,
        };
        assert_eq!(wanted, [one(None, 3600), one(Some("vault"), 600)]);
        assert_eq!(account(&pod), "default");
    }
}
