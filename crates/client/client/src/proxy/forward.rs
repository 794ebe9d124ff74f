//! Forwards the requests of other programs, as a proxy does.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};

use super::ApiServerProxy;
use crate::error::Error;

impl ApiServerProxy {
    /// Sends a request of another program with the credentials of this client, and returns the
    /// response as it is, with any status code. The path of the cluster's URL is prepended.
    ///
    /// The request is sent once. `request` must have no credentials of its own, and no headers
    /// that concern the other program's connection, except `Connection: Upgrade` and `Upgrade`.
    /// If the server accepts an upgrade, `hyper::upgrade::on` takes the connection from the
    /// response.
    ///
    /// # Errors
    /// [`Error::Unreachable`] without a response, [`Error::Closed`] after a close.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let request = http::Request::get("/api/v1/nodes/a").body(bytes::Bytes::new())?;
    /// let response = cluster.proxy().forward(request).await?;
    /// assert_eq!(response.status(), 404);
    /// # Ok(()) });
    /// ```
    pub async fn forward(
        &self,
        request: Request<Bytes>,
    ) -> crate::Result<Response<UnsyncBoxBody<Bytes, Error>>> {
        let transport = &self.transport;
        let request = request.map(kube_client::client::Body::from);
        let (client, generation) = transport.unexpired_client().await;
        let response = tokio::select! {
            biased;
            () = transport.closed().cancelled() => return Err(Error::Closed),
            response = client.send(request) => response,
        };
        let response = response.map_err(|error| transport.unreachable(&error))?;
        if response.status() == StatusCode::UNAUTHORIZED {
            // The other program may repeat the request; the next one has new credentials.
            transport.renew(generation).await;
        }
        let transport = transport.clone();
        Ok(response.map(|body| {
            let body = body.map_err(move |error| transport.unreachable(&error));
            body.boxed_unsync()
        }))
    }
}
