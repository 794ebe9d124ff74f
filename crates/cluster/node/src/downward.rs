//! The downward API: fields of the pod and resources of its containers as text.

use k8s_openapi::{
    api::core::v1::{Pod, ResourceFieldSelector},
    apimachinery::pkg::api::resource::Quantity as Written,
};
use longshore_model::Quantity;

/// Values of the pod and the node that are not in the Pod object.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodValues {
    pub(crate) pod_ip: String,
    pub(crate) host_ip: String,
    pub(crate) node_name: String,
    /// CPU cores of the machine, for limits that are not set.
    pub(crate) cores: f64,
    /// Memory of the machine in bytes, for limits that are not set.
    pub(crate) memory: f64,
    /// Size of the file system that stores the pods in bytes, for limits that
    /// are not set.
    pub(crate) storage: f64,
}

/// The reason why a reference cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FieldError {
    /// The downward API has no such field.
    #[error("fieldPath {0:?} is not supported by the downward API")]
    Field(String),
    /// The downward API has no such resource.
    #[error("resource {0:?} is not supported by the downward API")]
    Resource(String),
    /// The pod has no such container.
    #[error("container {0:?} of resourceFieldRef is not in the pod")]
    Container(String),
    /// The value is not a quantity.
    #[error("quantity {0:?} of resourceFieldRef cannot be read")]
    Quantity(String),
}

/// Returns a field of the pod as text.
pub(crate) fn field(pod: &Pod, pod_values: &PodValues, path: &str) -> Result<String, FieldError> {
    let metadata = &pod.metadata;
    let spec = pod.spec.as_ref();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    if let Some((map, key)) = path
        .split_once("['")
        .and_then(|(map, rest)| rest.strip_suffix("']").map(|key| (map, key)))
    {
        let values = match map {
            "metadata.labels" => &metadata.labels,
            "metadata.annotations" => &metadata.annotations,
            _ => return Err(FieldError::Field(path.to_owned())),
        };
        return Ok(values
            .as_ref()
            .and_then(|values| values.get(key))
            .cloned()
            .unwrap_or_default());
    }
    let lines = |values: &Option<std::collections::BTreeMap<String, String>>| {
        let line = |(key, value): (&String, &String)| {
            format!("{key}={}", serde_json::Value::from(value.as_str()))
        };
        values
            .iter()
            .flatten()
            .map(line)
            .collect::<Vec<_>>()
            .join("\n")
    };
    Ok(match path {
        "metadata.name" => text(&metadata.name),
        "metadata.namespace" => text(&metadata.namespace),
        "metadata.uid" => text(&metadata.uid),
        "metadata.labels" => lines(&metadata.labels),
        "metadata.annotations" => lines(&metadata.annotations),
        "spec.nodeName" => pod_values.node_name.clone(),
        "spec.serviceAccountName" => {
            spec.map_or_else(String::new, |spec| text(&spec.service_account_name))
        }
        "status.podIP" | "status.podIPs" => pod_values.pod_ip.clone(),
        "status.hostIP" | "status.hostIPs" => pod_values.host_ip.clone(),
        _ => return Err(FieldError::Field(path.to_owned())),
    })
}

/// Returns a request or limit as text, in units of its divisor and rounded up.
pub(crate) fn resource(
    pod: &Pod,
    pod_values: &PodValues,
    container: &str,
    selector: &ResourceFieldSelector,
) -> Result<String, FieldError> {
    let name = selector
        .container_name
        .as_deref()
        .filter(|name| !name.is_empty());
    let name = name.unwrap_or(container);
    let spec = pod.spec.as_ref();
    let found = spec
        .into_iter()
        .flat_map(|spec| {
            spec.containers
                .iter()
                .chain(spec.init_containers.iter().flatten())
        })
        .find(|candidate| candidate.name == name)
        .ok_or_else(|| FieldError::Container(name.to_owned()))?;
    let unknown = || FieldError::Resource(selector.resource.clone());
    let (side, resource) = selector.resource.split_once('.').ok_or_else(unknown)?;
    let resources = found.resources.as_ref();
    let (set, whole) = match side {
        "limits" => (resources.and_then(|all| all.limits.as_ref()), true),
        "requests" => (resources.and_then(|all| all.requests.as_ref()), false),
        _ => return Err(unknown()),
    };
    let amount = match set.and_then(|set| set.get(resource)) {
        Some(quantity) => read(quantity)?,
        // Limits that are not set default to the node's resources.
        None => match resource {
            "cpu" if whole => pod_values.cores,
            "memory" if whole => pod_values.memory,
            "ephemeral-storage" if whole => pod_values.storage,
            "cpu" | "memory" | "ephemeral-storage" => 0.0,
            other if other.starts_with("hugepages-") => 0.0,
            _ => return Err(unknown()),
        },
    };
    let divisor = match &selector.divisor {
        Some(divisor) => read(divisor)?,
        None => 1.0,
    };
    let divisor = if divisor == 0.0 { 1.0 } else { divisor };
    // Tolerates floating-point error just above a whole number. Adding zero removes the sign of a
    // negative zero, which `max` may return.
    Ok(format!(
        "{}",
        (amount / divisor - 1e-9).ceil().max(0.0) + 0.0
    ))
}

fn read(written: &Written) -> Result<f64, FieldError> {
    let quantity: Quantity = written
        .0
        .parse()
        .map_err(|_| FieldError::Quantity(written.0.clone()))?;
    Ok(quantity.value())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u",
                "labels": {"app": "x", "b": "say \"hi\""}},
            "spec": {"serviceAccountName": "robot", "containers": [
                {"name": "c", "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"},
                                            "requests": {"cpu": "100m"}}},
                {"name": "d"}]}
        }))
        .unwrap()
    }

    #[test]
    fn fields() {
        let pod_values = PodValues {
            pod_ip: "127.16.0.1".to_owned(),
            ..PodValues::default()
        };
        let field = |path| field(&pod(), &pod_values, path);
        assert_eq!(field("metadata.name").unwrap(), "p");
        assert_eq!(field("metadata.labels['app']").unwrap(), "x");
        assert_eq!(field("metadata.labels['none']").unwrap(), "");
        assert_eq!(
            field("metadata.labels").unwrap(),
            "app=\"x\"\nb=\"say \\\"hi\\\"\""
        );
        assert_eq!(field("spec.serviceAccountName").unwrap(), "robot");
        assert_eq!(field("status.podIP").unwrap(), "127.16.0.1");
        assert!(field("spec.containers").is_err());
        assert!(field("spec.x['y']").is_err());
    }

    #[test]
    fn resources() {
        let pod_values = PodValues {
            cores: 8.0,
            memory: 1024.0,
            ..PodValues::default()
        };
        let ask = |container: &str, resource: &str, divisor: Option<&str>| {
            let selector = ResourceFieldSelector {
                container_name: None,
                resource: resource.to_owned(),
                divisor: divisor.map(|text| Written(text.to_owned())),
            };
            super::resource(&pod(), &pod_values, container, &selector)
        };
        assert_eq!(ask("c", "limits.cpu", None).unwrap(), "2");
        assert_eq!(ask("c", "limits.cpu", Some("1m")).unwrap(), "1500");
        assert_eq!(ask("c", "requests.cpu", Some("1m")).unwrap(), "100");
        assert_eq!(ask("c", "limits.memory", Some("1Mi")).unwrap(), "1024");
        assert_eq!(ask("d", "limits.cpu", None).unwrap(), "8");
        assert_eq!(ask("d", "requests.memory", None).unwrap(), "0");
        assert!(ask("d", "limits.shoes", None).is_err());
        assert!(ask("e", "limits.cpu", None).is_err());
    }
}
