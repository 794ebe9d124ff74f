//! Jobs and related objects: sweeps, restarts, JobSets, schedules, webhooks.

use super::*;

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
    // With the user's account and Secret, only the Job is created.
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
