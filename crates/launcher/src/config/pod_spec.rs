//! Resolves [`PodSettings`]: checks and merges them, and converts them to Kubernetes JSON.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path},
    time::Duration,
};

use longshore_model::{Quantity, name, yaml};
use serde_json::{Map, Value, json};

use super::{
    ConfigError,
    pods::{EnvFrom, PodSettings, Template, Toleration, Volume},
    settings::VariableSource,
    source::read_text,
    values::{duration, invalid, quantity_rule},
};
use crate::names;

/// Pod settings of a role other than image, command and resources.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PodSpec {
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations, as in a pod's spec.
    pub tolerations: Vec<Value>,
    /// Affinity, as in a pod's spec.
    pub affinity: Option<Value>,
    /// Volumes and their mounts, as in a pod's spec and a container's.
    pub volumes: Vec<(Value, Value)>,
    /// Variables with a source, as in a container's `env`.
    pub env: Vec<Value>,
    /// Sources of variables, as in a container's `envFrom`.
    pub env_from: Vec<Value>,
    /// The name of a PriorityClass.
    pub priority_class: Option<String>,
    /// The grace period between SIGTERM and SIGKILL.
    pub termination_grace: Option<Duration>,
    /// A pod template to merge over the generated one.
    pub template: Option<Value>,
}

impl PodSpec {
    /// The run's settings, overridden by the role's own.
    pub(super) fn resolve(
        run: &PodSettings,
        own: &PodSettings,
        env: &BTreeMap<&str, &VariableSource>,
        folder: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let mut node_selector = run.node_selector.clone();
        node_selector.extend(own.node_selector.clone());
        for (key, value) in &node_selector {
            name::label_key(key)
                .map_err(|error| invalid("node_selector key", key, error.rule()))?;
            name::label_value(value)
                .map_err(|error| invalid(format!("node_selector {key}"), value, error.rule()))?;
        }
        let tolerations = run.tolerations.iter().chain(&own.tolerations);
        let volumes = volumes(run.volumes.iter().chain(&own.volumes))?;
        let mut spec = Self {
            node_selector,
            tolerations: tolerations.map(toleration).collect::<Result<_, _>>()?,
            affinity: own
                .affinity
                .as_ref()
                .or(run.affinity.as_ref())
                .map(|it| json!(it)),
            volumes,
            env: env
                .iter()
                .map(|(name, from)| variable(name, from))
                .collect::<Result<_, _>>()?,
            env_from: (run.env_from.iter().chain(&own.env_from))
                .map(env_from)
                .collect::<Result<_, _>>()?,
            priority_class: own.priority_class.clone().or(run.priority_class.clone()),
            termination_grace: None,
            template: template(own.template.as_ref().or(run.template.as_ref()), folder)?,
        };
        if let Some(class) = &spec.priority_class {
            subdomain("priority_class", class)?;
        }
        let grace = own
            .termination_grace
            .as_ref()
            .or(run.termination_grace.as_ref());
        spec.termination_grace = grace
            .map(|text| duration("termination_grace", text))
            .transpose()?;
        if let Some(size) = own.shared_memory.as_ref().or(run.shared_memory.as_ref()) {
            let size = quantity("shared_memory", size)?;
            spec.volumes.push((
                json!({"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": size}}),
                json!({"name": "shared-memory", "mountPath": "/dev/shm"}),
            ));
        }
        Ok(spec)
    }
}

fn subdomain(what: &'static str, text: &str) -> Result<(), ConfigError> {
    name::dns_subdomain(what, text).map_err(|error| invalid(what, text, error.rule()))
}

fn quantity<'a>(what: &str, text: &'a str) -> Result<&'a str, ConfigError> {
    match text.parse::<Quantity>() {
        Ok(_) => Ok(text),
        Err(_) => Err(invalid(what, text, quantity_rule(text, "10Gi"))),
    }
}

fn toleration(toleration: &Toleration) -> Result<Value, ConfigError> {
    let Toleration {
        key,
        operator,
        value,
        effect,
        seconds,
    } = toleration;
    if let Some(key) = key {
        name::label_key(key).map_err(|error| invalid("toleration key", key, error.rule()))?;
    }
    let one_of = |what: &str, word: &Option<String>, known: &[&str]| match word {
        Some(word) if !known.contains(&word.as_str()) => {
            let rule = format!("use one of {}", known.join(", "));
            Err(invalid(format!("toleration {what}"), word, rule))
        }
        _ => Ok(()),
    };
    one_of("operator", operator, &["Equal", "Exists"])?;
    one_of(
        "effect",
        effect,
        &["NoSchedule", "PreferNoSchedule", "NoExecute"],
    )?;
    // Without a value, only existence can be checked.
    let operator = operator.as_deref().unwrap_or(match value {
        Some(_) => "Equal",
        None => "Exists",
    });
    if key.is_none() && operator != "Exists" {
        let rule = "a toleration without a key matches all taints: its operator must be Exists";
        return Err(invalid("toleration operator", operator, rule));
    }
    let mut made = Map::new();
    for (field, text) in [("key", key), ("value", value), ("effect", effect)] {
        made.extend(text.iter().map(|text| (field.to_owned(), json!(text))));
    }
    made.insert("operator".into(), json!(operator));
    made.extend(seconds.map(|seconds| ("tolerationSeconds".into(), json!(seconds))));
    Ok(Value::Object(made))
}

/// Volumes with their mounts; the last mount at a path wins.
fn volumes<'a>(all: impl Iterator<Item = &'a Volume>) -> Result<Vec<(Value, Value)>, ConfigError> {
    let mut by_path: BTreeMap<String, &Volume> = BTreeMap::new();
    for volume in all {
        let path = volume.path.to_string_lossy();
        let path = path.trim_end_matches('/').to_owned();
        let rule = if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
            "give the absolute path where it is mounted"
        } else if path == names::HOME || path.starts_with(&format!("{}/", names::HOME)) {
            "/longshore is reserved for the run's own files: choose another path"
        } else {
            by_path.insert(path, volume);
            continue;
        };
        return Err(invalid("volumes path", path, rule));
    }
    let numbered = (0..).zip(&by_path);
    numbered
        .map(|(index, (path, volume))| mounted(index, path, volume))
        .collect()
}

fn mounted(index: usize, path: &str, volume: &Volume) -> Result<(Value, Value), ConfigError> {
    let name = format!("volume-{index}");
    let mut sources = Vec::new();
    if let Some(claim) = &volume.claim {
        subdomain("claim", claim)?;
        sources.push(json!({"persistentVolumeClaim": {"claimName": claim}}));
    }
    if let Some(secret) = &volume.secret {
        subdomain("secret", secret)?;
        sources.push(json!({"secret": {"secretName": secret}}));
    }
    if let Some(map) = &volume.config_map {
        subdomain("config_map", map)?;
        sources.push(json!({"configMap": {"name": map}}));
    }
    if let Some(host) = &volume.host {
        let has_parent = host.components().any(|part| part == Component::ParentDir);
        if host.is_relative() || has_parent {
            let rule = "give the absolute path of a folder on the nodes, without `..`; a relative path works only on the embedded cluster";
            return Err(invalid("volumes host", host.to_string_lossy(), rule));
        }
        sources.push(json!({"hostPath": {"path": host}}));
    }
    if let Some(size) = &volume.empty {
        sources.push(match size.as_str() {
            "" => json!({"emptyDir": {}}),
            size => json!({"emptyDir": {"sizeLimit": quantity("empty", size)?}}),
        });
    }
    let [source] = sources.as_mut_slice() else {
        let rule = "set exactly one of claim, secret, config_map, host, empty";
        return Err(invalid("volumes path", path, rule));
    };
    let mut source = source.take();
    source["name"] = json!(name);
    let mut mount = json!({"name": name, "mountPath": path});
    if volume.read_only {
        mount["readOnly"] = json!(true);
    }
    if let Some(sub) = &volume.sub_path {
        mount["subPath"] = json!(sub);
    }
    Ok((source, mount))
}

fn variable(name: &str, from: &VariableSource) -> Result<Value, ConfigError> {
    let key = from.key.as_deref().unwrap_or(name);
    let mut sources = Vec::new();
    for (what, field, object) in [
        ("secret", "secretKeyRef", &from.secret),
        ("config_map", "configMapKeyRef", &from.config_map),
    ] {
        if let Some(object) = object {
            subdomain(what, object)?;
            sources.push(json!({field: {"name": object, "key": key}}));
        }
    }
    if let Some(path) = &from.field {
        sources.push(json!({"fieldRef": {"fieldPath": path}}));
    }
    match sources.as_slice() {
        [source] => Ok(json!({"name": name, "valueFrom": source})),
        _ => Err(invalid(
            "env",
            name,
            "set exactly one of secret, config_map, field",
        )),
    }
}

fn env_from(from: &EnvFrom) -> Result<Value, ConfigError> {
    let mut made = match (&from.secret, &from.config_map) {
        (Some(secret), None) => {
            subdomain("secret", secret)?;
            json!({"secretRef": {"name": secret}})
        }
        (None, Some(map)) => {
            subdomain("config_map", map)?;
            json!({"configMapRef": {"name": map}})
        }
        _ => {
            let name = from.secret.as_deref().unwrap_or_default();
            return Err(invalid(
                "env_from",
                name,
                "set exactly one of secret, config_map in each",
            ));
        }
    };
    if let Some(prefix) = &from.prefix {
        made["prefix"] = json!(prefix);
    }
    Ok(made)
}

fn template(
    template: Option<&Template>,
    folder: Option<&Path>,
) -> Result<Option<Value>, ConfigError> {
    let value = match template {
        None => return Ok(None),
        Some(Template::Table(table)) => json!(table),
        Some(Template::File(file)) => {
            let path = folder.map_or_else(|| file.clone(), |folder| folder.join(file));
            let text = read_text(&path).map_err(|source| ConfigError::Read {
                path: path.clone(),
                source,
            })?;
            let syntax = |message: String| ConfigError::Syntax {
                path: path.clone(),
                message,
            };
            yaml::check(text.as_bytes()).map_err(|error| syntax(error.to_string()))?;
            serde_yaml_ng::from_str(&text).map_err(|error| syntax(error.to_string()))?
        }
    };
    let known: BTreeSet<&str> = BTreeSet::from(["metadata", "spec"]);
    let fields = value.as_object().map(|fields| fields.keys());
    match fields.and_then(|mut fields| fields.find(|field| !known.contains(field.as_str()))) {
        None if value.is_object() => Ok(Some(value)),
        None => Err(invalid(
            "template",
            value.to_string(),
            "use a pod template, with metadata and spec",
        )),
        Some(field) => Err(invalid(
            "template",
            field,
            "a pod template has only metadata and spec",
        )),
    }
}
