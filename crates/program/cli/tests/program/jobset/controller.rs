//! A stand-in for JobSet's controller, with the behaviour that a run depends on.
//! `tests/real/queues` tests with the real one.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use longshore::client::{
    Cluster, DeleteOptions, Error, Item, Patch, Propagation, View,
    kinds::{Any, Job},
};
use serde_json::{Value, json};

/// The label with the number of restarts.
const RESTARTS: &str = "jobset.sigs.k8s.io/restart-attempt";

/// The CustomResourceDefinition, with a minimal schema.
pub(super) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "jobsets.jobset.x-k8s.io"},
        "spec": {
            "group": "jobset.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "JobSet", "plural": "jobsets", "singular": "jobset"},
            "versions": [{
                "name": "v1alpha2", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

/// Reconciles until the process ends.
#[expect(clippy::print_stderr, reason = "a test that fails shows it")]
pub(super) fn start(kubeconfig: PathBuf) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let cluster = Cluster::from_kubeconfig(Some(&kubeconfig), None).await;
            let cluster = cluster.unwrap();
            loop {
                match reconcile_all(&cluster).await {
                    // The cluster stops before the thread does.
                    Err(error) if error.is_unreachable() => break,
                    // As in every controller, failed work is retried.
                    Err(error) => eprintln!("JobSet's stand-in: {error}"),
                    Ok(()) => {}
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    });
}

async fn reconcile_all(cluster: &Cluster) -> Result<(), Error> {
    let sets = cluster
        .kind_in("jobset.x-k8s.io/v1alpha2", "JobSet")
        .await?;
    for set in sets.in_namespace("default")?.list().await?.items {
        reconcile(cluster, &set).await?;
    }
    Ok(())
}

async fn reconcile(cluster: &Cluster, set: &Item<Any>) -> Result<(), Error> {
    let object = set.raw()?;
    let spec = &object["spec"];
    let jobs = cluster.jobs().in_namespace("default")?;
    let status = &object["status"];
    let restarts = status["restarts"].as_i64().unwrap_or(0);
    let mut found = Vec::new();
    for replicated in spec["replicatedJobs"].as_array().unwrap() {
        let role = replicated["name"].as_str().unwrap();
        let name = format!("{}-{role}-0", set.name());
        let current = jobs.find(&name).await?;
        let is_old = |job: &Item<Job>| {
            job.meta().labels.get(RESTARTS).map(String::as_str) != Some(&*restarts.to_string())
        };
        match current {
            // A Job of the previous attempt. It is created again after its deletion.
            Some(job) if is_old(&job) && job.meta().deletion_timestamp.is_some() => {}
            Some(job) if is_old(&job) => {
                let options = DeleteOptions {
                    propagation: Some(Propagation::Foreground),
                    ..DeleteOptions::default()
                };
                job.delete(&options).await?;
            }
            Some(job) => found.push((role.to_owned(), job)),
            None if status["terminalState"].is_null() => {
                let new = job(set, replicated, &name, spec, restarts);
                jobs.create(&new).await?;
            }
            None => {}
        }
    }
    if found.is_empty() {
        return service(cluster, set, spec).await;
    }
    let suspend = spec["suspend"].as_bool().unwrap_or_default();
    let mut active = Vec::new();
    let (mut succeeded, mut failed, mut counts) = (BTreeSet::new(), false, true);
    for (role, job) in &found {
        let conditions: Vec<Value> = job.status_field(&["conditions"]).unwrap_or_default();
        let is = |kind: &str| {
            let mut all = conditions.iter();
            all.any(|one| one["type"] == kind && one["status"] == "True")
        };
        if is("Complete") {
            succeeded.insert(role.as_str());
        } else if is("Failed") {
            failed = true;
            let rules = spec["failurePolicy"]["rules"].to_string();
            let ignores = rules.contains("RestartJobSetAndIgnoreMaxRestarts");
            let mut all = conditions.iter();
            counts = !ignores || !all.any(|one| one["reason"] == "PodFailurePolicy");
        } else {
            active.push(job);
        }
    }
    let counted = status["restartsCountTowardsMax"].as_i64().unwrap_or(0);
    let most = spec["failurePolicy"]["maxRestarts"].as_i64().unwrap_or(0);
    if failed && (!counts || counted < most) {
        let status = json!({"status": {
            "restarts": restarts + 1, "restartsCountTowardsMax": counted + i64::from(counts),
        }});
        return set.patch_status(&Patch::merge(status)).await.map(drop);
    }
    let targets = spec["successPolicy"]["targetReplicatedJobs"].as_array();
    let mut targets = targets.unwrap().iter();
    if failed || targets.all(|role| succeeded.contains(role.as_str().unwrap())) {
        end(set, &active, failed).await
    } else {
        set_suspended(&jobs, &active, suspend).await
    }
}

/// Deletes what is left of a finished set.
async fn end(set: &Item<Any>, active: &[&Item<Job>], failed: bool) -> Result<(), Error> {
    let kind = if failed { "Failed" } else { "Completed" };
    let status = json!({"status": {"terminalState": kind}});
    set.patch_status(&Patch::merge(status)).await?;
    for job in active {
        job.delete(&DeleteOptions::background()).await?;
    }
    Ok(())
}

/// Suspends or resumes the Jobs of the set like the set itself.
async fn set_suspended(
    jobs: &View<Job>,
    active: &[&Item<Job>],
    suspend: bool,
) -> Result<(), Error> {
    for job in active {
        if job.field::<bool>(&["spec", "suspend"])?.unwrap_or_default() != suspend {
            let patch = Patch::merge(json!({"spec": {"suspend": suspend}}));
            jobs.patch(job.name(), &patch).await?;
        }
    }
    Ok(())
}

fn owner(set: &Item<Any>) -> Value {
    json!([{
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "name": set.name(), "uid": set.uid(), "controller": true,
    }])
}

fn job(set: &Item<Any>, replicated: &Value, name: &str, spec: &Value, restarts: i64) -> Value {
    let mut job = replicated["template"].clone();
    job["metadata"]["name"] = json!(name);
    job["metadata"]["ownerReferences"] = owner(set);
    job["spec"]["suspend"] = json!(spec["suspend"].as_bool().unwrap_or_default());
    job["spec"]["template"]["spec"]["subdomain"] = spec["network"]["subdomain"].clone();
    for meta in ["/metadata", "/spec/template/metadata"] {
        let labels = &mut job.pointer_mut(meta).unwrap()["labels"];
        labels["jobset.sigs.k8s.io/jobset-name"] = json!(set.name());
        labels[RESTARTS] = json!(restarts.to_string());
    }
    job
}

async fn service(cluster: &Cluster, set: &Item<Any>, spec: &Value) -> Result<(), Error> {
    let services = cluster.services().in_namespace("default")?;
    let name = spec["network"]["subdomain"].as_str().unwrap();
    if services.find(name).await?.is_some() {
        return Ok(());
    }
    let service = json!({
        "metadata": {"name": name, "ownerReferences": owner(set)},
        "spec": {
            "clusterIP": "None", "publishNotReadyAddresses": true,
            "selector": {"jobset.sigs.k8s.io/jobset-name": set.name()},
        },
    });
    services.create(&service).await.map(drop)
}
