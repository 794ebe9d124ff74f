//! Validation of a webhook's client configuration: a URL or a Service.

use longshore_model::name;

use crate::{
    cause::Cause,
    validate::{
        field_value::{Causes, FieldValue},
        meta,
    },
};

const FORM: &str = "; desired format: https://host[/path]";

pub(super) fn config(config: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let (url, service) = (config.get("url"), config.get("service"));
    if url.is_set() == service.is_set() {
        causes.required(config, "exactly one of url or service is required");
    } else if url.is_set() {
        address(&url, causes);
    } else {
        self::service(&service, causes);
    }
}

/// Validates the parts of a URL.
fn address(url: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let (rest, fragment) = url.text().split_once('#').unwrap_or((url.text(), ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
    let authority = rest.strip_prefix("//").unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let mut invalid = |value: &str, detail: &str| {
        causes.0.push(Cause::invalid(&url.path, value, detail));
    };
    if !scheme.eq_ignore_ascii_case("https") {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        invalid(scheme, &detail);
    }
    if host.is_empty() {
        invalid(host, &format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        invalid(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        invalid(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        invalid(query, "query parameters are not permitted in the URL");
    }
}

fn service(service: &FieldValue<'_>, causes: &mut Causes<'_>) {
    // Kubernetes swaps the two names in these errors.
    for (field, shown) in [("name", "namespace"), ("namespace", "name")] {
        if service.get(field).text().is_empty() {
            causes.required(&service.get(shown), "");
        }
    }
    port(&service.get("port"), causes);
    let path = service.get("path");
    if matches!(path.text(), "" | "/") {
        return;
    }
    if path.text() == "//" {
        return causes.invalid(&path, "segment[0] may not be empty");
    }
    if !path.text().starts_with('/') {
        causes.invalid(&path, "must start with a '/'");
    }
    // Kubernetes accepts any first character here instead of a slash.
    let mut characters = path.text().chars();
    characters.next();
    let segments = characters.as_str();
    let segments = segments.strip_suffix('/').unwrap_or(segments);
    for (index, segment) in segments.split('/').enumerate() {
        if segment.is_empty() {
            causes.invalid(&path, &format!("segment[{index}] may not be empty"));
        } else if name::dns_subdomain("segment", segment).is_err() {
            let detail = format!("segment[{index}]: {}", meta::SUBDOMAIN);
            causes.invalid(&path, &detail);
        }
    }
}

/// Validates the port of a Service.
pub(in crate::validate) fn port(port: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let number = port.number().unwrap_or_default();
    if !(1..=65_535).contains(&number) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        causes.0.push(Cause::invalid(&port.path, number, detail));
    }
}
