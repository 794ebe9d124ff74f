//! Audit policies: the first rule that matches a request decides in how much detail it is recorded.
//! Requests that no rule matches are not recorded.

use super::level::{Level, Stage, Stages};
use crate::{authorization::Attributes, user::User};

/// Selects the requests that are recorded, and in how much detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    pub(super) rules: Vec<Rule>,
}

/// A rule of a policy. An empty list matches everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) level: Level,
    pub(super) users: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) verbs: Vec<String>,
    pub(super) resources: Vec<Resources>,
    pub(super) namespaces: Vec<String>,
    pub(super) paths: Vec<String>,
    pub(super) omitted: Stages,
    pub(super) omits_managed_fields: bool,
}

/// Resources of an API group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resources {
    pub(super) group: String,
    pub(super) resources: Vec<String>,
    pub(super) names: Vec<String>,
}

/// The decision of a policy about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) level: Level,
    pub(super) omitted: Stages,
    pub(super) omits_managed_fields: bool,
}

impl Default for Policy {
    /// Records the metadata of all requests when they are answered.
    fn default() -> Self {
        let rule = Rule {
            omitted: Stages::default().with(Stage::RequestReceived),
            ..Rule::of(Level::Metadata)
        };
        Self { rules: vec![rule] }
    }
}

impl Policy {
    /// Decides about a request; `None` if it is not recorded.
    pub(super) fn decide(&self, user: &User, request: &Attributes) -> Option<Decision> {
        let rule = self.rules.iter().find(|rule| rule.matches(user, request))?;
        let level = match may_hold_secrets(request) {
            true => rule.level.min(Level::Metadata),
            false => rule.level,
        };
        (level != Level::None).then_some(Decision {
            level,
            omitted: rule.omitted,
            omits_managed_fields: rule.omits_managed_fields,
        })
    }
}

/// Returns true if the bodies of a request contain passwords or tokens. They are never recorded,
/// even if the policy requests it.
fn may_hold_secrets(request: &Attributes) -> bool {
    match (request.group.as_str(), request.resource.as_str()) {
        ("", "secrets") | ("authentication.k8s.io", "tokenreviews") => true,
        ("", "serviceaccounts") => request.subresource == "token",
        _ => false,
    }
}

impl Rule {
    pub(super) fn of(level: Level) -> Self {
        Self {
            level,
            users: Vec::new(),
            groups: Vec::new(),
            verbs: Vec::new(),
            resources: Vec::new(),
            namespaces: Vec::new(),
            paths: Vec::new(),
            omitted: Stages::default(),
            omits_managed_fields: false,
        }
    }

    fn matches(&self, user: &User, request: &Attributes) -> bool {
        let allows = |list: &[String], value: &String| list.is_empty() || list.contains(value);
        let in_group =
            self.groups.is_empty() || user.groups.iter().any(|group| self.groups.contains(group));
        if !allows(&self.users, &user.name) || !in_group || !allows(&self.verbs, &request.verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            // The namespace of a cluster-scoped resource is empty.
            return request.path.is_none()
                && allows(&self.namespaces, &request.namespace)
                && (self.resources.is_empty()
                    || self.resources.iter().any(|one| one.matches(request)));
        }
        match (&request.path, self.paths.is_empty()) {
            (_, true) => true,
            (Some(path), false) => self.paths.iter().any(|one| path_matches(path, one)),
            (None, false) => false,
        }
    }
}

impl Resources {
    fn matches(&self, request: &Attributes) -> bool {
        if self.group != request.group && self.group != "*" {
            return false;
        }
        let combined = request.combined_resource();
        let is_named = self.names.is_empty() || self.names.contains(&request.name);
        let matches = |one: &String| {
            let of_any = one.strip_prefix("*/");
            let of_this = one.strip_suffix("/*");
            *one == combined
                || one == "*"
                || (!request.subresource.is_empty() && of_any == Some(&request.subresource))
                || of_this == Some(&request.resource)
        };
        self.resources.is_empty() || (is_named && self.resources.iter().any(matches))
    }
}

fn path_matches(path: &str, pattern: &str) -> bool {
    let start = pattern.strip_suffix('*');
    pattern == path || start.is_some_and(|start| path.starts_with(start))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::Method;

    use super::*;
    use crate::query::Query;

    fn level(rules: &str, user: &User, method: &str, path: &str) -> Option<Level> {
        let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}");
        let policy: Policy = text.parse().unwrap();
        let method: Method = method.parse().unwrap();
        let request = Attributes::of_request(&method, path, &Query::default());
        policy.decide(user, &request).map(|found| found.level)
    }

    fn admin(rules: &str, method: &str, path: &str) -> Option<Level> {
        level(rules, &User::administrator(), method, path)
    }

    const PODS: &str = "/api/v1/namespaces/a/pods";

    #[test]
    fn the_first_matching_rule_decides() {
        let rules = "- {level: None, verbs: [list]}\n- {level: Request}";
        assert_eq!(admin(rules, "GET", PODS), None);
        assert_eq!(admin(rules, "POST", PODS), Some(Level::Request));
        assert_eq!(
            admin("- {level: Request, verbs: [get]}", "POST", PODS),
            None
        );
    }

    #[test]
    fn users_and_groups() {
        let rules = "- {level: Request, users: [ana]}\n- {level: Metadata, userGroups: [ops]}";
        let user = |name: &str, group: &str| User {
            name: name.into(),
            groups: vec![group.into()],
            ..User::default()
        };
        let of = |user: &User| level(rules, user, "GET", PODS);
        assert_eq!(of(&user("ana", "x")), Some(Level::Request));
        assert_eq!(of(&user("bob", "ops")), Some(Level::Metadata));
        assert_eq!(of(&user("bob", "x")), None);
    }

    #[test]
    fn resources_and_namespaces() {
        let matches = |rule: &str, path: &str| {
            let rules = format!("- {{level: Metadata, {rule}}}");
            admin(&rules, "GET", path).is_some()
        };
        let of = |list: &str| format!("resources: [{{group: '', resources: [{list}]}}]");
        let (pod, log) = (format!("{PODS}/p"), format!("{PODS}/p/log"));
        let jobs = "/apis/batch/v1/namespaces/a/jobs";
        for (rule, path, expected) in [
            (of("pods"), pod.as_str(), true),
            (of("pods"), &log, false),
            (of("pods/log"), &log, true),
            (of("pods/*"), &log, true),
            (of("pods/*"), &pod, true),
            (of("'*/log'"), &log, true),
            (of("'*'"), &log, true),
            (of("'*'"), jobs, false),
            ("resources: [{group: '*'}]".into(), jobs, true),
            ("resources: [{group: batch}]".into(), &pod, false),
            ("namespaces: [a]".into(), jobs, true),
            ("namespaces: [b]".into(), jobs, false),
            ("namespaces: ['']".into(), "/api/v1/nodes", true),
            ("namespaces: ['']".into(), "/version", false),
            (
                "resources: [{resources: [pods], resourceNames: [q]}]".into(),
                &pod,
                false,
            ),
        ] {
            assert_eq!(matches(&rule, path), expected, "{rule} {path}");
        }
    }

    #[test]
    fn paths() {
        let rules = "- {level: Metadata, nonResourceURLs: ['/healthz*', /version]}";
        for (path, expected) in [
            ("/healthz", true),
            ("/healthz/ping", true),
            ("/version", true),
            ("/version/x", false),
            (PODS, false),
        ] {
            assert_eq!(admin(rules, "GET", path).is_some(), expected, "{path}");
        }
        assert!(admin("- {level: Metadata}", "GET", "/version").is_some());
    }

    #[test]
    fn bodies_with_secrets_are_never_recorded() {
        let rules = "- {level: RequestResponse}";
        let account = "/api/v1/namespaces/a/serviceaccounts/s";
        for (path, expected) in [
            ("/api/v1/namespaces/a/secrets", Level::Metadata),
            (&format!("{account}/token"), Level::Metadata),
            (
                "/apis/authentication.k8s.io/v1/tokenreviews",
                Level::Metadata,
            ),
            (account, Level::RequestResponse),
        ] {
            assert_eq!(admin(rules, "POST", path), Some(expected), "{path}");
        }
    }
}
