//! The client of kube-client and the renewal of its credentials.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use jiff::Timestamp;
use kube_client::{Client, client::Body};
use tower::{BoxError, Service};

use super::{Transport, config};
use crate::locks::Mutex;

pub(super) type CreateClient = Box<dyn FnOnce() -> Client + Send>;

/// A client and its credentials. Creating kube-client's client requires a runtime, so it is
/// delayed until the first request.
pub(super) struct Connection {
    pub(super) client: Option<Client>,
    /// Creates the client at the first request.
    pub(super) create: Mutex<Option<CreateClient>>,
    /// The number of renewals of the credentials.
    pub(super) generation: u64,
    /// The expiry time of the credentials; `None` if they do not expire.
    pub(super) expires: Option<Timestamp>,
}

/// A service that sends each request with unexpired credentials. The client that
/// [`Transport::kube_client`] returns uses it.
#[derive(Clone)]
pub(super) struct Renewing(pub(super) Transport);

impl Service<Request<Body>> for Renewing {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let transport = self.0.clone();
        Box::pin(async move {
            let (client, generation) = transport.unexpired_client().await;
            let response = client.send(request).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                // The body is consumed, so this request is not sent again. The next
                // request uses the renewed credentials.
                transport.renew(generation).await;
            }
            Ok(response)
        })
    }
}

impl Transport {
    /// Like [`Transport::current_client`], but renews expired credentials first. If the
    /// renewal fails, returns the client with the expired credentials.
    pub(crate) async fn unexpired_client(&self) -> (Client, u64) {
        let (client, generation) = self.current_client();
        let expires = self.shared.connection.read().expires;
        if expires.is_some_and(|time| time <= Timestamp::now()) && self.renew(generation).await {
            return self.current_client();
        }
        (client, generation)
    }

    /// Returns the client and the generation of its credentials.
    pub(super) fn current_client(&self) -> (Client, u64) {
        {
            let connection = self.shared.connection.read();
            if let Some(client) = &connection.client {
                return (client.clone(), connection.generation);
            }
        }
        let mut connection = self.shared.connection.write();
        let create = connection.create.lock().take();
        if let Some(create) = create {
            connection.client = Some(create());
        }
        let client = connection
            .client
            .clone()
            .expect("the client was created before or just now");
        (client, connection.generation)
    }

    /// Loads the credentials again, only once for concurrent callers. Returns true if the current
    /// credentials are newer than `generation`.
    pub(crate) async fn renew(&self, generation: u64) -> bool {
        let Some(source) = &self.shared.source else {
            return false;
        };
        let _guard = self.shared.renewal.lock().await;
        if self.shared.connection.read().generation > generation {
            return true;
        }
        let outcome = match source.load().await {
            Ok(config) => config::client_in_background(config).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok((client, expires)) => {
                let mut connection = self.shared.connection.write();
                connection.client = Some(client);
                connection.generation += 1;
                connection.expires = expires;
                true
            }
            Err(error) => {
                tracing::warn!(%error, "cannot renew the credentials");
                false
            }
        }
    }
}
