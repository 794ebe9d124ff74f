//! Pods that the cluster does not admit: the messages of FailedCreate events.

use super::{
    Cause, Explanation, WaitLimit,
    text::{between, has_any, short, with_message},
};

/// Classifies an API server's message about a rejected pod.
pub(super) fn sort(message: &str) -> (Explanation, WaitLimit) {
    let said = message
        .strip_prefix("Error creating: ")
        .unwrap_or(message)
        .trim();
    let quick = WaitLimit::seconds(20);
    let new = |kind, cause: String, remedy: String| Explanation::new(kind, cause, remedy);
    if let Some(found) = quota(said) {
        return (found, WaitLimit::StartTimeout);
    }
    if said.contains("failed quota: ") {
        let name = between(said, "failed quota: ", ":").unwrap_or_default();
        let what = between(said, "must specify ", " for").or_else(|| {
            let (_, rest) = said.split_once("must specify ")?;
            Some(rest)
        });
        let what = what.unwrap_or("its resources");
        return (
            new(
                Cause::Quota,
                format!("the quota {name:?} requires each container to specify {what}"),
                "set `cpu` and `memory`; for init containers the namespace needs a LimitRange with defaults".to_owned(),
            ),
            quick,
        );
    }
    if said.contains("error looking up service account") || said.contains("serviceaccount \"") {
        let name = between(said, "serviceaccount \"", "\"").unwrap_or_default();
        return (
            new(
                Cause::MissingServiceAccount,
                format!("the service account {name:?} is missing"),
                format!(
                    "create it with `kubectl create serviceaccount {name}`, or correct `service_account`"
                ),
            ),
            quick,
        );
    }
    if let Some(name) = between(said, "no PriorityClass with name ", " was found") {
        return (
            new(
                Cause::MissingPriorityClass,
                format!("the priority class {name:?} is missing"),
                "`kubectl get priorityclasses` lists the existing ones".to_owned(),
            ),
            WaitLimit::None,
        );
    }
    if has_any(said, &["runtimeclass"]) && said.contains("not found") {
        let name = between(said, "\"", "\"").unwrap_or_default();
        let name = between(said, "RuntimeClass \"", "\"").unwrap_or(name);
        return (
            new(
                Cause::MissingRuntimeClass,
                format!("the runtime class {name:?} is missing"),
                "`kubectl get runtimeclasses` lists the existing ones".to_owned(),
            ),
            WaitLimit::None,
        );
    }
    if let Some(found) = limits(said) {
        return (found, WaitLimit::None);
    }
    (admission(said), quick)
}

/// `exceeded quota: NAME, requested: cpu=2, used: cpu=3, limited: cpu=4`.
fn quota(said: &str) -> Option<Explanation> {
    let (_, rest) = said.split_once("xceeded quota: ")?;
    let name = rest.split(',').next().unwrap_or_default().trim();
    let part = |word: &str, next: Option<&str>| {
        let (_, rest) = rest.split_once(word)?;
        let end = next.and_then(|next| rest.find(next)).unwrap_or(rest.len());
        Some(rest[..end].trim_matches([',', ' ']).to_owned())
    };
    let requested = part("requested: ", Some(", used: "))?;
    let used = part("used: ", Some(", limited: "))?;
    let limited = part("limited: ", None)?;
    let of = |list: &str, resource: &str| {
        let mut pairs = list.split(',').filter_map(|pair| pair.split_once('='));
        let (_, amount) = pairs.find(|(key, _)| *key == resource)?;
        Some(amount.to_owned())
    };
    let details: Vec<String> = limited
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(resource, limit)| {
            format!(
                "{resource}: a task needs {}, {} of {limit} are used",
                of(&requested, resource).unwrap_or_default(),
                of(&used, resource).unwrap_or_default(),
            )
        })
        .collect();
    let resources: Vec<&str> = limited
        .split(',')
        .filter_map(|pair| pair.split('=').next())
        .collect();
    Some(Explanation::new(
        Cause::Quota,
        format!("the quota {name:?} is exceeded: {}", details.join("; ")),
        format!(
            "request less {}, wait until other tasks finish, or have the quota raised",
            resources.join(", ")
        ),
    ))
}

/// `maximum memory usage per Container is 1Gi, but limit is 2Gi`.
fn limits(said: &str) -> Option<Explanation> {
    let words = ["maximum ", "minimum ", " max limit to request ratio per "];
    if !said.contains(" per ") || !words.iter().any(|word| said.contains(word)) {
        return None;
    }
    let details = said
        .split_once("is forbidden: ")
        .map_or(said, |(_, details)| details);
    let details = details.trim_matches(['[', ']']);
    Some(Explanation::new(
        Cause::LimitRange,
        with_message(
            "the namespace's LimitRange rejects its pods",
            &short(details),
        ),
        "set `cpu` and `memory` within these bounds, or have the LimitRange changed",
    ))
}

fn admission(said: &str) -> Explanation {
    let new = |cause: String, remedy: &str| {
        Explanation::new(
            Cause::AdmissionRefused,
            with_message(cause, &short(said)),
            remedy,
        )
    };
    if said.contains("violates PodSecurity") {
        let level = between(said, "violates PodSecurity \"", "\"").unwrap_or("of the namespace");
        let cause = format!("the pod security level {level:?} rejects its pods");
        if said.contains("hostNetwork=true") {
            return new(
                cause,
                "run it without `host_network` (--host-network), or in a namespace with the level `privileged`",
            );
        }
        return new(
            cause,
            "set a security context that meets the level, or use a namespace with another level",
        );
    }
    if let Some(name) = between(said, "failed calling webhook \"", "\"") {
        return new(
            format!("the admission webhook {name:?} does not answer"),
            "tell the cluster administrator; the webhook's service may be down",
        );
    }
    if let Some(name) = between(said, "admission webhook \"", "\"") {
        return new(
            format!("the admission webhook {name:?} rejects its pods"),
            "change the pods to meet its rules, or ask the cluster administrator",
        );
    }
    if let Some(name) = between(said, "ValidatingAdmissionPolicy '", "'") {
        return new(
            format!("the admission policy {name:?} rejects its pods"),
            "change the pods to meet its rules, or ask the cluster administrator",
        );
    }
    let kind = if has_any(said, &["forbidden", "denied", "admission"]) {
        Cause::AdmissionRefused
    } else {
        Cause::PodsRefused
    };
    Explanation::new(
        kind,
        with_message("the cluster rejects its pods", &short(said)),
        "change the pods to meet its rules, or ask the cluster administrator",
    )
}
