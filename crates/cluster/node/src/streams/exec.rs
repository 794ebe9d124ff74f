//! Commands in a running container. As in Kubernetes, a command does not end
//! with its client: it runs until it or its container ends, and its remaining
//! output is discarded.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use longshore_node_api::{BoxedRead, BoxedWrite, Session, SessionError, StreamsWanted};
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::{OwnedSemaphorePermit, oneshot, watch},
};

use super::Container;
use crate::sandbox::{Command, Output, OutputUntilExit, Spawner, StartError, Wiring};

/// The exit code of a killed process.
const KILLED_EXIT_CODE: i32 = 128 + 9;

/// The output of a command. If its reader is dropped, the rest is read and
/// discarded, so that the command neither blocks nor gets a broken pipe.
struct Drained(Option<OutputUntilExit>);

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
    wanted: StreamsWanted,
    permit: OwnedSemaphorePermit,
) -> Result<Session, SessionError> {
    let gone = || SessionError::NotRunning("the container has ended".to_owned());
    let host = container.process.upgrade().ok_or_else(gone)?;
    let command = command(&container.command, words, wanted);
    let started = spawner.run_in(&host, &command).await.map_err(refusal)?;
    drop(host);
    let (ended, ending) = watch::channel(false);
    let reading = |output: Option<Output>, wanted: bool| {
        let output = OutputUntilExit::new(output?, ending.clone());
        wanted.then(|| Box::pin(Drained(Some(output))) as BoxedRead)
    };
    let output = reading(started.ends.output, wanted.output);
    let errors = reading(started.ends.errors, wanted.errors);
    let input = started.ends.input.filter(|_| wanted.input);
    let process = started.process;
    // The command keeps the terminal, so that it continues when the session
    // ends.
    let terminal = started.ends.terminal.clone();
    let mut container_ended = container.attachment.ended();
    let (tell, code) = oneshot::channel();
    tokio::spawn(async move {
        let container_ended = async {
            // A dropped sender counts as the end of the container.
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
        drop((permit, terminal));
        ended.send_replace(true);
        let _ = tell.send(code);
    });
    Ok(Session {
        input: input.map(|input| Box::pin(input) as BoxedWrite),
        output,
        errors,
        resize: started.ends.terminal.map(|terminal| {
            let resize = move |columns, rows| terminal.resize(columns, rows);
            Box::new(resize) as Box<dyn Fn(u16, u16) + Send + Sync>
        }),
        end: Box::pin(async move { code.await.unwrap_or(KILLED_EXIT_CODE) }),
    })
}

/// Builds the command that runs in the container, from the container's own
/// command.
pub(super) fn command(own: &Arc<Command>, words: &[String], wanted: StreamsWanted) -> Command {
    let mut environment = own.environment.clone();
    let wiring = if wanted.terminal {
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
        makes_working_folder: false,
        privileges: own.privileges.clone(),
        wiring,
        ports: own.ports.clone(),
        cgroup: own.cgroup.clone(),
        ..Command::default()
    }
}

/// Returns the exit code of a shell: 127 if the command is not found, 126 if it cannot be executed.
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
