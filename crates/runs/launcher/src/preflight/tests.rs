//! Problems of plans, case by case.
#![allow(clippy::unwrap_used)]

use longshore_client::k8s_openapi::api::core::v1::ContainerPort;
use longshore_diagnosis::fit;
use longshore_model::facts::PodSpec;
use serde_json::{Value, json};

use super::{needs::RoleNeed, references::What, *};
use crate::{Flags, RunName, RunOptions, Settings, config, plan};

fn needs(resources: Value, tasks: u32) -> Needs {
    let spec = json!({"containers": [{"name": "main", "resources": resources}]});
    of_spec(spec, tasks)
}

fn of_spec(spec: Value, tasks: u32) -> Needs {
    Needs {
        namespace: "team".into(),
        roles: vec![RoleNeed {
            name: "worker".into(),
            tasks,
            spec: serde_json::from_value(spec).unwrap(),
        }],
        notifier: None,
        objects: [("jobs.batch".to_owned(), 1.0), ("secrets".to_owned(), 2.0)].into(),
        addons: Vec::new(),
        references: Vec::new(),
        counts_failures: None,
        executes: false,
        attaches: false,
        has_bundle: false,
    }
}

fn findings(needs: &Needs, state: &ClusterState) -> Vec<String> {
    let report = evaluate(needs, state);
    let refusals = report.refusals.iter().map(|known| format!("no: {known}"));
    let warnings = report
        .warnings
        .iter()
        .map(|known| format!("warning: {known}"));
    refusals.chain(warnings).collect()
}

fn quotas(quota: Value) -> ClusterState {
    let mut whole = json!({"metadata": {"name": "compute"}, "status": quota});
    whole["spec"] = whole["status"]["spec"].take();
    if whole["spec"].is_null() {
        whole["spec"] = json!({});
    }
    ClusterState {
        quotas: Some(vec![serde_json::from_value(whole).unwrap()]),
        nodes: Some(Nodes::default()),
        ..ClusterState::default()
    }
}

fn ranges(item: Value) -> Vec<LimitRangeEvidence> {
    let range = json!({"metadata": {"name": "bounds"}, "spec": {"limits": [item]}});
    vec![serde_json::from_value(range).unwrap()]
}

fn nodes(nodes: Value, more: bool) -> ClusterState {
    ClusterState {
        nodes: Some(Nodes {
            seen: serde_json::from_value(nodes).unwrap(),
            more,
        }),
        ..ClusterState::default()
    }
}

#[test]
fn unreadable_facts_are_not_problems() {
    let state = ClusterState::default();
    assert_eq!(findings(&needs(json!({}), 3), &state), [""; 0]);
}

#[test]
fn namespaces() {
    let mut state = ClusterState {
        namespace: NamespaceState::Missing,
        ..quotas(json!({"hard": {"pods": "0"}}))
    };
    let needs = needs(json!({}), 1);
    insta::assert_snapshot!(findings(&needs, &state).join("\n"), @r#"no: the cluster has no namespace "team"; create it with `kubectl create namespace team`, or choose another"#);
    state.namespace = NamespaceState::Ends;
    insta::assert_snapshot!(findings(&needs, &state).join("\n"), @r#"no: the namespace "team" is being deleted; choose another"#);
}

#[test]
fn missing_permissions() {
    let needs = needs(json!({}), 1);
    let all = rights::needed(&needs, Purpose::Follow);
    let is = |verb: &str, resource: &str| {
        let found = all.iter().find(|right| {
            right.verb == verb && right.resource == resource && right.subresource.is_empty()
        });
        *found.unwrap()
    };
    let log = *all.iter().find(|right| right.subresource == "log").unwrap();
    let state = ClusterState {
        lacks: vec![
            is("create", "jobs"),
            is("patch", "jobs"),
            is("create", "secrets"),
            is("patch", "secrets"),
            log,
        ],
        ..ClusterState::default()
    };
    insta::assert_snapshot!(findings(&needs, &state).join("\n"), @r#"no: you are not allowed to create, patch jobs.batch, secrets; get pods/log in the namespace "team"; ask an administrator of the cluster for a Role with these permissions, bound to you"#);
    let one = ClusterState {
        lacks: vec![is("watch", "pods")],
        ..ClusterState::default()
    };
    insta::assert_snapshot!(findings(&needs, &one).join("\n"), @r#"no: you are not allowed to watch pods in the namespace "team"; ask an administrator of the cluster for a Role with these permissions, bound to you"#);
    // Without following, the permissions to read are not required.
    let detached = rights::needed(&needs, Purpose::Detach);
    assert!(
        detached
            .iter()
            .all(|right| ["create", "patch"].contains(&right.verb))
    );
}

#[test]
fn permissions_of_a_webhook_name_the_account_as_a_remedy() {
    let mut needs = needs(json!({}), 1);
    let plain = rights::needed(&needs, Purpose::Detach);
    for kind in [
        "serviceaccounts",
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
    ] {
        needs.objects.insert(kind.to_owned(), 1.0);
    }
    let lacks = rights::needed(&needs, Purpose::Detach).into_iter();
    let lacks = lacks.filter(|right| !plain.contains(right)).collect();
    let state = ClusterState {
        lacks,
        ..ClusterState::default()
    };
    insta::assert_snapshot!(findings(&needs, &state).join("\n"), @r#"no: you are not allowed to create rolebindings.rbac.authorization.k8s.io, roles.rbac.authorization.k8s.io, serviceaccounts; get, list, watch jobs.batch, pods; list events in the namespace "team"; ask an administrator of the cluster for a Role with these permissions, bound to you; or name a service account that may get, list and watch jobs.batch and pods, and list events, in `webhook_account`; or remove `webhook`"#);
}

#[test]
fn permissions_of_dev_and_of_queues() {
    let mut needs = needs(json!({}), 1);
    let needed = |needs: &Needs| rights::needed(needs, Purpose::Detach);
    let plain = needed(&needs);
    needs.executes = true;
    needs.addons = vec![Addon::Queue("gpu".into())];
    let lacks: Vec<_> = needed(&needs)
        .into_iter()
        .filter(|right| !plain.contains(right))
        .collect();
    let state = ClusterState {
        lacks,
        ..ClusterState::default()
    };
    insta::assert_snapshot!(findings(&needs, &state).join("\n"), @r#"
    no: you are not allowed to create, get pods/exec in the namespace "team"; ask an administrator of the cluster for a Role with these permissions, bound to you
    warning: you are not allowed to list, patch workloads.kueue.x-k8s.io in the namespace "team", so the run cannot be cancelled, and a failed task does not stop the others; ask an administrator of the cluster for a Role with these permissions, bound to you
    "#);
}

#[test]
fn quotas_allow_or_reject() {
    let two = needs(
        json!({"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi", "nvidia.com/gpu": 1}}),
        3,
    );
    let table = [
        (
            "room",
            json!({"hard": {"requests.cpu": "8", "pods": "10"}, "used": {"requests.cpu": "2"}}),
        ),
        (
            "never",
            json!({"hard": {"requests.cpu": "4"}, "used": {"requests.cpu": "0"}}),
        ),
        (
            "later",
            json!({"hard": {"requests.memory": "16Gi"}, "used": {"requests.memory": "8Gi"}}),
        ),
        (
            "gpus",
            json!({"hard": {"requests.nvidia.com/gpu": "2"}, "used": {}}),
        ),
        (
            "pods",
            json!({"hard": {"pods": "2"}, "used": {"pods": "0"}}),
        ),
        ("unsaid", json!({"hard": {"limits.cpu": "100"}, "used": {}})),
        (
            "jobs",
            json!({"hard": {"count/jobs.batch": "5"}, "used": {"count/jobs.batch": "5"}}),
        ),
        (
            "secrets",
            json!({"hard": {"secrets": "10"}, "used": {"secrets": "9"}}),
        ),
        (
            "of others",
            json!({"hard": {"pods": "0"}, "used": {}, "spec": {"scopes": ["Terminating"]}}),
        ),
        (
            "of these",
            json!({"hard": {"pods": "0"}, "used": {}, "spec": {"scopes": ["NotBestEffort"]}}),
        ),
        (
            "of a class",
            json!({"hard": {"pods": "0"}, "used": {}, "spec": {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}}}),
        ),
    ];
    let lines = table
        .map(|(name, quota)| format!("{name}: {}", findings(&two, &quotas(quota)).join(" | ")));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    room: 
    never: no: the quota "compute" allows 4 of requests.cpu in total, and the run needs 6; request less requests.cpu, or have the quota raised
    later: warning: the quota "compute" leaves 8Gi of requests.memory (8Gi of 16Gi are used), and the run needs 12Gi; some of its tasks wait until others finish; or request less requests.memory
    gpus: no: the quota "compute" allows 2 of requests.nvidia.com/gpu in total, and the run needs 3; request less requests.nvidia.com/gpu, or have the quota raised
    pods: no: the quota "compute" allows 2 of pods in total, and the run needs 3; run fewer tasks, or have the quota raised
    unsaid: no: the quota "compute" requires each container to specify limits.cpu; not specified for main; set `cpu` and `memory`; for init containers the namespace needs a LimitRange with defaults
    jobs: no: the quota "compute" leaves 0 of count/jobs.batch (5 of 5 are used), and the run needs 1; delete jobs.batch that are not needed, or have the quota raised
    secrets: no: the quota "compute" leaves 1 of secrets (9 of 10 are used), and the run needs 2; delete secrets that are not needed, or have the quota raised
    of others: 
    of these: no: the quota "compute" allows 0 of pods in total, and the run needs 3; run fewer tasks, or have the quota raised
    of a class:
    "#);
}

#[test]
fn limit_ranges() {
    let table = [
        (
            "within",
            json!({"limits": {"memory": "1Gi"}}),
            json!({"type": "Container", "max": {"memory": "2Gi"}}),
        ),
        (
            "above",
            json!({"limits": {"memory": "4Gi"}}),
            json!({"type": "Container", "max": {"memory": "2Gi"}}),
        ),
        (
            "unsaid",
            json!({}),
            json!({"type": "Container", "max": {"memory": "2Gi"}}),
        ),
        (
            "filled in",
            json!({}),
            json!({"type": "Container", "max": {"memory": "2Gi"}, "default": {"memory": "1Gi"}}),
        ),
        (
            "below",
            json!({"requests": {"cpu": "10m"}}),
            json!({"type": "Pod", "min": {"cpu": "100m"}}),
        ),
        (
            "ratio",
            json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "4Gi"}}),
            json!({"type": "Container", "maxLimitRequestRatio": {"memory": "2", "cpu": "4"}}),
        ),
        (
            "of claims",
            json!({}),
            json!({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}),
        ),
    ];
    let lines = table.map(|(name, resources, item)| {
        let state = ClusterState {
            limit_ranges: Some(ranges(item)),
            ..ClusterState::default()
        };
        format!(
            "{name}: {}",
            findings(&needs(resources, 2), &state).join(" | ")
        )
    });
    insta::assert_snapshot!(lines.join("\n"), @r#"
    within: 
    above: no: worker: the LimitRange "bounds" rejects its pods: a limit of 4Gi of memory is more than the 2Gi allowed for a container; set `cpu` and `memory` within these bounds, or have the LimitRange changed
    unsaid: no: worker: the LimitRange "bounds" rejects its pods: no limit of memory is set, and 2Gi is the most allowed for a container; set `cpu` and `memory` within these bounds, or have the LimitRange changed
    filled in: 
    below: no: worker: the LimitRange "bounds" rejects its pods: a request of 10m of cpu is less than the 100m needed for a pod; set `cpu` and `memory` within these bounds, or have the LimitRange changed
    ratio: no: worker: the LimitRange "bounds" rejects its pods: a limit of memory that is 4.0 times the request is more than the 2 times allowed for a container; set `cpu` and `memory` within these bounds, or have the LimitRange changed | no: worker: the LimitRange "bounds" rejects its pods: a request and a limit of cpu must be set, the limit at most 4 times the request for a container; set `cpu` and `memory` within these bounds, or have the LimitRange changed
    of claims:
    "#);
}

#[test]
fn defaults_are_counted_by_quotas() {
    let state = ClusterState {
        limit_ranges: Some(ranges(
            json!({"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}),
        )),
        ..quotas(json!({"hard": {"requests.cpu": "2", "limits.cpu": "9"}, "used": {}}))
    };
    insta::assert_snapshot!(findings(&needs(json!({}), 3), &state).join("\n"), @r#"no: the quota "compute" allows 2 of requests.cpu in total, and the run needs 3; request less requests.cpu, or have the quota raised"#);
}

#[test]
fn quotas_count_the_pod_of_the_webhook() {
    let flags = Flags {
        roles: vec!["main=2".into()],
        command: vec!["true".into()],
        run: RunOptions {
            webhook: Some("http://hooks.example/".into()),
            launcher_image: Some("registry.example/longshore:1".into()),
            ..RunOptions::default()
        },
        ..Flags::default()
    };
    let spec = config::resolve(&Settings::default(), &flags, "demo").unwrap();
    let run = RunName::new("demo", "ab2cd");
    let plan = plan::plan(&spec, &run, "team", None).unwrap();
    let needs = Needs::of(&plan).unwrap();
    let found = |hard: Value| findings(&needs, &quotas(json!({"hard": hard, "used": {}})));
    assert_eq!(
        found(json!({"pods": "2"})),
        [
            "no: the quota \"compute\" allows 2 of pods in total, and the run needs 3; run fewer tasks, or have the quota raised"
        ]
    );
    assert_eq!(found(json!({"pods": "3"})), [""; 0]);
    // The notifier does not use capacity of the tasks.
    let notifier = fit::requests(&needs.notifier.unwrap().spec);
    assert_eq!(
        notifier,
        [("cpu".to_owned(), 0.0), ("memory".to_owned(), 0.0)].into()
    );
}

#[test]
fn nodes_that_could_run_a_task() {
    let gpu = needs(json!({"limits": {"nvidia.com/gpu": 2}}), 1);
    let small = json!({"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "4", "nvidia.com/gpu": "1"}}});
    let mut managed = small.clone();
    managed["metadata"]["labels"] = json!({"karpenter.sh/nodepool": "default"});
    let table = [
        ("too small", nodes(json!([small]), false)),
        ("may grow", nodes(json!([managed]), false)),
        ("seen in part", nodes(json!([small]), true)),
        ("none", nodes(json!([]), false)),
        ("not to be listed", ClusterState::default()),
    ];
    let lines =
        table.map(|(name, state)| format!("{name}: {}", findings(&gpu, &state).join(" | ")));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    too small: no: worker: it fits on no node: it requests 2 of nvidia.com/gpu, and the largest node, a, has 1; request at most 1 of nvidia.com/gpu, or add a larger node
    may grow: warning: worker: it fits on no node: it requests 2 of nvidia.com/gpu, and the largest node, a, has 1; request at most 1 of nvidia.com/gpu, or add a larger node; its tasks stay pending until the cluster adds a node that fits
    seen in part: warning: worker: it fits on no node: it requests 2 of nvidia.com/gpu, and the largest node, a, has 1; request at most 1 of nvidia.com/gpu, or add a larger node; its tasks stay pending until the cluster adds a node that fits
    none: 
    not to be listed: warning: cannot check whether a node has nvidia.com/gpu for "worker": no permission to list nodes; if its tasks stay pending, `longshore why` shows the cause
    "#);
}

#[test]
fn missing_references() {
    let spec = json!({
        "serviceAccountName": "trainer",
        "imagePullSecrets": [{"name": "registry"}],
        "volumes": [
            {"name": "a", "secret": {"secretName": "keys", "items": [{"key": "token", "path": "t"}]}},
            {"name": "b", "configMap": {"name": "settings", "optional": true}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "d", "projected": {"sources": [{"configMap": {"name": "more"}}, {"secret": {"name": "other"}}]}},
        ],
        "containers": [{
            "name": "main",
            "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "user"}}},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y", "optional": true}}},
                {"name": "C", "value": "plain"},
            ],
            "envFrom": [
                {"configMapRef": {"name": "settings"}},
                {"configMapRef": {"name": "kube-root-ca.crt"}},
            ],
        }],
    });
    let pod: PodSpec = serde_json::from_value(spec.clone()).unwrap();
    let found = references::of(&pod);
    let names: Vec<String> = found
        .iter()
        .map(|known| format!("{}/{} {:?}", known.what.kind(), known.name, known.keys))
        .collect();
    insta::assert_snapshot!(names.join("\n"), @r#"
    Secret/keys {"token", "user"}
    Secret/other {}
    Secret/registry {}
    ConfigMap/more {}
    ConfigMap/settings {}
    PersistentVolumeClaim/data {}
    ServiceAccount/trainer {}
    "#);
    let references = found.into_iter().map(|reference| {
        let found = match (reference.what, reference.name.as_str()) {
            (What::Secret, "keys") => Found::There(["token".to_owned()].into()),
            (_, "other") => Found::Unseen,
            _ => Found::Missing,
        };
        (reference, found)
    });
    let state = ClusterState {
        references: references.collect(),
        ..ClusterState::default()
    };
    insta::assert_snapshot!(findings(&of_spec(spec, 1), &state).join("\n"), @r#"
    no: the Secret "keys" has no key "user", which the tasks refer to; add the key "user" to the Secret, or correct the name of the key
    no: the ConfigMap "more" is missing, which the tasks refer to; create it with `kubectl create configmap more …`, or correct its name
    no: the ConfigMap "settings" is missing, which the tasks refer to; create it with `kubectl create configmap settings …`, or correct its name
    no: the PersistentVolumeClaim "data" is missing, which the tasks refer to; create the claim, or correct its name
    no: the ServiceAccount "trainer" is missing, which the tasks refer to; create it with `kubectl create serviceaccount trainer`, or correct `service_account`
    warning: the Secret "registry" is missing, which the tasks refer to; create it with `kubectl create secret docker-registry registry …`, or correct its name
    "#);
}

#[test]
fn the_requirements_of_a_plan() {
    let flags = Flags {
        roles: vec!["chief=1".into(), "worker=4".into()],
        cpu: Some("2".into()),
        gpu: Some("1".into()),
        command: vec!["true".into()],
        ..Flags::default()
    };
    let spec = config::resolve(&Settings::default(), &flags, "demo").unwrap();
    let run = RunName::new("demo", "ab2cd");
    let plan = plan::plan(&spec, &run, "team", None).unwrap();
    let needs = Needs::of(&plan).unwrap();
    assert_eq!(needs.pods(), 5.0);
    assert_eq!(needs.requests()["cpu"], 10.0);
    assert_eq!(needs.requests()["nvidia.com/gpu"], 5.0);
    assert_eq!(needs.objects["jobs.batch"], 2.0);
    assert_eq!(needs.objects["services"], 1.0);
    // Objects that the plan creates are not missing.
    assert_eq!(needs.references, []);
}

#[test]
fn an_invalid_port_does_not_hide_the_requirements() {
    let flags = Flags {
        cpu: Some("2".into()),
        command: vec!["true".into()],
        ..Flags::default()
    };
    let spec = config::resolve(&Settings::default(), &flags, "demo").unwrap();
    let mut plan = plan::plan(&spec, &RunName::new("demo", "ab2cd"), "team", None).unwrap();
    let template = &mut plan.roles[0].job.spec.as_mut().unwrap().template;
    let container = &mut template.spec.as_mut().unwrap().containers[0];
    container.ports = Some(vec![ContainerPort {
        container_port: 70_000,
        ..ContainerPort::default()
    }]);
    let needs = Needs::of(&plan).unwrap();
    assert_eq!(needs.requests()["cpu"], 2.0);
}

#[test]
fn a_sweep_needs_room_for_one_task_and_a_newer_server() {
    let flags = Flags {
        cpu: Some("2".into()),
        command: vec!["true".into()],
        run: crate::RunOptions {
            sweep: vec!["n=1..100".parse().unwrap()],
            ..crate::RunOptions::default()
        },
        ..Flags::default()
    };
    let spec = config::resolve(&Settings::default(), &flags, "demo").unwrap();
    let plan = plan::plan(&spec, &RunName::new("demo", "ab2cd"), "team", None).unwrap();
    let needs = Needs::of(&plan).unwrap();
    assert_eq!((needs.pods(), needs.requests()["cpu"]), (1.0, 2.0));
    let version = |minor| {
        let mut report = Report::default();
        let version = super::ServerVersion { major: 1, minor };
        super::server::check(Some(version), needs.counts_failures, &mut report);
        let refusals = report.refusals.iter().map(ToString::to_string);
        refusals.collect::<Vec<_>>()
    };
    assert_eq!(
        version(28),
        [
            "the cluster runs Kubernetes 1.28, which has no backoff limits per index, which a sweep needs; use a cluster of version 1.29 or newer"
        ]
    );
    assert!(version(29).is_empty());
}
