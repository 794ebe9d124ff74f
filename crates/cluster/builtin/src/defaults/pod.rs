//! Defaults of pods and of pod templates.

use serde_json::{Value, json};

use crate::{
    MIRROR_POD,
    json::{self, Object},
};

/// Seconds that a pod stays on a node that is not ready or unreachable.
const NODE_PROBLEM_TOLERATION_SECONDS: i64 = 300;

/// Keeps `podIP` and the first entry of `podIPs` equal; `podIP` wins.
/// `qosClass` and `observedGeneration` keep their values if the request omits
/// them.
pub(crate) fn on_status(before: &Object, pod: &mut Object) {
    let status = json::child(pod, "status");
    let old = before.get("status").and_then(Value::as_object);
    for field in ["qosClass", "observedGeneration"] {
        if let Some(old) = old.and_then(|old| old.get(field)) {
            json::default(status, field, old.clone());
        }
    }
    for (alone, all) in [("podIP", "podIPs"), ("hostIP", "hostIPs")] {
        let first = json::items(status, all).next();
        let first = first.map_or("", |item| json::text(item, "ip")).to_owned();
        let own = json::text(status, alone).to_owned();
        if own.is_empty() && !first.is_empty() {
            status.insert(alone.into(), first.into());
        } else if own != first {
            status.insert(all.into(), json!([{ "ip": own }]));
        }
    }
}

/// Applies the admission plugins that set the service account and tolerations of
/// a new pod. Mirror pods have no service account.
pub(crate) fn admit(pod: &mut Object) {
    let annotations = json::at(pod, "metadata.annotations").and_then(Value::as_object);
    let is_mirror = annotations.is_some_and(|all| all.contains_key(MIRROR_POD));
    let spec = json::child(pod, "spec");
    let account = json::text(spec, "serviceAccountName").to_owned();
    if account.is_empty() && !is_mirror {
        let old = json::text(spec, "serviceAccount").to_owned();
        let account = if old.is_empty() {
            "default".to_owned()
        } else {
            old
        };
        spec.insert("serviceAccountName".into(), account.into());
    }
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        spec.insert("serviceAccount".into(), account);
    }
    tolerate_node_problems(spec);
}

/// Applies the admission plugins and the kind's rules to a new pod.
pub(crate) fn on_create(pod: &mut Object) {
    admit(pod);
    let class = qos_class(pod);
    let phase = json!({"phase": "Pending", "qosClass": class});
    pod.insert("status".into(), phase);
}

/// States that a new pod with scheduling gates is not scheduled.
pub(crate) fn on_insert(pod: &mut Object, now: &str) {
    let is_gated = pod
        .get("spec")
        .and_then(|spec| spec.get("schedulingGates"))
        .and_then(Value::as_array)
        .is_some_and(|gates| !gates.is_empty());
    if is_gated {
        let condition = json!({
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": now,
        });
        json::child(pod, "status").insert("conditions".into(), json!([condition]));
    }
}

fn tolerate_node_problems(spec: &mut Object) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Value::Array(tolerations) = tolerations else {
        return;
    };
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let tolerated = tolerations.iter().any(|toleration| {
            let is =
                |field: &str, value: &str| toleration[field].as_str().unwrap_or_default() == value;
            (is("key", key) || is("key", "")) && (is("effect", "NoExecute") || is("effect", ""))
        });
        if !tolerated {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": NODE_PROBLEM_TOLERATION_SECONDS,
            }));
        }
    }
}

/// Keeps the values of fields that an update omits, and the default tolerations.
pub(crate) fn on_update(before: &Object, pod: &mut Object) {
    let Some(Value::Object(old)) = before.get("spec") else {
        return;
    };
    let spec = json::child(pod, "spec");
    for name in [
        "priority",
        "preemptionPolicy",
        "serviceAccountName",
        "serviceAccount",
    ] {
        if !spec.contains_key(name) {
            json::copy(old, spec, name);
        }
    }
    tolerate_node_problems(spec);
}

/// Sets the defaults of a pod.
pub(crate) fn fill(pod: &mut Object) {
    let spec = json::child(pod, "spec");
    json::default(spec, "enableServiceLinks", true);
    for list in ["initContainers", "containers"] {
        for container in json::items_mut(spec, list) {
            default_requests_to_limits(container);
        }
    }
    fill_spec(spec);
    fill_host_ports(spec);
    json::default_text(json::child(pod, "status"), "phase", "Pending");
}

/// With the host's network, the ports of containers are ports of the host. Pod templates do
/// not have this default.
fn fill_host_ports(spec: &mut Object) {
    if spec.get("hostNetwork").and_then(Value::as_bool) != Some(true) {
        return;
    }
    for list in ["initContainers", "containers"] {
        for container in json::items_mut(spec, list) {
            for port in json::items_mut(container, "ports") {
                if json::number(port, "hostPort").unwrap_or_default() == 0
                    && let Some(number) = port.get("containerPort").cloned()
                {
                    port.insert("hostPort".into(), number);
                }
            }
        }
    }
}

/// A missing request defaults to the limit.
fn default_requests_to_limits(container: &mut Object) {
    let Some(Value::Object(resources)) = container.get_mut("resources") else {
        return;
    };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
        return;
    };
    let requests = json::child(resources, "requests");
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

/// Sets the defaults of a PodTemplate.
pub(crate) fn fill_template(object: &mut Object) {
    fill_spec(json::child(json::child(object, "template"), "spec"));
}

/// Sets the defaults of the spec of a pod or pod template.
pub(crate) fn fill_spec(spec: &mut Object) {
    json::default_text(spec, "restartPolicy", "Always");
    json::default_text(spec, "dnsPolicy", "ClusterFirst");
    json::default(spec, "terminationGracePeriodSeconds", 30);
    json::default_text(spec, "schedulerName", "default-scheduler");
    json::child(spec, "securityContext");
    // Deprecated fields and their replacements mirror each other.
    for (from, to) in [
        ("serviceAccount", "serviceAccountName"),
        ("serviceAccountName", "serviceAccount"),
    ] {
        if !spec.contains_key(to) && spec.contains_key(from) {
            let account = spec.get(from).cloned().unwrap_or_default();
            spec.insert(to.to_owned(), account);
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in json::items_mut(spec, list) {
            fill_container(container);
        }
    }
    json::items_mut(spec, "volumes").for_each(fill_volume);
}

fn fill_container(container: &mut Object) {
    json::default_text(container, "terminationMessagePath", "/dev/termination-log");
    json::default_text(container, "terminationMessagePolicy", "File");
    let policy = pull_policy(json::text(container, "image"));
    json::default_text(container, "imagePullPolicy", policy);
    json::child(container, "resources");
    for port in json::items_mut(container, "ports") {
        json::default_text(port, "protocol", "TCP");
    }
    for variable in json::items_mut(container, "env") {
        if let Some(Value::Object(source)) = variable.get_mut("valueFrom") {
            fill_field_ref(source);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(Value::Object(probe)) = container.get_mut(probe) {
            for (name, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                json::default(probe, name, value);
            }
            fill_handler(probe);
        }
    }
    if let Some(Value::Object(lifecycle)) = container.get_mut("lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(Value::Object(handler)) = lifecycle.get_mut(name) {
                fill_handler(handler);
            }
        }
    }
}

fn fill_handler(handler: &mut Object) {
    if let Some(Value::Object(get)) = handler.get_mut("httpGet") {
        json::default_text(get, "path", "/");
        json::default_text(get, "scheme", "HTTP");
    }
    if let Some(Value::Object(grpc)) = handler.get_mut("grpc") {
        json::default(grpc, "service", "");
    }
}

fn fill_field_ref(source: &mut Object) {
    if let Some(Value::Object(reference)) = source.get_mut("fieldRef") {
        json::default_text(reference, "apiVersion", "v1");
    }
    if let Some(Value::Object(reference)) = source.get_mut("resourceFieldRef") {
        json::default(reference, "divisor", "0");
    }
}

/// Returns true if an image reference is valid. Kubernetes does not apply the rule for a missing
/// tag to invalid references.
fn is_image(image: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (name, tag) = match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (image, None),
    };
    let tagged = tag.is_none_or(|tag| {
        tag.len() <= 128
            && tag.starts_with(is_word)
            && tag.chars().all(|c| is_word(c) || c == '.' || c == '-')
    });
    let host = |part: &str| part.contains(['.', ':']) || part == "localhost";
    let mut parts = name.split('/').peekable();
    let (first, more) = (
        name.split('/').next().unwrap_or_default(),
        name.contains('/'),
    );
    if more && (host(first) || first.chars().any(|c| c.is_ascii_uppercase())) {
        parts.next();
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part = |part: &str| {
        part.starts_with(plain)
            && part.ends_with(plain)
            && part
                .chars()
                .all(|c| plain(c) || matches!(c, '.' | '_' | '-'))
            && !["..", "___", "._", "_.", "-.", ".-", "-_", "_-"]
                .iter()
                .any(|odd| part.contains(odd))
    };
    tagged && parts.all(part)
}

/// Returns `Always` if the tag is `latest` or missing, otherwise `IfNotPresent`.
fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') || !is_image(image) {
        return "IfNotPresent";
    }
    let name = image.rsplit('/').next().unwrap_or_default();
    match name.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

fn fill_volume(volume: &mut Object) {
    if volume.keys().all(|name| name == "name") {
        volume.insert("emptyDir".into(), json!({}));
    }
    fill_source(volume);
}

/// Defaults of volume sources.
const SOURCES: &[(&str, &[(&str, &str)])] = &[
    ("hostPath", &[("type", "")]),
    (
        "rbd",
        &[
            ("pool", "rbd"),
            ("user", "admin"),
            ("keyring", "/etc/ceph/keyring"),
        ],
    ),
    ("iscsi", &[("iscsiInterface", "default")]),
    (
        "azureDisk",
        &[
            ("cachingMode", "ReadWrite"),
            ("kind", "Shared"),
            ("fsType", "ext4"),
        ],
    ),
    (
        "scaleIO",
        &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")],
    ),
];

/// Sets the defaults of a volume source.
pub(crate) fn fill_source(volume: &mut Object) {
    const MODE: i64 = 0o644;
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        let Some(Value::Object(source)) = volume.get_mut(name) else {
            continue;
        };
        json::default(source, "defaultMode", MODE);
        json::items_mut(source, "items").for_each(fill_field_ref);
        for projection in json::items_mut(source, "sources") {
            if let Some(Value::Object(token)) = projection.get_mut("serviceAccountToken") {
                json::default(token, "expirationSeconds", 3600);
            }
            if let Some(Value::Object(downward)) = projection.get_mut("downwardAPI") {
                json::items_mut(downward, "items").for_each(fill_field_ref);
            }
        }
    }
    for (name, fields) in SOURCES {
        if let Some(Value::Object(source)) = volume.get_mut(*name) {
            for (field, value) in *fields {
                json::default(source, field, *value);
            }
        }
    }
    if let Some(Value::Object(disk)) = volume.get_mut("azureDisk") {
        json::default(disk, "readOnly", false);
    }
    if let Some(Value::Object(ephemeral)) = volume.get_mut("ephemeral")
        && let Some(Value::Object(claim)) = ephemeral.get_mut("volumeClaimTemplate")
    {
        json::default_text(json::child(claim, "spec"), "volumeMode", "Filesystem");
    }
}

/// Returns the QoS class: `Guaranteed` if every container's CPU and memory requests equal its
/// limits, `BestEffort` if no container sets any, otherwise `Burstable`.
pub(crate) fn qos_class(pod: &Object) -> &'static str {
    let Some(Value::Object(spec)) = pod.get("spec") else {
        return "BestEffort";
    };
    let (mut anything, mut guaranteed) = (false, true);
    for container in json::items(spec, "initContainers").chain(json::items(spec, "containers")) {
        for resource in ["cpu", "memory"] {
            let amount = |list: &str| {
                json::at(container, "resources").and_then(|r| r.get(list)?.get(resource))
            };
            let limit = amount("limits");
            let request = amount("requests").or(limit);
            anything |= request.is_some();
            guaranteed &= limit.is_some() && request == limit;
        }
    }
    match (anything, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn created(spec: Value) -> Value {
        let mut pod = json!({"spec": spec}).as_object().unwrap().clone();
        on_create(&mut pod);
        fill(&mut pod);
        pod.into()
    }

    #[test]
    fn only_ports_of_pods_with_the_hosts_network_are_ports_of_the_host() {
        let ports = json!([{"containerPort": 80}, {"containerPort": 81, "hostPort": 82}]);
        let spec = |network: bool| {
            let container = json!({"name": "a", "image": "x", "ports": ports});
            json!({"hostNetwork": network, "initContainers": [container], "containers": [container]})
        };
        let host_ports = |spec: &Value, list: &str| {
            let ports = spec[list][0]["ports"].as_array().unwrap();
            ports
                .iter()
                .map(|port| port["hostPort"].clone())
                .collect::<Vec<_>>()
        };
        let (shared, own) = (created(spec(true)), created(spec(false)));
        let mut template = json!({"template": {"spec": spec(true)}});
        fill_template(template.as_object_mut().unwrap());
        for list in ["initContainers", "containers"] {
            assert_eq!(host_ports(&shared["spec"], list), [json!(80), json!(82)]);
            assert_eq!(host_ports(&own["spec"], list), [Value::Null, json!(82)]);
            let of_template = host_ports(&template["template"]["spec"], list);
            assert_eq!(of_template, [Value::Null, json!(82)]);
        }
    }

    #[test]
    fn a_minimal_pod_gets_the_defaults_of_kubernetes() {
        let pod = created(json!({"containers": [{"name": "a", "image": "x"}]}));
        let expected = json!({
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler",
            "securityContext": {}, "enableServiceLinks": true,
            "serviceAccountName": "default", "serviceAccount": "default",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "containers": [{"name": "a", "image": "x", "imagePullPolicy": "Always", "resources": {},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}],
        });
        assert_eq!(pod["spec"], expected);
        assert_eq!(
            pod["status"],
            json!({"phase": "Pending", "qosClass": "BestEffort"})
        );
    }

    #[test]
    fn mirror_pods_have_no_service_account() {
        let pod = json!({
            "metadata": {"annotations": {MIRROR_POD: "x"}},
            "spec": {"containers": [{"name": "a", "image": "x"}]},
        });
        let mut pod = pod.as_object().unwrap().clone();
        on_create(&mut pod);
        assert_eq!(pod["spec"].get("serviceAccountName"), None);
        assert_eq!(pod["spec"].get("serviceAccount"), None);
    }

    #[test]
    fn setting_defaults_is_idempotent() {
        let pod = created(json!({"containers": [{"name": "a", "image": "x:1",
            "ports": [{"containerPort": 1}], "livenessProbe": {"httpGet": {"port": 1}}}],
            "volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "s"}}]}));
        let mut again = pod.as_object().unwrap().clone();
        fill(&mut again);
        assert_eq!(Value::from(again), pod);
        assert_eq!(pod["spec"]["volumes"][0]["emptyDir"], json!({}));
        assert_eq!(pod["spec"]["volumes"][1]["secret"]["defaultMode"], 420);
        assert_eq!(pod["spec"]["containers"][0]["ports"][0]["protocol"], "TCP");
        assert_eq!(
            pod["spec"]["containers"][0]["livenessProbe"]["httpGet"]["scheme"],
            "HTTP"
        );
    }

    #[test]
    fn the_pull_policy_depends_on_the_image_tag() {
        for (image, policy) in [
            ("a", "Always"),
            ("a:latest", "Always"),
            ("host:5000/a", "Always"),
            ("host:5000/a:1", "IfNotPresent"),
            ("a@sha256:0", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }

    #[test]
    fn the_qos_class_follows_requests_and_limits() {
        let class = |resources: Value| {
            created(json!({"containers": [{"name": "a", "resources": resources}]}))["status"]["qosClass"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(class(json!({})), "BestEffort");
        assert_eq!(class(json!({"requests": {"cpu": "1"}})), "Burstable");
        assert_eq!(
            class(json!({"limits": {"cpu": "1", "memory": "1Gi"}})),
            "Guaranteed"
        );
    }
}
