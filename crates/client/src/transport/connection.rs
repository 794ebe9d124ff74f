//! kube-client's client, and the credentials it has.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use jiff::Timestamp;
use kube_client::{Client, client::Body};
use tower::{BoxError, Service};

use super::{Transport, config};
use crate::locks::Mutex;

pub(super) type Make = Box<dyn FnOnce() -> Client + Send>;

/// kube-client's client needs a runtime to be made, so that is put off until
/// the first request. `generation` counts renewals of credentials.
pub(super) struct Connection {
    pub(super) client: Option<Client>,
    pub(super) make: Mutex<Option<Make>>,
    pub(super) generation: u64,
    /// When the credentials no longer serve.
    pub(super) expires: Option<Timestamp>,
}

/// Sends requests of others with the credentials of now.
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
            let (client, generation) = transport.fresh().await;
            let response = client.send(request).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                // The request cannot be sent again, but the next one is better off.
                transport.renew(generation).await;
            }
            Ok(response)
        })
    }
}

impl Transport {
    /// As [`Transport::current`], with credentials that have not expired, if any
    /// can be had.
    pub(super) async fn fresh(&self) -> (Client, u64) {
        let (client, generation) = self.current();
        let expires = self.shared.connection.read().expires;
        if expires.is_some_and(|time| time <= Timestamp::now()) && self.renew(generation).await {
            return self.current();
        }
        (client, generation)
    }

    /// The client, and which generation of credentials it has.
    pub(super) fn current(&self) -> (Client, u64) {
        {
            let connection = self.shared.connection.read();
            if let Some(client) = &connection.client {
                return (client.clone(), connection.generation);
            }
        }
        let mut connection = self.shared.connection.write();
        if let Some(make) = connection.make.get_mut().take() {
            connection.client = Some(make());
        }
        let client = connection
            .client
            .clone()
            .expect("either made before, or just now");
        (client, connection.generation)
    }

    /// Reads the credentials anew, once for all who ask at the same time;
    /// whether there is now something newer than `generation`.
    pub(super) async fn renew(&self, generation: u64) -> bool {
        let Some(source) = &self.shared.source else {
            return false;
        };
        let _one = self.shared.renewing.lock().await;
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
                tracing::warn!(%error, "credentials cannot be renewed");
                false
            }
        }
    }
}
