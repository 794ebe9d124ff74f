//! Validation of containers: environment variables, ports, probes and hooks.

use std::collections::HashSet;

use longshore_model::CauseList;

use super::{security, volume_sources};
use crate::{
    cause::Cause,
    json::Object,
    validate::{
        config,
        field_value::{Causes, FieldValue},
    },
};

/// Pod fields, apart from metadata, that environment variables may reference.
const STATUS: &[&str] = &[
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const VARIABLE: &str = "a valid environment variable name must consist only of printable ASCII characters other than '='";

const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

pub(super) fn check(container: &Object, path: &str, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let at = |name| FieldValue::of(container, name, path);
    at("env").items().for_each(|one| variable(&one, causes));
    let list = at("envFrom");
    for from in list.items() {
        let prefix = from.get("prefix");
        if !prefix.text().is_empty() && !is_variable(prefix.text()) {
            causes.invalid(&prefix, VARIABLE);
        }
        for source in ["configMapRef", "secretRef"] {
            let name = from.get(source).get("name");
            if from.get(source).is_set() {
                named(&name, causes);
            }
        }
        let count = ["configMapRef", "secretRef"]
            .iter()
            .filter(|source| from.get(source).is_set());
        match count.count() {
            0 => causes.0.push(Cause::invalid(
                &list.path,
                "",
                "must specify one of: `configMapRef` or `secretRef`",
            )),
            1 => {}
            _ => causes.0.push(Cause::invalid(
                &list.path,
                "",
                "may not have more than one field specified at a time",
            )),
        }
    }
    ports(&at("ports"), causes);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        probe(&at(name), name != "readinessProbe", causes);
    }
    for hook in ["postStart", "preStop"] {
        let hook = at("lifecycle").get(hook);
        if hook.is_set() {
            handler(&hook, causes);
        }
    }
    security::of_container(&at("securityContext"), causes);
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| (b' '..=b'~').contains(&b) && b != b'=')
}

fn variable(one: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let (name, from) = (one.get("name"), one.get("valueFrom"));
    if name.text().is_empty() {
        causes.required(&name, "");
    } else if !is_variable(name.text()) {
        causes.invalid(&name, VARIABLE);
    }
    if !from.is_set() {
        return;
    }
    let mut report = |detail| causes.0.push(Cause::invalid(&from.path, "", detail));
    let volume_sources: Vec<&str> = [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ]
    .into_iter()
    .filter(|source| from.get(source).is_set())
    .collect();
    match volume_sources.len() {
        0 => {
            return report(
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            );
        }
        1 => {}
        _ => return report("may not have more than one field specified at a time"),
    }
    if !one.get("value").text().is_empty() {
        return report("may not be specified when `value` is not empty");
    }
    if from.get("fieldRef").is_set() {
        volume_sources::field_path(&from.get("fieldRef"), STATUS, causes);
    }
    if from.get("resourceFieldRef").is_set() {
        volume_sources::resource_field(&from.get("resourceFieldRef"), true, causes);
    }
    for source in ["configMapKeyRef", "secretKeyRef"] {
        let source = from.get(source);
        if source.is_set() {
            named(&source.get("name"), causes);
            let key = source.get("key");
            if key.text().is_empty() {
                causes.required(&key, "");
            } else {
                config::key(&key.path, key.text(), causes.0);
            }
        }
    }
}

/// Validates the optional name of a Secret or ConfigMap.
fn named(name: &FieldValue<'_>, causes: &mut Causes<'_>) {
    crate::validate::meta::subdomain(&name.path, name.text(), causes.0);
}

/// Validates the block devices of a container, which must refer to claims of
/// the pod.
pub(super) fn devices(container: &Object, path: &str, spec: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    for device in FieldValue::of(container, "volumeDevices", path).items() {
        let (name, place) = (device.get("name"), device.get("devicePath"));
        if name.text().is_empty() {
            causes.required(&name, "");
        }
        let volume = crate::json::items(spec, "volumes")
            .find(|volume| crate::json::text(volume, "name") == name.text());
        match volume {
            None => causes.0.push(Cause::plain(
                &name.path,
                "FieldValueNotFound",
                format!("Not found: {:?}", name.text()),
            )),
            Some(volume)
                if !volume.contains_key("persistentVolumeClaim")
                    && !volume.contains_key("ephemeral") =>
            {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                causes.invalid(&name, detail);
            }
            Some(_) => {}
        }
        if !names.insert(name.text()) {
            causes.invalid(&name, "must be unique");
        }
        if place.text().is_empty() {
            causes.required(&place, "");
        } else if !paths.insert(place.text()) {
            causes.invalid(&place, "must be unique");
        }
        if place.text().split('/').any(|part| part == "..") {
            causes.invalid(&place, "can not contain backsteps ('..')");
        }
    }
}

fn ports(ports: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let (mut names, mut taken) = (HashSet::new(), HashSet::new());
    for port in ports.items() {
        let (name, number, host) = (
            port.get("name"),
            port.get("containerPort"),
            port.get("hostPort"),
        );
        if !name.text().is_empty() {
            causes.port_name(&name);
            if !names.insert(name.text()) {
                causes.duplicate(&name);
            }
        }
        if number.number().unwrap_or_default() == 0 {
            causes.required(&number, "");
        } else {
            causes.port(&number);
        }
        if let Some(number) = host.number().filter(|number| *number != 0) {
            causes.port(&host);
            let (protocol, address) = (port.get("protocol"), port.get("hostIP"));
            let place = format!("{}/{}/{number}", protocol.text(), address.text());
            if !taken.insert(place.clone()) {
                causes.0.push(Cause::duplicate(&host.path, place));
            }
        }
        let protocol = port.get("protocol");
        if protocol.is_set() {
            causes.one_of(&protocol, &["SCTP", "TCP", "UDP"]);
        } else {
            causes.required(&protocol, "");
        }
    }
}

/// Validates a probe; `once` means that its success threshold must be 1.
fn probe(probe: &FieldValue<'_>, once: bool, causes: &mut Causes<'_>) {
    if !probe.is_set() {
        return;
    }
    handler(probe, causes);
    for field in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        causes.not_negative(&probe.get(field));
    }
    let successes = probe.get("successThreshold");
    if once && successes.number().is_some_and(|number| number > 1) {
        causes.invalid(&successes, "must be 1");
    }
    let grace = probe.get("terminationGracePeriodSeconds");
    if grace.number().is_some_and(|seconds| seconds <= 0) {
        causes.invalid(&grace, "must be greater than 0");
    }
}

/// Validates the handler of a probe or hook: exactly one action must be set.
fn handler(handler: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let mut set = kinds.iter().filter(|kind| handler.get(kind).is_set());
    if set.next().is_none() {
        return causes.required(handler, "must specify a handler type");
    }
    for other in set {
        causes.forbidden(
            &handler.get(other),
            "may not specify more than 1 handler type",
        );
    }
    let exec = handler.get("exec");
    if exec.is_set() && exec.get("command").len() == 0 {
        causes.required(&exec.get("command"), "");
    }
    let get = handler.get("httpGet");
    if get.is_set() {
        if get.get("path").text().is_empty() {
            causes.required(&get.get("path"), "");
        }
        causes.port_or_name(&get.get("port"));
        for header in get.get("httpHeaders").items() {
            let name = header.get("name");
            let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
            if name.text().is_empty() || !name.text().bytes().all(plain) {
                let path = format!("{}.httpHeaders", get.path);
                causes.0.push(Cause::invalid(&path, name.text(), HEADER));
            }
        }
        causes.one_of_if_set(&get.get("scheme"), &["HTTP", "HTTPS"]);
    }
    if handler.get("tcpSocket").is_set() {
        causes.port_or_name(&handler.get("tcpSocket").get("port"));
    }
    if handler.get("grpc").is_set() {
        causes.port(&handler.get("grpc").get("port"));
    }
}
