//! Snapshots of plans, and the rules that snapshots do not show.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use bytes::Bytes;
use longshore_diagnosis::names;
use serde_json::{Value, json};

use super::*;
use crate::{
    config::{Flags, Settings, resolve},
    pod::{self, PodConfig},
    store::{Delivery, SignedUrl},
};

fn bundle(delivery: Delivery) -> BundleInfo {
    BundleInfo {
        sha256: "0123456789abcdef".repeat(4),
        size: 3,
        delivery,
    }
}

fn planned(settings: &str, command: &[&str], bundle: Option<&BundleInfo>) -> Plan {
    let settings = Settings::parse(settings, Path::new("longshore.toml")).unwrap();
    let flags = Flags {
        command: command.iter().map(ToString::to_string).collect(),
        ..Flags::default()
    };
    let spec = resolve(&settings, &flags, "code").unwrap();
    plan(&spec, &RunName::new(&spec.name, "ab2cd"), "default", bundle).unwrap()
}

fn config(plan: &Plan) -> PodConfig {
    let data = plan.config.data.as_ref().unwrap();
    serde_json::from_slice(&data[pod::FILE].0).unwrap()
}

/// The Job of a role, as JSON.
fn job(plan: &Plan, index: usize) -> Value {
    serde_json::to_value(&plan.roles[index].job).unwrap()
}

/// The spec of the pods of the first role, as JSON.
fn pod_spec(plan: &Plan) -> Value {
    job(plan, 0)["spec"]["template"]["spec"].take()
}

#[test]
fn one_task() {
    let bundle = bundle(Delivery::Secret(Bytes::from_static(b"tgz")));
    let plan = planned("", &["python", "train.py"], Some(&bundle));
    insta::assert_snapshot!(plan.to_yaml().unwrap());
    assert_eq!(config(&plan).roles[0].tasks, ["localhost:8470"]);
}

#[test]
fn roles_with_everything() {
    let bundle = bundle(Delivery::Folder {
        root: "/srv/bundles".into(),
    });
    let plan = planned(
        "name = 'My Model'\nimage = 'trainer:1'\nlauncher_image = 'longshore:1'\n\
         image_pull_policy = 'Never'\nimage_pull_secrets = ['registry']\nservice_account = 'trainer'\n\
         port = 2222\nretries = 2\ntimeout = '2h'\nttl = '7d'\n\
         [env]\nSECRET = 'hunter2'\n[labels]\nteam = 'a'\n'longshore.dev/run' = 'stolen'\n[annotations]\nnote = 'x y'\n\
         [roles.worker]\ncount = 2\nresources = { cpu = 2, memory = '4Gi', gpu = 1 }\nnode_selector = { pool = 'gpu' }\n\
         [roles.ps]\ncommand = ['python', 'serve.py']\n",
        &["python", "train.py"],
        Some(&bundle),
    );
    insta::assert_snapshot!(plan.to_yaml().unwrap());
    let config = config(&plan);
    assert_eq!(
        config.roles[0].tasks,
        ["my-model-ab2cd-ps-0.my-model-ab2cd:2222"]
    );
    assert_eq!(
        config.roles[1].tasks,
        [
            "my-model-ab2cd-worker-0.my-model-ab2cd:2223",
            "my-model-ab2cd-worker-1.my-model-ab2cd:2224"
        ]
    );
    assert_eq!(
        config.bundle.unwrap().file,
        format!("bundles/{}.tar.gz", bundle.sha256)
    );
    assert!(
        !plan.to_yaml().unwrap().contains("hunter2"),
        "values of variables stay in the Secret"
    );
}

#[test]
fn a_webhook_has_a_pod_that_may_only_read() {
    let plan = planned(
        "webhook = 'https://user:hush@runs.example/'\nwebhook_on = ['failed']\nrestricted = true\nlabels = {team = 'x'}",
        &["train"],
        None,
    );
    let kinds: Vec<&str> = plan.notifier.iter().map(|object| object.kind()).collect();
    assert_eq!(
        kinds,
        ["Secret", "ServiceAccount", "Role", "RoleBinding", "Job"]
    );
    let [note] = &plan.notes[..] else {
        panic!("{:?}", plan.notes)
    };
    assert!(
        note.contains("runs.example") && !note.contains("hush"),
        "{note}"
    );
    // The URL is only in the Secret.
    let others = serde_json::to_string(&plan.notifier[1..]).unwrap();
    assert!(!others.contains("hush"), "{others}");
    let rules = serde_json::to_value(&plan.notifier[2]).unwrap()["rules"].clone();
    let verbs = rules
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|rule| rule["verbs"].as_array().unwrap());
    assert!(
        verbs
            .into_iter()
            .all(|verb| ["get", "list", "watch"].contains(&verb.as_str().unwrap()))
    );
    assert!(!rules.to_string().contains("secrets"), "{rules}");
    let job = serde_json::to_value(&plan.notifier[4]).unwrap();
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    assert_eq!(
        *labels,
        serde_json::json!({"team": "x", "longshore.dev/notifies": "code-ab2cd"})
    );
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let command = pod["containers"][0]["command"].to_string();
    assert!(command.contains("\"--on\",\"failed\""), "{command}");
    // With an account and a Secret of the user, nothing but the Job is created.
    let plan = planned(
        "webhook = 'secret:team/hook'\nwebhook_account = 'notifier'",
        &["train"],
        None,
    );
    assert!(plan.notes.is_empty());
    let [job] = &plan.notifier[..] else {
        panic!("{:?}", plan.notifier)
    };
    let job = serde_json::to_value(job).unwrap();
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "notifier");
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "team");
    assert_eq!(pod["volumes"][0]["secret"]["items"][0]["key"], "hook");
}

#[test]
fn a_sweep_is_one_job_whose_tasks_are_independent() {
    let plan = planned(
        "retries = 2\nparallel = 3\nmax_failed = 1\nmetrics = ['loss']\n\
         [sweep]\nlr = [0.1, 0.01]\nkey = ['secret-a', 'secret-b']",
        &["train", "--lr={lr}"],
        None,
    );
    assert_eq!(plan.service, None);
    let mut job = job(&plan, 0);
    let text = job.to_string();
    assert!(!text.contains("secret-a"), "values are only in the Secret");
    assert_eq!(
        job["metadata"]["labels"]["longshore.dev/sweep"],
        "code-ab2cd"
    );
    let spec = &mut job["spec"];
    let command = spec["template"]["spec"].take()["containers"][0]["command"].take();
    assert_eq!(
        command,
        json!(["longshore", "bootstrap", "exec", "--", "train", "--lr={lr}"])
    );
    spec["template"].take();
    assert_eq!(
        *spec,
        json!({
            "completions": 4, "parallelism": 3, "completionMode": "Indexed",
            "backoffLimitPerIndex": 2, "maxFailedIndexes": 1, "template": null,
            "podFailurePolicy": {"rules": [
                {"action": "Ignore", "onPodConditions": [
                    {"type": "DisruptionTarget", "status": "True"},
                ]},
            ]},
        })
    );
    let config = config(&plan);
    assert_eq!(config.roles[0].tasks, ["localhost:8470"]);
    let sweep = config.sweep.unwrap();
    let third: Vec<_> = sweep.combination(2).unwrap().collect();
    assert_eq!(third, [("lr", "0.01"), ("key", "secret-a")]);
    assert!(sweep.combination(4).is_none());
}

#[test]
fn restarts_of_the_whole_run_are_counted_over_its_tasks() {
    let text = "retries = 3\nrestart = 'run'\nno_retry_exit_codes = [2]\nstart_timeout = '90s'\n\
         [roles.worker]\ncount = 2\ntermination_grace = '5s'";
    let plan = planned(text, &["train"], None);
    let job = job(&plan, 0);
    let spec = &job["spec"];
    assert_eq!(
        [
            &spec["backoffLimit"],
            &spec["backoffLimitPerIndex"],
            &spec["maxFailedIndexes"]
        ],
        [3, 3, 0]
    );
    let rule = json!({
        "action": "FailJob",
        "onExitCodes": {"containerName": "main", "operator": "In", "values": [2]},
    });
    assert_eq!(spec["podFailurePolicy"]["rules"][1], rule);
    assert_eq!(
        job["metadata"]["annotations"]["longshore.dev/restart"],
        "run"
    );
    let config = config(&plan);
    assert_eq!(config.roles[0].grace, 5);
    let together = config.restarts.together.unwrap();
    assert_eq!((together.port, together.timeout), (8472, 90));
    // The key is only in the Secret.
    let key = serde_json::to_value(&together.key).unwrap();
    assert!(!job.to_string().contains(key.as_str().unwrap()));
}

#[test]
fn a_jobset_restarts_the_whole_run_itself() {
    let text = "retries = 3\nrestart = 'run'\njobset = true\n[roles.worker]\ncount = 2";
    let plan = planned(text, &["train"], None);
    let set = serde_json::to_value(&plan.workloads()[0]).unwrap();
    let policy = json!({"maxRestarts": 3, "rules": [{
        "name": "disrupted", "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
    }]});
    assert_eq!(set["spec"]["failurePolicy"], policy);
    let job = job(&plan, 0);
    assert_eq!(job["spec"]["backoffLimit"], 0);
    assert_eq!(
        job["spec"]["podFailurePolicy"]["rules"][0]["action"],
        "FailJob"
    );
    assert_eq!(
        job["metadata"]["annotations"]["longshore.dev/max-restarts"],
        "3"
    );
    assert_eq!(config(&plan).restarts.together, None);
}

#[test]
fn a_signed_url_is_only_in_the_runs_secret() {
    let url = SignedUrl::new("https://h/b/x.tar.gz?sig=hush");
    let bundle = bundle(Delivery::Url(url.clone()));
    let plan = planned("", &["true"], Some(&bundle));
    let download = config(&plan).bundle.unwrap().download.unwrap();
    assert_eq!((download.url, download.size), (url, 3));
    assert!(plan.bundle.is_none());
    let pod = pod_spec(&plan);
    let names = |values: &Value| -> Vec<String> {
        let values = values.as_array().unwrap().iter();
        values.map(|value| value["name"].to_string()).collect()
    };
    assert_eq!(names(&pod["initContainers"]), ["\"fetch\""]);
    assert_eq!(names(&pod["volumes"]), ["\"longshore\"", "\"config\""]);
    let mounts = &pod["initContainers"][0]["volumeMounts"];
    assert_eq!(names(mounts), ["\"longshore\"", "\"config\""]);
    assert!(!plan.to_yaml().unwrap().contains("hush"));
    assert!(!format!("{bundle:?} {:?}", config(&plan)).contains("hush"));
}

#[test]
fn without_code_there_is_no_bundle_and_no_fetch_container() {
    let plan = planned("code = false", &["true"], None);
    assert!(plan.bundle.is_none());
    assert!(pod_spec(&plan).get("initContainers").is_none());
    assert!(plan.service.is_none());
}

#[test]
fn the_longest_names_still_fit_a_host_name() {
    let run = RunName::new(&"very-long-name".repeat(9), "ab2cd");
    let short = RunName::short(&"very-long-name".repeat(9), "ab2cd");
    let role = "r".repeat(16);
    let scheduled = short.job(&format!("{role}-29384920"));
    for (run, job) in [(&run, run.job(&role)), (&short, scheduled)] {
        let host = run.host(&job, 9_999);
        let label = host.split('.').next().unwrap();
        assert!(label.len() <= 63, "{label}");
        longshore_model::name::dns_label("host", label).unwrap();
    }
    // The maximum length of a CronJob name.
    assert!(short.job(&role).len() <= 52);
}

#[test]
fn pods_with_everything() {
    let folder = tempfile::tempdir().unwrap();
    let template = "metadata: {annotations: {side: 'on'}}\nspec:\n  runtimeClassName: nvidia\n  containers:\n  \
                    - name: main\n    securityContext: {runAsUser: 1000}\n  - name: side\n    image: proxy:1\n";
    std::fs::write(folder.path().join("pod.yaml"), template).unwrap();
    let settings = "queue = 'team-a'\npriority_class = 'low'\nshared_memory = '8Gi'\ntermination_grace = '2m'\n\
         node_selector = { pool = 'gpu' }\ntolerations = [{ key = 'nvidia.com/gpu' }]\n\
         env_from = [{ secret = 'tokens', prefix = 'TOKEN_' }]\ntemplate = 'pod.yaml'\n\
         [env]\nPLAIN = 1\nTOKEN = { secret = 'hub', key = 'token' }\nNODE = { field = 'spec.nodeName' }\nMODE = { config_map = 'modes' }\n\
         [[volumes]]\nclaim = 'datasets'\npath = '/data'\nread_only = true\n\
         [affinity.podAntiAffinity]\npreferredDuringSchedulingIgnoredDuringExecution = []\n\
         [roles.worker]\nnode_selector = { zone = 'b' }\npriority_class = 'high'\n\
         tolerations = [{ key = 'spot', value = 'yes', effect = 'NoExecute', seconds = 60 }]\nenv = { MODE = 'own' }\n\
         volumes = [{ empty = '10Gi', path = '/scratch' }, { host = '/mnt', path = '/data/' }]\n";
    let settings = Settings::parse(settings, &folder.path().join("longshore.toml")).unwrap();
    let flags = Flags {
        command: vec!["train".into()],
        ..Flags::default()
    };
    let spec = resolve(&settings, &flags, "code").unwrap();
    let plan = plan(&spec, &RunName::new("code", "ab2cd"), "default", None).unwrap();
    insta::assert_snapshot!(plan.to_yaml().unwrap());
}

#[test]
fn init_containers_request_no_more_than_the_command() {
    let settings = "launcher_image = 'longshore:1'\nresources = { cpu = '50m', memory = '100Mi' }";
    let plan = planned(settings, &["true"], None);
    let pod = pod_spec(&plan);
    let expected = json!({
        "requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "100Mi"},
    });
    assert_eq!(pod["initContainers"][0]["resources"], expected);
}

#[test]
fn restricted_pods() {
    let plan = planned("restricted = true", &["true"], None);
    let pod = pod_spec(&plan);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let main = &pod["containers"][0]["securityContext"];
    assert_eq!(main["allowPrivilegeEscalation"], false);
}

#[test]
fn pods_with_the_network_of_the_node() {
    let settings = "host_network = true\n[roles.worker]\ncount = 2\n\
                    [roles.logger]\nhost_network = false";
    let plan = planned(settings, &["true"], None);
    let network = |role: &str| {
        let planned = plan.roles.iter().find(|planned| planned.role.name == role);
        let spec = planned.unwrap().job.spec.clone().unwrap();
        let pod = spec.template.spec.unwrap();
        (pod.host_network, pod.dns_policy)
    };
    let of_cluster = "ClusterFirstWithHostNet".to_owned();
    assert_eq!(network("worker"), (Some(true), Some(of_cluster)));
    assert_eq!(network("logger"), (None, None));
}

#[test]
fn invalid_templates() {
    let refused = |template: &str| {
        let settings = format!("command = 'a'\n[template.{template}");
        let settings = Settings::parse(&settings, Path::new("longshore.toml")).unwrap();
        let spec = resolve(&settings, &Flags::default(), "code").unwrap();
        let run = RunName::new("code", "ab2cd");
        plan(&spec, &run, "default", None).unwrap_err().to_string()
    };
    assert_eq!(
        refused("spec]\nruntimeClas = 'a'"),
        "invalid pod template for role \"main\": unknown field \"spec.template.spec.runtimeClas\"; correct `template` or `affinity`"
    );
    assert!(
        refused("metadata.labels]\n'longshore.dev/run' = 'x'").contains("is reserved for the run")
    );
    // No field is lost on the way into the type of a Job.
    assert_eq!(
        refused("spec]\nrestartPolicyRules = 'a'\nactiveDeadlineSeconds = '1h'"),
        "invalid pod template for role \"main\": unknown field \"spec.template.spec.restartPolicyRules\"; correct `template` or `affinity`"
    );
    assert_eq!(
        refused("spec]\nactiveDeadlineSeconds = '1h'"),
        "invalid pod template for role \"main\": field \"spec.template.spec.activeDeadlineSeconds\" must be an integer in the range of the field, not \"1h\"; correct `template` or `affinity`"
    );
    let replaced = "spec]\ncontainers = [{ '$patch' = 'replace' }, { name = 'other' }]";
    assert!(refused(replaced).contains("the container \"main\" must stay"));
}

#[test]
fn every_field_of_a_template_is_kept() {
    let settings = "command = 'a'\n[template.spec]\nhostname = 'h'\noverhead = { cpu = 1 }\n\
                    [template.spec.os]\nname = 'linux'\n\
                    [affinity.nodeAffinity]\npreferredDuringSchedulingIgnoredDuringExecution = []";
    let plan = planned(settings, &["true"], None);
    let pod = pod_spec(&plan);
    assert_eq!(pod["hostname"], "h");
    assert_eq!(
        pod["overhead"],
        json!({"cpu": "1"}),
        "a quantity is a string"
    );
    assert_eq!(pod["os"], json!({"name": "linux"}));
    let none = json!({"preferredDuringSchedulingIgnoredDuringExecution": []});
    assert_eq!(pod["affinity"]["nodeAffinity"], none);
}

#[test]
fn numbers_that_do_not_fit_their_field_are_refused() {
    let settings = Settings::parse("command = 'a'\nretries = 3000000000", Path::new("a")).unwrap();
    let spec = resolve(&settings, &Flags::default(), "code").unwrap();
    let refused = plan(&spec, &RunName::new("code", "ab2cd"), "default", None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "invalid retries 3000000000: use at most 2147483647"
    );
}

#[test]
fn the_roles_of_a_plan_are_those_of_its_annotation() {
    let settings = "queue = 'team-a'\n[roles.worker]\ncount = 2\n[roles.ps]\ncommand = ['serve']";
    let plan = planned(settings, &["train"], None);
    let roles: Vec<RunRole> = plan.roles.iter().map(|role| role.role.clone()).collect();
    let role = |name: &str, count, service| RunRole {
        name: name.to_owned(),
        count,
        service,
    };
    assert_eq!(roles, [role("ps", 1, true), role("worker", 2, false)]);
    let job = job(&plan, 1);
    let written = job["metadata"]["annotations"][names::ROLES].as_str();
    let written: Vec<RunRole> = serde_json::from_str(written.unwrap()).unwrap();
    assert_eq!(written, roles);
    assert_eq!(job["metadata"]["labels"][names::QUEUE], "team-a");
    assert_eq!(plan.queue.as_deref(), Some("team-a"));
}

#[test]
fn a_jobset_contains_the_jobs() {
    let settings = "queue = 'team-a'\nttl = '1h'\n[roles.worker]\ncount = 2\n[roles.ps]\ncommand = ['serve']\n";
    let workloads = |option: &str| {
        let plan = planned(&format!("{option}\n{settings}"), &["train"], None);
        let objects = plan.workloads();
        let job = job(&plan, 0);
        (serde_json::to_value(objects).unwrap(), job)
    };
    let (set, job) = workloads("jobset = true");
    let set = &set[0];
    assert_eq!(set["apiVersion"], "jobset.x-k8s.io/v1alpha2");
    assert_eq!(set["kind"], "JobSet");
    assert_eq!(set["metadata"]["name"], "code-ab2cd");
    assert_eq!(set["metadata"]["labels"].get(names::ROLE), None);
    let spec = &set["spec"];
    assert_eq!(spec["suspend"], true);
    assert_eq!(spec["ttlSecondsAfterFinished"], 3600);
    assert_eq!(
        spec["network"],
        json!({
            "enableDNSHostnames": true, "subdomain": "code-ab2cd",
            "publishNotReadyAddresses": true,
        })
    );
    assert_eq!(
        spec["successPolicy"],
        json!({"operator": "All", "targetReplicatedJobs": ["worker"]})
    );
    assert_eq!(spec["failurePolicy"], json!({"maxRestarts": 0}));
    let first = &spec["replicatedJobs"][0];
    assert_eq!(
        (&first["name"], &first["replicas"]),
        (&json!("ps"), &json!(1))
    );
    let template = &first["template"];
    assert_eq!(
        template["metadata"]["annotations"],
        job["metadata"]["annotations"]
    );
    assert_eq!(template["spec"]["template"], job["spec"]["template"]);
    assert_eq!(template["spec"].get("suspend"), None);
    assert_eq!(template["spec"].get("ttlSecondsAfterFinished"), None);
}

#[test]
fn a_cronjob_contains_the_job() {
    let settings = "cron = '0 3 * * *'\ntime_zone = 'UTC'\nttl = '1h'";
    let plan = planned(settings, &["train"], None);
    let job = job(&plan, 0);
    let objects = serde_json::to_value(plan.workloads()).unwrap();
    let expected = json!([{
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": job["metadata"],
        "spec": {
            "schedule": "0 3 * * *",
            "timeZone": "UTC",
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {
                "metadata": {
                    "labels": job["metadata"]["labels"],
                    "annotations": job["metadata"]["annotations"],
                },
                "spec": job["spec"],
            },
        },
    }]);
    assert_eq!(objects, expected);
}

#[test]
fn the_command_is_escaped_where_kubernetes_would_expand_it() {
    let plan = planned("", &["sh", "-c", "echo $$ $(HOME) $HOME", ""], None);
    let command = &pod_spec(&plan)["containers"][0]["command"];
    let words: Vec<&str> = command
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(words[4..], ["sh", "-c", "echo $$$ $$(HOME) $HOME", ""]);
    // The human-readable name is unchanged.
    let shown = &job(&plan, 0)["metadata"]["annotations"][names::COMMAND];
    assert_eq!(shown, r#"["sh","-c","echo $$ $(HOME) $HOME",""]"#);
}

#[test]
fn standard_input_belongs_to_the_main_container() {
    let with = |input| {
        let flags = Flags {
            input,
            command: vec!["cat".into()],
            ..Flags::default()
        };
        let spec = resolve(&Settings::default(), &flags, "code").unwrap();
        let plan = plan(&spec, &RunName::new("code", "ab2cd"), "default", None).unwrap();
        let main = pod_spec(&plan)["containers"][0].take();
        ["stdin", "stdinOnce", "tty"].map(|field| main[field] == true)
    };
    use crate::config::Input;
    assert_eq!(with(Input::None), [false, false, false]);
    assert_eq!(with(Input::Piped), [true, true, false]);
    assert_eq!(with(Input::Terminal), [true, false, true]);
}

#[test]
fn tasks_on_the_embedded_cluster_fetch_their_code_themselves() {
    let planned = |settings: &str, change: fn(&mut crate::RunSpec)| {
        let settings = Settings::parse(settings, Path::new("longshore.toml")).unwrap();
        let flags = Flags {
            command: vec!["train".to_owned()],
            ..Flags::default()
        };
        let mut spec = resolve(&settings, &flags, "code").unwrap();
        spec.caller = Some(crate::Caller::default());
        change(&mut spec);
        let root = "/store".into();
        let bundle = bundle(Delivery::Folder { root });
        let plan = plan(
            &spec,
            &RunName::new("code", "ab2cd"),
            "default",
            Some(&bundle),
        )
        .unwrap();
        let pod = pod_spec(&plan);
        let inits = pod["initContainers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let inits: Vec<String> = inits
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect();
        let main = pod["containers"][0].clone();
        let mounts = main["volumeMounts"].as_array().unwrap();
        let has_bundle = mounts
            .iter()
            .any(|mount| mount["mountPath"] == names::BUNDLE_DIR);
        (inits, main["command"].clone(), has_bundle)
    };
    let (inits, command, has_bundle) = planned("", |_| {});
    assert!(inits.is_empty() && has_bundle);
    assert_eq!(
        command,
        json!(["longshore", "bootstrap", "exec", "--fetch", "--", "train"])
    );
    let template = "[template.spec]\ninitContainers = [{ name = 'check', image = 'i' }]";
    let (inits, command, has_bundle) = planned(template, |_| {});
    assert_eq!(
        (inits, has_bundle),
        (vec!["check".to_owned(), "fetch".to_owned()], false)
    );
    assert_eq!(
        command,
        json!(["longshore", "bootstrap", "exec", "--", "train"])
    );
    let elsewhere: fn(&mut crate::RunSpec) = |spec| spec.caller = None;
    let (inits, _, has_bundle) = planned("", elsewhere);
    assert_eq!((inits, has_bundle), (vec!["fetch".to_owned()], false));
}

#[test]
fn the_callers_environment_is_recorded_in_an_annotation() {
    let settings = "[template.spec]\ncontainers = [{ name = 'main', env = [{ name = 'PATH', value = '/bin' }] }]\n\
                    [roles.a]\n[roles.b]\nresources = { gpu = 1 }";
    let settings = Settings::parse(settings, Path::new("longshore.toml")).unwrap();
    let flags = Flags {
        command: vec!["train".into()],
        ..Flags::default()
    };
    let mut spec = resolve(&settings, &flags, "code").unwrap();
    let env = ["PATH", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES"]
        .map(|name| (name.to_owned(), Some("x".to_owned())));
    spec.caller = Some(crate::Caller {
        env: env.into(),
        ..Default::default()
    });
    let plan = plan(&spec, &RunName::new("code", "ab2cd"), "default", None).unwrap();
    let recorded = |job: &Value| {
        job["metadata"]["annotations"][names::CALLER]
            .as_str()
            .map(str::to_owned)
    };
    assert_eq!(
        recorded(&job(&plan, 0)).unwrap(),
        r#"{"env":{"CUDA_VISIBLE_DEVICES":"x","VIRTUAL_ENV":"x"}}"#,
        "the template's PATH counts"
    );
    assert_eq!(
        recorded(&job(&plan, 1)).unwrap(),
        r#"{"env":{"VIRTUAL_ENV":"x"}}"#,
        "the node allocates the devices"
    );
    for job in [job(&plan, 0), job(&plan, 1)] {
        let template = &job["spec"]["template"];
        assert_eq!(recorded(template), recorded(&job));
        let env = template["spec"]["containers"][0]["env"].as_array().unwrap();
        let variable = env
            .iter()
            .find(|one| one["name"] == names::CALLER_VARIABLE)
            .unwrap();
        assert_eq!(
            variable["valueFrom"]["fieldRef"]["fieldPath"],
            "metadata.annotations['longshore.dev/caller']"
        );
    }
}

#[test]
fn tasks_of_dev_are_supervised() {
    let flags = Flags {
        command: vec!["python".to_owned(), "train.py".to_owned()],
        ..Flags::default()
    };
    let mut spec = resolve(&Settings::default(), &flags, "code").unwrap();
    spec.dev = Some(crate::dev::DevSpec {
        grace: std::time::Duration::from_millis(1_500),
        record: crate::dev::DevRecord {
            folder: "/home/me/app".to_owned(),
            ignore: vec!["*.tmp".to_owned()],
            grace_milliseconds: 1_500,
        },
    });
    let run = RunName::new(&spec.name, "ab2cd");
    let plan = plan(&spec, &run, "default", None).unwrap();
    let annotations = plan.roles[0].job.metadata.annotations.as_ref().unwrap();
    assert_eq!(
        annotations["longshore.dev/dev"],
        r#"{"folder":"/home/me/app","graceMilliseconds":1500,"ignore":["*.tmp"]}"#
    );
    let command = &pod_spec(&plan)["containers"][0]["command"];
    let expected = [
        "longshore",
        "bootstrap",
        "dev",
        "--grace",
        "1500",
        "--",
        "python",
        "train.py",
    ];
    assert_eq!(*command, json!(expected));
}
