//! The parts of an APIService that the aggregation reads.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_builtin::json;
use longshore_engine::Object;
use serde_json::Value;

/// The default port of aggregated API servers.
const DEFAULT_PORT: u16 = 443;
/// The label of APIServices that the server manages.
const MANAGED_LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";

/// The Service of an aggregated API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Backend {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) port: u16,
    /// The trusted certificates, in PEM format. If empty, the certificates of public authorities
    /// are trusted.
    pub(super) bundle: Vec<u8>,
    /// True if every certificate is accepted.
    pub(super) insecure: bool,
}

/// An APIService.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiService {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) group_priority: i64,
    pub(super) version_priority: i64,
    /// `None` if this server serves the version.
    pub(super) backend: Option<Backend>,
    pub(super) is_available: bool,
    /// True if the server creates and deletes the APIService along with definitions.
    pub(super) is_managed: bool,
}

impl ApiService {
    pub(super) fn read(object: &Object) -> Self {
        let value = object.value();
        let spec = &value["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let service = spec["service"].as_object();
        let port = |service: &json::Object| {
            let port = service.get("port").and_then(Value::as_u64);
            port.and_then(|port| u16::try_from(port).ok())
        };
        let conditions = value["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        Self {
            name: object.name().to_owned(),
            group: text(&spec["group"]),
            version: text(&spec["version"]),
            group_priority: spec["groupPriorityMinimum"].as_i64().unwrap_or_default(),
            version_priority: spec["versionPriority"].as_i64().unwrap_or_default(),
            backend: service.map(|service| Backend {
                namespace: json::text(service, "namespace").to_owned(),
                name: json::text(service, "name").to_owned(),
                port: port(service).unwrap_or(DEFAULT_PORT),
                bundle: STANDARD.decode(text(&spec["caBundle"])).unwrap_or_default(),
                insecure: spec["insecureSkipTLSVerify"] == true,
            }),
            is_available: conditions
                .any(|found| found["type"] == "Available" && found["status"] == "True"),
            is_managed: value["metadata"]["labels"][MANAGED_LABEL] == "true",
        }
    }

    /// Returns true if two states differ at most in their availability.
    pub(super) fn is_registered_as(&self, other: &Self) -> bool {
        let is_available = other.is_available;
        Self {
            is_available,
            ..self.clone()
        } == *other
    }

    /// The path of the version's discovery document.
    pub(super) fn path(&self) -> String {
        match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }
}
