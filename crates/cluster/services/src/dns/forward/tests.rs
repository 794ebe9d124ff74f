//! Queries that other servers answer.
#![allow(clippy::unwrap_used)]

use domain::base::{MessageBuilder, Name, Rtype, iana::Rcode};
use tokio::net::TcpListener;

use super::*;

const OWN: Ipv4Addr = Ipv4Addr::new(127, 8, 0, 10);

fn query(name: &str, id: u16) -> Vec<u8> {
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(id);
    let mut question = builder.question();
    let name = Name::vec_from_str(name).unwrap();
    question.push((name, Rtype::A)).unwrap();
    question.finish()
}

fn answer(query: &[u8]) -> Vec<u8> {
    let query = Message::from_octets(query).unwrap();
    let answer = MessageBuilder::new_vec().start_answer(&query, Rcode::NXDOMAIN);
    answer.unwrap().finish()
}

/// A server; the test receives and answers the queries.
async fn upstream() -> (UdpSocket, u16) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

/// A forwarder that asks these servers, in a folder that must be kept.
fn forwarder(folder: &std::path::Path, servers: &str, port: u16) -> Arc<Forwarder> {
    let config = folder.join("resolv.conf");
    fs::write(&config, servers).unwrap();
    let mut forwarder = Forwarder::new(config, OWN.into());
    let own = Arc::get_mut(&mut forwarder).unwrap();
    own.port = port;
    own.server_timeout = Duration::from_secs(30);
    forwarder
}

#[tokio::test]
async fn equal_queries_are_sent_once_and_replies_have_the_callers_ids() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, port) = upstream().await;
    let forwarder = forwarder(folder.path(), "nameserver 127.0.0.1\n", port);
    let server = async {
        let mut packet = [0; 512];
        let (length, client) = socket.recv_from(&mut packet).await.unwrap();
        let received = packet[..length].to_vec();
        // Replies of other queries and of other servers are ignored.
        let mut other = answer(&received);
        other[0] ^= 1;
        socket.send_to(&other, client).await.unwrap();
        socket.send_to(&received, client).await.unwrap();
        socket.send_to(&answer(&received), client).await.unwrap();
        received
    };
    let (first, second) = (query("a.example", 1), query("a.example", 2));
    let (first, second, received) = tokio::join!(
        forwarder.ask(&first, Transport::Udp),
        forwarder.ask(&second, Transport::Udp),
        server
    );
    assert_eq!(first.unwrap(), answer(&query("a.example", 1)));
    assert_eq!(second.unwrap(), answer(&query("a.example", 2)));
    assert_eq!(received[2..], query("a.example", 1)[2..]);
    assert!(forwarder.waiting.lock().is_empty());
    let more = socket.try_recv(&mut [0; 1]);
    assert_eq!(more.unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn queries_over_tcp_are_asked_over_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let forwarder = forwarder(folder.path(), "nameserver 127.0.0.1\n", port);
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let length = stream.read_u16().await.unwrap();
        let mut query = vec![0; length.into()];
        stream.read_exact(&mut query).await.unwrap();
        let answer = answer(&query);
        stream.write_u16(answer.len() as u16).await.unwrap();
        stream.write_all(&answer).await.unwrap();
    };
    let query = query("a.example", 3);
    let (reply, ()) = tokio::join!(forwarder.ask(&query, Transport::Tcp), server);
    assert_eq!(reply.unwrap(), answer(&query));
}

#[tokio::test]
async fn servers_that_do_not_reply_are_given_up() {
    let folder = tempfile::tempdir().unwrap();
    // This server receives queries, but does not reply.
    let (_socket, port) = upstream().await;
    let servers = "nameserver 127.8.0.10\nnameserver 127.0.0.1\nnameserver invalid\n";
    let mut forwarder = forwarder(folder.path(), servers, port);
    Arc::get_mut(&mut forwarder).unwrap().server_timeout = Duration::from_millis(10);
    let asked: Vec<String> = forwarder
        .servers()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(asked, [format!("127.0.0.1:{port}")]);
    assert_eq!(
        forwarder.ask(&query("a.example", 1), Transport::Udp).await,
        None
    );
    assert!(forwarder.waiting.lock().is_empty());
}

#[tokio::test]
async fn a_server_whose_reply_never_ends_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut forwarder = forwarder(folder.path(), "nameserver 127.0.0.1\n", port);
    Arc::get_mut(&mut forwarder).unwrap().server_timeout = Duration::from_millis(100);
    // This server sends a byte of its longest reply now and then.
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_u16(u16::MAX).await.unwrap();
        while stream.write_all(&[0]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let reply = forwarder.ask(&query("a.example", 1), Transport::Tcp).await;
    assert_eq!(reply, None);
    assert!(forwarder.waiting.lock().is_empty());
    // The connection is closed.
    server.await.unwrap();
}

#[test]
fn servers_at_an_interface() {
    let show = |text: &str| server(text, 53).map(|server| server.to_string());
    assert_eq!(show("10.0.0.1").as_deref(), Some("10.0.0.1:53"));
    assert_eq!(show("fe80::1%lo").as_deref(), Some("[fe80::1%1]:53"));
    assert_eq!(show("fe80::1%7").as_deref(), Some("[fe80::1%7]:53"));
    assert_eq!(show("fe80::1%../lo"), None);
    assert_eq!(show("fe80::1%none-such"), None);
    assert_eq!(show("name.example"), None);
}

#[tokio::test]
async fn the_oldest_of_too_many_queries_is_given_up_so_that_others_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, port) = upstream().await;
    let forwarder = forwarder(folder.path(), "nameserver 127.0.0.1\n", port);
    let good = query("good.example", 7);
    let expected = answer(&good);
    // This server replies only to queries for one name.
    tokio::spawn(async move {
        let mut packet = [0; 512];
        loop {
            let (length, client) = socket.recv_from(&mut packet).await.unwrap();
            let received = &packet[..length];
            if received[ID..] == query("good.example", 7)[ID..] {
                socket.send_to(&answer(received), client).await.unwrap();
            }
        }
    });
    let mut bad = tokio::task::JoinSet::new();
    for number in 0..u16::try_from(2 * MAX_QUERIES).unwrap() {
        let forwarder = forwarder.clone();
        bad.spawn(async move {
            let query = query(&format!("n{number}.example"), number);
            assert_eq!(forwarder.ask(&query, Transport::Udp).await, None);
        });
    }
    for _ in 0..MAX_QUERIES {
        bad.join_next().await.unwrap().unwrap();
    }
    assert_eq!(forwarder.waiting.lock().len(), MAX_QUERIES);
    for _ in 0..3 {
        let reply = forwarder.ask(&good, Transport::Udp).await;
        assert_eq!(reply.unwrap(), expected);
    }
    assert_eq!(forwarder.waiting.lock().len(), MAX_QUERIES - 1);
}

/// An attacker that can send packets with the server's address must not find the identifier by
/// trying all values.
#[tokio::test]
async fn after_many_wrong_replies_the_server_is_asked_over_tcp() {
    let folder = tempfile::tempdir().unwrap();
    // UDP and TCP use the same port.
    let (listener, socket, port) = loop {
        let (socket, port) = upstream().await;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            break (listener, socket, port);
        }
    };
    let forwarder = forwarder(folder.path(), "nameserver 127.0.0.1\n", port);
    let forger = async {
        let mut packet = [0; 512];
        let (length, client) = socket.recv_from(&mut packet).await.unwrap();
        let forged = answer(&packet[..length]);
        // All identifiers except the correct one, which is sent last.
        for number in 1..=u16::MAX {
            let mut wrong = forged.clone();
            let id = u16::from_be_bytes([forged[0], forged[1]]) ^ number;
            wrong[..ID].copy_from_slice(&id.to_be_bytes());
            // The forwarder closes the socket after the first packets.
            if socket.send_to(&wrong, client).await.is_err() {
                break;
            }
        }
        let _ = socket.send_to(&forged, client).await;
    };
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let length = stream.read_u16().await.unwrap();
        let mut query = vec![0; length.into()];
        stream.read_exact(&mut query).await.unwrap();
        let query = Message::from_octets(&query[..]).unwrap();
        let answer = MessageBuilder::new_vec().start_answer(&query, Rcode::SERVFAIL);
        let answer = answer.unwrap().finish();
        stream.write_u16(answer.len() as u16).await.unwrap();
        stream.write_all(&answer).await.unwrap();
    };
    let query = query("a.example", 9);
    let (reply, (), ()) = tokio::join!(forwarder.ask(&query, Transport::Udp), forger, server);
    let reply = reply.unwrap();
    let reply = Message::from_octets(&reply[..]).unwrap();
    assert_eq!(reply.header().rcode(), Rcode::SERVFAIL);
}
