//! Connects the API server's log requests to the node's log files. The API server
//! starts before the node, so the connection is set later.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use longshore_apiserver::{LogError, LogRequest, NodeLogs};
use longshore_node::{LogQuery, LogReadError, LogReader};

type LogStream = BoxStream<'static, Result<Bytes, std::io::Error>>;

/// Gives the API server access to the node's logs once the node has started.
#[derive(Clone, Default)]
pub(crate) struct LogBridge {
    reader: Arc<OnceLock<LogReader>>,
}

impl LogBridge {
    /// Sets the log reader. Only the first call has an effect.
    pub(crate) fn fill(&self, reader: LogReader) {
        let _ = self.reader.set(reader);
    }
}

impl NodeLogs for LogBridge {
    fn open(&self, request: LogRequest) -> BoxFuture<'static, Result<LogStream, LogError>> {
        let reader = self.reader.get().cloned();
        Box::pin(async move {
            let Some(reader) = reader else {
                return Err(LogError::Failed(
                    "the embedded cluster runs no node".to_owned(),
                ));
            };
            let query = LogQuery {
                namespace: request.namespace,
                pod: request.pod,
                uid: request.uid,
                container: request.container,
                follow: request.follow,
                previous: request.previous,
                tail_lines: request.tail_lines,
                since: request.since,
                timestamps: request.timestamps,
                limit_bytes: request.limit_bytes,
            };
            match reader.open(query).await {
                Ok(stream) => Ok(stream.boxed()),
                Err(LogReadError::NotFound(text)) => Err(LogError::NotFound(text)),
                Err(LogReadError::NotReady(text)) => Err(LogError::NotReady(text)),
                Err(error) => Err(LogError::Failed(error.to_string())),
            }
        })
    }
}
