//! The Role with the permissions for all commands that manage runs. Pure.

use std::collections::BTreeMap;

use longshore_client::k8s_openapi::{
    api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use longshore_model::yaml;
use serde_json::{Value, json};

use crate::owner::Owner;

/// The Role in the documentation.
pub(super) const DOCUMENTED: &str = include_str!("role.yaml");

/// The prefix of the user names of service accounts, before the namespace and the name.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
/// A verb, an API group, and a resource with its subresource.
pub(super) type Permission = (&'static str, &'static str, String);

/// A placeholder for the user if the cluster does not report the names of users.
const UNKNOWN_USER: &str = "NAME-OF-THE-USER";

/// The documented Role with further permissions, and its RoleBinding for a user, as a manifest in
/// YAML, for an administrator of the cluster. It is a single document, which may be indented.
pub(super) fn manifest(namespace: &str, user: &Owner, further: &[Permission]) -> String {
    // The file is part of the program, and a test parses it.
    let mut role: Role = serde_yaml_ng::from_str(DOCUMENTED).unwrap_or_default();
    role.metadata.namespace = Some(namespace.to_owned());
    let rules = role.rules.get_or_insert_default();
    let missing = further.iter().filter(|permission| !has(rules, permission));
    let mut added: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    for (verb, group, resource) in missing {
        let verbs = added.entry((group, resource.clone())).or_default();
        verbs.push((*verb).to_owned());
    }
    rules.extend(
        added
            .into_iter()
            .map(|((group, resource), verbs)| PolicyRule {
                api_groups: Some(vec![group.to_owned()]),
                resources: Some(vec![resource]),
                verbs,
                ..PolicyRule::default()
            }),
    );
    let name = role.metadata.name.clone();
    let binding = RoleBinding {
        metadata: ObjectMeta {
            name: Some(format!("longshore-{}", user.label())),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "Role".to_owned(),
            name: name.unwrap_or_default(),
        },
        subjects: Some(vec![subject(user)]),
    };
    let list: Value = json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [role, binding],
    });
    yaml::write(&list)
}

/// Returns true if the rules contain a permission.
fn has(rules: &[PolicyRule], (verb, group, resource): &Permission) -> bool {
    let contains = |list: &Option<Vec<String>>, text: &str| {
        list.as_ref()
            .is_some_and(|list| list.iter().any(|one| one == text))
    };
    rules.iter().any(|rule| {
        contains(&rule.api_groups, group)
            && contains(&rule.resources, resource)
            && rule.verbs.iter().any(|one| one == verb)
    })
}

fn subject(user: &Owner) -> Subject {
    let account = user.name.strip_prefix(SERVICE_ACCOUNT);
    let account = account.and_then(|account| account.split_once(':'));
    match account.filter(|_| !user.is_local) {
        Some((namespace, name)) => Subject {
            kind: "ServiceAccount".to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
            ..Subject::default()
        },
        None => Subject {
            kind: "User".to_owned(),
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            name: match user.is_local {
                true => UNKNOWN_USER.to_owned(),
                false => user.name.clone(),
            },
            ..Subject::default()
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_documentation_shows_this_role() {
        let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/launcher.md");
        let text = std::fs::read_to_string(documents).unwrap();
        let (_, role) = text.split_once("```yaml role.yaml\n").unwrap();
        let (role, _) = role.split_once("```").unwrap();
        assert_eq!(role, DOCUMENTED);
        let read: Role = serde_yaml_ng::from_str(DOCUMENTED).unwrap();
        assert_eq!(read.rules.unwrap().len(), 5);
    }

    #[test]
    fn the_manifest_names_the_user_and_adds_missing_rules() {
        let further = [
            ("get", "", "pods".to_owned()),
            ("create", "jobset.x-k8s.io", "jobsets".to_owned()),
            ("patch", "jobset.x-k8s.io", "jobsets".to_owned()),
        ];
        let account = Owner::of_cluster("system:serviceaccount:team:ann");
        let text = manifest("team", &account, &further);
        let read: Value = serde_yaml_ng::from_str(&text).unwrap();
        let rules = read["items"][0]["rules"].as_array().unwrap();
        assert_eq!(rules.len(), 6, "{text}");
        assert_eq!(rules[5]["verbs"], json!(["create", "patch"]));
        assert_eq!(read["items"][0]["metadata"]["namespace"], "team");
        let subject = |text: &str| {
            let read: Value = serde_yaml_ng::from_str(text).unwrap();
            read["items"][1]["subjects"][0].clone()
        };
        assert_eq!(
            subject(&text),
            json!({"kind": "ServiceAccount", "namespace": "team", "name": "ann"})
        );
        let user = subject(&manifest(
            "team",
            &Owner::of_cluster("ann@example.com"),
            &[],
        ));
        assert_eq!(
            (&user["kind"], &user["name"]),
            (&json!("User"), &json!("ann@example.com"))
        );
        // The indented text is still a single manifest.
        let indented: String = text.lines().map(|line| format!("  {line}\n")).collect();
        assert_eq!(subject(&indented), subject(&text));
    }
}
