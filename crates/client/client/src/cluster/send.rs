//! Sends requests. If the server has a kind only in another version, the request uses that
//! version.

use bytes::Bytes;
use http::Response;
use kube_client::client::Body;
use serde::de::DeserializeOwned;

use super::Cluster;
use crate::{
    error::Result,
    transport::{Call, parse},
};

impl Cluster {
    /// Sends a request. A status code other than 2xx is an error.
    pub(crate) async fn send(&self, call: &Call) -> Result<Response<Body>> {
        let (versions, discovery) = (&self.shared.versions, &self.shared.discovery);
        let adapted = versions.in_served_version(call);
        let call = adapted.as_ref().unwrap_or(call);
        match self.transport.send(call).await {
            Err(error) if error.is_not_found() => {
                // Boxed, because it is rare and larger than everything else here.
                let instead = versions.replacement_for(discovery, &self.transport, call, &error);
                match Box::pin(instead).await? {
                    Some(call) => self.transport.send(&call).await,
                    None => Err(error),
                }
            }
            outcome => outcome,
        }
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn bytes(&self, call: &Call) -> Result<Bytes> {
        self.bytes_with(call, 0, |_| false).await
    }

    /// Like [`Cluster::bytes`], for a response of about `expected` bytes. `look` is called with the
    /// body read so far, until it returns false.
    pub(crate) async fn bytes_with(
        &self,
        call: &Call,
        expected: usize,
        look: impl FnMut(&[u8]) -> bool,
    ) -> Result<Bytes> {
        let response = self.send(call).await?;
        self.transport.read(call, response, expected, look).await
    }

    /// Sends a request and reads the JSON of the response.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: &Call) -> Result<T> {
        parse(call, &self.bytes(call).await?)
    }
}
