//! Pods and the standards that they violate.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

fn standard(level: Level, version: Version) -> Standard {
    Standard { level, version }
}

fn of(level: Level, version: Version, spec: &Value, annotations: &Value) -> Option<String> {
    let pod = json!({"metadata": {"annotations": annotations}, "spec": spec});
    let pod = pod.as_object().unwrap();
    violations(standard(level, version), &Template::of("Pod", pod).unwrap())
}

fn baseline(spec: &Value) -> String {
    of(Level::Baseline, Version::Latest, spec, &json!({})).unwrap_or_default()
}

fn restricted(spec: &Value) -> String {
    of(Level::Restricted, Version::Latest, spec, &json!({})).unwrap_or_default()
}

fn with_context(context: Value) -> Value {
    json!({"containers": [{"name": "c", "securityContext": context}]})
}

/// A pod that the level restricted permits.
fn secure() -> Value {
    json!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    })
}

#[test]
fn a_plain_pod_violates_only_the_restricted_level() {
    let plain = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    assert_eq!(
        of(Level::Privileged, Version::Latest, &plain, &json!({})),
        None
    );
    assert_eq!(baseline(&plain), "");
    assert_eq!(
        restricted(&plain),
        "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set securityContext.allowPrivilegeEscalation=false), \
         unrestricted capabilities (containers \"a\", \"b\" must set securityContext.capabilities.drop=[\"ALL\"]), \
         runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true), \
         seccompProfile (pod or containers \"a\", \"b\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
    assert_eq!(restricted(&secure()), "");
}

#[test]
fn the_rules_of_the_baseline_level() {
    for (spec, expected) in [
        (
            json!({"hostNetwork": true, "hostPID": true}),
            "host namespaces (hostNetwork=true, hostPID=true)",
        ),
        (
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
            "hostPath volumes (volume \"v\")",
        ),
        (
            json!({"containers": [{"name": "c", "ports": [{"hostPort": 80}, {"hostPort": 81}]}]}),
            "hostPort (container \"c\" uses hostPorts 80, 81)",
        ),
        (
            json!({"initContainers": [{"name": "i", "livenessProbe": {"httpGet": {"host": "x"}}}]}),
            "probe or lifecycle host (container \"i\" uses probe or lifecycle host \"x\")",
        ),
        (
            with_context(json!({"privileged": true})),
            "privileged (container \"c\" must not set securityContext.privileged=true)",
        ),
        (
            with_context(json!({"capabilities": {"add": ["KILL", "NET_RAW"]}})),
            "non-default capabilities (container \"c\" must not include \"NET_RAW\" in securityContext.capabilities.add)",
        ),
        (
            with_context(json!({"procMount": "Unmasked"})),
            "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
        ),
        (
            json!({"securityContext": {"seLinuxOptions": {"type": "x", "user": "u"}}}),
            "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"x\"; user may not be set)",
        ),
        (
            with_context(json!({"seccompProfile": {"type": "Unconfined"}})),
            "seccompProfile (container \"c\" must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
        (
            json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]}}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            json!({"securityContext": {"windowsOptions": {"hostProcess": true}}}),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
        (
            with_context(json!({"appArmorProfile": {"type": "Unconfined"}})),
            "forbidden AppArmor profile (container \"c\" must not set AppArmor profile type to \"Unconfined\")",
        ),
    ] {
        assert_eq!(baseline(&spec), expected);
    }
    let annotations = json!({"container.apparmor.security.beta.kubernetes.io/c": "unconfined"});
    assert_eq!(
        of(Level::Baseline, Version::Latest, &json!({}), &annotations).unwrap(),
        "forbidden AppArmor profile (annotation must not set AppArmor profile type to \"container.apparmor.security.beta.kubernetes.io/c=\"unconfined\"\")"
    );
}

#[test]
fn the_rules_of_the_restricted_level() {
    let changed = |change: fn(&mut Value)| {
        let mut spec = secure();
        change(&mut spec);
        restricted(&spec)
    };
    assert_eq!(
        changed(|spec| spec["volumes"][0] = json!({"name": "v", "hostPath": {"path": "/"}})),
        "restricted volume types (volume \"v\" uses restricted volume type \"hostPath\")"
    );
    assert_eq!(
        changed(|spec| spec["containers"][0]["securityContext"]["runAsNonRoot"] = json!(false)),
        "runAsNonRoot != true (container \"c\" must not set securityContext.runAsNonRoot=false)"
    );
    assert_eq!(
        changed(|spec| spec["securityContext"]["runAsUser"] = json!(0)),
        "runAsUser=0 (pod must not set runAsUser=0)"
    );
    assert_eq!(
        changed(
            |spec| spec["containers"][0]["securityContext"]["capabilities"] =
                json!({"drop": ["ALL"], "add": ["KILL"]})
        ),
        "unrestricted capabilities (container \"c\" must not include \"KILL\" in securityContext.capabilities.add)"
    );
    assert_eq!(
        changed(|spec| spec["securityContext"]["seccompProfile"] = json!({"type": "Unconfined"})),
        "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")"
    );
}

#[test]
fn older_versions_have_fewer_rules() {
    let probe =
        json!({"containers": [{"name": "c", "livenessProbe": {"tcpSocket": {"host": "x"}}}]});
    assert_eq!(
        of(Level::Baseline, Version::Minor(33), &probe, &json!({})),
        None
    );
    let rootless = json!({"hostUsers": false, "securityContext": {"runAsUser": 0}});
    assert_eq!(
        of(Level::Restricted, Version::Minor(35), &rootless, &json!({})),
        None
    );
    let root = of(Level::Restricted, Version::Minor(34), &rootless, &json!({}));
    assert_eq!(root.unwrap(), "runAsUser=0 (pod must not set runAsUser=0)");
}

#[test]
fn the_labels_of_a_namespace_select_the_standards() {
    let policy = |labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(key, value)| {
            (
                format!("pod-security.kubernetes.io/{key}"),
                (*value).to_owned(),
            )
        });
        let labels = labels.collect();
        let policy = Policy::of(&labels);
        let texts = policy.map(|policy| (policy.enforce.to_string(), policy.warn.to_string()));
        (texts, label_problems(&labels).len())
    };
    let both = |enforce: &str, warn: &str| Some((enforce.to_owned(), warn.to_owned()));
    assert_eq!(policy(&[]), (None, 0));
    assert_eq!(policy(&[("audit", "restricted")]), (None, 0));
    assert_eq!(
        policy(&[("enforce", "baseline")]),
        (both("baseline:latest", "baseline:latest"), 0)
    );
    let labels = [
        ("enforce", "baseline"),
        ("enforce-version", "v1.30"),
        ("warn", "restricted"),
    ];
    assert_eq!(
        policy(&labels),
        (both("baseline:v1.30", "restricted:latest"), 0)
    );
    let labels = [
        ("enforce", "wrong"),
        ("warn-version", "v1.07"),
        ("audit", "x"),
    ];
    assert_eq!(
        policy(&labels),
        (both("restricted:latest", "privileged:latest"), 3)
    );
}
