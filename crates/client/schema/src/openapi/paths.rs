//! The operations of a kind, shared by both versions of OpenAPI.

use longshore_model::KindInfo;

use super::{
    custom::{self, Describe},
    parameters::{self, Parameter},
    schemas::subresource_kind,
};
use crate::{packages, registry};

/// The body of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Nothing,
    /// An object of the operation's kind.
    Object,
    Patch,
    DeleteOptions,
}

/// The body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseBody {
    Object,
    List,
    Status,
    Text,
}

/// An operation on a path.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    /// `get`, `put`, …
    pub(super) method: &'static str,
    /// The Kubernetes action: `list`, `post`, `deletecollection`, …
    pub(super) action: &'static str,
    /// An id that is unique in the whole API.
    pub(super) id: String,
    pub(super) description: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Body,
    pub(super) answer: ResponseBody,
    /// Group, version and kind of the objects in requests and responses.
    pub(super) kind: (String, String, String),
    /// The definition of these objects; `None` for kinds that are not built in.
    pub(super) definition: Option<String>,
    /// True if the kind is custom. Custom kinds do not support strategic merge.
    pub(super) custom: bool,
}

/// A path and its operations.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) path: String,
    /// The path parameters.
    pub(super) variables: Vec<&'static str>,
    pub(super) operations: Vec<Operation>,
}

/// All paths of a kind.
pub(super) fn of_kind(kind: &impl Describe) -> Vec<Path> {
    let info = kind.info();
    let custom = kind.schema().is_some();
    let namespaced = info.is_namespaced();
    let scope: &[&str] = if namespaced { &["namespace"] } else { &[] };
    let base = info.collection_path(namespaced.then_some("{namespace}"));
    let maker = OperationBuilder {
        info,
        custom,
        scope: if namespaced { "Namespaced" } else { "" },
    };
    let list = |all| maker.build("get", "list", &["list", all], None);
    let mut paths = vec![Path {
        path: base.clone(),
        variables: scope.to_vec(),
        operations: vec![
            list(""),
            maker.build("post", "post", &["create", ""], None),
            maker.build(
                "delete",
                "deletecollection",
                &["deletecollection", ""],
                None,
            ),
        ],
    }];
    if namespaced {
        let everywhere = OperationBuilder {
            info,
            custom,
            scope: "",
        };
        paths.push(Path {
            path: info.collection_path(None),
            variables: Vec::new(),
            operations: vec![everywhere.build("get", "list", &["list", "ForAllNamespaces"], None)],
        });
    }
    let item = [scope, &["name"]].concat();
    paths.push(Path {
        path: format!("{base}/{{name}}"),
        variables: item.clone(),
        operations: vec![
            maker.build("get", "get", &["read", ""], None),
            maker.build("put", "put", &["replace", ""], None),
            maker.build("patch", "patch", &["patch", ""], None),
            maker.build("delete", "delete", &["delete", ""], None),
        ],
    });
    for subresource in info.subresources.iter() {
        let suffix = capitalize(subresource);
        let build = |method, verb| maker.build(method, method, &[verb, &suffix], Some(subresource));
        let connect =
            |method, verb| maker.build(method, "connect", &[verb, &suffix], Some(subresource));
        paths.push(Path {
            path: format!("{base}/{{name}}/{subresource}"),
            variables: item.clone(),
            operations: match subresource {
                "log" => vec![build("get", "read")],
                "binding" | "eviction" | "token" => vec![build("post", "create")],
                "finalize" => vec![build("put", "replace")],
                "attach" | "exec" | "portforward" | "proxy" => {
                    vec![connect("get", "connectGet"), connect("post", "connectPost")]
                }
                _ => vec![
                    build("get", "read"),
                    build("put", "replace"),
                    build("patch", "patch"),
                ],
            },
        });
    }
    paths
}

struct OperationBuilder<'a> {
    info: &'a KindInfo,
    /// True if the kind is custom.
    custom: bool,
    /// The part of ids before the kind.
    scope: &'static str,
}

impl OperationBuilder<'_> {
    /// Creates an operation. `words` are the start and the end of the id;
    /// group, version and kind are inserted between them.
    fn build(
        &self,
        method: &'static str,
        action: &'static str,
        words: &[&str; 2],
        subresource: Option<&str>,
    ) -> Operation {
        let gvk = &self.info.gvk;
        let group = if gvk.group.is_empty() {
            "core"
        } else {
            &gvk.group
        };
        let group = if self.custom {
            // The first part of the group alone might not be unique.
            group.split(['.', '-']).map(capitalize).collect()
        } else {
            capitalize(group.split('.').next().unwrap_or(group))
        };
        let (group_of_kind, version, kind) =
            subresource
                .and_then(subresource_kind)
                .unwrap_or((&gvk.group, &gvk.version, &gvk.kind));
        let definition = packages::definition(group_of_kind, version, kind)
            .filter(|name| registry().definition(name).is_some())
            .or_else(|| {
                let own = self.custom && kind == gvk.kind;
                own.then(|| custom::name(self.info))
            });
        let is_log = subresource == Some("log");
        let connects = match subresource {
            Some("attach") => Some(parameters::ATTACH.to_vec()),
            Some("exec") => Some([parameters::EXEC, parameters::ATTACH].concat()),
            Some("portforward") => Some(parameters::PORT_FORWARD.to_vec()),
            _ => None,
        };
        let parameters = match action {
            "list" => parameters::LIST.to_vec(),
            "post" | "put" => parameters::WRITE.to_vec(),
            "patch" => parameters::PATCH.to_vec(),
            "delete" => parameters::DELETE.to_vec(),
            "deletecollection" => [parameters::LIST, parameters::DELETE].concat(),
            _ if is_log => parameters::LOG.to_vec(),
            _ => connects.unwrap_or_else(|| parameters::READ.to_vec()),
        };
        let of = subresource
            .map(|name| format!("{name} of "))
            .unwrap_or_default();
        Operation {
            method,
            action,
            id: format!(
                "{}{group}{}{}{}{}",
                words[0],
                capitalize(&gvk.version),
                self.scope,
                gvk.kind,
                words[1]
            ),
            description: format!("{action}: {of}{}", self.info.qualified()),
            parameters,
            body: match action {
                "post" | "put" => Body::Object,
                "patch" => Body::Patch,
                "delete" | "deletecollection" => Body::DeleteOptions,
                _ => Body::Nothing,
            },
            answer: match action {
                "list" => ResponseBody::List,
                "delete" | "deletecollection" => ResponseBody::Status,
                "connect" => ResponseBody::Text,
                _ if is_log => ResponseBody::Text,
                _ => ResponseBody::Object,
            },
            kind: (
                group_of_kind.to_owned(),
                version.to_owned(),
                kind.to_owned(),
            ),
            definition,
            custom: self.custom,
        }
    }
}

/// Capitalizes the first letter.
fn capitalize(word: &str) -> String {
    let mut characters = word.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use longshore_model::kind::{BUILTIN, builtin};

    use super::*;

    #[test]
    fn a_namespaced_kind_has_these_paths() {
        let paths: Vec<_> = of_kind(builtin("batch", "Job").unwrap())
            .into_iter()
            .map(|path| path.path)
            .collect();
        assert_eq!(
            paths,
            [
                "/apis/batch/v1/namespaces/{namespace}/jobs",
                "/apis/batch/v1/jobs",
                "/apis/batch/v1/namespaces/{namespace}/jobs/{name}",
                "/apis/batch/v1/namespaces/{namespace}/jobs/{name}/status",
            ]
        );
    }

    #[test]
    fn ids_are_unique() {
        let mut ids: Vec<_> = BUILTIN
            .iter()
            .flat_map(of_kind)
            .flat_map(|path| path.operations)
            .map(|operation| operation.id)
            .collect();
        assert!(ids.contains(&"listCoreV1PodForAllNamespaces".to_owned()));
        assert!(ids.contains(&"patchCoordinationV1NamespacedLease".to_owned()));
        ids.sort_unstable();
        assert_eq!(ids.windows(2).find(|pair| pair[0] == pair[1]), None);
    }
}
