//! Calls of the gRPC health service.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use longshore_model::release;
use tokio::{task::JoinSet, time::Instant};

use super::{Outcome, action::duration_text, tcp};

/// Maximum number of bytes of a response.
const MAX_RESPONSE: usize = 4096;
/// The delay between attempts to connect. As with the kubelet's client, a refused connection fails
/// only when the probe's time is over.
const CONNECT_INTERVAL: Duration = Duration::from_millis(100);

/// Names of the codes of gRPC, by number.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];
/// Names of a service's states, by number.
const STATES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

/// Checks the health of a service.
pub(super) async fn probe(host: &str, port: u16, service: &str, timeout: Duration) -> Outcome {
    let deadline = Instant::now() + timeout;
    let address = tcp::join(host, port);
    let connecting = async {
        loop {
            match tcp::connect(host, port).await {
                Ok(stream) => return stream,
                Err(_) => tokio::time::sleep(CONNECT_INTERVAL).await,
            }
        }
    };
    let within = duration_text(timeout);
    let Ok(stream) = tokio::time::timeout_at(deadline, connecting).await else {
        return Outcome::Failure(format!(
            "timeout: failed to connect service {address:?} within {within}: context deadline \
             exceeded"
        ));
    };
    match tokio::time::timeout_at(deadline, check(stream, &address, service)).await {
        Ok(Ok(1)) => Outcome::Success,
        Ok(Ok(state)) => {
            let name = usize::try_from(state).ok().and_then(|at| STATES.get(at));
            let name = name.map_or_else(|| state.to_string(), |name| (*name).to_owned());
            Outcome::Failure(format!("service unhealthy (responded with {name:?})"))
        }
        Ok(Err(CallError { code: 12, message })) => Outcome::Failure(format!(
            "error: this server does not implement the grpc health protocol \
             (grpc.health.v1.Health): {message}"
        )),
        Ok(Err(CallError { code, message })) => {
            let code = CODES
                .get(code)
                .map_or_else(|| format!("Code({code})"), |name| (*name).to_owned());
            Outcome::Failure(format!(
                "error: health rpc probe failed: rpc error: code = {code} desc = {message}"
            ))
        }
        Err(_) => Outcome::Failure(format!(
            "timeout: health rpc did not complete within {within}"
        )),
    }
}

/// The status of a failed call.
struct CallError {
    code: usize,
    message: String,
}

impl CallError {
    fn unavailable(error: impl std::fmt::Display) -> Self {
        Self {
            code: 14,
            message: error.to_string(),
        }
    }
}

async fn check(
    stream: tokio::net::TcpStream,
    address: &str,
    service: &str,
) -> Result<u64, CallError> {
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(CallError::unavailable)?;
    let mut task = JoinSet::new();
    task.spawn(async move {
        // The response reports errors.
        let _ = connection.await;
    });
    let agent = format!("kube-probe/{}.{}", release::MAJOR, release::MINOR);
    let request = Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", agent)
        .body(Full::new(encode(service)))
        .map_err(CallError::unavailable)?;
    let response = sender.send_request(request).await;
    let response = response.map_err(CallError::unavailable)?;
    let (head, mut body) = response.into_parts();
    if head.status != http::StatusCode::OK {
        let message = format!(
            "unexpected HTTP status code received from server: {}",
            head.status
        );
        return Err(CallError { code: 2, message });
    }
    // A response without a body has its status in its headers.
    let mut ending = head.headers;
    let mut data = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame.map_err(CallError::unavailable)?.into_data() {
            Ok(bytes) => {
                data.extend_from_slice(&bytes);
                if data.len() > MAX_RESPONSE {
                    let message = "the response is too large".to_owned();
                    return Err(CallError { code: 8, message });
                }
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    ending = trailers;
                }
            }
        }
    }
    let text = |name: &str| ending.get(name).and_then(|value| value.to_str().ok());
    let code = text("grpc-status").and_then(|code| code.parse().ok());
    match code {
        Some(0) => decode(&data).ok_or_else(|| CallError {
            code: 13,
            message: "the response is not a HealthCheckResponse".to_owned(),
        }),
        code => {
            let message = text("grpc-message").unwrap_or_default();
            let message = percent_encoding::percent_decode_str(message);
            Err(CallError {
                code: code.unwrap_or(2),
                message: message.decode_utf8_lossy().into_owned(),
            })
        }
    }
}

/// Encodes a HealthCheckRequest, in which field 1 is the service.
fn encode(service: &str) -> Bytes {
    let mut message = Vec::new();
    if !service.is_empty() {
        message.push(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            message.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        message.push(length as u8);
        message.extend_from_slice(service.as_bytes());
    }
    // A flag for an uncompressed message, and the length.
    let mut framed = vec![0];
    framed.extend_from_slice(&u32::try_from(message.len()).unwrap_or(0).to_be_bytes());
    framed.extend_from_slice(&message);
    framed.into()
}

/// Decodes a HealthCheckResponse, in which field 1 is the state. An omitted field means 0.
fn decode(data: &[u8]) -> Option<u64> {
    let (prefix, message) = data.split_first_chunk::<5>()?;
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    if prefix[0] != 0 || usize::try_from(length).ok()? != message.len() {
        return None;
    }
    let Some((0x08, varint)) = message.split_first() else {
        return message.is_empty().then_some(0);
    };
    let mut state = 0_u64;
    for (at, byte) in varint.iter().take(9).enumerate() {
        state |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some(state);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_health_service() {
        assert_eq!(encode("").as_ref(), [0, 0, 0, 0, 0]);
        assert_eq!(encode("ab").as_ref(), [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
        let long = encode(&"x".repeat(200));
        assert_eq!(&long[..8], [0, 0, 0, 0, 203, 0x0a, 0xc8, 0x01]);
        assert_eq!(decode(&[0, 0, 0, 0, 2, 0x08, 1]), Some(1));
        assert_eq!(decode(&[0, 0, 0, 0, 0]), Some(0));
        assert_eq!(decode(&[0, 0, 0, 0, 3, 0x08, 0x80, 0x01]), Some(128));
        assert_eq!(decode(&[0, 0, 0, 0, 2, 0x08, 0x80]), None);
        assert_eq!(decode(&[1, 0, 0, 0, 2, 0x08, 1]), None);
        assert_eq!(decode(&[0, 0]), None);
    }
}
