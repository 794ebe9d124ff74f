//! Maps groups and versions to Go packages: `batch/v1` is
//! `io.k8s.api.batch.v1`. Schemas and protobuf messages use the same names.

/// The package of the types that all groups share.
pub(crate) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The package of a group and version; `None` for a group that cannot be built
/// in.
pub(crate) fn of(group: &str, version: &str) -> Option<String> {
    Some(match group {
        "" => format!("io.k8s.api.core.{version}"),
        "meta.k8s.io" => format!("io.k8s.apimachinery.pkg.apis.meta.{version}"),
        "apiextensions.k8s.io" => {
            format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}")
        }
        "apiregistration.k8s.io" => {
            format!("io.k8s.kube-aggregator.pkg.apis.apiregistration.{version}")
        }
        _ => {
            let name = match group.split_once('.') {
                Some((name, domain)) if domain == "k8s.io" || domain.ends_with(".k8s.io") => name,
                Some(_) => return None,
                None => group,
            };
            format!("io.k8s.api.{name}.{version}")
        }
    })
}

/// The name of the definition and of the protobuf message of a kind.
pub(crate) fn definition(group: &str, version: &str, kind: &str) -> Option<String> {
    of(group, version).map(|package| format!("{package}.{kind}"))
}

#[cfg(test)]
mod tests {
    use super::definition;

    #[test]
    fn kinds_have_definitions() {
        let name = |group, kind| definition(group, "v1", kind);
        assert_eq!(name("", "Pod").as_deref(), Some("io.k8s.api.core.v1.Pod"));
        assert_eq!(
            name("rbac.authorization.k8s.io", "Role").as_deref(),
            Some("io.k8s.api.rbac.v1.Role")
        );
        assert_eq!(
            name("apiextensions.k8s.io", "CustomResourceDefinition").as_deref(),
            Some(
                "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
            )
        );
        assert_eq!(name("example.com", "Shoe"), None);
    }
}
