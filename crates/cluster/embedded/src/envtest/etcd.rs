//! `etcd`: answers health checks. The API server stores the objects itself.

use std::{convert::Infallible, net::SocketAddr};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{net::TcpListener, task::JoinSet};

use super::{EnvtestError, flags::Flags};

/// The help. envtest searches it for flags.
pub(super) const HELP: &str = "\
etcd for envtest, by Longshore: answers health checks. Objects are kept by the
kube-apiserver in the same folder.

Flags:
      --listen-client-urls string   Addresses to listen on, such as http://127.0.0.1:2379
      --unsafe-no-fsync             No effect: nothing is written

All other flags of etcd are accepted and have no effect.
";

const LISTEN: &str = "listen-client-urls";
const DEFAULT_URL: &str = "http://127.0.0.1:2379";

/// The addresses that the flags name.
pub(super) fn addresses(flags: &mut Flags) -> Result<Vec<SocketAddr>, EnvtestError> {
    let urls = flags.take(LISTEN);
    let urls = urls.unwrap_or_else(|| DEFAULT_URL.to_owned());
    urls.split(',').map(address).collect()
}

fn address(url: &str) -> Result<SocketAddr, EnvtestError> {
    let invalid = |problem: &str| EnvtestError::Flag {
        name: LISTEN,
        value: url.to_owned(),
        problem: problem.to_owned(),
    };
    let rest = url
        .strip_prefix("http://")
        .ok_or_else(|| invalid("expected http://ADDRESS:PORT, as envtest passes it"))?;
    let text = rest
        .trim_end_matches('/')
        .replace("localhost:", "127.0.0.1:");
    let address: SocketAddr = text
        .parse()
        .map_err(|_| invalid("expected http://ADDRESS:PORT"))?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(invalid("not a loopback address: listen on 127.0.0.1")),
    }
}

/// Serves until `end`.
pub(super) async fn serve(
    addresses: Vec<SocketAddr>,
    end: impl Future<Output = ()>,
) -> Result<(), EnvtestError> {
    let mut tasks = JoinSet::new();
    for address in addresses {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| EnvtestError::Listen { address, source })?;
        tasks.spawn(accept(listener));
    }
    end.await;
    tasks.shutdown().await;
    Ok(())
}

async fn accept(listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => _ = connections.spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let service = service_fn(async |request| Ok::<_, Infallible>(answer(&request)));
                    // The client closed the connection, or did not send HTTP.
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                }),
                // For example, the process is out of descriptors. They may become free.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

fn answer(request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, body) = match request.uri().path() {
        "/health" | "/livez" | "/readyz" => {
            (StatusCode::OK, "{\"health\":\"true\",\"reason\":\"\"}")
        }
        "/version" => (
            StatusCode::OK,
            "{\"etcdserver\":\"3.6.0\",\"etcdcluster\":\"3.6.0\"}",
        ),
        _ => (
            StatusCode::NOT_FOUND,
            "Longshore's kube-apiserver keeps its objects in memory: there are none in etcd\n",
        ),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_those_of_the_flag() {
        let read = |url: &str| {
            let mut flags = Flags::read([format!("--{LISTEN}={url}")]);
            addresses(&mut flags).map_err(|error| error.to_string())
        };
        let both = read("http://127.0.0.1:23,http://localhost:24/").unwrap();
        assert_eq!(
            both,
            ["127.0.0.1:23", "127.0.0.1:24"].map(|a| a.parse().unwrap())
        );
        assert!(
            read("https://127.0.0.1:23")
                .unwrap_err()
                .contains("http://ADDRESS:PORT")
        );
        assert!(read("http://0.0.0.0:23").unwrap_err().contains("loopback"));
        let default = addresses(&mut Flags::default()).unwrap();
        assert_eq!(default, ["127.0.0.1:2379".parse().unwrap()]);
    }
}
