//! The kinds that CustomResourceDefinitions define.

use longshore_model::{Gvk, KindInfo, Scope, kind::Words};
use serde_json::Value;

/// Returns the kind that a definition defines, in its storage version if that
/// version is served, otherwise in another served version. Returns `None` if no
/// version is served.
pub(crate) fn kind(definition: &Value) -> Option<KindInfo> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (spec, status) = (&definition["spec"], &definition["status"]);
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    if !conditions.any(|c| c["type"] == "Established" && c["status"] == "True") {
        return None;
    }
    let served = || {
        let versions = spec["versions"].as_array().into_iter().flatten();
        versions.filter(|version| version["served"] == true)
    };
    let version = served()
        .find(|version| version["storage"] == true)
        .or_else(|| served().next())?;
    let names = &status["acceptedNames"];
    Some(KindInfo {
        gvk: Gvk {
            group: text(&spec["group"]).into(),
            version: text(&version["name"]).into(),
            kind: text(&names["kind"]).into(),
        },
        plural: text(&names["plural"]).into(),
        singular: text(&names["singular"]).into(),
        short_names: Words::default(),
        categories: Words::default(),
        scope: if spec["scope"] == "Namespaced" {
            Scope::Namespaced
        } else {
            Scope::Cluster
        },
        subresources: Words::default(),
        list_kind: None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn definition(scope: &str, established: &str) -> Value {
        json!({
            "spec": {"group": "example.com", "scope": scope, "versions": [
                {"name": "v1beta1", "served": true, "storage": false},
                {"name": "v1", "served": true, "storage": true}]},
            "status": {"acceptedNames": {"plural": "shoes", "singular": "shoe", "kind": "Shoe"},
                "conditions": [{"type": "Established", "status": established}]},
        })
    }

    #[test]
    fn rule_30_a_kind_exists_once_its_definition_is_established() {
        assert!(kind(&definition("Namespaced", "False")).is_none());
        let shoes = kind(&definition("Namespaced", "True")).unwrap();
        assert_eq!(
            shoes.collection_path(Some("a")),
            "/apis/example.com/v1/namespaces/a/shoes"
        );
        assert!(
            !kind(&definition("Cluster", "True"))
                .unwrap()
                .is_namespaced()
        );
    }

    #[test]
    fn rule_30_a_served_version_is_used() {
        let mut shoes = definition("Namespaced", "True");
        shoes["spec"]["versions"][1]["served"] = json!(false);
        assert_eq!(&*kind(&shoes).unwrap().gvk.version, "v1beta1");
        shoes["spec"]["versions"][0]["served"] = json!(false);
        assert!(kind(&shoes).is_none());
    }
}
