//! Validation of the sources of pod volumes.

use std::collections::HashSet;

use longshore_model::CauseList;

use crate::{
    cause::Cause,
    json::Object,
    validate::{
        certificate::signer_name,
        field_value::{Causes, FieldValue},
        pod_certificate, volume, volume_source,
    },
};

/// Pod fields that volumes and environment variables may reference.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.labels",
    "metadata.annotations",
    "metadata.uid",
];

/// The paths of a projected certificate.
const CERTIFICATE_PATHS: [&str; 3] = ["credentialBundlePath", "keyPath", "certificateChainPath"];

/// Validates the source of a volume.
pub(super) fn check(volume: &Object, path: &str, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    // A volume has exactly one of many possible sources.
    let at = |name: &str| match volume.contains_key(name) {
        true => FieldValue::of(volume, name, path),
        false => FieldValue::absent(),
    };
    volume::host_path(&at("hostPath"), causes);
    volume_source::check(at, causes);
    let (driver, secret) = (at("csi"), at("csi").get("nodePublishSecretRef").get("name"));
    if driver.get("nodePublishSecretRef").is_set() && secret.text().is_empty() {
        causes.required(&secret, "");
    } else if secret.is_set() {
        causes.subdomain(&secret.with_path(format!("{}.name", driver.path)));
    }
    let name = at("iscsi").get("iqn");
    if !name.text().is_empty() && !volume_source::is_iscsi(name.text()) {
        let detail = "must be valid format starting with iqn, eui, or naa";
        causes.invalid(&name, detail);
    }
    if at("emptyDir")
        .get("sizeLimit")
        .quantity()
        .is_some_and(|quantity| quantity < 0.0)
    {
        let detail = "SizeLimit field must be a valid resource quantity";
        causes.forbidden(&at("emptyDir").get("sizeLimit"), detail);
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        let source = at(source);
        if !source.is_set() {
            continue;
        }
        mode(&source.get("defaultMode"), causes);
        items(&source, causes);
        let mut paths = HashSet::new();
        for one in source.get("sources").items() {
            for projection in ["secret", "configMap", "downwardAPI"] {
                items(&one.get_optional(projection), causes);
            }
            token(&one.get_optional("serviceAccountToken"), causes);
            trust_bundle(&one.get_optional("clusterTrustBundle"), causes);
            certificate(&one.get_optional("podCertificate"), causes);
            for path in paths_of(&one) {
                if !paths.insert(path) {
                    let detail = "conflicting duplicate paths";
                    causes.0.push(Cause::invalid(&source.path, path, detail));
                }
            }
            if one.len() > 1 {
                let detail = "may not specify more than 1 volume type per source";
                causes.forbidden(&one, detail);
            }
        }
    }
}

/// The paths of a source of a projected volume that no other source may have.
fn paths_of<'a>(source: &FieldValue<'a>) -> Vec<&'a str> {
    let items = ["secret", "configMap", "downwardAPI"].into_iter();
    let items = items.flat_map(|projection| source.get_optional(projection).get("items").items());
    let mut paths: Vec<&str> = items.map(|item| item.get("path").text()).collect();
    paths.push(source.get_optional("clusterTrustBundle").get("path").text());
    let certificate = source.get_optional("podCertificate");
    paths.extend(CERTIFICATE_PATHS.map(|name| certificate.get(name).text()));
    paths.retain(|path| !path.is_empty());
    paths
}

fn mode(mode: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if mode
        .number()
        .is_some_and(|mode| !(0..=0o777).contains(&mode))
    {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        causes.invalid(mode, detail);
    }
}

/// Validates a relative path within the volume.
fn inside(path: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let text = path.text();
    if text.is_empty() {
        causes.required(path, "");
    } else if text.starts_with('/') {
        causes.invalid(path, "must be a relative path");
    } else if text.split('/').any(|part| part == "..") {
        causes.invalid(path, "must not contain '..'");
    } else if text.starts_with("..") {
        causes.invalid(path, "must not start with '..'");
    }
}

fn items(source: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let downward = source.path.ends_with("downwardAPI");
    for item in source.get("items").items() {
        mode(&item.get("mode"), causes);
        if !downward {
            if item.get("key").text().is_empty() {
                causes.required(&item.get("key"), "");
            }
            inside(&item.get("path"), causes);
            continue;
        }
        // Kubernetes reports the path of the source, not the path of the item.
        let named = |field: &str| {
            item.get(field)
                .with_path(format!("{}.{field}", source.path))
        };
        inside(&named("path"), causes);
        let (field, resource) = (named("fieldRef"), named("resourceFieldRef"));
        match (field.is_set(), resource.is_set()) {
            (true, true) => {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                causes.invalid(&source.clone(), detail);
            }
            (true, false) => field_path(&field, &[], causes),
            (false, true) => resource_field(&resource, false, causes),
            (false, false) => {
                causes.required(source, "one of fieldRef and resourceFieldRef is required");
            }
        }
    }
}

/// Validates a reference to a pod field: an entry of `FIELDS` or `more`, or a single label or
/// annotation.
pub(super) fn field_path(field: &FieldValue<'_>, more: &[&str], causes: &mut Causes<'_>) {
    let path = field.get("fieldPath");
    let text = path.text();
    if text.is_empty() {
        return causes.required(&path, "");
    }
    let entry = ["metadata.labels['", "metadata.annotations['"]
        .iter()
        .any(|start| text.starts_with(start) && text.ends_with("']"));
    if !entry && !FIELDS.contains(&text) && !more.contains(&text) {
        let detail = format!("error converting fieldPath: field label not supported: {text}");
        causes.invalid(&path, &detail);
    }
}

/// Validates a reference to a container resource and its divisor. In environment variables, the
/// name of the container may be omitted.
pub(super) fn resource_field(field: &FieldValue<'_>, own: bool, causes: &mut Causes<'_>) {
    const RESOURCES: &[&str] = &[
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let (resource, divisor) = (field.get("resource"), field.get("divisor"));
    if !own && field.get("containerName").text().is_empty() {
        causes.required(&field.get("containerName"), "");
    }
    let text = resource.text();
    let huge = ["limits.hugepages-", "requests.hugepages-"]
        .iter()
        .any(|start| text.starts_with(start));
    if text.is_empty() {
        return causes.required(&resource, "");
    }
    if !huge && !RESOURCES.contains(&text) {
        return causes.not_supported(&resource, RESOURCES);
    }
    let (words, divisors): (_, &[&str]) = if text.ends_with(".cpu") {
        (
            "only divisor's values 1m and 1 are supported with the cpu resource",
            &["0", "1", "1m"],
        )
    } else {
        (
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource",
            &[
                "0", "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi",
                "1Ei",
            ],
        )
    };
    if divisor.is_set() && !divisors.contains(&divisor.text()) {
        let words = if text.ends_with("storage") {
            words.replace("the memory", "the local ephemeral storage")
        } else {
            words.to_owned()
        };
        causes.invalid(&divisor, &words);
    }
}

/// Validates a projection of ClusterTrustBundles.
fn trust_bundle(bundle: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if !bundle.is_set() {
        return;
    }
    let (name, signer) = (bundle.get("name"), bundle.get("signerName"));
    let selector = bundle.get("labelSelector");
    match (name.is_set(), signer.is_set()) {
        (true, true) => causes.invalid(bundle, "only one of name and signerName may be used"),
        (true, false) if name.text().is_empty() => {
            causes.required(&name, "must be a valid object name");
        }
        (true, false) if selector.is_set() => {
            let detail = "labelSelector must be unset if name is specified";
            causes.invalid(&selector, detail);
        }
        (true, false) => {}
        (false, true) => signer_name(&signer, causes),
        (false, false) => causes.required(bundle, "either name or signerName must be specified"),
    }
    inside(&bundle.get("path"), causes);
}

/// Validates a projection of a certificate of the pod.
fn certificate(source: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if !source.is_set() {
        return;
    }
    pod_certificate::projection(source, causes);
    let mut has_path = false;
    for name in CERTIFICATE_PATHS {
        let path = source.get(name);
        if !path.text().is_empty() {
            has_path = true;
            inside(&path, causes);
        }
    }
    if !has_path {
        let detail =
            "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        causes.required(source, detail);
    }
}

fn token(token: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if !token.is_set() {
        return;
    }
    let seconds = token.get("expirationSeconds");
    if seconds.number().is_some_and(|seconds| seconds < 600) {
        causes.invalid(&seconds, "may not specify a duration less than 10 minutes");
    }
    if token.get("path").text().is_empty() {
        causes.0.push(Cause::required(&token.get("path").path, ""));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use longshore_model::StatusCause;

    use super::*;

    fn problems(sources: &Value) -> Vec<String> {
        let volume = json!({"projected": {"sources": sources}});
        let mut causes = CauseList::new();
        check(volume.as_object().unwrap(), "v", &mut causes);
        let shown = |cause: StatusCause| format!("{}: {}", cause.field, cause.message);
        causes.into_iter().map(shown).collect()
    }

    fn with(field: &str, value: Value) -> Vec<String> {
        let mut source = json!({"signerName": "a.example/signer", "keyType": "ECDSAP521",
            "credentialBundlePath": "b.pem", "keyPath": "k.pem", "certificateChainPath": "c.pem"});
        source[field] = value;
        problems(&json!([{"podCertificate": source}]))
    }

    #[test]
    fn certificates_of_the_pod() {
        let at = "v.projected.sources[0].podCertificate";
        assert_eq!(with("maxExpirationSeconds", json!(7_862_400)), [""; 0]);
        assert_eq!(
            with("maxExpirationSeconds", json!(3599)),
            [format!(
                "{at}.maxExpirationSeconds: Invalid value: 3599: if provided, maxExpirationSeconds must be >= 3600"
            )]
        );
        assert_eq!(
            with("maxExpirationSeconds", json!(7_862_401)),
            [format!(
                "{at}.maxExpirationSeconds: Invalid value: 7862401: if provided, maxExpirationSeconds must be <= 7862400"
            )]
        );
        assert_eq!(
            with("keyType", json!("RSA2048")),
            [format!(
                "{at}.keyType: Unsupported value: \"RSA2048\": supported values: \"RSA3072\", \"RSA4096\", \"ECDSAP256\", \"ECDSAP384\", \"ECDSAP521\", \"ED25519\""
            )]
        );
        assert_eq!(
            with("userAnnotations", json!({"plain": ""})),
            [format!(
                "{at}.userAnnotations: Invalid value: \"plain\": must be a domain-prefixed key (such as \"acme.io/foo\")"
            )]
        );
        assert_eq!(
            with("keyPath", json!("../k")),
            [format!(
                "{at}.keyPath: Invalid value: \"../k\": must not contain '..'"
            )]
        );
        assert_eq!(
            problems(&json!([{"podCertificate": {"signerName": "", "keyType": "ED25519"}}])),
            [
                format!("{at}.signerName: Required value"),
                format!(
                    "{at}: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
                ),
            ]
        );
    }

    #[test]
    fn sources_have_different_paths() {
        let duplicate = |path: &str| {
            format!("v.projected: Invalid value: {path:?}: conflicting duplicate paths")
        };
        assert_eq!(with("keyPath", json!("b.pem")), [duplicate("b.pem")]);
        let bundle = json!({"name": "a", "path": "x"});
        let map = json!({"name": "m", "items": [{"key": "k", "path": "x"}]});
        assert_eq!(
            problems(&json!([{"clusterTrustBundle": bundle}, {"configMap": map}])),
            [duplicate("x")]
        );
        assert_eq!(
            problems(&json!([{"clusterTrustBundle": bundle, "configMap": {"name": "m"}}])),
            [
                "v.projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"
            ]
        );
    }
}
