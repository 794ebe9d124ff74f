//! Validation of a pod's DNS settings and readiness gates.

use std::net::IpAddr;

use longshore_model::CauseList;

use crate::{
    cause::Cause,
    json::Object,
    validate::{
        field_value::{Causes, FieldValue},
        meta,
    },
};

pub(super) fn check(spec: &Object, path: &str, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    dns(
        &FieldValue::of(spec, "dnsConfig", path),
        FieldValue::of(spec, "dnsPolicy", path).text() == "None",
        causes,
    );
    for gate in FieldValue::of(spec, "readinessGates", path).items() {
        causes.qualified(&gate.get("conditionType"));
    }
}

fn dns(config: &FieldValue<'_>, alone: bool, causes: &mut Causes<'_>) {
    if !config.is_set() {
        if alone {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            causes.required(config, detail);
        }
        return;
    }
    let servers = config.get("nameservers");
    if alone && servers.len() == 0 {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        causes.required(&servers, detail);
    }
    if servers.len() > 3 {
        causes.invalid(&servers, "must not have more than 3 nameservers");
    }
    for server in servers.items() {
        if server.text().parse::<IpAddr>().is_err() {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            causes.invalid(&server, detail);
        }
    }
    let searches = config.get("searches");
    if searches.len() > 32 {
        causes.invalid(&searches, "must not have more than 32 search paths");
    }
    for search in searches.items() {
        // The root domain is a valid search path.
        let name = search.text();
        if name != "." {
            let plain = name.strip_suffix('.').unwrap_or(name);
            searched(&search.path, plain, causes.0);
        }
    }
    let options = config.get("options");
    for option in options.items() {
        if option.get("name").text().is_empty() {
            causes.required(&option, "must not be empty");
        }
    }
}

/// Validates a search domain: a subdomain whose labels may start with an
/// underscore.
fn searched(path: &str, text: &str, causes: &mut CauseList) {
    const RULE: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
    let plain: Vec<String> = text
        .split('.')
        .map(|label| label.strip_prefix('_').unwrap_or(label).replace('_', "-"))
        .collect();
    let mut problems = CauseList::new();
    meta::subdomain(path, &plain.join("."), &mut problems);
    if !problems.is_empty() && text.len() <= 253 {
        causes.push(Cause::invalid(path, text, RULE));
    } else {
        causes.extend(problems);
    }
}
