//! Tests of a pod whose task panics.
#![allow(clippy::unwrap_used)]

use std::{fs, path::Path};

use longshore_apiserver::{ApiServer, NoLogs, NoStreams};
use longshore_client::Cluster;
use longshore_clock::Clock;
use longshore_engine::Engine;
use longshore_model::network::NODE_ADDRESS;
use longshore_services::Services;
use serde_json::json;
use tokio::sync::watch;

use super::*;
use crate::{
    LogLimits,
    address::Addresses,
    devices::Devices,
    events::Events,
    hosts::Hosts,
    images::{ImageEntrypoints, ImageUsers},
    logs::LogStore,
    machine,
    remover::Remover,
    sandbox::Spawner,
    security::AgentPrivileges,
    streams::RunningContainers,
};

/// Long enough for any step on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

async fn shared(data: &Path, stopping: watch::Receiver<bool>) -> Shared {
    let engine = Engine::open(longshore_engine::Options::default()).unwrap();
    let server = ApiServer::new(longshore_apiserver::Options {
        engine,
        token: None,
        authorization: longshore_apiserver::AuthorizationMode::Rbac,
        token_key: None,
        node_logs: Arc::new(NoLogs),
        node_streams: Arc::new(NoStreams),
        faults: false,
        warn_unhandled_kinds: false,
    });
    let cluster = Cluster::from_service(server.service(), "default");
    for name in ["logs", "pods", "probe"] {
        fs::create_dir_all(data.join(name)).unwrap();
    }
    let (events, write_events) = Events::new(cluster.clone(), "here".to_owned(), Clock::system());
    tokio::spawn(write_events);
    let (services, forward) = Services::new(cluster.clone(), vec![NODE_ADDRESS], Clock::system());
    tokio::spawn(forward);
    Shared {
        last_end: None,
        earlier: Default::default(),
        clock: Clock::system(),
        cluster,
        node: "here".to_owned(),
        address: NODE_ADDRESS,
        data: data.to_owned(),
        path_prepend: None,
        access: None,
        machine: machine::MachineInfo::read(data),
        devices: Devices::default(),
        image_entrypoints: Arc::new(ImageEntrypoints::default()),
        image_users: Arc::new(ImageUsers::default()),
        agent_privileges: Arc::new(AgentPrivileges::of_this_process()),
        spawner: Spawner::start(&data.join("probe")).await.unwrap().into(),
        cgroups: Default::default(),
        allocations: Default::default(),
        addresses: Arc::new(Addresses::new(data)),
        hosts: Hosts::new(),
        services,
        host_ports: Default::default(),
        admitted_ports: Default::default(),
        dns: None,
        logs: LogStore::new(data.join("logs"), LogLimits::default()),
        running_containers: Arc::new(RunningContainers::default()),
        usage: Arc::default(),
        events,
        fill_volumes: None,
        collect_files: None,
        remover: Arc::new(Remover::start().unwrap()),
        stopping,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_task_panics_fails_and_can_be_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let (_stop, stopping) = watch::channel(false);
    let shared = Arc::new(shared(folder.path(), stopping).await);
    let pods = shared.cluster.pods().in_namespace("default").unwrap();
    let container = json!({"name": "main", "image": "any", "command": ["sleep", "1000"]});
    let spec = json!({"nodeName": "here", "containers": [container]});
    let made = json!({"metadata": {"name": "p"}, "spec": spec});
    let pod: Pod = pods.create(&made).await.unwrap().object().unwrap();
    let uid = pod.metadata.uid.clone().unwrap();
    let (tell, mut messages) = mpsc::unbounded_channel();

    let work = async {
        tokio::select! {
            () = worker::run(shared.clone(), pod.clone(), None, &mut messages) => {}
            () = async {
                let runs = |pod: &longshore_client::Item<_>| {
                    pod.raw().unwrap()["status"]["phase"] == "Running"
                };
                pods.wait("p", runs, TEST_TIMEOUT).await.unwrap();
                panic!("as a test wants it");
            } => {}
        }
    };
    let panic = catch_panic(work).await.unwrap();
    let processes = shared.running_containers.processes(&uid);
    assert_eq!(processes.len(), 1);
    let ending = async {
        tokio::join!(
            fail_after_panic(&shared, &pod, panic, &mut messages),
            async {
                let failed = |pod: &longshore_client::Item<_>| {
                    pod.raw().unwrap()["status"]["phase"] == "Failed"
                };
                let failed = pods.wait("p", failed, TEST_TIMEOUT).await.unwrap();
                let status = failed.raw().unwrap()["status"].clone();
                assert_eq!(status["reason"], REASON);
                let text = status["message"].as_str().unwrap();
                assert!(text.ends_with("as a test wants it"), "{text}");
                let ended = &status["containerStatuses"][0]["state"]["terminated"];
                assert_eq!(ended["reason"], "ContainerStatusUnknown");
                assert!(processes.iter().all(|one| one.upgrade().is_none()));
                // Deletion still works.
                pods.delete("p", &DeleteOptions::default()).await.unwrap();
                if let Some(found) = pods.find("p").await.unwrap() {
                    let pod = found.object().unwrap();
                    tell.send(Message::Updated(Box::new(pod))).unwrap();
                }
                let gone = async {
                    while pods.find("p").await.unwrap().is_some() {
                        tokio::time::sleep(POLL_INTERVAL).await;
                    }
                };
                tokio::time::timeout(TEST_TIMEOUT, gone).await.unwrap();
                tell.send(Message::Removed).unwrap();
            }
        )
    };
    tokio::time::timeout(TEST_TIMEOUT, ending).await.unwrap();
    // Files are removed in the background.
    let folder = shared.pod_folder(&uid);
    let removed = async {
        while folder.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, removed).await.unwrap();
}

#[test]
fn running_containers_are_terminated_and_ended_ones_are_unchanged() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
        "status": {"phase": "Running", "podIP": "127.16.0.9", "containerStatuses": [
            {"name": "a", "image": "", "imageID": "", "ready": true, "restartCount": 0,
             "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}},
            {"name": "b", "image": "", "imageID": "", "ready": false, "restartCount": 2,
             "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]},
    }))
    .unwrap();
    let status = failed_status(&pod, "it broke", NODE_ADDRESS, Timestamp::UNIX_EPOCH);
    assert_eq!(
        (&status["phase"], &status["reason"]),
        (&json!("Failed"), &json!(REASON))
    );
    let ended = |at: usize| &status["containerStatuses"][at]["state"]["terminated"];
    assert_eq!(ended(0)["reason"], "ContainerStatusUnknown");
    assert_eq!(ended(0)["exitCode"], 137);
    assert_eq!(ended(1)["reason"], "Completed");
    assert_eq!(status["podIP"], "127.16.0.9");
}

#[test]
fn panic_messages_are_kept() {
    let text = |panic: Box<dyn Any + Send>| panic_text(&*panic);
    assert_eq!(text(Box::new("plain")), "plain");
    assert_eq!(text(Box::new("made".to_owned())), "made");
    assert_eq!(text(Box::new(7)), "a panic without a message");
}
