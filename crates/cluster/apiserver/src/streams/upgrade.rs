//! Turns a request into a session: selects the transport, sends the response
//! that upgrades the connection, and starts the task that serves it.

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use longshore_model::StatusReason;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{
    Command, Forward, Reading,
    protocol::{self, Framing, Report},
    socket,
    tunnel::Tunnel,
};
use crate::{body::Body, call::Call, reply::Reply, status_error::StatusError, stopping::stopped};

/// The purpose of the upgraded connection.
#[derive(Debug)]
pub(crate) enum Upgrade {
    Command(Command),
    Forward(Forward),
    Read(Reading),
}

/// The transport of a session.
enum Carrier {
    Socket(Framing),
    Spdy(Report, bool),
    Tunnel,
}

/// Returns true if a client asks for a WebSocket.
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    protocol::names(headers, &header::CONNECTION, "upgrade")
        && protocol::names(headers, &header::UPGRADE, "websocket")
}

/// Responds to a session request; the session starts after the response is
/// sent.
pub(crate) fn answer(call: Call, upgrade: Upgrade) -> Reply {
    let headers = &call.headers;
    let is = |word| protocol::names(headers, &header::UPGRADE, word);
    let asks = protocol::names(headers, &header::CONNECTION, "upgrade");
    let required = || StatusError::bad_request("Upgrade request required");
    let (carrier, response) = if is_websocket(headers) {
        websocket(headers, &upgrade)?
    } else if asks && is("SPDY/3.1") {
        spdy(headers, &upgrade)?
    } else {
        return Err(required());
    };
    let connection = call.upgrade.ok_or_else(required)?;
    let room = call.shared.sessions.of(&call.user).try_take();
    let room = room.ok_or_else(|| {
        let text = "too many sessions are open at a time: end some of them, and try again";
        StatusError::new(StatusReason::TooManyRequests, text)
    })?;
    let streams = call.shared.node_streams.clone();
    let forwarded = call.shared.forwarded.of(&call.user);
    let stopping = call.stopping;
    let audit = call.audit;
    tokio::spawn(async move {
        // The record completes with the session.
        let (_room, _audit) = (room, audit);
        let io = match connection.await {
            Ok(upgraded) => TokioIo::new(upgraded),
            Err(error) => return tracing::debug!(%error, "a session did not start"),
        };
        let living = async {
            match (upgrade, carrier) {
                (Upgrade::Command(command), Carrier::Socket(framing)) => {
                    command.over_socket(&*streams, io, framing).await;
                }
                (Upgrade::Command(command), Carrier::Spdy(report, resizes)) => {
                    command.over_spdy(&*streams, io, report, resizes).await;
                }
                (Upgrade::Forward(forward), Carrier::Socket(framing)) => {
                    forward
                        .over_socket((&*streams, &forwarded), io, framing)
                        .await;
                }
                (Upgrade::Forward(forward), Carrier::Spdy(..)) => {
                    forward.over_spdy((streams, forwarded), io).await;
                }
                (Upgrade::Forward(forward), Carrier::Tunnel) => {
                    let tunnel = Tunnel::new(socket::accept(io).await);
                    forward.over_spdy((streams, forwarded), tunnel).await;
                }
                (Upgrade::Read(reading), Carrier::Socket(framing)) => {
                    reading.over_socket(io, framing.base64).await;
                }
                // These combinations are never selected.
                (Upgrade::Command(_), Carrier::Tunnel)
                | (Upgrade::Read(_), Carrier::Tunnel | Carrier::Spdy(..)) => {}
            }
        };
        tokio::select! {
            () = living => {}
            () = stopped(stopping) => {}
        }
    });
    Ok(response)
}

type Chosen = Result<(Carrier, Response<Body>), StatusError>;

fn websocket(headers: &HeaderMap, upgrade: &Upgrade) -> Chosen {
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let key = key.ok_or_else(|| StatusError::bad_request("Sec-WebSocket-Key is missing"))?;
    let is_13 = |version: &HeaderValue| version == "13";
    if !headers
        .get(header::SEC_WEBSOCKET_VERSION)
        .is_some_and(is_13)
    {
        return Err(StatusError::bad_request(
            "Sec-WebSocket-Version: only version 13 is spoken",
        ));
    }
    let refused = || {
        let offered = protocol::offered(headers, &header::SEC_WEBSOCKET_PROTOCOL);
        let text = format!("none of the websocket protocols {offered:?} is spoken here");
        StatusError::new(StatusReason::Forbidden, text)
    };
    let tunnels = protocol::names(headers, &header::SEC_WEBSOCKET_PROTOCOL, protocol::TUNNEL);
    let (carrier, name) = match upgrade {
        Upgrade::Command(_) => {
            let (name, framing) = protocol::of_command(headers).ok_or_else(refused)?;
            (Carrier::Socket(framing), name)
        }
        Upgrade::Read(_) => {
            let (name, framing) = protocol::of_reading(headers).ok_or_else(refused)?;
            (Carrier::Socket(framing), name)
        }
        Upgrade::Forward(_) if tunnels => (Carrier::Tunnel, protocol::TUNNEL),
        Upgrade::Forward(forward) => {
            let (name, framing) = protocol::of_ports(headers).ok_or_else(refused)?;
            forward.check_ports()?;
            (Carrier::Socket(framing), name)
        }
    };
    let mut response = switch("websocket", header::SEC_WEBSOCKET_PROTOCOL, name);
    if let Ok(accept) = derive_accept_key(key.as_bytes()).parse() {
        let headers = response.headers_mut();
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    Ok((carrier, response))
}

fn spdy(headers: &HeaderMap, upgrade: &Upgrade) -> Chosen {
    let refused = |text: String| StatusError::new(StatusReason::Forbidden, text);
    let (carrier, name) = match upgrade {
        Upgrade::Command(_) => {
            let (name, report) = protocol::of_spdy(headers).map_err(refused)?;
            let resizes = matches!(name, "v4.channel.k8s.io" | "v3.channel.k8s.io");
            (Carrier::Spdy(report, resizes), name)
        }
        Upgrade::Read(_) => return Err(StatusError::bad_request("Upgrade request required")),
        Upgrade::Forward(_) => {
            let offered = protocol::offered(headers, &protocol::SPDY_HEADER);
            let name = protocol::SPDY_PORTS;
            if !offered.is_empty() && !offered.iter().any(|other| other == name) {
                return Err(refused(protocol::no_common_protocol(&offered, &[name])));
            }
            (Carrier::Spdy(Report::Text, false), name)
        }
    };
    Ok((carrier, switch("SPDY/3.1", protocol::SPDY_HEADER, name)))
}

/// Creates the 101 response with the selected protocol.
fn switch(to: &'static str, header: HeaderName, name: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    let upgrade = HeaderValue::from_static("Upgrade");
    headers.insert(header::CONNECTION, upgrade);
    headers.insert(header::UPGRADE, HeaderValue::from_static(to));
    if !name.is_empty() {
        headers.insert(header, HeaderValue::from_static(name));
    }
    response
}
