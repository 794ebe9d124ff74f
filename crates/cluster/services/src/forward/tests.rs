//! Forwarding between real sockets.
#![allow(clippy::unwrap_used)]

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UdpSocket},
    time::timeout,
};

use super::*;

/// An upper bound for any step on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

fn key() -> Key {
    Key::new(Some("default"), "web")
}

/// Returns a port that no program uses.
fn listener(protocol: Protocol, last: u8) -> Listener {
    let own = Ipv4Addr::new(127, 9, 200, last);
    let address = match protocol {
        Protocol::Udp => std::net::UdpSocket::bind((own, 0)).and_then(|own| own.local_addr()),
        _ => std::net::TcpListener::bind((own, 0)).and_then(|own| own.local_addr()),
    };
    Listener {
        protocol,
        address: address.unwrap(),
    }
}

fn wanted(listener: Listener, endpoints: &[SocketAddr]) -> BTreeMap<Listener, Target> {
    let target = Target {
        endpoints: endpoints.into(),
        affinity: None,
    };
    BTreeMap::from([(listener, target)])
}

/// Starts a server that sends `name` and the client's address, and then what it receives.
async fn server(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::new(127, 16, 200, 1), 0))
        .await
        .unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, peer) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let greeting = format!("{name} {}\n", peer.ip());
                stream.write_all(greeting.as_bytes()).await.unwrap();
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    address
}

async fn line(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    loop {
        let byte = timeout(TIMEOUT, stream.read_u8()).await.unwrap().unwrap();
        if byte == b'\n' {
            return String::from_utf8(text).unwrap();
        }
        text.push(byte);
    }
}

#[tokio::test]
async fn connections_go_to_the_endpoints_in_turn_and_outlive_them() {
    let (one, two) = (server("one").await, server("two").await);
    let own = listener(Protocol::Tcp, 1);
    let mut forwarder = Forwarder::new();
    assert!(
        forwarder
            .apply(&key(), wanted(own, &[one, two]))
            .await
            .is_empty()
    );
    let mut names = Vec::new();
    let mut kept = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(own.address).await.unwrap();
        names.push(line(&mut stream).await);
        kept.push(stream);
    }
    names.sort();
    let expected = ["one", "one", "two", "two"].map(|name| format!("{name} 127.0.0.1"));
    assert_eq!(names, expected);

    // New connections go to the other endpoint, open ones continue.
    assert!(
        forwarder
            .apply(&key(), wanted(own, &[two]))
            .await
            .is_empty()
    );
    let mut stream = TcpStream::connect(own.address).await.unwrap();
    assert_eq!(line(&mut stream).await, "two 127.0.0.1");
    assert!(forwarder.apply(&key(), BTreeMap::new()).await.is_empty());
    let refused = TcpStream::connect(own.address).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    for mut stream in kept {
        stream.write_all(b"still here\n").await.unwrap();
        assert_eq!(line(&mut stream).await, "still here");
        // The end of one direction is forwarded as well.
        stream.shutdown().await.unwrap();
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn an_endpoint_sees_the_address_of_a_pod_that_connects() {
    let one = server("one").await;
    let own = listener(Protocol::Tcp, 2);
    let mut forwarder = Forwarder::new();
    forwarder.apply(&key(), wanted(own, &[one])).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.16.200.7:0".parse().unwrap()).unwrap();
    let mut stream = socket.connect(own.address).await.unwrap();
    assert_eq!(line(&mut stream).await, "one 127.16.200.7");
}

#[tokio::test]
async fn an_endpoint_that_refuses_is_skipped() {
    let one = server("one").await;
    let gone = listener(Protocol::Tcp, 3).address;
    let own = listener(Protocol::Tcp, 4);
    let mut forwarder = Forwarder::new();
    forwarder.apply(&key(), wanted(own, &[gone, one])).await;
    for _ in 0..4 {
        let mut stream = TcpStream::connect(own.address).await.unwrap();
        assert_eq!(line(&mut stream).await, "one 127.0.0.1");
    }
    forwarder.apply(&key(), wanted(own, &[gone])).await;
    let mut stream = TcpStream::connect(own.address).await.unwrap();
    let reset = timeout(TIMEOUT, stream.read(&mut [0])).await.unwrap();
    assert_eq!(reset.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_port_in_use_is_opened_when_it_is_free() {
    let one = server("one").await;
    let own = listener(Protocol::Tcp, 5);
    let other = std::net::TcpListener::bind(own.address).unwrap();
    let mut forwarder = Forwarder::new();
    let failed = forwarder.apply(&key(), wanted(own, &[one])).await;
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].listener, own);
    assert_eq!(failed[0].error.kind(), io::ErrorKind::AddrInUse);
    drop(other);
    assert!(
        forwarder
            .apply(&key(), wanted(own, &[one]))
            .await
            .is_empty()
    );
    let mut stream = TcpStream::connect(own.address).await.unwrap();
    assert_eq!(line(&mut stream).await, "one 127.0.0.1");
    // Closing the listener frees the port immediately.
    forwarder.apply(&key(), BTreeMap::new()).await;
    std::net::TcpListener::bind(own.address).unwrap();
}

#[tokio::test]
async fn packets_and_their_replies() {
    let echo = |name: &'static str| async move {
        let socket = UdpSocket::bind((Ipv4Addr::new(127, 16, 200, 2), 0))
            .await
            .unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut packet = [0; 100];
            loop {
                let (length, peer) = socket.recv_from(&mut packet).await.unwrap();
                let text = String::from_utf8_lossy(&packet[..length]).into_owned();
                let reply = format!("{name} {text}");
                socket.send_to(reply.as_bytes(), peer).await.unwrap();
            }
        });
        address
    };
    let (one, two) = (echo("one").await, echo("two").await);
    let own = listener(Protocol::Udp, 6);
    let mut forwarder = Forwarder::new();
    assert!(
        forwarder
            .apply(&key(), wanted(own, &[one, two]))
            .await
            .is_empty()
    );
    let ask = async |client: &UdpSocket, text: &str| {
        client.send_to(text.as_bytes(), own.address).await.unwrap();
        let mut packet = [0; 100];
        let received = timeout(TIMEOUT, client.recv_from(&mut packet)).await;
        let (length, peer) = received.unwrap().unwrap();
        assert_eq!(peer, own.address);
        String::from_utf8_lossy(&packet[..length]).into_owned()
    };
    let client = async || UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (first, second) = (client().await, client().await);
    let names = [ask(&first, "a").await, ask(&second, "b").await];
    // Each client stays at its endpoint.
    let again = [ask(&first, "a").await, ask(&second, "b").await];
    assert_eq!(names, again);
    let mut servers = names.map(|text| text[..3].to_owned());
    servers.sort();
    assert_eq!(servers, ["one", "two"]);
    // The client stays until its endpoint is removed.
    forwarder.apply(&key(), wanted(own, &[two])).await;
    assert_eq!(ask(&first, "c").await, "two c");
    assert_eq!(ask(&second, "d").await, "two d");
}
