//! The parameters of policies: objects that a binding refers to.

use std::sync::Arc;

use longshore_builtin::json;
use longshore_engine::{Dependency, Engine, Error, ListRequest, Object, ReadVersion};
use longshore_model::{KindInfo, LabelSelector};
use serde_json::{Map, Value};

use crate::webhooks::{labels, write_rules::Dependencies};

/// The kind of the parameters of a policy.
#[derive(Debug, Clone)]
pub(in crate::webhooks) struct ParamKind {
    pub(in crate::webhooks) group: String,
    pub(in crate::webhooks) version: String,
    pub(in crate::webhooks) kind: String,
}

impl ParamKind {
    pub(in crate::webhooks) fn read(kind: &Map<String, Value>) -> Self {
        let version = json::text(kind, "apiVersion");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: json::text(kind, "kind").to_owned(),
        }
    }
}

/// The objects that a binding names.
#[derive(Debug)]
pub(in crate::webhooks) struct ParamRef {
    name: String,
    /// Empty for the namespace of the request.
    namespace: String,
    /// `None` if the binding has no selector, or it cannot be read.
    selector: Option<LabelSelector>,
    denies_if_missing: bool,
}

impl ParamRef {
    pub(in crate::webhooks) fn read(reference: &Map<String, Value>) -> Self {
        let selector = reference.get("selector").filter(|one| !one.is_null());
        Self {
            name: json::text(reference, "name").to_owned(),
            namespace: json::text(reference, "namespace").to_owned(),
            selector: selector.and_then(|selector| labels::selector(Some(selector))),
            denies_if_missing: json::text(reference, "parameterNotFoundAction") == "Deny",
        }
    }
}

/// Returns the served kind of the parameters.
///
/// # Errors
/// The kind is not served.
pub(in crate::webhooks) fn kind(
    engine: &Engine,
    kind: &ParamKind,
) -> Result<Arc<KindInfo>, String> {
    let kinds = engine.kinds();
    let found = kinds.into_iter().find(|info| {
        let gvk = &info.gvk;
        *gvk.kind == *kind.kind && *gvk.group == *kind.group && *gvk.version == *kind.version
    });
    found.ok_or_else(|| {
        let ParamKind {
            group,
            version,
            kind,
        } = kind;
        format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
    })
}

/// Returns the parameters for a request in a namespace (empty for cluster-scoped objects). The
/// policy is evaluated once for each element; without a kind or a reference, it is evaluated once
/// without parameters.
///
/// # Errors
/// The reference is invalid, or it matches no objects and the binding requires them.
pub(in crate::webhooks) fn collect(
    (engine, dependencies): (&Engine, &Dependencies),
    kind: Option<&Arc<KindInfo>>,
    reference: Option<&ParamRef>,
    namespace: &str,
) -> Result<Vec<Option<Arc<Object>>>, String> {
    let (Some(kind), Some(reference)) = (kind, reference) else {
        return Ok(vec![None]);
    };
    let namespace = match (kind.is_namespaced(), &*reference.namespace, namespace) {
        (false, "", _) => None,
        (false, ..) => {
            return Err(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`".into(),
            );
        }
        (true, "", "") => {
            return Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".into());
        }
        (true, "", namespace) | (true, namespace, _) => Some(namespace),
    };
    let params = match (&*reference.name, &reference.selector) {
        ("", None) => return Err("one of name or selector must be provided".into()),
        ("", Some(selector)) => {
            let list = ListRequest {
                namespace: namespace.map(str::to_owned),
                labels: selector.clone(),
                ..ListRequest::of(kind.clone())
            };
            let page = engine.list(&list).map_err(|error| error.to_string())?;
            let revisions = page.items.iter().map(|object| object.revision());
            let revisions = revisions.collect();
            dependencies.add(Dependency::List(Box::new(list), revisions));
            page.items
        }
        (name, _) => {
            let found = match engine.get(kind, namespace, name, ReadVersion::Latest) {
                Ok(found) => Some(found),
                Err(Error::NotFound(_)) => None,
                Err(error) => return Err(error.to_string()),
            };
            dependencies.add_object(kind, (namespace, name), found.as_deref());
            found.into_iter().collect()
        }
    };
    if params.is_empty() && reference.denies_if_missing {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".into(),
        );
    }
    Ok(params.into_iter().map(Some).collect())
}
