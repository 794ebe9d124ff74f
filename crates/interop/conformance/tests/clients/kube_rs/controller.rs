//! A typical controller: it owns objects, has a finalizer, and requeues. Other clients
//! wait for its results.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ConfigMap, Secret},
};
use kube_client::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_core::{Resource, ResourceExt};
use kube_runtime::{
    Controller,
    controller::Action,
    finalizer::{Event, finalizer},
    wait::{await_condition, conditions, delete::delete_and_finalize},
    watcher,
};
use longshore_conformance::Server;
use serde_json::json;

use super::{api, client, config_map, in_time};

const FINALIZER: &str = "example.org/copies";

struct Context {
    client: Client,
    cleaned: AtomicUsize,
    reconciled: AtomicUsize,
}

/// Creates a Secret with a copy of the data for each ConfigMap of the test.
async fn reconcile(
    map: Arc<ConfigMap>,
    context: Arc<Context>,
) -> Result<Action, kube_runtime::finalizer::Error<kube_client::Error>> {
    context.reconciled.fetch_add(1, Ordering::Relaxed);
    let maps: Api<ConfigMap> = api(&context.client);
    finalizer(&maps, FINALIZER, map, async |event| match event {
        Event::Apply(map) => {
            let secrets: Api<Secret> = api(&context.client);
            let name = map.name_any();
            let owner = map.controller_owner_ref(&()).unwrap();
            let copy = Secret {
                metadata: kube_core::ObjectMeta {
                    name: Some(name.clone()),
                    owner_references: Some(vec![owner]),
                    ..Default::default()
                },
                string_data: map.data.clone(),
                ..Default::default()
            };
            match secrets.get_opt(&name).await? {
                None => {
                    secrets.create(&PostParams::default(), &copy).await?;
                }
                Some(_) => {
                    let params = PatchParams::default();
                    secrets.patch(&name, &params, &Patch::Merge(copy)).await?;
                }
            }
            Ok(Action::requeue(Duration::from_millis(300)))
        }
        Event::Cleanup(_) => {
            context.cleaned.fetch_add(1, Ordering::Relaxed);
            Ok(Action::await_change())
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_maintains_its_children_and_cleans_up() {
    let server = Server::bare().await;
    let client = client(&server).await;
    let maps: Api<ConfigMap> = api(&client);
    let secrets: Api<Secret> = api(&client);
    let context = Arc::new(Context {
        client: client.clone(),
        cleaned: AtomicUsize::new(0),
        reconciled: AtomicUsize::new(0),
    });
    let config = watcher::Config::default().labels("of=the-test");
    let controller = Controller::new(maps.clone(), config.clone())
        .owns(secrets.clone(), watcher::Config::default())
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_millis(50)),
            context.clone(),
        )
        .for_each(|_| async {});
    let controller = tokio::spawn(controller);

    for number in 0..5 {
        let map = config_map(&format!("n{number}"), "1");
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let has = |value: &'static str| {
        move |secret: Option<&Secret>| {
            let data = secret.and_then(|secret| secret.data.clone());
            data.unwrap_or_default()
                .get("value")
                .is_some_and(|bytes| bytes.0 == value.as_bytes())
        }
    };
    for number in 0..5 {
        let name = format!("n{number}");
        in_time(await_condition(secrets.clone(), &name, has("1")))
            .await
            .unwrap();
    }

    // A change is copied; a deleted child is created again.
    let patch = json!({"data": {"value": "2"}});
    maps.patch("n1", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    in_time(await_condition(secrets.clone(), "n1", has("2")))
        .await
        .unwrap();
    let before = secrets.get("n2").await.unwrap().uid().unwrap();
    secrets
        .delete("n2", &DeleteParams::default())
        .await
        .unwrap();
    let other =
        |secret: Option<&Secret>| secret.is_some_and(|one| one.uid() != Some(before.clone()));
    in_time(await_condition(secrets.clone(), "n2", other))
        .await
        .unwrap();

    // The controller reconciles again after the requeue time.
    let seen = context.reconciled.load(Ordering::Relaxed);
    in_time(async {
        while context.reconciled.load(Ordering::Relaxed) < seen + 5 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;

    // The ConfigMaps are deleted after the finalizer has run.
    for number in 0..5 {
        let name = format!("n{number}");
        let params = DeleteParams::default();
        in_time(delete_and_finalize(maps.clone(), &name, &params))
            .await
            .unwrap();
    }
    assert_eq!(context.cleaned.load(Ordering::Relaxed), 5);
    assert!(
        maps.list(&Default::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    controller.abort();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_are_awaited() {
    let server = Server::bare().await;
    let client = client(&server).await;
    let jobs: Api<Job> = api(&client);
    let job: Job = serde_json::from_value(json!({
        "metadata": {"name": "done"},
        "spec": {"suspend": true, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}}},
    }))
    .unwrap();
    let waiting = tokio::spawn(await_condition(
        jobs.clone(),
        "done",
        conditions::is_job_completed(),
    ));
    let made = jobs.create(&PostParams::default(), &job).await.unwrap();
    let status = json!({"status": {
        "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:01Z",
        "conditions": [
            {"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"},
            {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"},
        ],
        "succeeded": 1, "ready": 0, "uncountedTerminatedPods": {},
    }});
    jobs.patch_status("done", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    in_time(waiting).await.unwrap().unwrap();
    let uid = made.uid().unwrap();
    let waiting = {
        let jobs = jobs.clone();
        tokio::spawn(
            async move { await_condition(jobs, "done", conditions::is_deleted(&uid)).await },
        )
    };
    jobs.delete("done", &DeleteParams::background())
        .await
        .unwrap();
    in_time(waiting).await.unwrap().unwrap();
    server.stop().await;
}

/// Concurrent changes are not lost: a stale commit returns a conflict.
#[tokio::test(flavor = "multi_thread")]
async fn rule_8_concurrent_entries_are_all_committed() {
    let server = Server::bare().await;
    let maps: Api<ConfigMap> = api(&client(&server).await);
    let mut tasks = Vec::new();
    for number in 0..8 {
        let maps = maps.clone();
        tasks.push(tokio::spawn(async move {
            loop {
                let entry = maps.entry("shared").await.unwrap();
                let mut entry = entry
                    .and_modify(|map| {
                        let data = map.data.get_or_insert_default();
                        data.insert(format!("n{number}"), "here".into());
                    })
                    .or_insert(|| ConfigMap {
                        data: Some(BTreeMap::from([(format!("n{number}"), "here".into())])),
                        ..Default::default()
                    });
                if entry.commit(&PostParams::default()).await.is_ok() {
                    break;
                }
            }
        }));
    }
    for task in tasks {
        in_time(task).await.unwrap();
    }
    let data = maps.get("shared").await.unwrap().data.unwrap();
    assert_eq!(data.len(), 8, "{data:?}");
    server.stop().await;
}
