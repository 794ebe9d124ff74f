//! The index decides like Kubernetes' rules that are applied one after the other.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{authorization::Decision, user::MASTERS};

/// The objects of a cluster, each with its revision.
#[derive(Debug, Clone, Default)]
struct Objects {
    roles: Vec<(u64, Value)>,
    bindings: Vec<(u64, Value)>,
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

impl Objects {
    fn index(&self, version: u64, last: &Index) -> Index {
        let encode = |list: &[(u64, Value)]| {
            let mut list: Vec<(String, String, u64, Vec<u8>)> = list
                .iter()
                .map(|(revision, object)| {
                    let (namespace, name) = (text(object, "namespace"), text(object, "name"));
                    let bytes = serde_json::to_vec(object).unwrap();
                    (namespace.to_owned(), name.to_owned(), *revision, bytes)
                })
                .collect();
            list.sort();
            list
        };
        let (roles, bindings) = (encode(&self.roles), encode(&self.bindings));
        fn stored(list: &[(String, String, u64, Vec<u8>)]) -> impl Iterator<Item = Stored<'_>> {
            list.iter().map(|(namespace, name, revision, json)| Stored {
                namespace,
                name,
                revision: *revision,
                json,
            })
        }
        Index::build(version, last, stored(&roles), stored(&bindings))
    }

    /// Decides without an index.
    fn decide(&self, user: &User, request: &Attributes) -> bool {
        self.bindings.iter().any(|(_, binding)| {
            let scope = text(binding, "namespace");
            let applies = binding["subjects"]
                .as_array()
                .unwrap()
                .iter()
                .any(|subject| {
                    let name = subject["name"].as_str().unwrap();
                    match subject["kind"].as_str().unwrap() {
                        "User" => user.name == name,
                        "Group" => user.groups.iter().any(|group| group == name),
                        _ => {
                            let own = subject["namespace"].as_str().unwrap_or(scope);
                            !own.is_empty()
                                && user.name == format!("system:serviceaccount:{own}:{name}")
                        }
                    }
                });
            let role = &binding["roleRef"];
            let of_namespace = if role["kind"] == "Role" { scope } else { "" };
            let rules = self.roles.iter().find(|(_, one)| {
                text(one, "namespace") == of_namespace && one["metadata"]["name"] == role["name"]
            });
            let allows = rules.is_some_and(|(_, role)| {
                let mut rules = role["rules"].as_array().unwrap().iter();
                rules.any(|rule| {
                    let rule: Rule = serde_json::from_value(rule.clone()).unwrap();
                    rule.allows(request)
                })
            });
            (scope.is_empty() || scope == request.namespace) && applies && allows
        })
    }
}

const NAMESPACES: [&str; 3] = ["", "a", "b"];

fn roles() -> impl Strategy<Value = Vec<(u64, Value)>> {
    let role = (0..2usize, 0..3usize, any::<bool>(), any::<bool>(), 1..3u64);
    prop::collection::vec(role, 0..5).prop_map(|list| {
        let mut roles: Vec<(u64, Value)> = Vec::new();
        for (name, namespace, pods, gets, revision) in list {
            let (name, namespace) = (format!("r{name}"), NAMESPACES[namespace]);
            let rule = json!({
                "apiGroups": [""],
                "resources": [if pods { "pods" } else { "*" }],
                "verbs": [if gets { "get" } else { "list" }],
            });
            let metadata = json!({"name": name, "namespace": namespace});
            let is_new = roles.iter().all(|(_, role)| role["metadata"] != metadata);
            if is_new {
                // The revision identifies the content.
                let revision = revision * 100 + u64::from(pods) * 10 + u64::from(gets);
                roles.push((revision, json!({"metadata": metadata, "rules": [rule]})));
            }
        }
        roles
    })
}

fn bindings() -> impl Strategy<Value = Vec<(u64, Value)>> {
    let subject = prop::sample::select(vec![
        json!({"kind": "User", "name": "u"}),
        json!({"kind": "User", "name": "system:serviceaccount:a:s"}),
        json!({"kind": "Group", "name": "g"}),
        json!({"kind": "Group", "name": "system:authenticated"}),
        json!({"kind": "ServiceAccount", "name": "s"}),
        json!({"kind": "ServiceAccount", "name": "s", "namespace": "b"}),
    ]);
    let subjects = prop::collection::vec(subject, 0..3);
    let binding = (0..3usize, 0..3usize, 0..3usize, any::<bool>(), subjects);
    prop::collection::vec(binding, 0..6).prop_map(|list| {
        let mut bindings: Vec<(u64, Value)> = Vec::new();
        for (place, (name, namespace, role, cluster, subjects)) in list.into_iter().enumerate() {
            let (name, namespace) = (format!("b{name}"), NAMESPACES[namespace]);
            let metadata = json!({"name": name, "namespace": namespace});
            let is_new = bindings.iter().all(|(_, one)| one["metadata"] != metadata);
            let kind = if cluster || namespace.is_empty() {
                "ClusterRole"
            } else {
                "Role"
            };
            let binding = json!({
                "metadata": metadata,
                "roleRef": {"kind": kind, "name": format!("r{role}")},
                "subjects": subjects,
            });
            if is_new {
                // Different contents have different revisions.
                let content = binding.to_string().bytes().fold(place as u64, |sum, byte| {
                    sum.wrapping_mul(31).wrapping_add(u64::from(byte))
                });
                bindings.push((content, binding));
            }
        }
        bindings
    })
}

fn objects() -> impl Strategy<Value = Objects> {
    (roles(), bindings()).prop_map(|(roles, bindings)| Objects { roles, bindings })
}

fn users() -> Vec<User> {
    let user = |name: &str, groups: &[&str]| User {
        name: name.into(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..User::default()
    };
    vec![
        user("u", &["system:authenticated"]),
        user("v", &["g", "system:authenticated"]),
        user("system:serviceaccount:a:s", &[]),
        user("system:serviceaccount:b:s", &["g"]),
        user("system:anonymous", &["system:unauthenticated"]),
    ]
}

fn requests() -> Vec<Attributes> {
    let mut requests = Vec::new();
    for namespace in NAMESPACES {
        for resource in ["pods", "services"] {
            for verb in ["get", "list"] {
                requests.push(Attributes {
                    verb: verb.into(),
                    resource: resource.into(),
                    namespace: namespace.into(),
                    ..Attributes::default()
                });
            }
        }
    }
    requests
}

proptest! {
    #[test]
    fn the_index_equals_a_naive_evaluation(before in objects(), after in objects()) {
        let first = before.index(1, &Index::default());
        // Built with parts of another index, as after a change.
        let second = after.index(2, &first);
        for (objects, index) in [(&before, &first), (&after, &second)] {
            for user in users() {
                for request in requests() {
                    let decision = index.decide(&user, &request);
                    prop_assert_eq!(decision.allowed, objects.decide(&user, &request));
                    prop_assert_eq!(
                        decision.allowed,
                        decision.reason.starts_with("RBAC: allowed by ")
                    );
                }
            }
        }
    }
}

fn small(bindings: &[Value]) -> Index {
    let role = json!({
        "metadata": {"name": "reader", "namespace": "a"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    });
    let objects = Objects {
        roles: vec![(1, role)],
        bindings: bindings.iter().map(|one| (2, one.clone())).collect(),
    };
    objects.index(1, &Index::default())
}

fn get_pods(index: &Index, user: &User) -> Decision {
    let request = Attributes {
        verb: "get".into(),
        resource: "pods".into(),
        namespace: "a".into(),
        ..Attributes::default()
    };
    index.decide(user, &request)
}

#[test]
fn reasons_are_those_of_kubernetes() {
    let binding = |name: &str, role: &str, subject: Value| {
        json!({
            "metadata": {"name": name, "namespace": "a"},
            "roleRef": {"kind": "Role", "name": role},
            "subjects": [subject],
        })
    };
    let account = json!({"kind": "ServiceAccount", "name": "s"});
    let index = small(&[
        binding("accounts", "reader", account),
        binding("lost", "gone", json!({"kind": "User", "name": "u"})),
        binding("lost-too", "gone", json!({"kind": "Group", "name": "g"})),
    ]);
    let account = User {
        name: "system:serviceaccount:a:s".into(),
        ..User::default()
    };
    let decision = get_pods(&index, &account);
    let reason =
        r#"RBAC: allowed by RoleBinding "accounts/a" of Role "reader" to ServiceAccount "s/a""#;
    assert_eq!((decision.allowed, decision.reason.as_str()), (true, reason));
    let user = User {
        name: "u".into(),
        groups: vec!["g".into()],
        ..User::default()
    };
    let decision = get_pods(&index, &user);
    let reason = r#"RBAC: role.rbac.authorization.k8s.io "gone" not found"#;
    assert_eq!(
        (decision.allowed, decision.reason.as_str()),
        (false, reason)
    );
}

#[test]
fn masters_need_no_bindings() {
    let user = User {
        name: "m".into(),
        groups: vec![MASTERS.into()],
        ..User::default()
    };
    let decision = get_pods(&small(&[]), &user);
    assert_eq!((decision.allowed, decision.reason.as_str()), (true, ""));
}
