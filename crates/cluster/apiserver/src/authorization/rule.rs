//! Rules of roles: decides whether a rule allows a request, and whether rules cover others.

use serde::{Deserialize, Deserializer, Serialize};

use super::attributes::Attributes;

/// A rule of a role (`PolicyRule`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Rule {
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) verbs: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_groups: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_names: Vec<String>,
    #[serde(
        rename = "nonResourceURLs",
        deserialize_with = "list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) non_resource_urls: Vec<String>,
}

/// A list that may be null.
pub(super) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<Vec<T>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Returns true if a list contains a value or `*`.
fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|one| one == "*" || one == value)
}

/// Returns true if a pattern, which may end with `*`, matches a path.
fn url_matches(pattern: &str, path: &str) -> bool {
    pattern == path || (pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*')))
}

impl Rule {
    /// Returns true if the rule allows a request.
    pub(crate) fn allows(&self, request: &Attributes) -> bool {
        if !has(&self.verbs, &request.verb) {
            return false;
        }
        match &request.path {
            Some(path) => self
                .non_resource_urls
                .iter()
                .any(|pattern| url_matches(pattern, path)),
            None => {
                has(&self.api_groups, &request.group)
                    && self.has_resource(&request.resource, &request.subresource)
                    && (self.resource_names.is_empty()
                        || self.resource_names.contains(&request.name))
            }
        }
    }

    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|one| {
            if one == "*" {
                return true;
            }
            if subresource.is_empty() {
                return one == resource;
            }
            let parent = one.strip_suffix(subresource);
            let parent = parent.and_then(|parent| parent.strip_suffix('/'));
            parent.is_some_and(|parent| parent == "*" || parent == resource)
        })
    }

    /// The number of parts of the rule.
    fn count_parts(&self) -> usize {
        let product = |lists: &[&Vec<String>]| {
            let lengths = lists.iter().map(|list| list.len());
            lengths.fold(1, usize::saturating_mul)
        };
        let named = self.resource_names.len().max(1);
        let resources = product(&[&self.api_groups, &self.resources, &self.verbs]);
        let urls = product(&[&self.non_resource_urls, &self.verbs]);
        resources.saturating_mul(named).saturating_add(urls)
    }

    /// Splits the rule into rules with one verb and one resource or path each.
    fn parts(&self) -> Vec<Rule> {
        let mut parts = Vec::new();
        let one = |text: &String| vec![text.clone()];
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let part = Rule {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Rule::default()
                    };
                    let named = self.resource_names.iter().map(|name| Rule {
                        resource_names: one(name),
                        ..part.clone()
                    });
                    parts.extend(named);
                    if self.resource_names.is_empty() {
                        parts.push(part);
                    }
                }
            }
        }
        for url in &self.non_resource_urls {
            parts.extend(self.verbs.iter().map(|verb| Rule {
                verbs: one(verb),
                non_resource_urls: one(url),
                ..Rule::default()
            }));
        }
        parts
    }

    /// Returns true if this rule allows all requests that `part` allows, which has at most one
    /// value in each list.
    fn covers(&self, part: &Rule) -> bool {
        let covers_resource = |resource: &String| {
            has(&self.resources, resource)
                || resource.split_once('/').is_some_and(|(_, sub)| {
                    self.resources
                        .iter()
                        .any(|own| own.strip_prefix("*/") == Some(sub))
                })
        };
        let covers_url = |url: &String| {
            let mut own = self.non_resource_urls.iter();
            own.any(|pattern| url_matches(pattern, url))
        };
        let covers_name = |name| self.resource_names.contains(name);
        part.verbs.iter().all(|verb| has(&self.verbs, verb))
            && part.api_groups.iter().all(|one| has(&self.api_groups, one))
            && part.resources.iter().all(covers_resource)
            && part.non_resource_urls.iter().all(covers_url)
            && (self.resource_names.is_empty()
                || (!part.resource_names.is_empty() && part.resource_names.iter().all(covers_name)))
    }

    /// The rule in the form of Kubernetes' messages.
    fn describe(&self) -> String {
        let fields = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let fields = fields.into_iter().filter(|(_, values)| !values.is_empty());
        let fields: Vec<String> = fields
            .map(|(field, values)| format!("{field}:{}", quoted(values)))
            .collect();
        format!("{{{}}}", fields.join(", "))
    }
}

/// A list of strings in the form of Kubernetes' messages.
pub(super) fn quoted(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("[{}]", values.join(" "))
}

/// Maximum number of parts of rules that are compared with the rules of a user.
const MAX_PARTS: usize = 100_000;
/// Maximum number of missing parts that are described.
const MAX_MISSING: usize = 1000;

/// The parts of `wanted` that no rule of `owned` covers.
///
/// # Errors
/// The rules have too many parts. They combine each verb with each group and resource, so a short
/// rule may have billions.
pub(super) fn missing<'a>(
    owned: &[&Rule],
    wanted: impl Iterator<Item = &'a Rule>,
) -> Result<Vec<Rule>, String> {
    let is_covered = |rule: &Rule| owned.iter().any(|own| own.covers(rule));
    let uncovered: Vec<&Rule> = wanted.filter(|rule| !is_covered(rule)).collect();
    let counts = uncovered.iter().map(|rule| rule.count_parts());
    let count = counts.fold(0, usize::saturating_add);
    if count > MAX_PARTS {
        return Err(format!(
            "the rules that the user does not hold as a whole combine verbs, API groups, resources and names in {count} ways, more than the {MAX_PARTS} that can be compared: use fewer names in a rule"
        ));
    }
    let parts = uncovered.into_iter().flat_map(Rule::parts);
    Ok(parts.filter(|part| !is_covered(part)).collect())
}

/// Describes missing rules, one per line. Verbs on the same resource are on one line.
pub(super) fn describe_missing(missing: &[Rule]) -> String {
    let mut merged: Vec<Rule> = Vec::new();
    let omitted = missing.len().saturating_sub(MAX_MISSING);
    for rule in missing.iter().take(MAX_MISSING) {
        let same = |other: &&mut Rule| {
            other.non_resource_urls.is_empty()
                && other.api_groups == rule.api_groups
                && other.resources == rule.resources
                && other.resource_names == rule.resource_names
        };
        let mergeable = rule.non_resource_urls.is_empty();
        match merged.iter_mut().find(same).filter(|_| mergeable) {
            Some(other) => {
                for verb in &rule.verbs {
                    if !other.verbs.contains(verb) {
                        other.verbs.push(verb.clone());
                    }
                }
            }
            None => merged.push(rule.clone()),
        }
    }
    let mut lines: Vec<String> = merged.iter().map(Rule::describe).collect();
    lines.sort_unstable();
    lines.dedup();
    if omitted > 0 {
        lines.push(format!("and {omitted} more that are not listed"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rule(value: serde_json::Value) -> Rule {
        serde_json::from_value(value).unwrap()
    }

    fn request(text: &str) -> Attributes {
        let words: Vec<&str> = text.split(' ').collect();
        let (resource, subresource) = words[2].split_once('/').unwrap_or((words[2], ""));
        Attributes {
            verb: words[0].into(),
            group: words[1].trim_matches('-').into(),
            resource: resource.into(),
            subresource: subresource.into(),
            name: words.get(3).copied().unwrap_or_default().into(),
            ..Attributes::default()
        }
    }

    #[test]
    fn rules_for_resources() {
        let pods = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]});
        let logs = json!({"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]});
        let scales = json!({"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["*"]});
        let all = json!({"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]});
        let named = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"],
                           "verbs": ["get"], "nonResourceURLs": null});
        for (rule_, allowed, denied) in [
            (
                pods,
                vec!["get - pods", "list - pods", "get - pods p"],
                vec![
                    "watch - pods",
                    "get apps pods",
                    "get - pods/log",
                    "get - services",
                ],
            ),
            (
                logs,
                vec!["get - pods/log p"],
                vec!["get - pods p", "get - jobs/log"],
            ),
            (
                scales,
                vec!["patch apps deployments/scale", "get - x/scale"],
                vec!["get apps deployments", "get apps deployments/status"],
            ),
            (
                all,
                vec![
                    "deletecollection apps deployments",
                    "get apps deployments/scale",
                ],
                vec!["get - pods"],
            ),
            (
                named,
                vec!["get - secrets s"],
                vec!["get - secrets t", "get - secrets"],
            ),
        ] {
            let rule = rule(rule_);
            for text in allowed {
                assert!(rule.allows(&request(text)), "{rule:?} {text}");
            }
            for text in denied {
                assert!(!rule.allows(&request(text)), "{rule:?} {text}");
            }
        }
    }

    #[test]
    fn rules_for_paths() {
        let rule = rule(json!({"nonResourceURLs": ["/healthz", "/api/*"], "verbs": ["get"]}));
        let allows = |verb: &str, path: &str| {
            rule.allows(&Attributes {
                verb: verb.into(),
                path: Some(path.into()),
                ..Attributes::default()
            })
        };
        assert!(allows("get", "/healthz") && allows("get", "/api/v1") && allows("get", "/api/"));
        assert!(!allows("post", "/healthz") && !allows("get", "/healthz/etcd"));
        assert!(!allows("get", "/api") && !allows("get", "/apis"));
    }

    #[test]
    fn missing_rules_are_merged_and_sorted() {
        let own = rule(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}));
        let wanted = rule(
            json!({"apiGroups": ["", "apps"], "resources": ["pods", "pods/log"],
                                 "verbs": ["get", "list"]}),
        );
        let urls = rule(json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}));
        let found = missing(&[&own], [wanted, urls].iter()).unwrap();
        let lines = [
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["list"]}"#,
            r#"{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "list"]}"#,
            r#"{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list"]}"#,
            r#"{APIGroups:["apps"], Resources:["pods/log"], Verbs:["get" "list"]}"#,
            r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#,
        ];
        assert_eq!(describe_missing(&found), lines.join("\n"));
    }

    fn rules() -> impl Strategy<Value = Rule> {
        let list = |values: &'static [&'static str], least| {
            prop::sample::subsequence(values.to_vec(), least..=2)
                .prop_map(|some| some.into_iter().map(str::to_owned).collect::<Vec<_>>())
        };
        (
            list(&["get", "list", "*"], 1),
            list(&["", "apps", "*"], 1),
            list(&["pods", "pods/log", "*/log", "*"], 1),
            list(&["a", "b"], 0),
        )
            .prop_map(|(verbs, api_groups, resources, resource_names)| Rule {
                verbs,
                api_groups,
                resources,
                resource_names,
                non_resource_urls: Vec::new(),
            })
    }

    proptest! {
        /// Rules that cover others allow all requests that the others allow.
        #[test]
        fn covered_rules_allow_no_more(
            owned in prop::collection::vec(rules(), 1..4),
            wanted in rules(),
            verb in prop::sample::select(vec!["get", "list", "watch"]),
            group in prop::sample::select(vec!["", "apps", "batch"]),
            resource in prop::sample::select(vec!["pods", "pods/log", "jobs/log", "jobs"]),
            name in prop::sample::select(vec!["", "a", "b", "c"]),
        ) {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let request = Attributes {
                verb: verb.into(),
                group: group.into(),
                resource: resource.into(),
                subresource: subresource.into(),
                name: name.into(),
                ..Attributes::default()
            };
            let own: Vec<&Rule> = owned.iter().collect();
            if missing(&own, [&wanted].into_iter()).unwrap().is_empty() && wanted.allows(&request) {
                prop_assert!(owned.iter().any(|rule| rule.allows(&request)));
            }
        }
    }
}
