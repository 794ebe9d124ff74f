//! A command in a running container.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Container, Session, SessionError, SessionInput, SessionOutput, Wanted};
use crate::sandbox::{Command, Output, Spawner, StartError, UntilEnd, Wiring};

pub(super) async fn exec(
    spawner: &Spawner,
    container: &Container,
    words: &[String],
    wanted: Wanted,
    terminal: bool,
) -> Result<Session, SessionError> {
    let gone = || SessionError::NotRunning("the container has ended".to_owned());
    let host = container.process.upgrade().ok_or_else(gone)?;
    let command = command(&container.command, words, wanted, terminal);
    let started = spawner.run_in(&host, &command).await.map_err(refusal)?;
    drop(host);
    let (ended, ending) = watch::channel(false);
    let reading = |output: Option<Output>, wanted: bool| {
        let output = UntilEnd::new(output?, ending.clone());
        wanted.then(|| Box::pin(output) as SessionOutput)
    };
    let output = reading(started.ends.output, wanted.output);
    let errors = reading(started.ends.errors, wanted.errors);
    let input = started.ends.input.filter(|_| wanted.input);
    let process = started.process;
    Ok(Session {
        input: input.map(|input| Box::pin(input) as SessionInput),
        output,
        errors,
        resize: started.ends.terminal.map(|terminal| {
            let resize = move |columns, rows| terminal.resize(columns, rows);
            Box::new(resize) as Box<dyn Fn(u16, u16) + Send + Sync>
        }),
        end: Box::pin(async move {
            let code = process.wait().await;
            ended.send_replace(true);
            code
        }),
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
        user: own.user,
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
