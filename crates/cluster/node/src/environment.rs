//! Environments of containers: `$(VAR)` expansion and the sources of values
//! (api-semantics rule 37). Pure; [`Lookup`] provides fetched objects.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Container, Pod};

use crate::{downward, lookup::Lookup};

/// The maximum length in bytes of a variable (`NAME=value`) and of an argument of a command: the
/// kernel's `MAX_ARG_STRLEN` with 4 KiB pages.
pub(crate) const LONGEST_TEXT: usize = 128 * 1024;
/// The maximum size of an environment in bytes: Linux's limit for the environment and the arguments
/// together.
pub(crate) const LARGEST_ENVIRONMENT: usize = 6 << 20;

/// The reason why an environment is invalid. The container waits with `CreateContainerConfigError`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ConfigError {
    /// The ConfigMap or Secret does not exist.
    #[error("{kind} \"{name}\" not found")]
    Missing { kind: &'static str, name: String },
    /// The object does not have the key.
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    NoKey {
        kind: &'static str,
        namespace: String,
        name: String,
        key: String,
    },
    /// The value is not text.
    #[error("the value of {variable} is not UTF-8 text, which an environment needs")]
    NotText { variable: String },
    /// The field reference cannot be resolved.
    #[error("{0}")]
    Field(#[from] downward::FieldError),
    /// The environment exceeds the kernel's limits, so a retry cannot succeed.
    #[error(
        "{what} has more than {limit} bytes once its $(VAR) references are expanded, \
         and Linux starts no process with that; shorten it"
    )]
    TooLarge { what: String, limit: usize },
}

/// The expanded text exceeds its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Replaces `$(VAR)` with its value and `$$` with `$`. Unknown references remain unchanged. The
/// result is limited to [`LONGEST_TEXT`] bytes.
pub(crate) fn expand<'v>(
    text: &str,
    value: impl Fn(&str) -> Option<&'v str>,
) -> Result<String, TooLong> {
    let mut result = String::with_capacity(text.len().min(LONGEST_TEXT));
    let mut push = |part: &str| {
        if part.len() > LONGEST_TEXT - result.len() {
            return Err(TooLong);
        }
        result.push_str(part);
        Ok(())
    };
    let mut rest = text;
    // Searched once, so that a text with many "$(" does not take quadratic
    // time.
    let close = text.rfind(')').map_or(usize::MAX, |at| text.len() - at);
    while let Some(at) = rest.find('$') {
        push(&rest[..at])?;
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('$') {
            push("$")?;
            rest = after;
        } else if after.len() >= close
            && let Some((name, after_name)) = after
                .strip_prefix('(')
                .and_then(|inner| inner.split_once(')'))
        {
            match value(name) {
                Some(value) => push(value)?,
                None => {
                    push("$(")?;
                    push(name)?;
                    push(")")?;
                }
            }
            rest = after_name;
        } else {
            push("$")?;
            rest = after;
        }
    }
    push(rest)?;
    Ok(result)
}

/// Variables in the order in which they were set. A later value replaces an earlier one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    all: Vec<(String, String)>,
    index: HashMap<String, usize>,
}

impl Variables {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.index.get(name).map(|at| self.all[*at].1.as_str())
    }

    pub(crate) fn set(&mut self, name: &str, value: String) {
        match self.index.get(name) {
            Some(at) => self.all[*at].1 = value,
            None => {
                self.index.insert(name.to_owned(), self.all.len());
                self.all.push((name.to_owned(), value));
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(String, String)> {
        self.all.iter()
    }
}

/// Variables within the kernel's limits.
struct Bounded {
    all: Variables,
    /// Total size of all variables; replaced values count as well.
    size: usize,
}

impl Bounded {
    fn set(&mut self, name: &str, value: String) -> Result<(), ConfigError> {
        let large = |what: String, limit| Err(ConfigError::TooLarge { what, limit });
        // Includes "=" and the terminating zero byte.
        let length = name.len().saturating_add(value.len()).saturating_add(2);
        if length > LONGEST_TEXT {
            return large(format!("variable {name}"), LONGEST_TEXT);
        }
        self.size = self.size.saturating_add(length);
        if self.size > LARGEST_ENVIRONMENT {
            let what = format!("the environment up to variable {name}");
            return large(what, LARGEST_ENVIRONMENT);
        }
        self.all.set(name, value);
        Ok(())
    }
}

/// The inputs of a container's environment.
pub(crate) struct Inputs<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) container: &'a Container,
    /// The variables that are set before the container's own.
    pub(crate) base: Variables,
    pub(crate) lookup: &'a dyn Lookup,
    pub(crate) pod_values: &'a downward::PodValues,
}

/// Computes the container's variables.
pub(crate) fn variables(inputs: &Inputs<'_>) -> Result<Variables, ConfigError> {
    let mut all = Bounded {
        all: inputs.base.clone(),
        size: 0,
    };
    add_whole_objects(inputs, &mut all)?;
    // `$(VAR)` refers to earlier variables of envFrom or env.
    for variable in inputs.container.env.iter().flatten() {
        let name = &variable.name;
        if let Some(source) = &variable.value_from {
            if let Some(value) = from_source(inputs, name, source)? {
                all.set(name, value)?;
            }
        } else {
            let text = variable.value.as_deref().unwrap_or_default();
            let value = expand(text, |name| all.all.get(name));
            let value = value.map_err(|TooLong| ConfigError::TooLarge {
                what: format!("variable {name}"),
                limit: LONGEST_TEXT,
            })?;
            all.set(name, value)?;
        }
    }
    Ok(all.all)
}

fn add_whole_objects(inputs: &Inputs<'_>, all: &mut Bounded) -> Result<(), ConfigError> {
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
            all.set(&variable, text(&variable, value)?)?;
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
            inputs.pod_values,
            &field.field_path,
        )?));
    } else if let Some(resource) = &source.resource_field_ref {
        let value = downward::resource(
            inputs.pod,
            inputs.pod_values,
            &inputs.container.name,
            resource,
        )?;
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
    use std::collections::BTreeMap;

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
        let pod_values = downward::PodValues::default();
        variables(&Inputs {
            pod: &pod,
            container: &container,
            base,
            lookup: &lookup,
            pod_values: &pod_values,
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
            ("$(A)$(A", "1$(A"),
            ("$(A)$(A)", "11"),
            (")$(A)$(", ")1$("),
        ] {
            assert_eq!(expand(text, known).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn env_overrides_env_from_and_refers_to_earlier_variables() {
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
    fn missing_references_are_named() {
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

    /// Thirty variables, each of which contains the previous one twice: 32 GiB.
    #[test]
    fn exponential_variables_are_rejected_by_name() {
        let mut env = vec![json!({"name": "A0", "value": "0123456789abcdef0123456789abcdef"})];
        env.extend((1..30).map(|number| {
            let before = number - 1;
            json!({"name": format!("A{number}"), "value": format!("$(A{before})$(A{before})")})
        }));
        let error = run(json!({"name": "c", "env": env})).unwrap_err();
        assert_eq!(
            error.to_string(),
            "variable A12 has more than 131072 bytes once its $(VAR) references are expanded, \
             and Linux starts no process with that; shorten it"
        );
    }

    #[test]
    fn many_long_variables_are_rejected_by_name() {
        let long = "x".repeat(100_000);
        let mut env = vec![json!({"name": "LONG", "value": long})];
        env.extend(
            (0..100).map(|number| json!({"name": format!("A{number}"), "value": "$(LONG)"})),
        );
        let error = run(json!({"name": "c", "env": env}))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("the environment up to variable A61 has more"),
            "{error}"
        );
    }

    /// Quadratic time would take minutes for each of these.
    #[test]
    fn expansion_takes_linear_time() {
        let open = "$(".repeat(60_000);
        assert_eq!(expand(&open, |_| None), Ok(open));
        let env: Vec<_> = (0..100_000)
            .map(|number| json!({"name": format!("A{number}"), "value": "$(A0)"}))
            .collect();
        let all = run(json!({"name": "c", "env": env})).unwrap();
        assert_eq!(all.iter().count(), 100_001);
    }

    proptest::proptest! {
        #[test]
        fn text_without_dollars_is_unchanged(text in "[^$]*") {
            proptest::prop_assert_eq!(expand(&text, |_| None), Ok(text));
        }

        #[test]
        fn escaped_dollars_restore_the_text(text in ".*") {
            let doubled = text.replace('$', "$$");
            proptest::prop_assert_eq!(expand(&doubled, |_| Some("x")), Ok(text));
        }
    }
}
