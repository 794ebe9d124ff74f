//! Events that a controller publishes, read through both Event APIs.

use k8s_openapi::api::{
    core::v1::{ConfigMap, Event as CoreEvent, Node},
    events::v1::Event,
};
use kube_client::{
    Api,
    api::{ListParams, PostParams},
};
use kube_core::Resource;
use kube_runtime::events::{Event as Note, EventType, Recorder, Reporter};
use longshore_conformance::Server;

use super::{api, client, config_map};

fn note(reason: &str) -> Note {
    Note {
        type_: EventType::Warning,
        reason: reason.into(),
        note: Some("It was seen".into()),
        action: "Looking".into(),
        secondary: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_28_repeated_events_form_a_series() {
    let server = Server::bare().await;
    let client = client(&server).await;
    let maps: Api<ConfigMap> = api(&client);
    let map = maps
        .create(&PostParams::default(), &config_map("one", "1"))
        .await
        .unwrap();
    let reporter = Reporter {
        controller: "example.org/test".into(),
        instance: Some("one".into()),
    };
    let recorder = Recorder::new(client.clone(), reporter);
    for _ in 0..3 {
        recorder
            .publish(&note("Seen"), &map.object_ref(&()))
            .await
            .unwrap();
    }
    recorder
        .publish(&note("SeenAgain"), &map.object_ref(&()))
        .await
        .unwrap();

    let events: Api<Event> = api(&client);
    let listed = events.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(listed.len(), 2, "{listed:?}");
    let series = |event: &Event| event.series.as_ref().map(|series| series.count);
    let seen = |reason: &str| {
        let of = |event: &&Event| event.reason.as_deref() == Some(reason);
        listed.iter().find(of).unwrap()
    };
    assert_eq!(series(seen("Seen")), Some(3));
    assert_eq!(series(seen("SeenAgain")), None);
    assert_eq!(
        seen("Seen").regarding.as_ref().unwrap().uid,
        map.metadata.uid
    );

    let core: Api<CoreEvent> = api(&client);
    let chosen = ListParams::default().fields("involvedObject.name=one,reason=Seen,type=Warning");
    let chosen = core.list(&chosen).await.unwrap().items;
    assert_eq!(chosen.len(), 1, "{chosen:?}");
    assert_eq!(chosen[0].message.as_deref(), Some("It was seen"));
    assert_eq!(
        chosen[0].reporting_component.as_deref(),
        Some("example.org/test")
    );
    server.stop().await;
}

/// Events of cluster-scoped objects are in the namespace `default`.
#[tokio::test(flavor = "multi_thread")]
async fn rule_28_events_of_nodes_are_in_the_default_namespace() {
    let server = Server::bare().await;
    let client = client(&server).await;
    let nodes: Api<Node> = Api::all(client.clone());
    let node: Node =
        serde_json::from_value(serde_json::json!({"metadata": {"name": "far"}})).unwrap();
    let node = nodes.create(&PostParams::default(), &node).await.unwrap();
    let recorder = Recorder::new(client.clone(), "example.org/test".into());
    recorder
        .publish(&note("Far"), &node.object_ref(&()))
        .await
        .unwrap();
    let events: Api<Event> = Api::namespaced(client, "default");
    let listed = events.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(
        listed[0].regarding.as_ref().unwrap().kind.as_deref(),
        Some("Node")
    );
    server.stop().await;
}
