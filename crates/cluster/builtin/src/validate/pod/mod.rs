//! Validation of pods and pod templates.

pub(crate) mod change;
mod container;
mod dns;
pub(crate) mod ephemeral;
pub(crate) mod resize;
mod scheduling;
mod security;
pub(crate) mod status;
mod volume_sources;

pub(super) use scheduling::toleration;

use std::collections::HashSet;

use longshore_model::CauseList;
use serde_json::Value;

use super::{
    field_value::{Causes, FieldValue, below},
    meta,
};
use crate::{
    cause::{Cause, one_of},
    json::{self, Object},
};

/// Validates a pod.
pub(crate) fn object(pod: &Object, causes: &mut CauseList) {
    if let Some(Value::Object(pod_spec)) = pod.get("spec") {
        spec(pod_spec, "spec", causes);
    }
}

/// Validates the pod template in a field of an object.
pub(crate) fn template(object: &Object, field: &str, causes: &mut CauseList) {
    let Some(Value::Object(template)) = object.get(field) else {
        return causes.push(Cause::required(field, ""));
    };
    let labels = json::at(template, "metadata.labels");
    meta::labels(&format!("{field}.labels"), labels, causes);
    let empty = Object::new();
    let own = template.get("spec").and_then(Value::as_object);
    spec(own.unwrap_or(&empty), &format!("{field}.spec"), causes);
}

/// Validates the spec of a pod or pod template.
pub(super) fn spec(spec: &Object, path: &str, causes: &mut CauseList) {
    let volumes = volumes(spec, path, causes);
    if json::items(spec, "containers").next().is_none() {
        causes.push(Cause::required(&format!("{path}.containers"), ""));
    }
    let mut names = HashSet::new();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for (index, one) in json::items(spec, list).enumerate() {
            let path = format!("{path}.{list}[{index}]");
            container(one, &path, &mut names, &volumes, causes);
            container::devices(one, &path, spec, causes);
            resize::policies(spec, one, &path, causes);
            if list == "ephemeralContainers" {
                ephemeral::container(spec, one, &path, causes);
            }
        }
    }
    let at = |field: &str| below(path, field);
    one_of(
        spec,
        "restartPolicy",
        &at("restartPolicy"),
        &["Always", "OnFailure", "Never"],
        causes,
    );
    one_of(
        spec,
        "dnsPolicy",
        &at("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        causes,
    );
    if let Some(seconds) = json::number(spec, "activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let rule = "must be between 1 and 2147483647, inclusive";
        causes.push(Cause::invalid(&at("activeDeadlineSeconds"), seconds, rule));
    }
    for field in ["nodeName", "serviceAccountName"] {
        match json::text(spec, field) {
            "" => {}
            name => meta::subdomain(&at(field), name, causes),
        }
    }
    for field in ["hostname", "subdomain"] {
        match json::text(spec, field) {
            "" => {}
            name => meta::label(&at(field), name, causes),
        }
    }
    meta::labels(&at("nodeSelector"), spec.get("nodeSelector"), causes);
    dns::check(spec, path, causes);
    scheduling::check(spec, path, causes);
    let context = FieldValue::of(spec, "securityContext", path);
    security::of_pod(&context, &mut Causes(causes));
}

fn volumes<'a>(spec: &'a Object, path: &str, causes: &mut CauseList) -> HashSet<&'a str> {
    let mut sound = HashSet::new();
    for (index, volume) in json::items(spec, "volumes").enumerate() {
        let path = format!("{path}.volumes[{index}]");
        let before = causes.len();
        let name = json::text(volume, "name");
        if name.is_empty() {
            causes.push(Cause::required(&format!("{path}.name"), ""));
        } else {
            meta::label(&below(&path, "name"), name, causes);
        }
        if sound.contains(name) {
            causes.push(Cause::duplicate(&format!("{path}.name"), name));
        }
        let mut sources = volume.keys().filter(|key| *key != "name");
        if let (Some(_), Some(second)) = (sources.next(), sources.next()) {
            let detail = "may not specify more than 1 volume type";
            causes.push(Cause::forbidden(&format!("{path}.{second}"), detail));
        }
        volume_sources::check(volume, &path, causes);
        // Invalid volumes cannot be mounted.
        if causes.len() == before {
            sound.insert(name);
        }
    }
    sound
}

fn container<'a>(
    container: &'a Object,
    path: &str,
    names: &mut HashSet<&'a str>,
    volumes: &HashSet<&str>,
    causes: &mut CauseList,
) {
    let at = |field: &str| below(path, field);
    let name = json::text(container, "name");
    if name.is_empty() {
        causes.push(Cause::required(&at("name"), ""));
    } else {
        meta::label(&at("name"), name, causes);
        if !names.insert(name) {
            causes.push(Cause::duplicate(&at("name"), name));
        }
    }
    let image = json::text(container, "image");
    if image.is_empty() {
        causes.push(Cause::required(&at("image"), ""));
    } else if image != image.trim() {
        causes.push(Cause::invalid(
            &at("image"),
            image,
            "must not have leading or trailing whitespace",
        ));
    }
    one_of(
        container,
        "imagePullPolicy",
        &at("imagePullPolicy"),
        &["Always", "IfNotPresent", "Never"],
        causes,
    );
    one_of(
        container,
        "terminationMessagePolicy",
        &at("terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
        causes,
    );
    container::check(container, path, causes);
    mounts(container, path, volumes, causes);
    resources(container, path, causes);
}

fn mounts(container: &Object, path: &str, volumes: &HashSet<&str>, causes: &mut CauseList) {
    let mut places = HashSet::new();
    let list = format!("{path}.volumeMounts");
    for (index, mount) in json::items(container, "volumeMounts").enumerate() {
        let path = format!("{list}[{index}]");
        let name = json::text(mount, "name");
        if name.is_empty() {
            causes.push(Cause::required(&format!("{path}.name"), ""));
        }
        if !volumes.contains(name) {
            let message = format!("Not found: {name:?}");
            causes.push(Cause::plain(
                &format!("{path}.name"),
                "FieldValueNotFound",
                message,
            ));
        }
        if let Some(mode) = mount.get("mountPropagation").and_then(Value::as_str) {
            let words = ["Bidirectional", "HostToContainer", "None"];
            if !words.contains(&mode) {
                // Kubernetes omits the index here.
                let field = format!("{list}.mountPropagation");
                causes.push(Cause::not_supported(&field, mode, &words));
            }
        }
        let part = json::text(mount, "subPath");
        if part.starts_with('/') {
            let detail = "must be a relative path";
            causes.push(Cause::invalid(&format!("{path}.subPath"), part, detail));
        } else if part.split('/').any(|part| part == "..") {
            // Kubernetes omits the index here too.
            let detail = "must not contain '..'";
            causes.push(Cause::invalid(&format!("{list}.subPath"), part, detail));
        }
        let place = json::text(mount, "mountPath");
        if place.is_empty() {
            causes.push(Cause::required(&format!("{path}.mountPath"), ""));
        } else if !places.insert(place) {
            causes.push(Cause::invalid(
                &format!("{path}.mountPath"),
                place,
                "must be unique",
            ));
        }
    }
}

/// Requests must not exceed limits.
fn resources(container: &Object, path: &str, causes: &mut CauseList) {
    let Some(Value::Object(resources)) = container.get("resources") else {
        return;
    };
    let list = |name: &str| resources.get(name).and_then(Value::as_object);
    let quantity = |value: &Value| -> Option<f64> {
        value
            .as_str()?
            .parse::<longshore_model::Quantity>()
            .ok()
            .map(|quantity| quantity.value())
    };
    for name in ["limits", "requests"] {
        for (resource, value) in list(name).into_iter().flatten() {
            if quantity(value).is_some_and(|quantity| quantity < 0.0) {
                let path = format!("{path}.resources.{name}[{resource}]");
                causes.push(Cause::invalid(
                    &path,
                    value.clone(),
                    "must be greater than or equal to 0",
                ));
            }
        }
    }
    for (resource, request) in list("requests").into_iter().flatten() {
        let Some(limit) = list("limits").and_then(|limits| limits.get(resource)) else {
            continue;
        };
        if quantity(request) > quantity(limit) {
            let detail = format!(
                "must be less than or equal to {resource} limit of {}",
                limit.as_str().unwrap_or_default()
            );
            let path = format!("{path}.resources.requests");
            causes.push(Cause::invalid(&path, request.clone(), &detail));
        }
    }
}
