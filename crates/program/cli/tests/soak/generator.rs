//! Manifests with extreme values: valid objects in which some fields, found in the server's
//! own OpenAPI documents, are set to values near every limit.

use rand::{RngExt, seq::IndexedRandom as _};
use serde_json::{Map, Value, json};

/// Maximum nesting of a generated value.
const DEPTH: u32 = 5;

/// Fields that would affect something outside the cluster's own folders.
const EXCLUDED_FIELDS: [&str; 3] = ["hostPath", "namespace", "generateName"];

/// Fields with a number of pods.
const POD_COUNTS: [&str; 2] = ["parallelism", "replicas"];
/// Maximum number of pods of an object that the server accepts. More would fill the node, and
/// the test's runs would wait.
const MAX_PODS: i64 = 7;

const STRINGS: &[&str] = &[
    "",
    " ",
    "a",
    "A",
    "0",
    "-1",
    "null",
    "true",
    "~",
    "a/b",
    "../../etc",
    "a b",
    "é",
    "\u{0}",
    "\u{1b}[2J",
    "\u{202e}abc",
    "$(A)",
    "$$(A)",
    "$(A)$(A)",
    "{{x}}",
    "a=b",
    "*",
    ".",
    "..",
    "kubernetes.io/x",
    "x.example.com/y",
    "9223372036854775807",
    "-9223372036854775809",
    "1e1000",
    "1Ei",
    "100000Ei",
    "0.000000000000000001",
    "-5",
    "1n",
    "10%",
    "-10%",
    "2024-01-01T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "* * * * *",
    "*/0 * * * *",
    "@every 1ns",
    "Always",
    "Never",
    "OnFailure",
    "ClusterFirst",
    "TCP",
    "Exists",
    "busybox",
    "pause",
];

const INTEGERS: &[i64] = &[
    0,
    1,
    -1,
    2,
    7,
    255,
    256,
    65_535,
    65_536,
    2_147_483_647,
    2_147_483_648,
    -2_147_483_648,
    4_294_967_296,
    9_007_199_254_740_993,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
];

/// A kind whose objects are created.
pub(crate) struct Template {
    /// Path of its collection, with `{ns}` for the namespace.
    pub(crate) path: &'static str,
    /// A valid object without a name.
    pub(crate) object: Value,
}

/// The kinds that the soak test creates, with a valid object of each.
pub(crate) fn templates(marker: &str) -> Vec<Template> {
    let script = format!(": {marker}; echo line; sleep 0.2");
    let pod = json!({
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "any", "command": ["sh", "-c", script],
            "env": [{"name": "A", "value": "b"}], "ports": [{"containerPort": 80}],
            "resources": {"requests": {"cpu": "1m"}},
            "volumeMounts": [{"name": "v", "mountPath": "/soak-volume"}]}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    });
    let labels = json!({"soak": "yes"});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let job = json!({"template": template, "backoffLimit": 1, "completions": 2, "parallelism": 2,
        "completionMode": "Indexed"});
    let of = |path, api_version: &str, kind: &str, rest: Value| {
        let mut object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"labels": labels}});
        let fields = rest.as_object().unwrap().clone();
        object.as_object_mut().unwrap().extend(fields);
        Template { path, object }
    };
    let selector = json!({"matchLabels": labels});
    vec![
        of(
            "/api/v1/namespaces/{ns}/pods",
            "v1",
            "Pod",
            json!({"spec": pod}),
        ),
        of(
            "/api/v1/namespaces/{ns}/configmaps",
            "v1",
            "ConfigMap",
            json!({"data": {"a": "b"}}),
        ),
        of(
            "/api/v1/namespaces/{ns}/secrets",
            "v1",
            "Secret",
            json!({"data": {"a": "YQ=="}}),
        ),
        of(
            "/api/v1/namespaces/{ns}/services",
            "v1",
            "Service",
            json!({"spec": {"selector": labels, "ports": [{"port": 80}]}}),
        ),
        of(
            "/api/v1/namespaces/{ns}/serviceaccounts",
            "v1",
            "ServiceAccount",
            json!({}),
        ),
        of(
            "/api/v1/namespaces/{ns}/events",
            "v1",
            "Event",
            json!({"involvedObject": {"kind": "Pod", "name": "x"}, "reason": "Soak", "count": 1}),
        ),
        of(
            "/apis/batch/v1/namespaces/{ns}/jobs",
            "batch/v1",
            "Job",
            json!({"spec": job}),
        ),
        of(
            "/apis/batch/v1/namespaces/{ns}/cronjobs",
            "batch/v1",
            "CronJob",
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}}}),
        ),
        of(
            "/apis/apps/v1/namespaces/{ns}/deployments",
            "apps/v1",
            "Deployment",
            json!({"spec": {"selector": selector, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "pause"}]}}}}),
        ),
        of(
            "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
            "coordination.k8s.io/v1",
            "Lease",
            json!({"spec": {"leaseDurationSeconds": 1}}),
        ),
        of(
            "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
            "policy/v1",
            "PodDisruptionBudget",
            json!({"spec": {"selector": selector, "minAvailable": 1}}),
        ),
    ]
}

/// The schemas of the server's kinds, by their names in the OpenAPI documents.
pub(crate) struct Schemas(pub(crate) Map<String, Value>);

impl Schemas {
    /// The schema of an object's type.
    pub(crate) fn of(&self, object: &Value) -> Option<&Value> {
        let api_version = object["apiVersion"].as_str()?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let wanted = json!({"group": group, "kind": object["kind"], "version": version});
        self.0.values().find(|schema| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds.is_some_and(|kinds| kinds.contains(&wanted))
        })
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let reference = schema["$ref"]
            .as_str()
            .or_else(|| schema["allOf"][0]["$ref"].as_str());
        let name = reference.and_then(|reference| reference.rsplit('/').next());
        name.and_then(|name| self.0.get(name)).unwrap_or(schema)
    }

    /// Sets a random field of the value, usually to something that its type allows.
    pub(crate) fn mutate(&self, value: &mut Value, schema: &Value, rng: &mut impl RngExt) {
        let schema = self.resolve(schema);
        match value {
            Value::Object(fields) if rng.random_bool(0.9) => {
                let Some(properties) = schema["properties"].as_object() else {
                    let of = schema.get("additionalProperties").unwrap_or(&Value::Null);
                    fields.insert(string(rng), self.value(of, 0, rng));
                    return;
                };
                let known: Vec<&String> = properties
                    .keys()
                    .filter(|name| !EXCLUDED_FIELDS.contains(&name.as_str()))
                    .collect();
                let present: Vec<&String> = known
                    .iter()
                    .filter(|name| fields.contains_key(**name))
                    .copied()
                    .collect();
                let deeper = rng.random_bool(0.6);
                let among = if deeper && !present.is_empty() {
                    &present
                } else {
                    &known
                };
                let Some(name) = among.choose(rng) else {
                    return;
                };
                let of = &properties[*name];
                match fields.get_mut(*name) {
                    Some(inner) if deeper => self.mutate(inner, of, rng),
                    _ => {
                        fields.insert((*name).clone(), self.value(of, 0, rng));
                    }
                }
            }
            Value::Array(items) if !items.is_empty() && rng.random_bool(0.8) => {
                let index = rng.random_range(0..items.len());
                self.mutate(&mut items[index], &schema["items"], rng);
            }
            _ => *value = self.value(schema, 0, rng),
        }
    }

    /// A value of a type, or rarely of another one.
    fn value(&self, schema: &Value, depth: u32, rng: &mut impl RngExt) -> Value {
        let schema = self.resolve(schema);
        if rng.random_bool(0.02) {
            return [
                json!(null),
                json!([]),
                json!({}),
                json!("x"),
                json!(1),
                json!(1e308),
            ]
            .choose(rng)
            .unwrap()
            .clone();
        }
        if let Some(allowed) = schema["enum"].as_array()
            && rng.random_bool(0.8)
        {
            return allowed.choose(rng).cloned().unwrap_or_default();
        }
        let alternatives = schema["oneOf"].as_array();
        if let Some(alternative) = alternatives.and_then(|all| all.choose(rng)) {
            return self.value(alternative, depth, rng);
        }
        match schema["type"].as_str() {
            Some("integer") => json!(INTEGERS.choose(rng).unwrap()),
            Some("number") => json!([0.0, -0.5, 1e308, -1e308, 1e-308].choose(rng).unwrap()),
            Some("boolean") => json!(rng.random_bool(0.5)),
            Some("array") => {
                let length = *[0, 1, 1, 2, 3, 200].choose(rng).unwrap();
                let length = if depth > 1 { length.min(3) } else { length };
                (0..length)
                    .map(|_| self.value(&schema["items"], depth + 1, rng))
                    .collect()
            }
            Some("object") if depth < DEPTH => self.object(schema, depth, rng),
            Some("object") => json!({}),
            _ => json!(string(rng)),
        }
    }

    fn object(&self, schema: &Value, depth: u32, rng: &mut impl RngExt) -> Value {
        let mut fields = Map::new();
        if let Some(properties) = schema["properties"].as_object() {
            let required = schema["required"].as_array();
            let is_required = |name: &str| {
                required.is_some_and(|names| names.iter().any(|required| required == name))
            };
            let share = 1.5 / properties.len().max(2) as f64;
            for (name, of) in properties {
                if EXCLUDED_FIELDS.contains(&name.as_str()) {
                    continue;
                }
                if rng.random_bool(if is_required(name) { 0.95 } else { share }) {
                    fields.insert(name.clone(), self.value(of, depth + 1, rng));
                }
            }
        } else {
            let of = schema.get("additionalProperties").unwrap_or(&Value::Null);
            for _ in 0..rng.random_range(0..4) {
                fields.insert(string(rng), self.value(of, depth + 1, rng));
            }
        }
        Value::Object(fields)
    }
}

/// Limits the numbers of pods that an object requests. Numbers that the server refuses are
/// unchanged.
pub(crate) fn limit_pods(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let accepted = MAX_PODS..=i64::from(i32::MAX);
                let count = value.as_i64().filter(|count| accepted.contains(count));
                if POD_COUNTS.contains(&name.as_str()) && count.is_some() {
                    *value = json!(MAX_PODS);
                } else {
                    limit_pods(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(limit_pods),
        _ => {}
    }
}

/// A string, rarely a long one.
fn string(rng: &mut impl RngExt) -> String {
    match rng.random_range(0..100) {
        0 => "x".repeat(300),
        1 => "ü".repeat(5_000),
        2 => "$(A)".repeat(2_000),
        3 => "a.".repeat(126),
        _ => (*STRINGS.choose(rng).unwrap()).to_owned(),
    }
}
