//! A command in a running container. As in Kubernetes it does not end with its
//! client: it goes on until it ends itself, or its container does, and what it
//! still writes is dropped.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::{OwnedSemaphorePermit, oneshot, watch},
};

use super::{Container, Session, SessionError, SessionInput, SessionOutput, Wanted};
use crate::sandbox::{Command, Output, Spawner, StartError, UntilEnd, Wiring};

/// The exit code of what was killed.
const KILLED: i32 = 128 + 9;

/// Output of a command. Once no one reads it any more it is read to its end and
/// dropped, so that the command neither waits for ever nor finds its pipe broken.
struct Drained(Option<UntilEnd>);

impl AsyncRead for Drained {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Some(output) => Pin::new(output).poll_read(context, buffer),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl Drop for Drained {
    fn drop(&mut self) {
        if let Some(mut output) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                let _ = tokio::io::copy(&mut output, &mut tokio::io::sink()).await;
            });
        }
    }
}

pub(crate) async fn exec(
    spawner: &Spawner,
    container: &Container,
    words: &[String],
    wanted: Wanted,
    terminal: bool,
    room: OwnedSemaphorePermit,
) -> Result<Session, SessionError> {
    let gone = || SessionError::NotRunning("the container has ended".to_owned());
    let host = container.process.upgrade().ok_or_else(gone)?;
    let command = command(&container.command, words, wanted, terminal);
    let started = spawner.run_in(&host, &command).await.map_err(refusal)?;
    drop(host);
    let (ended, ending) = watch::channel(false);
    let reading = |output: Option<Output>, wanted: bool| {
        let output = UntilEnd::new(output?, ending.clone());
        wanted.then(|| Box::pin(Drained(Some(output))) as SessionOutput)
    };
    let output = reading(started.ends.output, wanted.output);
    let errors = reading(started.ends.errors, wanted.errors);
    let input = started.ends.input.filter(|_| wanted.input);
    let process = started.process;
    // Kept by the command, not by the session: who leaves leaves it running.
    let terminal = started.ends.terminal.clone();
    let mut container_ended = container.attachment.ended();
    let (tell, code) = oneshot::channel();
    tokio::spawn(async move {
        let container_ended = async {
            // The sender's end counts as the container's.
            let _ = container_ended.wait_for(|ended| *ended).await;
        };
        let code = tokio::select! {
            code = process.wait() => Some(code),
            () = container_ended => None,
        };
        let code = match code {
            Some(code) => code,
            None => {
                process.kill();
                process.wait().await
            }
        };
        drop((room, terminal));
        ended.send_replace(true);
        let _ = tell.send(code);
    });
    Ok(Session {
        input: input.map(|input| Box::pin(input) as SessionInput),
        output,
        errors,
        resize: started.ends.terminal.map(|terminal| {
            let resize = move |columns, rows| terminal.resize(columns, rows);
            Box::new(resize) as Box<dyn Fn(u16, u16) + Send + Sync>
        }),
        end: Box::pin(async move { code.await.unwrap_or(KILLED) }),
    })
}

/// The command, as it runs beside the container's own.
fn command(own: &Arc<Command>, words: &[String], wanted: Wanted, terminal: bool) -> Command {
    let mut environment = own.environment.clone();
    let wiring = if terminal {
        if !environment.iter().any(|(name, _)| name == "TERM") {
            environment.push(("TERM".into(), "xterm".into()));
        }
        Wiring::Terminal
    } else {
        Wiring::Pipes {
            input: wanted.input,
            output: wanted.output,
            errors: wanted.errors,
        }
    };
    Command {
        arguments: words.iter().map(Into::into).collect(),
        environment,
        working_folder: own.working_folder.clone(),
        privileges: own.privileges.clone(),
        wiring,
        ..Command::default()
    }
}

/// What a shell would end with: 127 for what is not there, 126 for what cannot
/// be run.
fn refusal(error: StartError) -> SessionError {
    let message = error.to_string();
    match error {
        StartError::Execute { ref reason, .. } => SessionError::Command {
            code: if reason.contains("not found") || reason.contains("no such file") {
                127
            } else {
                126
            },
            message,
        },
        StartError::Entered { .. } => SessionError::NotRunning(message),
        _ => SessionError::Failed(message),
    }
}
