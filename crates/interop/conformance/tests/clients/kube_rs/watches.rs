//! Watchers and reflectors, with both initial list strategies. They must always match a
//! list.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kube_core::ResourceExt;
use kube_runtime::{WatchStreamExt, reflector, watcher};
use longshore_conformance::Server;
use serde_json::json;

use super::{api, client, config_map, in_time};

fn list_strategies() -> [(&'static str, watcher::Config); 2] {
    let config = watcher::Config::default().labels("of=the-test");
    [
        ("list and watch", config.clone().page_size(7)),
        ("streamed list", config.streaming_lists()),
    ]
}

/// Names and resource versions.
type Shown = BTreeMap<String, String>;

fn shown<'a>(items: impl IntoIterator<Item = &'a ConfigMap>) -> Shown {
    let items = items.into_iter();
    items
        .map(|item| (item.name_any(), item.resource_version().unwrap()))
        .collect()
}

async fn listed(maps: &Api<ConfigMap>) -> Shown {
    let list = maps
        .list(&ListParams::default().labels("of=the-test"))
        .await
        .unwrap();
    shown(&list.items)
}

/// A round of writes: creations, changes, deletions, objects that leave the selection and return to
/// it.
async fn churn(maps: &Api<ConfigMap>, round: usize) {
    for number in 0..10 {
        let name = format!("n{number}");
        let map = config_map(&name, &round.to_string());
        if maps.create(&PostParams::default(), &map).await.is_err() {
            let label = if (number + round).is_multiple_of(3) {
                "other"
            } else {
                "the-test"
            };
            let patch = json!({"metadata": {"labels": {"of": label}}, "data": {"round": round.to_string()}});
            maps.patch(&name, &PatchParams::default(), &Patch::Merge(patch))
                .await
                .unwrap();
        }
        if (number + round).is_multiple_of(4) {
            maps.delete(&name, &DeleteParams::default()).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_7_a_watcher_reports_all_objects_then_changes() {
    let server = Server::bare().await;
    let maps: Api<ConfigMap> = api(&client(&server).await);
    for number in 0..20 {
        let map = config_map(&format!("n{number:02}"), "1");
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    for (name, config) in list_strategies() {
        let mut stream = watcher(maps.clone(), config).boxed();
        let mut initial = Vec::new();
        assert!(matches!(
            in_time(stream.try_next()).await.unwrap(),
            Some(watcher::Event::Init)
        ));
        loop {
            match in_time(stream.try_next()).await.unwrap().unwrap() {
                watcher::Event::InitApply(map) => initial.push(map),
                watcher::Event::InitDone => break,
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(shown(&initial), listed(&maps).await, "{name}");
        assert_eq!(initial.len(), 20, "{name}");

        maps.create(&PostParams::default(), &config_map("late", "1"))
            .await
            .unwrap();
        let event = in_time(stream.try_next()).await.unwrap();
        assert!(
            matches!(&event, Some(watcher::Event::Apply(map)) if map.name_any() == "late"),
            "{name}: {event:?}"
        );
        maps.delete("late", &DeleteParams::default()).await.unwrap();
        let event = in_time(stream.try_next()).await.unwrap();
        assert!(
            matches!(&event, Some(watcher::Event::Delete(map)) if map.name_any() == "late"),
            "{name}: {event:?}"
        );
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_4_a_reflector_equals_a_list() {
    let server = Server::bare().await;
    let maps: Api<ConfigMap> = api(&client(&server).await);
    churn(&maps, 0).await;
    for (name, config) in list_strategies() {
        let (store, writer) = reflector::store::<ConfigMap>();
        // Short watches, so that the watcher resumes often.
        let stream = watcher(maps.clone(), config.timeout(1)).default_backoff();
        let reflecting = tokio::spawn(
            reflector(writer, stream)
                .touched_objects()
                .for_each(|_| async {}),
        );
        in_time(store.wait_until_ready()).await.unwrap();
        for round in 1..=6_usize {
            churn(&maps, round).await;
            // The history is compacted between or during watches.
            if round.is_multiple_of(2) {
                server.expire_history().await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        }
        let expected = listed(&maps).await;
        let equal = async {
            while shown(store.state().iter().map(AsRef::as_ref)) != expected {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let equal = tokio::time::timeout(super::STEP_TIMEOUT, equal).await;
        let held = shown(store.state().iter().map(AsRef::as_ref));
        assert!(equal.is_ok(), "{name}: {held:?} instead of {expected:?}");
        reflecting.abort();
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_4_a_compacted_resource_version_yields_410() {
    let server = Server::bare().await;
    let maps: Api<ConfigMap> = api(&client(&server).await);
    maps.create(&PostParams::default(), &config_map("one", "1"))
        .await
        .unwrap();
    churn(&maps, 0).await;
    server.expire_history().await;
    let params = kube_client::api::WatchParams::default().timeout(20);
    let mut raw = maps.watch(&params, "1").await.unwrap().boxed();
    let event = in_time(raw.try_next()).await.unwrap();
    assert!(
        matches!(&event, Some(kube_core::WatchEvent::Error(status)) if status.code == 410),
        "{event:?}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_21_a_metadata_watcher_sees_names_and_no_data() {
    let server = Server::bare().await;
    let maps: Api<ConfigMap> = api(&client(&server).await);
    maps.create(&PostParams::default(), &config_map("one", "1"))
        .await
        .unwrap();
    for (name, config) in list_strategies() {
        #[allow(deprecated, reason = "programs use it")]
        let stream = kube_runtime::metadata_watcher(maps.clone(), config);
        let mut applied = stream.applied_objects().boxed();
        let one = in_time(applied.try_next()).await.unwrap().unwrap();
        assert_eq!(one.metadata.name.as_deref(), Some("one"), "{name}");
    }
    server.stop().await;
}
