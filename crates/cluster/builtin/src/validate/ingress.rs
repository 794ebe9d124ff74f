//! Validation of Ingresses and IngressClasses.

use std::net::IpAddr;

use longshore_model::CauseList;

use super::{
    field_value::{Causes, FieldValue},
    meta,
};
use crate::{
    cause::Cause,
    json::{self, Object},
};

const PATH_TYPES: &[&str] = &["Exact", "ImplementationSpecific", "Prefix"];
const WILDCARD: &str = r"a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const CLASS: &str = "kubernetes.io/ingress.class";

pub(crate) fn object(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let (backend_, rules) = (spec.get("defaultBackend"), spec.get("rules"));
    if rules.len() == 0 && !backend_.is_set() {
        causes.invalid(
            &rules.clone().with_path(&spec.path),
            "either `defaultBackend` or `rules` must be specified",
        );
    }
    if backend_.is_set() {
        backend(&backend_, causes);
    }
    for rule in rules.items() {
        let name = rule.get("host");
        if name.text().parse::<IpAddr>().is_ok() {
            causes.invalid(&name, "must be a DNS name, not an IP address");
        } else if !name.text().is_empty() {
            host(&name, causes);
        }
        let http = rule.get("http");
        let paths = http.get("paths");
        if http.is_set() && paths.len() == 0 {
            causes.required(&paths, "");
        }
        paths.items().for_each(|one| path(&one, causes));
    }
    for tls in spec.get("tls").items() {
        tls.get("hosts")
            .items()
            .for_each(|name| host(&name, causes));
        if !tls.get("secretName").text().is_empty() {
            causes.subdomain(&tls.get("secretName"));
        }
    }
    if spec.get("ingressClassName").is_set() {
        causes.subdomain(&spec.get("ingressClassName"));
    }
}

/// Validation of new Ingresses only: the class may be specified only once.
pub(crate) fn new_object(object: &Object, causes: &mut CauseList) {
    let annotations = FieldValue::field(object, "metadata").get("annotations");
    let (old, new) = (
        annotations.get(CLASS),
        json::text(object, "spec.ingressClassName"),
    );
    if old.is_set() && !new.is_empty() && old.text() != new {
        let path = format!("annotations.{CLASS}");
        let detail = "must match `ingressClassName` when both are specified";
        causes.push(Cause::invalid(&path, old.text(), detail));
    }
}

fn host(name: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if !name.text().contains('*') {
        return causes.subdomain(name);
    }
    let mut problems = CauseList::new();
    meta::subdomain(
        "",
        name.text().strip_prefix("*.").unwrap_or("*"),
        &mut problems,
    );
    if !problems.is_empty() {
        causes.invalid(name, WILDCARD);
    }
}

fn path(one: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let (path, kind) = (one.get("path"), one.get("pathType"));
    if !kind.is_set() {
        causes.required(&kind, "pathType must be specified");
        return backend(&one.get("backend"), causes);
    }
    match kind.text() {
        "Exact" | "Prefix" => {
            let text = path.text();
            if !text.starts_with('/') {
                causes
                    .0
                    .push(Cause::invalid(&path.path, text, "must be an absolute path"));
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"] {
                if text.contains(part) {
                    causes.invalid(&path, &format!("must not contain '{part}'"));
                }
            }
            for end in ["/..", "/."] {
                if text.ends_with(end) {
                    causes.invalid(&path, &format!("cannot end with '{end}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !path.text().is_empty() && !path.text().starts_with('/') {
                causes.invalid(&path, "must be an absolute path");
            }
        }
        _ => causes.not_supported(&kind, PATH_TYPES),
    }
    backend(&one.get("backend"), causes);
}

/// Validates a backend: either a Service with a port, or another object.
fn backend(backend: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let (service, resource) = (backend.get("service"), backend.get("resource"));
    let mut report = |detail| causes.0.push(Cause::invalid(&backend.path, "", detail));
    match (service.is_set(), resource.is_set()) {
        (true, true) => return report("cannot set both resource and service backends"),
        (false, false) => return report("resource or service backend is required"),
        (false, true) => {
            for field in ["kind", "name"] {
                if resource.get(field).text().is_empty() {
                    causes.required(&resource.get(field), &format!("{field} is required"));
                }
            }
            let group = resource.get("apiGroup");
            if !group.text().is_empty() {
                causes.subdomain(&group);
            }
            return;
        }
        (true, false) => {}
    }
    let name = service.get("name");
    if name.text().is_empty() {
        causes.required(&name, "");
    } else {
        causes.label(&name);
    }
    let (named, number) = (
        service.get("port").get("name"),
        service.get("port").get("number"),
    );
    match (named.text().is_empty(), number.number().unwrap_or_default()) {
        (false, 0) => causes.port_name(&named),
        (true, 0) => causes.required(backend, "port name or number is required"),
        (true, _) => causes.port(&number),
        (false, _) => {
            let detail = "cannot set both port name & port number";
            causes.0.push(Cause::invalid(&backend.path, "", detail));
        }
    }
}

pub(crate) fn class(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let controller = spec.get("controller");
    if controller.text().is_empty() {
        causes.required(&controller, "");
    } else if controller.text().len() > 250 {
        causes.0.push(Cause::too_long(&controller.path, 250));
    } else {
        let mut problems = CauseList::new();
        let (prefix, rest) = controller.text().split_once('/').unwrap_or_default();
        meta::subdomain("", prefix, &mut problems);
        if rest.is_empty() || !problems.is_empty() {
            causes.invalid(
                &controller,
                "must be a domain-prefixed path (such as \"acme.io/foo\")",
            );
        }
    }
    let parameters = spec.get("parameters");
    if !parameters.is_set() {
        return;
    }
    for field in ["kind", "name"] {
        if parameters.get(field).text().is_empty() {
            causes.required(&parameters.get(field), "");
        }
    }
    let (scope, namespace) = (parameters.get("scope"), parameters.get("namespace"));
    causes.one_of_if_set(&scope, &["Cluster", "Namespace"]);
    match (scope.text(), namespace.is_set()) {
        ("Namespace", false) => {
            causes.required(&namespace, "`parameters.scope` is set to 'Namespace'");
        }
        ("Cluster", true) => {
            causes.forbidden(&namespace, "`parameters.scope` is set to 'Cluster'");
        }
        _ => {}
    }
}
