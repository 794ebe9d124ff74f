//! The DNS server of a real API server's Services.
#![allow(clippy::unwrap_used)]

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use domain::{
    base::{Message, MessageBuilder, Name, Rtype, iana::Rcode, name::ParsedName},
    rdata::AllRecordData,
};
use longshore_apiserver::{ApiServer, AuthorizationMode, NoLogs, NoStreams};
use longshore_client::{Cluster, Patch};
use longshore_clock::Clock;
use longshore_engine::Engine;
use longshore_services::{DnsSockets, PodNames, Services};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UdpSocket},
    task::JoinSet,
    time::timeout,
};

/// An upper bound for any step on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The address of the server; each test has its own port.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 9, 202, 1);

struct NoPods;

impl PodNames for NoPods {
    fn addresses(&self, _: &str, _: &str, _: &str) -> Vec<Ipv4Addr> {
        Vec::new()
    }

    fn has_address(&self, _: &str, _: Ipv4Addr) -> bool {
        false
    }
}

struct Fixture {
    cluster: Cluster,
    server: std::net::SocketAddr,
    /// The folder of the file that names the machine's servers.
    _folder: tempfile::TempDir,
    _work: JoinSet<()>,
}

impl Fixture {
    /// A server that asks `nameserver` for names of other zones.
    fn new(nameserver: Ipv4Addr) -> Self {
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
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("resolv.conf");
        std::fs::write(&config, format!("nameserver {nameserver}\n")).unwrap();
        let (services, work) =
            Services::new(cluster.clone(), vec![Ipv4Addr::LOCALHOST], Clock::system());
        let sockets = DnsSockets::open(ADDRESS).unwrap();
        let server = sockets.address();
        let mut tasks = JoinSet::new();
        tasks.spawn(work);
        tasks.spawn(services.dns(sockets, ADDRESS, Arc::new(NoPods), &config));
        Self {
            cluster,
            server,
            _folder: folder,
            _work: tasks,
        }
    }

    async fn apply(&self, name: &str, spec: Value) -> Value {
        let view = self.cluster.services().in_namespace("default").unwrap();
        let object = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec,
        });
        let patch = Patch::apply(object, "test", true);
        view.patch(name, &patch).await.unwrap().raw().unwrap()
    }

    async fn udp(&self, query: &[u8]) -> Message<Vec<u8>> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        socket.connect(self.server).await.unwrap();
        socket.send(query).await.unwrap();
        let mut packet = vec![0; 65_535];
        let received = timeout(TIMEOUT, socket.recv(&mut packet)).await;
        packet.truncate(received.unwrap().unwrap());
        Message::from_octets(packet).unwrap()
    }

    async fn tcp(&self, queries: &[Vec<u8>]) -> Vec<Message<Vec<u8>>> {
        let mut stream = TcpStream::connect(self.server).await.unwrap();
        for query in queries {
            let length = u16::try_from(query.len()).unwrap();
            stream.write_u16(length).await.unwrap();
            stream.write_all(query).await.unwrap();
        }
        let mut replies = Vec::new();
        for _ in queries {
            let length = timeout(TIMEOUT, stream.read_u16()).await.unwrap().unwrap();
            let mut reply = vec![0; length.into()];
            stream.read_exact(&mut reply).await.unwrap();
            replies.push(Message::from_octets(reply).unwrap());
        }
        replies
    }

    /// Repeats the query until the reply is the expected one, like programs that wait for a name.
    async fn until(&self, name: &str, rtype: Rtype, expected: &str) {
        let asked = async {
            while show(&self.udp(&query(name, rtype)).await) != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if timeout(TIMEOUT, asked).await.is_err() {
            let last = show(&self.udp(&query(name, rtype)).await);
            panic!("{name} {rtype}: {last}, not {expected}");
        }
    }
}

fn query(name: &str, rtype: Rtype) -> Vec<u8> {
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_rd(true);
    let mut question = builder.question();
    question
        .push((Name::vec_from_str(name).unwrap(), rtype))
        .unwrap();
    question.finish()
}

/// The code of a reply and the data of its answers.
fn show(message: &Message<Vec<u8>>) -> String {
    let mut words = vec![message.header().rcode().to_string()];
    let answers = message
        .answer()
        .unwrap()
        .limit_to::<AllRecordData<_, ParsedName<_>>>();
    words.extend(answers.map(|record| {
        let data = record.unwrap().data().to_string();
        data.trim_end_matches('.').to_owned()
    }));
    words.join(" ")
}

const NAME: &str = "web.default.svc.cluster.local";

#[tokio::test]
async fn answers_follow_the_services() {
    // No name server listens at this address.
    let fixture = Fixture::new(ADDRESS);
    fixture.until(NAME, Rtype::A, "NXDOMAIN").await;
    let port = json!([{"name": "http", "port": 80}]);
    let external =
        |name: &str| json!({"type": "ExternalName", "externalName": name, "ports": port});
    fixture.apply("web", external("a.example.com")).await;
    fixture
        .until(NAME, Rtype::CNAME, "NOERROR a.example.com")
        .await;
    fixture.apply("web", external("b.example.com")).await;
    // The target cannot be resolved, but the alias is returned.
    fixture.until(NAME, Rtype::A, "NOERROR b.example.com").await;
    let service = fixture
        .apply("web", json!({"type": "ClusterIP", "ports": port}))
        .await;
    let own = service["spec"]["clusterIP"].as_str().unwrap();
    let expected = format!("NOERROR {own}");
    fixture.until(NAME, Rtype::A, &expected).await;
    fixture.until(NAME, Rtype::AAAA, "NOERROR").await;
    let queries = [
        query(NAME, Rtype::A),
        query("_http._tcp.web.default.svc.cluster.local", Rtype::SRV),
        query("none.default.svc.cluster.local", Rtype::A),
        query("a.example.com", Rtype::A),
    ];
    let replies: Vec<String> = fixture.tcp(&queries).await.iter().map(show).collect();
    assert_eq!(
        replies,
        [
            &*expected,
            &format!("NOERROR 0 100 80 {NAME}"),
            "NXDOMAIN",
            "SERVFAIL"
        ]
    );
}

/// Neither packets nor connections without valid queries keep the server from answering.
#[tokio::test]
async fn invalid_queries_do_not_disturb_others() {
    let fixture = Fixture::new(ADDRESS);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    socket.connect(fixture.server).await.unwrap();
    for length in 0..200 {
        socket.send(&vec![length as u8; length]).await.unwrap();
    }
    let mut idle = Vec::new();
    for _ in 0..32 {
        let mut stream = TcpStream::connect(fixture.server).await.unwrap();
        stream.write_u16(100).await.unwrap();
        idle.push(stream);
    }
    let mut refused = TcpStream::connect(fixture.server).await.unwrap();
    refused.write_u16(u16::MAX).await.unwrap();
    let closed = timeout(TIMEOUT, refused.read_u16()).await.unwrap();
    assert!(closed.is_err());
    fixture.until(NAME, Rtype::A, "NXDOMAIN").await;
    let replies = fixture.tcp(&[query(NAME, Rtype::A)]).await;
    assert_eq!(replies[0].header().rcode(), Rcode::NXDOMAIN);
}

/// A slow name server delays only the queries that it must answer.
#[tokio::test]
#[allow(clippy::print_stderr, reason = "shows in the test's output")]
async fn a_slow_name_server_delays_no_names_of_the_cluster() {
    const SLOW: Ipv4Addr = Ipv4Addr::new(127, 9, 202, 2);
    let Ok(upstream) = UdpSocket::bind((SLOW, 53)).await else {
        eprintln!("skipped: this user cannot listen at the port of name servers");
        return;
    };
    let fixture = Fixture::new(SLOW);
    fixture.until(NAME, Rtype::A, "NXDOMAIN").await;
    // Three times as many queries as may wait, and connections that wait for a reply.
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    socket.connect(fixture.server).await.unwrap();
    for number in 0..768 {
        let foreign = query(&format!("slow-{number}.example.com"), Rtype::A);
        socket.send(&foreign).await.unwrap();
    }
    let mut connections = Vec::new();
    for number in 0..32 {
        let mut stream = TcpStream::connect(fixture.server).await.unwrap();
        let foreign = query(&format!("slower-{number}.example.com"), Rtype::A);
        let length = u16::try_from(foreign.len()).unwrap();
        stream.write_u16(length).await.unwrap();
        stream.write_all(&foreign).await.unwrap();
        connections.push(stream);
    }
    // The name server has queries, and answers none of them.
    let received = timeout(TIMEOUT, upstream.recv(&mut [0; 512])).await;
    received.unwrap().unwrap();
    // A server that handles one query after the other would need 20 minutes for these.
    for _ in 0..10 {
        let reply = fixture.udp(&query(NAME, Rtype::A)).await;
        assert_eq!(show(&reply), "NXDOMAIN");
        let replies = fixture.tcp(&[query(NAME, Rtype::A)]).await;
        assert_eq!(show(&replies[0]), "NXDOMAIN");
    }
    // The queries that wait are refused in the end.
    for stream in &mut connections {
        let length = timeout(TIMEOUT, stream.read_u16()).await.unwrap().unwrap();
        let mut reply = vec![0; length.into()];
        stream.read_exact(&mut reply).await.unwrap();
        let reply = Message::from_octets(reply).unwrap();
        assert_eq!(reply.header().rcode(), Rcode::SERVFAIL);
    }
}
