//! Output that ends with its process: what the process left running may keep
//! the pipe open, but is not waited for.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::future::BoxFuture;
use rustix::io::Errno;
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::watch,
};

use super::Output;

/// Output until its process has ended and all it wrote is read.
pub(crate) struct UntilEnd {
    output: Output,
    ended: Option<BoxFuture<'static, ()>>,
}

impl UntilEnd {
    /// `ended` comes true, or is let go of, when the process has ended.
    pub(crate) fn new(output: Output, mut ended: watch::Receiver<bool>) -> Self {
        let ended = async move {
            // The sender's end counts as the process's.
            let _ = ended.wait_for(|ended| *ended).await;
        };
        Self {
            output,
            ended: Some(Box::pin(ended)),
        }
    }
}

impl AsyncRead for UntilEnd {
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
        match this.output.read_now(buffer.initialize_unfilled()) {
            Ok(count) => {
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
            Err(Errno::AGAIN) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}
