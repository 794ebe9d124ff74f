//! Pods that the cluster does not let the Job make: the messages of
//! FailedCreate.

use super::{
    Cause, Explanation, Patience,
    text::{between, has_any, short, with_message},
};

/// Sorts what an API server says when it refuses a pod.
pub(super) fn sort(message: &str) -> (Explanation, Patience) {
    let said = message
        .strip_prefix("Error creating: ")
        .unwrap_or(message)
        .trim();
    let quick = Patience::seconds(20);
    let new = |kind, cause: String, remedy: String| Explanation::new(kind, cause, remedy);
    if let Some(found) = quota(said) {
        return (found, Patience::StartTimeout);
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
                format!("the quota {name:?} wants each container to say its {what}"),
                "set `cpu` and `memory`; for the containers that prepare a task the namespace needs a LimitRange with defaults".to_owned(),
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
                "`kubectl get priorityclasses` lists those that are there".to_owned(),
            ),
            Patience::None,
        );
    }
    if has_any(said, &["runtimeclass"]) && said.contains("not found") {
        let name = between(said, "\"", "\"").unwrap_or_default();
        let name = between(said, "RuntimeClass \"", "\"").unwrap_or(name);
        return (
            new(
                Cause::MissingRuntimeClass,
                format!("the runtime class {name:?} is missing"),
                "`kubectl get runtimeclasses` lists those that are there".to_owned(),
            ),
            Patience::None,
        );
    }
    if let Some(found) = limits(said) {
        return (found, Patience::None);
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
    let told: Vec<String> = limited
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
        format!("the quota {name:?} leaves no room for {}", told.join("; ")),
        format!(
            "ask for less {}, wait until others are done, or have the quota raised",
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
    let told = said
        .split_once("is forbidden: ")
        .map_or(said, |(_, told)| told);
    let told = told.trim_matches(['[', ']']);
    Some(Explanation::new(
        Cause::LimitRange,
        with_message("the namespace's LimitRange refuses it", &short(told)),
        "ask for amounts within these bounds with `cpu` and `memory`, or have the LimitRange changed",
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
        return new(
            format!("the pod security level {level:?} refuses its pods"),
            "meet the level with the pod's security context, or use a namespace of another level",
        );
    }
    if let Some(name) = between(said, "failed calling webhook \"", "\"") {
        return new(
            format!("the admission webhook {name:?} does not answer"),
            "tell whoever runs the cluster; the webhook's own service may be down",
        );
    }
    if let Some(name) = between(said, "admission webhook \"", "\"") {
        return new(
            format!("the admission webhook {name:?} refuses its pods"),
            "meet what it asks for, or ask whoever runs the cluster",
        );
    }
    if let Some(name) = between(said, "ValidatingAdmissionPolicy '", "'") {
        return new(
            format!("the admission policy {name:?} refuses its pods"),
            "meet what it asks for, or ask whoever runs the cluster",
        );
    }
    let kind = if has_any(said, &["forbidden", "denied", "admission"]) {
        Cause::AdmissionRefused
    } else {
        Cause::PodsRefused
    };
    Explanation::new(
        kind,
        with_message("the cluster refuses its pods", &short(said)),
        "meet what it asks for, or ask whoever runs the cluster",
    )
}
