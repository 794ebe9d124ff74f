//! Services of a real API server.
#![allow(clippy::unwrap_used)]

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use longshore_apiserver::{ApiServer, AuthorizationMode, NoLogs, NoStreams};
use longshore_client::{Cluster, DeleteOptions, Patch};
use longshore_clock::Clock;
use longshore_engine::Engine;
use longshore_model::network::NODE_ADDRESS;
use longshore_services::{ServiceName, Services};
use serde_json::{Value, json};
use tokio::{net::TcpStream, task::AbortHandle, time::timeout};

/// An upper bound for any step on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

struct Fixture {
    cluster: Cluster,
    services: Services,
    work: AbortHandle,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl Fixture {
    fn new() -> Self {
        let engine = Engine::open(longshore_engine::Options::default()).unwrap();
        let server = ApiServer::new(longshore_apiserver::Options {
            engine,
            token: None,
            authorization: AuthorizationMode::AlwaysAllow,
            token_key: None,
            node_logs: Arc::new(NoLogs),
            node_streams: Arc::new(NoStreams),
            faults: false,
            warn_unhandled_kinds: false,
        });
        let cluster = Cluster::from_service(server.service(), "default");
        let (services, work) = Services::new(cluster.clone(), vec![NODE_ADDRESS], Clock::system());
        let work = tokio::spawn(work).abort_handle();
        Self {
            cluster,
            services,
            work,
        }
    }

    async fn create(&self, name: &str, spec: Value) -> Value {
        let view = self.cluster.services().in_namespace("default").unwrap();
        let object = json!({"metadata": {"name": name}, "spec": spec});
        view.create(&object).await.unwrap().raw().unwrap()
    }

    /// Writes the endpoints of a Service: a slice with addresses of this machine.
    async fn slice(&self, service: &str, endpoints: &[SocketAddr], port_name: &str) {
        let view = self
            .cluster
            .endpointslices()
            .in_namespace("default")
            .unwrap();
        let port = endpoints.first().map_or(1, SocketAddr::port);
        let endpoints: Vec<Value> = endpoints
            .iter()
            .map(|endpoint| json!({"addresses": [endpoint.ip().to_string()]}))
            .collect();
        let object = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": [{"name": port_name, "port": port, "protocol": "TCP"}],
        });
        let patch = Patch::apply(object, "test", true);
        view.patch(service, &patch).await.unwrap();
    }

    /// Waits until the name of a Service has these addresses.
    async fn named(&self, name: &str, addresses: &[&str]) {
        let is_there = || {
            let names = self.services.names();
            let mut found = names.iter().filter(|known| known.is("default", name));
            let found: Vec<String> = found
                .next()
                .into_iter()
                .flat_map(|known: &ServiceName| &known.addresses)
                .map(ToString::to_string)
                .collect();
            found == addresses
        };
        let mut changes = self.services.changes();
        timeout(TIMEOUT, async {
            while !is_there() {
                changes.changed().await.unwrap();
            }
        })
        .await
        .unwrap_or_else(|_| panic!("{name}: {:?}", self.services.names()));
    }
}

/// Waits until a connection is accepted, or refused.
async fn until_it(accepts: bool, address: SocketAddr) {
    timeout(TIMEOUT, async {
        while TcpStream::connect(address).await.is_ok() != accepts {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
}

fn cluster_ip(service: &Value) -> Ipv4Addr {
    let text = service["spec"]["clusterIP"].as_str().unwrap();
    text.parse().unwrap()
}

#[tokio::test]
async fn a_service_answers_while_it_has_endpoints() {
    let fixture = Fixture::new();
    let server = TcpListener::bind((Ipv4Addr::new(127, 16, 201, 1), 0)).unwrap();
    let endpoint = server.local_addr().unwrap();
    let port = json!({"name": "http", "port": 8080, "targetPort": 9000});
    let service = fixture
        .create("web", json!({"type": "NodePort", "ports": [port]}))
        .await;
    let own = SocketAddr::from((cluster_ip(&service), 8080));
    let number = service["spec"]["ports"][0]["nodePort"].as_u64().unwrap();
    let number = u16::try_from(number).unwrap();
    let node = SocketAddr::from((NODE_ADDRESS, number));
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, number));
    fixture.named("web", &[&own.ip().to_string()]).await;
    assert!(TcpStream::connect(own).await.is_err());
    fixture.slice("web", &[endpoint], "http").await;
    until_it(true, own).await;
    until_it(true, node).await;
    until_it(true, local).await;
    // A port of another name is another port.
    fixture.slice("web", &[endpoint], "metrics").await;
    until_it(false, own).await;
    fixture.slice("web", &[endpoint], "http").await;
    until_it(true, own).await;
    let view = fixture.cluster.services().in_namespace("default").unwrap();
    view.delete("web", &DeleteOptions::default()).await.unwrap();
    until_it(false, own).await;
    until_it(false, node).await;
    until_it(false, local).await;
    fixture.named("web", &[]).await;
}

#[tokio::test]
async fn names_and_variables() {
    let fixture = Fixture::new();
    let web = fixture
        .create("my-web", json!({"ports": [{"port": 8080}]}))
        .await;
    let own = cluster_ip(&web).to_string();
    fixture
        .create(
            "peers",
            json!({"clusterIP": "None", "ports": [{"port": 8080}]}),
        )
        .await;
    let endpoints: Vec<SocketAddr> = ["127.16.201.2:80", "127.16.201.3:80"]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
    fixture.slice("peers", &endpoints, "").await;
    fixture
        .create(
            "out",
            json!({"type": "ExternalName", "externalName": "localhost"}),
        )
        .await;
    fixture.named("my-web", &[&own]).await;
    fixture
        .named("peers", &["127.16.201.2", "127.16.201.3"])
        .await;
    let resolved: Vec<String> = tokio::net::lookup_host(("localhost", 0))
        .await
        .unwrap()
        .map(|address| address.ip().to_string())
        .collect();
    let mut resolved: Vec<&str> = resolved.iter().map(String::as_str).collect();
    resolved.sort_by_key(|text| text.parse::<std::net::IpAddr>().unwrap());
    resolved.dedup();
    fixture.named("out", &resolved).await;
    let variables = fixture.services.variables("default").await;
    let get = |name: &str| {
        let mut found = variables.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    };
    assert_eq!(get("MY_WEB_SERVICE_HOST"), Some(&*own));
    assert_eq!(get("MY_WEB_SERVICE_PORT"), Some("8080"));
    assert_eq!(get("PEERS_SERVICE_HOST"), None);
    assert_eq!(get("KUBERNETES_SERVICE_HOST"), None);
    assert!(fixture.services.variables("other").await.is_empty());
}

#[tokio::test]
async fn a_port_in_use_is_reported_by_an_event() {
    let fixture = Fixture::new();
    let server = TcpListener::bind((Ipv4Addr::new(127, 16, 201, 4), 0)).unwrap();
    let address = Ipv4Addr::new(127, 9, 201, 1);
    let taken = TcpListener::bind((address, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let spec = json!({"clusterIP": address.to_string(), "ports": [{"port": port}]});
    fixture.create("web", spec).await;
    fixture
        .slice("web", &[server.local_addr().unwrap()], "")
        .await;
    let events = fixture.cluster.events().in_namespace("default").unwrap();
    let event = timeout(TIMEOUT, async {
        loop {
            if let Some(event) = events.list().await.unwrap().items.first() {
                break event.raw().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
    assert_eq!(event["reason"], "PortNotForwarded");
    assert_eq!(event["involvedObject"]["name"], "web");
    let message = event["message"].as_str().unwrap();
    let start = format!("cannot forward TCP {address}:{port}: Address already in use");
    assert!(message.starts_with(&start), "{message}");
}
