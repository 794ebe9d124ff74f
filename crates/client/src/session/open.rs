//! Opens a session: the upgrade to a websocket, and the tasks that move its
//! bytes.

use futures::StreamExt;
use http::{HeaderValue, Request, header::USER_AGENT};
use kube_client::client::Connection;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::{ExecOptions, Input, Reader, Session, code, pump};
use crate::{
    cluster::Cluster,
    error::{Error, Result},
    transport::Call,
};

/// Bytes of each stream that wait for whoever is slower.
const BUFFER: usize = 64 * 1024;
/// Frames that wait to be sent.
const FRAMES: usize = 8;

impl Cluster {
    /// Asks for a websocket; a refusal is told in the server's words.
    pub(super) async fn upgrade(&self, call: &Call) -> Result<Connection> {
        let mut renewed = false;
        loop {
            let (client, generation) = self.fresh().await;
            let mut request = Request::new(Vec::new());
            *request.uri_mut() = call.uri()?;
            request.headers_mut().insert(USER_AGENT, self.agent());
            let outcome = tokio::select! {
                biased;
                () = self.shared.closed.cancelled() => return Err(Error::Closed),
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
                    return Err(told(call, &status));
                }
                Err(kube_client::Error::UpgradeConnection(error)) => {
                    return Err(Error::decode(
                        format!("the answer to {}", call.name()),
                        error,
                    ));
                }
                Err(error) => return Err(self.unreachable(&error)),
            }
        }
    }

    fn agent(&self) -> HeaderValue {
        self.agent.clone()
    }
}

/// The error of a refusal that kube-client has read.
fn told(call: &Call, status: &impl serde::Serialize) -> Error {
    let status = serde_json::to_value(status).and_then(serde_json::from_value);
    match status {
        Ok(status) => Error::from_status(call.name(), status),
        Err(error) => Error::decode(format!("the answer to {}", call.name()), error),
    }
}

impl Session {
    pub(super) async fn open(
        cluster: &Cluster,
        call: &Call,
        options: &ExecOptions,
    ) -> Result<Self> {
        let connection = cluster.upgrade(call).await?;
        let closes = connection.supports_stream_close();
        let (sink, stream) = connection.into_stream().split();
        let (frames, queued) = mpsc::channel(FRAMES);
        let (tell, ended) = oneshot::channel();
        let (input, typed) = if options.stdin {
            let (read, write) = tokio::io::duplex(BUFFER);
            (Some(Input(write)), Some(read))
        } else {
            (None, None)
        };
        let (stdout, out) = tokio::io::duplex(BUFFER);
        let (stderr, err) = tokio::io::duplex(BUFFER);
        let url = cluster.url();
        let mut tasks = vec![
            tokio::spawn(pump::send(sink, queued)),
            tokio::spawn(pump::receive(stream, [out, err], tell, url)),
        ];
        if let Some(typed) = typed {
            tasks.push(tokio::spawn(pump::input(typed, frames.clone(), closes)));
        }
        Ok(Self {
            input,
            stdout: Some(Reader(stdout)),
            stderr: (!options.tty).then_some(Reader(stderr)),
            frames,
            ended,
            ends_input: closes,
            request: call.name(),
            _tasks: tasks.into_iter().map(AbortOnDropHandle::new).collect(),
        })
    }

    /// Whether the server can be told that the input has ended.
    pub(crate) fn ends_input(&self) -> bool {
        self.ends_input
    }

    /// As [`Session::wait`], while the outputs are read elsewhere.
    pub(crate) async fn wait_for_end(&mut self) -> Result<i32> {
        let ended = (&mut self.ended).await;
        let status = ended.unwrap_or(Err(Error::Closed))?;
        code(self.request.clone(), status)
    }
}
