//! The operations that the API has for a kind: one list for both versions of
//! OpenAPI.

use longshore_model::KindInfo;

use super::{
    custom::{self, Describe},
    parameters::{self, Parameter},
    schemas::subresource_kind,
};
use crate::{packages, registry};

/// What a request carries as its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Nothing,
    /// The operation's own kind.
    Object,
    Patch,
    DeleteOptions,
}

/// What it answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
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
    /// What Kubernetes calls it: `list`, `post`, `deletecollection`, …
    pub(super) action: &'static str,
    /// A name of its own in the whole API.
    pub(super) id: String,
    pub(super) description: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Body,
    pub(super) answer: Answer,
    /// Group, version and kind of the objects it takes and gives.
    pub(super) kind: (String, String, String),
    /// The definition of those objects; nothing for kinds that are not built in.
    pub(super) definition: Option<String>,
    /// Whether a definition describes the kind; there is no strategic merge of
    /// such.
    pub(super) custom: bool,
}

/// A path and its operations.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) path: String,
    /// The parameters in braces.
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
    let maker = Maker {
        info,
        custom,
        scope: if namespaced { "Namespaced" } else { "" },
    };
    let list = |all| maker.make("get", "list", &["list", all], None);
    let mut paths = vec![Path {
        path: base.clone(),
        variables: scope.to_vec(),
        operations: vec![
            list(""),
            maker.make("post", "post", &["create", ""], None),
            maker.make(
                "delete",
                "deletecollection",
                &["deletecollection", ""],
                None,
            ),
        ],
    }];
    if namespaced {
        let everywhere = Maker {
            info,
            custom,
            scope: "",
        };
        paths.push(Path {
            path: info.collection_path(None),
            variables: Vec::new(),
            operations: vec![everywhere.make("get", "list", &["list", "ForAllNamespaces"], None)],
        });
    }
    let item = [scope, &["name"]].concat();
    paths.push(Path {
        path: format!("{base}/{{name}}"),
        variables: item.clone(),
        operations: vec![
            maker.make("get", "get", &["read", ""], None),
            maker.make("put", "put", &["replace", ""], None),
            maker.make("patch", "patch", &["patch", ""], None),
            maker.make("delete", "delete", &["delete", ""], None),
        ],
    });
    for subresource in info.subresources.iter() {
        let suffix = camel(subresource);
        let make = |method, verb| maker.make(method, method, &[verb, &suffix], Some(subresource));
        let connect =
            |method, verb| maker.make(method, "connect", &[verb, &suffix], Some(subresource));
        paths.push(Path {
            path: format!("{base}/{{name}}/{subresource}"),
            variables: item.clone(),
            operations: match subresource {
                "log" => vec![make("get", "read")],
                "binding" | "eviction" | "token" => vec![make("post", "create")],
                "finalize" => vec![make("put", "replace")],
                "attach" | "exec" | "portforward" | "proxy" => {
                    vec![connect("get", "connectGet"), connect("post", "connectPost")]
                }
                _ => vec![
                    make("get", "read"),
                    make("put", "replace"),
                    make("patch", "patch"),
                ],
            },
        });
    }
    paths
}

struct Maker<'a> {
    info: &'a KindInfo,
    /// Whether a definition describes it.
    custom: bool,
    /// In ids, before the kind.
    scope: &'static str,
}

impl Maker<'_> {
    /// `words` are the id's beginning and end, around group, version and kind.
    fn make(
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
            // The first word alone might be another group's, too.
            group.split(['.', '-']).map(camel).collect()
        } else {
            camel(group.split('.').next().unwrap_or(group))
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
                camel(&gvk.version),
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
                "list" => Answer::List,
                "delete" | "deletecollection" => Answer::Status,
                "connect" => Answer::Text,
                _ if is_log => Answer::Text,
                _ => Answer::Object,
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

/// With a capital letter first.
fn camel(word: &str) -> String {
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
