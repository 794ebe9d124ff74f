//! Authenticates tokens: checks the signature and the claims, and that every
//! object that the token names still has the same uid.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use longshore_engine::{Engine, Object, ReadVersion};
use longshore_model::kind::builtin;
use serde::Deserialize;

use super::{
    AnyClaims, Claims, ISSUER, Reference, SecretClaims, TokenKey, claims::user_name,
    refusal::Refusal,
};
use crate::user::{AUTHENTICATED, User};

/// Time that tokens remain valid after the deletion timestamp of an object (as in Kubernetes): pods
/// send requests while they terminate.
const DELETION_LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// The label of Secrets whose token is no longer accepted.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// Returns the user of a token for any of `audiences`, and the audiences for which the token is
/// valid.
pub(crate) fn authenticate(
    engine: &Engine,
    key: &TokenKey,
    token: &str,
    audiences: &[String],
) -> Result<(User, Vec<String>), Refusal> {
    let claims = key.verify(token).ok_or(Refusal::Foreign)?;
    let now = engine.now();
    let claims = match &*claims {
        AnyClaims::Bound(claims) => claims,
        AnyClaims::OfSecret(claims) => {
            claims.check()?;
            in_secret(engine, now, token, claims)?;
            // The token has no audience, so it is for this server.
            let own = audiences.iter().filter(|one| *one == ISSUER);
            let own: Vec<String> = own.cloned().collect();
            if own.is_empty() {
                return Err(Refusal::Foreign);
            }
            let account = (&*claims.account, &*claims.account_uid);
            return Ok((account_user(&claims.namespace, account), own));
        }
    };
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
        // If the token names a pod, the node is only informational.
        (Some(pod), _) => exists(engine, now, "Pod", namespace, pod)?,
        (None, Some(node)) => exists(engine, now, "Node", None, node)?,
        (None, None) => {}
    }
    let common = claims.aud.iter().filter(|one| audiences.contains(one));
    let common = common.cloned().collect();
    Ok((user(claims), common))
}

/// Returns true if an object exists with the uid of the reference and was not deleted too long ago.
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

/// Returns true if a token is still in its Secret, and its service account exists.
fn in_secret(
    engine: &Engine,
    now: Timestamp,
    token: &str,
    claims: &SecretClaims,
) -> Result<(), Refusal> {
    let refuse = |text: &str| Err(Refusal::Invalid(text.to_owned()));
    let info = builtin("", "Secret").ok_or(Refusal::Foreign)?;
    let namespace = Some(&*claims.namespace);
    let Ok(found) = engine.get(info, namespace, &claims.secret, ReadVersion::Latest) else {
        return refuse("Token has been invalidated");
    };
    let secret: Secret = serde_json::from_slice(found.bytes()).unwrap_or_default();
    if secret.metadata.deletion_timestamp.is_some() {
        return refuse("Token has been invalidated");
    }
    let own = secret.data.unwrap_or_default().token;
    // The signature was verified, so this does not compare secrets.
    if STANDARD.decode(own).ok().as_deref() != Some(token.as_bytes()) {
        return refuse("Token does not match server's copy");
    }
    let account = Reference {
        name: claims.account.clone(),
        uid: claims.account_uid.clone(),
    };
    exists(engine, now, "ServiceAccount", namespace, &account)?;
    let labels = secret.metadata.labels.unwrap_or_default();
    if labels
        .get(INVALID_SINCE)
        .is_some_and(|since| !since.is_empty())
    {
        return Err(Refusal::Invalid(format!(
            "the token in secret {}/{} for service account {}/{} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token",
            claims.namespace, claims.secret, claims.namespace, claims.account
        )));
    }
    Ok(())
}

/// The fields of a Secret with a token.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Secret {
    metadata: SecretMetadata,
    data: Option<SecretData>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct SecretMetadata {
    deletion_timestamp: Option<Timestamp>,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SecretData {
    token: String,
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

/// Returns the user of a service account.
fn account_user(namespace: &str, (name, uid): (&str, &str)) -> User {
    let groups = vec![
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
        AUTHENTICATED.to_owned(),
    ];
    User {
        name: user_name(namespace, name),
        uid: uid.to_owned(),
        groups,
        ..User::default()
    }
}

fn user(claims: &Claims) -> User {
    let named = &claims.kubernetes;
    let account = &named.serviceaccount;
    let mut user = account_user(&named.namespace, (&account.name, &account.uid));
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
