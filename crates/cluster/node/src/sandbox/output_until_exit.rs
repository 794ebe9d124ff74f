//! Output that ends with its process. Leftover processes may keep the pipe
//! open, but readers do not wait for them.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::future::BoxFuture;
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::watch,
};

use super::Output;

/// Output that ends when its process has ended and everything it wrote was
/// read.
pub(crate) struct OutputUntilExit {
    output: Output,
    ended: Option<BoxFuture<'static, ()>>,
}

impl OutputUntilExit {
    /// `ended` becomes true, or its sender is dropped, when the process has
    /// ended.
    pub(crate) fn new(output: Output, mut ended: watch::Receiver<bool>) -> Self {
        let ended = async move {
            // A dropped sender counts as the end of the process.
            let _ = ended.wait_for(|ended| *ended).await;
        };
        Self {
            output,
            ended: Some(Box::pin(ended)),
        }
    }
}

impl AsyncRead for OutputUntilExit {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(ended) = &mut this.ended {
            if let Poll::Ready(read) = Pin::new(&mut this.output).poll_read(context, buffer) {
                return Poll::Ready(read);
            }
            ready!(ended.as_mut().poll(context));
            this.ended = None;
        }
        this.output.poll_rest(context, buffer)
    }
}
