//! The Pod Security Standards of namespaces, enforced like Kubernetes' admission plugin
//! PodSecurity.

use longshore_builtin::{
    json as js,
    pod_security::{Policy, Template, violations},
};
use longshore_model::KindInfo;

use super::JsonObject;
use crate::{Error, Subject, state::State};

/// The standards of a namespace; `None` if they permit everything.
fn policy(state: &State, namespace: &str) -> Option<Policy> {
    let kind = state.kinds.builtin_id("", "Namespace")?;
    let namespace = state.table(kind).objects.get(namespace)?;
    Policy::of(namespace.labels())
}

/// Returns true if standards apply to the objects of a namespace.
pub(super) fn applies(state: &State, namespace: &str) -> bool {
    policy(state, namespace).is_some()
}

/// The pod template of an object; `None` if the kind has no pods.
fn template<'a>(info: &KindInfo, object: &'a JsonObject) -> Option<Template<'a>> {
    let has_pods = matches!(&*info.gvk.group, "" | "apps" | "batch");
    has_pods.then(|| Template::of(&info.gvk.kind, object))?
}

/// Refuses a pod that violates the enforced standard (403).
pub(super) fn enforce(
    state: &State,
    info: &KindInfo,
    object: &JsonObject,
    before: Option<&JsonObject>,
) -> Result<(), Error> {
    if !info.gvk.group.is_empty() || info.gvk.kind != "Pod" {
        return Ok(());
    }
    let Some(policy) = policy(state, js::text(object, "metadata.namespace")) else {
        return Ok(());
    };
    if before.is_some_and(|before| !is_significant(before, object)) {
        return Ok(());
    }
    let pod = template(info, object);
    match pod.and_then(|pod| violations(policy.enforce, &pod)) {
        Some(found) => Err(Error::Forbidden {
            subject: Subject::new(info, js::text(object, "metadata.name")),
            reason: format!("violates PodSecurity \"{}\": {found}", policy.enforce),
            causes: Vec::new(),
        }),
        None => Ok(()),
    }
}

/// Returns true if a change of a pod requires that the standard is checked again: a changed image,
/// or a new ephemeral container.
fn is_significant(before: &JsonObject, pod: &JsonObject) -> bool {
    let images = |pod| images(pod, &["initContainers", "containers"]);
    if !images(before).eq(images(pod)) {
        return true;
    }
    let mut ephemeral = self::images(pod, &["ephemeralContainers"]);
    ephemeral.any(|container| {
        let mut earlier = self::images(before, &["ephemeralContainers"]);
        !earlier.any(|earlier| earlier == container)
    })
}

/// The names and images of containers.
fn images<'a>(
    pod: &'a JsonObject,
    lists: &'static [&'static str],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let spec = pod.get("spec").and_then(serde_json::Value::as_object);
    let lists = spec.into_iter().flat_map(move |spec| {
        let lists = lists.iter();
        lists.flat_map(|list| js::items(spec, list))
    });
    lists.map(|container| (js::text(container, "name"), js::text(container, "image")))
}

/// The warning about a new or changed object whose pods violate the standard.
pub(super) fn warning(
    state: &State,
    info: &KindInfo,
    object: &JsonObject,
    before: Option<&JsonObject>,
) -> Option<String> {
    let pod = template(info, object)?;
    let policy = policy(state, js::text(object, "metadata.namespace"))?;
    if info.gvk.kind == "Pod" && before.is_some_and(|before| !is_significant(before, object)) {
        return None;
    }
    let found = violations(policy.warn, &pod)?;
    Some(format!(
        "would violate PodSecurity \"{}\": {found}",
        policy.warn
    ))
}
