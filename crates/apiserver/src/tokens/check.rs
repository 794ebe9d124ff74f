//! Authenticates tokens: checks the signature and the claims, and that every
//! object that the token names still has the same uid.

use jiff::{SignedDuration, Timestamp};
use longshore_engine::{Engine, Object, ReadVersion};
use longshore_model::kind::builtin;
use serde::Deserialize;

use super::{Claims, Reference, TokenKey, refusal::Refusal};
use crate::user::{AUTHENTICATED, User};

/// How long tokens remain valid after the deletion timestamp of an object (as
/// in Kubernetes): pods send requests while they terminate.
const DELETION_LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// Returns the user of a token for one of `audiences`, and the audiences it is
/// valid for.
pub(crate) fn authenticate(
    engine: &Engine,
    key: &TokenKey,
    token: &str,
    audiences: &[String],
) -> Result<(User, Vec<String>), Refusal> {
    let claims = key.verify(token).ok_or(Refusal::Foreign)?;
    let now = engine.now();
    claims.check(now, audiences)?;
    let named = &claims.kubernetes;
    let namespace = Some(named.namespace.as_str());
    exists(
        engine,
        now,
        "ServiceAccount",
        namespace,
        &named.serviceaccount,
    )?;
    if let Some(secret) = &named.secret {
        exists(engine, now, "Secret", namespace, secret)?;
    }
    match (&named.pod, &named.node) {
        // If there is a pod, the node is informational.
        (Some(pod), _) => exists(engine, now, "Pod", namespace, pod)?,
        (None, Some(node)) => exists(engine, now, "Node", None, node)?,
        (None, None) => {}
    }
    let common = claims.aud.iter().filter(|one| audiences.contains(one));
    let common = common.cloned().collect();
    Ok((user(&claims), common))
}

/// Whether an object exists with the uid of the reference and was not deleted
/// too long ago.
fn exists(
    engine: &Engine,
    now: Timestamp,
    kind: &str,
    namespace: Option<&str>,
    wanted: &Reference,
) -> Result<(), Refusal> {
    let invalid = |text: String| Err(Refusal::Invalid(text));
    let info = builtin("", kind).ok_or(Refusal::Foreign)?;
    let Ok(found) = engine.get(info, namespace, &wanted.name, ReadVersion::Latest) else {
        return invalid(format!("{kind} {:?} of the token was deleted", wanted.name));
    };
    if found.uid() != wanted.uid {
        return invalid(format!(
            "{kind} UID ({}) does not match claim ({})",
            found.uid(),
            wanted.uid
        ));
    }
    let limit = now.checked_sub(DELETION_LEEWAY).unwrap_or(Timestamp::MIN);
    if deletion_timestamp(&found).is_some_and(|since| since < limit) {
        return invalid(format!("{kind} {:?} of the token was deleted", wanted.name));
    }
    Ok(())
}

/// Returns an object's deletion timestamp.
fn deletion_timestamp(object: &Object) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Envelope {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        deletion_timestamp: Option<Timestamp>,
    }
    let envelope: Envelope = serde_json::from_slice(object.bytes()).ok()?;
    envelope.metadata.deletion_timestamp
}

fn user(claims: &Claims) -> User {
    let named = &claims.kubernetes;
    let groups = vec![
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{}", named.namespace),
        AUTHENTICATED.to_owned(),
    ];
    let mut user = User {
        name: claims.sub.clone(),
        uid: named.serviceaccount.uid.clone(),
        groups,
        ..User::default()
    };
    let mut add = |name: &'static str, value| user.extra.insert(name.into(), vec![value]);
    add(
        "authentication.kubernetes.io/credential-id",
        format!("JTI={}", claims.jti),
    );
    if let Some(pod) = &named.pod {
        add("authentication.kubernetes.io/pod-name", pod.name.clone());
        add("authentication.kubernetes.io/pod-uid", pod.uid.clone());
    }
    if let Some(node) = &named.node {
        add("authentication.kubernetes.io/node-name", node.name.clone());
        add("authentication.kubernetes.io/node-uid", node.uid.clone());
    }
    user
}
