//! Environments of containers: `$(VAR)` expansion and where values come from
//! (api-semantics rule 37). Pure; [`Lookup`] fetches.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};

use crate::downward;

/// Where values of ConfigMaps and Secrets come from, fetched before.
pub(crate) trait Lookup {
    /// The ConfigMap's values; `None` when there is no such ConfigMap.
    fn config_map(&self, name: &str) -> Option<&BTreeMap<String, Vec<u8>>>;
    /// The Secret's values; `None` when there is no such Secret.
    fn secret(&self, name: &str) -> Option<&BTreeMap<String, Vec<u8>>>;
}

/// A reference that leads nowhere; the container waits with `CreateContainerConfigError`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ConfigError {
    /// No such ConfigMap or Secret.
    #[error("{kind} \"{name}\" not found")]
    Missing { kind: &'static str, name: String },
    /// The object lacks the key.
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    NoKey {
        kind: &'static str,
        namespace: String,
        name: String,
        key: String,
    },
    /// A value that is no text.
    #[error("the value of {variable} is not UTF-8 text, which an environment needs")]
    NotText { variable: String },
    /// A reference to a field that cannot be given.
    #[error("{0}")]
    Field(#[from] downward::FieldError),
}

/// Replaces `$(VAR)` by its value and `$$` by `$`; what is unknown stays as it is.
pub(crate) fn expand<'v>(text: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('$') {
            result.push('$');
            rest = after;
        } else if let Some((name, after_name)) = after
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'))
        {
            match value(name) {
                Some(value) => result.push_str(value),
                None => {
                    result.push_str("$(");
                    result.push_str(name);
                    result.push(')');
                }
            }
            rest = after_name;
        } else {
            result.push('$');
            rest = after;
        }
    }
    result.push_str(rest);
    result
}

/// Variables in the order in which they were set; a later one replaces an earlier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Variables(Vec<(String, String)>);

impl Variables {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn set(&mut self, name: &str, value: String) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter()
    }
}

/// What a container's environment is made from.
pub(crate) struct Inputs<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) container: &'a Container,
    /// Variables set before the container's own.
    pub(crate) base: Variables,
    pub(crate) lookup: &'a dyn Lookup,
    pub(crate) facts: &'a downward::Facts,
}

/// The container's variables.
pub(crate) fn variables(inputs: &Inputs<'_>) -> Result<Variables, ConfigError> {
    let mut all = inputs.base.clone();
    add_whole_objects(inputs, &mut all)?;
    // `$(VAR)` sees what stands before it, in envFrom or env.
    for variable in inputs.container.env.iter().flatten() {
        let name = &variable.name;
        if let Some(source) = &variable.value_from {
            if let Some(value) = from_source(inputs, name, source)? {
                all.set(name, value);
            }
        } else {
            let text = variable.value.as_deref().unwrap_or_default();
            let value = expand(text, |name| all.get(name));
            all.set(name, value);
        }
    }
    Ok(all)
}

fn add_whole_objects(inputs: &Inputs<'_>, all: &mut Variables) -> Result<(), ConfigError> {
    for source in inputs.container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let (kind, name, optional, values) = if let Some(reference) = &source.config_map_ref {
            let values = inputs.lookup.config_map(&reference.name);
            ("configmap", &reference.name, reference.optional, values)
        } else if let Some(reference) = &source.secret_ref {
            let values = inputs.lookup.secret(&reference.name);
            ("secret", &reference.name, reference.optional, values)
        } else {
            continue;
        };
        let Some(values) = values else {
            if optional == Some(true) {
                continue;
            }
            return Err(ConfigError::Missing {
                kind,
                name: name.clone(),
            });
        };
        for (key, value) in values {
            let variable = format!("{prefix}{key}");
            all.set(&variable, text(&variable, value)?);
        }
    }
    Ok(())
}

fn from_source(
    inputs: &Inputs<'_>,
    variable: &str,
    source: &k8s_openapi::api::core::v1::EnvVarSource,
) -> Result<Option<String>, ConfigError> {
    let namespace = || inputs.pod.metadata.namespace.clone().unwrap_or_default();
    let (kind, name, key, optional, values) = if let Some(field) = &source.field_ref {
        return Ok(Some(downward::field(
            inputs.pod,
            inputs.facts,
            &field.field_path,
        )?));
    } else if let Some(resource) = &source.resource_field_ref {
        let value = downward::resource(inputs.pod, inputs.facts, &inputs.container.name, resource)?;
        return Ok(Some(value));
    } else if let Some(reference) = &source.config_map_key_ref {
        let values = inputs.lookup.config_map(&reference.name);
        (
            "configmap",
            &reference.name,
            &reference.key,
            reference.optional,
            values,
        )
    } else if let Some(reference) = &source.secret_key_ref {
        let values = inputs.lookup.secret(&reference.name);
        (
            "secret",
            &reference.name,
            &reference.key,
            reference.optional,
            values,
        )
    } else {
        return Ok(Some(String::new()));
    };
    let optional = optional == Some(true);
    match values {
        None if optional => Ok(None),
        None => Err(ConfigError::Missing {
            kind,
            name: name.clone(),
        }),
        Some(values) => match values.get(key) {
            Some(value) => Ok(Some(text(variable, value)?)),
            None if optional => Ok(None),
            None => Err(ConfigError::NoKey {
                kind: if kind == "secret" {
                    "Secret"
                } else {
                    "ConfigMap"
                },
                namespace: namespace(),
                name: name.clone(),
                key: key.clone(),
            }),
        },
    }
}

fn text(variable: &str, value: &[u8]) -> Result<String, ConfigError> {
    match String::from_utf8(value.to_vec()) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(ConfigError::NotText {
            variable: variable.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    struct Objects(BTreeMap<String, BTreeMap<String, Vec<u8>>>);

    impl Lookup for Objects {
        fn config_map(&self, name: &str) -> Option<&BTreeMap<String, Vec<u8>>> {
            self.0.get(name)
        }
        fn secret(&self, name: &str) -> Option<&BTreeMap<String, Vec<u8>>> {
            self.0.get(name)
        }
    }

    fn run(container: serde_json::Value) -> Result<Variables, ConfigError> {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "labels": {"a": "b"}},
            "spec": {"containers": [container]}
        }))
        .unwrap();
        let container = pod.spec.as_ref().unwrap().containers[0].clone();
        let values = [
            ("k".to_owned(), b"v".to_vec()),
            ("raw".to_owned(), vec![0xff]),
        ]
        .into();
        let lookup = Objects([("there".to_owned(), values)].into());
        let mut base = Variables::default();
        base.set("BASE", "0".to_owned());
        let facts = downward::Facts::default();
        variables(&Inputs {
            pod: &pod,
            container: &container,
            base,
            lookup: &lookup,
            facts: &facts,
        })
    }

    #[test]
    fn expansion() {
        let known = |name: &str| (name == "A").then_some("1");
        for (text, expected) in [
            ("$(A)", "1"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$(B)-$(A)", "$(B)-1"),
            ("$A $", "$A $"),
            ("$(A", "$(A"),
            ("$()", "$()"),
            ("a$$b", "a$b"),
        ] {
            assert_eq!(expand(text, known), expected, "{text}");
        }
    }

    #[test]
    fn env_wins_over_env_from_and_sees_what_stands_before() {
        let all = run(json!({"name": "c",
            "envFrom": [{"prefix": "X_", "secretRef": {"name": "gone", "optional": true}}],
            "env": [
                {"name": "A", "value": "$(BASE)$(LATER)"},
                {"name": "LATER", "value": "$(A)"},
                {"name": "K", "valueFrom": {"configMapKeyRef": {"name": "there", "key": "k"}}},
                {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "O", "valueFrom": {"secretKeyRef": {"name": "there", "key": "no", "optional": true}}},
            ]}))
        .unwrap();
        assert_eq!(all.get("A"), Some("0$(LATER)"));
        assert_eq!(all.get("LATER"), Some("0$(LATER)"));
        assert_eq!(all.get("K"), Some("v"));
        assert_eq!(all.get("F"), Some("p"));
        assert_eq!(all.get("O"), None);
    }

    #[test]
    fn what_is_missing_is_named() {
        let message = |container| run(container).unwrap_err().to_string();
        let missing = json!({"name": "c", "envFrom": [{"secretRef": {"name": "gone"}}]});
        assert_eq!(message(missing), "secret \"gone\" not found");
        let key = json!({"name": "c", "env": [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "there", "key": "no"}}}]});
        assert_eq!(message(key), "couldn't find key no in Secret n/there");
        let raw = json!({"name": "c", "env": [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "there", "key": "raw"}}}]});
        assert!(message(raw).contains("not UTF-8"));
    }

    proptest::proptest! {
        #[test]
        fn text_without_dollars_stays(text in "[^$]*") {
            proptest::prop_assert_eq!(expand(&text, |_| None), text);
        }

        #[test]
        fn doubled_dollars_give_the_text_back(text in ".*") {
            let doubled = text.replace('$', "$$");
            proptest::prop_assert_eq!(expand(&doubled, |_| Some("x")), text);
        }
    }
}
