//! Reads an audit policy from YAML or JSON.

use std::str::FromStr;

use serde::Deserialize;
use serde_json::Value;

use super::{
    level::{Level, Stage, Stages},
    policy::{Policy, Resources, Rule},
};

/// The reason why an audit policy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The text is not a policy.
    #[error("not an audit policy (apiVersion: audit.k8s.io/v1, kind: Policy): {0}")]
    Text(String),
    /// The policy does not record any requests.
    #[error("the audit policy has no rules: add at least one, such as `- level: Metadata`")]
    Empty,
    /// A field has an invalid value.
    #[error("audit policy: {field}: {problem}")]
    Field {
        /// The path of the field.
        field: String,
        /// The problem.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PolicyText {
    api_version: String,
    kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: Value,
    #[serde(default)]
    rules: Option<Vec<RuleText>>,
    #[serde(default)]
    omit_stages: Option<Vec<String>>,
    #[serde(default)]
    omit_managed_fields: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RuleText {
    #[serde(default)]
    level: String,
    #[serde(default)]
    users: Option<Vec<String>>,
    #[serde(default)]
    user_groups: Option<Vec<String>>,
    #[serde(default)]
    verbs: Option<Vec<String>>,
    #[serde(default)]
    resources: Option<Vec<ResourcesText>>,
    #[serde(default)]
    namespaces: Option<Vec<String>>,
    #[serde(default, rename = "nonResourceURLs")]
    paths: Option<Vec<String>>,
    #[serde(default)]
    omit_stages: Option<Vec<String>>,
    #[serde(default)]
    omit_managed_fields: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResourcesText {
    #[serde(default)]
    group: String,
    #[serde(default)]
    resources: Option<Vec<String>>,
    #[serde(default)]
    resource_names: Option<Vec<String>>,
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (value, repeated) = crate::yaml::read(text.as_bytes()).map_err(PolicyError::Text)?;
        if let Some(problem) = repeated.into_iter().next() {
            return Err(PolicyError::Text(problem));
        }
        let policy =
            PolicyText::deserialize(value).map_err(|error| PolicyError::Text(error.to_string()))?;
        if policy.api_version != "audit.k8s.io/v1" || policy.kind != "Policy" {
            let found = format!("found {:?} of {:?}", policy.kind, policy.api_version);
            return Err(PolicyError::Text(found));
        }
        let omitted = stages(policy.omit_stages, "omitStages")?;
        let rules = policy.rules.unwrap_or_default().into_iter().enumerate();
        let rules = rules.map(|(index, rule)| {
            let mut rule = rule.check(&format!("rules[{index}]"), policy.omit_managed_fields)?;
            rule.omitted = rule.omitted.union(omitted);
            Ok(rule)
        });
        let rules = rules.collect::<Result<Vec<Rule>, PolicyError>>()?;
        match rules.is_empty() {
            true => Err(PolicyError::Empty),
            false => Ok(Self { rules }),
        }
    }
}

impl RuleText {
    fn check(self, at: &str, omits_managed_fields: bool) -> Result<Rule, PolicyError> {
        let invalid = |field: &str, problem: String| PolicyError::Field {
            field: format!("{at}.{field}"),
            problem,
        };
        let level = Level::ALL.into_iter().find(|(_, name)| *name == self.level);
        let (level, _) = level.ok_or_else(|| match self.level.as_str() {
            "" => invalid(
                "level",
                format!("Required value: use {}", names(&Level::ALL)),
            ),
            other => invalid(
                "level",
                format!("Unsupported value: {other:?}: use {}", names(&Level::ALL)),
            ),
        })?;
        let paths = self.paths.unwrap_or_default();
        for (index, path) in paths.iter().enumerate() {
            let problem = match path.strip_suffix('*').unwrap_or(path) {
                "" if path == "*" => continue,
                start if !start.starts_with('/') => "must begin with a '/' character",
                start if start.contains('*') => "wildcards '*' must be the final character",
                _ => continue,
            };
            let field = format!("nonResourceURLs[{index}]");
            return Err(invalid(
                &field,
                format!("Invalid value: {path:?}: {problem}"),
            ));
        }
        let namespaces = self.namespaces.unwrap_or_default();
        let resources = self.resources.unwrap_or_default().into_iter().enumerate();
        let resources = resources.map(|(index, one)| {
            let (resources, names) = (
                one.resources.unwrap_or_default(),
                one.resource_names.unwrap_or_default(),
            );
            if one.group.contains('/') {
                let problem = "a group has no version: write \"apps\" instead of \"apps/v1\"";
                let field = format!("resources[{index}].group");
                let problem = format!("Invalid value: {:?}: {problem}", one.group);
                return Err(invalid(&field, problem));
            }
            if resources.is_empty() && !names.is_empty() {
                let field = format!("resources[{index}].resourceNames");
                let problem = "using resourceNames requires at least one resource";
                return Err(invalid(&field, problem.to_owned()));
            }
            Ok(Resources {
                group: one.group,
                resources,
                names,
            })
        });
        let resources = resources.collect::<Result<Vec<_>, _>>()?;
        let names_resources = !resources.is_empty() || !namespaces.is_empty();
        if names_resources && !paths.is_empty() {
            let problem = "rules cannot apply to both regular resources and non-resource URLs";
            return Err(invalid("nonResourceURLs", problem.to_owned()));
        }
        Ok(Rule {
            users: self.users.unwrap_or_default(),
            groups: self.user_groups.unwrap_or_default(),
            verbs: self.verbs.unwrap_or_default(),
            resources,
            namespaces,
            paths,
            omitted: stages(self.omit_stages, &format!("{at}.omitStages"))?,
            omits_managed_fields: self.omit_managed_fields.unwrap_or(omits_managed_fields),
            ..Rule::of(level)
        })
    }
}

fn stages(list: Option<Vec<String>>, field: &str) -> Result<Stages, PolicyError> {
    let mut all = Stages::default();
    for (index, name) in list.unwrap_or_default().into_iter().enumerate() {
        let found = Stage::ALL.into_iter().find(|(_, known)| *known == name);
        let (stage, _) = found.ok_or_else(|| PolicyError::Field {
            field: format!("{field}[{index}]"),
            problem: format!(
                "Invalid value: {name:?}: allowed stages are {}",
                names(&Stage::ALL)
            ),
        })?;
        all = all.with(stage);
    }
    Ok(all)
}

fn names<T>(all: &[(T, &'static str)]) -> String {
    let names: Vec<&str> = all.iter().map(|(_, name)| *name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn error(rest: &str) -> String {
        let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rest}");
        text.parse::<Policy>().unwrap_err().to_string()
    }

    #[test]
    fn a_complete_policy() {
        let text = "
            apiVersion: audit.k8s.io/v1
            kind: Policy
            metadata: {name: x}
            omitStages: [RequestReceived]
            omitManagedFields: true
            rules:
            - level: RequestResponse
              omitStages: [ResponseStarted]
              resources: [{group: apps, resources: [deployments], resourceNames: [a]}]
            - level: None
              omitManagedFields: false
              nonResourceURLs: ['*', '/healthz*', /version]";
        let policy: Policy = text.parse().unwrap();
        let first = &policy.rules[0];
        assert!(first.omitted.contains(Stage::RequestReceived));
        assert!(first.omitted.contains(Stage::ResponseStarted));
        assert!(!first.omitted.contains(Stage::ResponseComplete));
        assert!(first.omits_managed_fields);
        assert!(!policy.rules[1].omits_managed_fields);
        assert_eq!(policy.rules[1].paths.len(), 3);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("rules: []", "no rules"),
            ("rules: [{}]", "rules[0].level: Required value"),
            (
                "rules: [{level: All}]",
                "rules[0].level: Unsupported value: \"All\"",
            ),
            (
                "rules: [{level: None}, {level: None, nonResourceURLs: [x]}]",
                "rules[1].nonResourceURLs[0]: Invalid value: \"x\"",
            ),
            (
                "rules: [{level: None, nonResourceURLs: ['/a*b']}]",
                "must be the final character",
            ),
            (
                "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]",
                "both regular resources and non-resource URLs",
            ),
            (
                "rules: [{level: None, resources: [{group: apps/v1}]}]",
                "rules[0].resources[0].group: Invalid value: \"apps/v1\"",
            ),
            (
                "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
                "requires at least one resource",
            ),
            (
                "rules: [{level: None}]\nomitStages: [Done]",
                "omitStages[0]: Invalid value: \"Done\": allowed stages are RequestReceived",
            ),
            (
                "rules: [{level: None, verb: [get]}]",
                "unknown field `verb`",
            ),
            ("rules: 3", "invalid type"),
        ] {
            let error = error(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        let other = "apiVersion: v1\nkind: Pod\nrules: []".parse::<Policy>();
        let other = other.unwrap_err().to_string();
        assert!(other.contains("found \"Pod\" of \"v1\""), "{other}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = text.parse::<Policy>();
        }
    }
}
