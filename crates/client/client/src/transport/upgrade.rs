//! Upgrades requests to WebSocket connections.

use http::{Request, header::USER_AGENT};
use kube_client::client::Connection;

use super::{Transport, call::Call};
use crate::error::{Error, Result};

impl Transport {
    /// Opens a WebSocket connection.
    ///
    /// # Errors
    /// The same as [`Transport::send`].
    pub(crate) async fn upgrade(&self, call: &Call) -> Result<Connection> {
        let mut renewed = false;
        loop {
            let (client, generation) = self.unexpired_client().await;
            let mut request = Request::new(Vec::new());
            *request.uri_mut() = call.uri()?;
            request
                .headers_mut()
                .insert(USER_AGENT, self.settings.agent.clone());
            let outcome = tokio::select! {
                biased;
                () = self.closed().cancelled() => return Err(Error::Closed),
                outcome = client.connect(request) => outcome,
            };
            match outcome {
                Ok(connection) => return Ok(connection),
                Err(kube_client::Error::Api(status))
                    if status.code == 401 && !renewed && self.renew(generation).await =>
                {
                    renewed = true;
                }
                Err(kube_client::Error::Api(status)) => {
                    return Err(api_error(call, &status));
                }
                Err(kube_client::Error::UpgradeConnection(error)) => {
                    return Err(Error::decode(call.response_name(), error));
                }
                Err(error) => return Err(self.unreachable(&error)),
            }
        }
    }
}

/// Converts the `Status` that kube-client has read.
fn api_error(call: &Call, status: &impl serde::Serialize) -> Error {
    let status = serde_json::to_value(status).and_then(serde_json::from_value);
    match status {
        Ok(status) => Error::from_status(call.name(), status),
        Err(error) => Error::decode(call.response_name(), error),
    }
}
