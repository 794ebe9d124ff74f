//! Executes a session in the container of a task, through the API server.

use std::sync::Arc;

use futures::future::BoxFuture;
use longshore::client::{ExecOptions, Reader, Session};
use longshore_ssh::{Control, HELLO, Request, Started, process_of};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::mpsc,
};

use crate::task_container::TaskContainer;

/// The maximum length of the line with which the program in the container begins.
const MAX_HELLO: usize = HELLO.len() + 12;
/// The maximum length of the messages of a program that does not begin with the line.
const MAX_MESSAGE: u64 = 4096;

/// Starts a session. The program in the container reads the request from its standard input.
pub(super) async fn start(task: Arc<TaskContainer>, request: Request) -> Result<Started, String> {
    let options = ExecOptions {
        container: Some(task.container.clone()),
        stdin: true,
        tty: request.terminal.is_some(),
    };
    let command = [task.program.as_str(), "bootstrap", "ssh"];
    let opened = task.pod.exec(command, &options).await;
    let mut session = opened.map_err(|error| error.to_string())?;
    if let Some(terminal) = &request.terminal {
        let (columns, rows) = terminal.size;
        // The end of the session reports errors.
        let _ = session.resize(columns, rows).await;
    }
    let (Some(mut input), Some(mut output)) = (session.stdin(), session.stdout()) else {
        return Err("the session has no streams".to_owned());
    };
    let errors = session.stderr();
    let process = match hello(&mut output).await {
        Ok(process) => process,
        Err(begin) => return Err(without_hello(begin, output, errors, session).await),
    };
    let sent = input.write_all(&request.encode()).await;
    sent.map_err(|error| format!("the session was lost: {error}"))?;
    let (sizes, changes) = mpsc::channel(1);
    Ok(Started {
        input: Box::new(input),
        output: Box::new(output),
        errors: errors.map(|errors| Box::new(errors) as longshore_ssh::BoxRead),
        control: Box::new(Controls {
            task,
            process,
            sizes,
        }),
        exit: Box::pin(exit(session, changes)),
    })
}

/// Reads the first line of the program, byte by byte, and returns the program's process. The error
/// is the program's output instead of the line.
async fn hello(output: &mut Reader) -> Result<u32, Vec<u8>> {
    let mut line = Vec::new();
    while line.len() < MAX_HELLO && line.last() != Some(&b'\n') {
        match output.read_u8().await {
            Ok(byte) => line.push(byte),
            Err(_) => break,
        }
    }
    process_of(&line).ok_or(line)
}

/// Returns the reason why a session could not be started.
async fn without_hello(
    mut begin: Vec<u8>,
    output: Reader,
    errors: Option<Reader>,
    session: Session,
) -> String {
    let _ = output.take(MAX_MESSAGE).read_to_end(&mut begin).await;
    if let Some(errors) = errors {
        let _ = errors.take(MAX_MESSAGE).read_to_end(&mut begin).await;
    }
    let text = String::from_utf8_lossy(&begin).trim().to_owned();
    match session.wait().await {
        Err(error) if text.is_empty() => error.to_string(),
        // clap's exit code for a subcommand that does not exist.
        Ok(2) => "the program in the pod is of an older version, which does not serve SSH: \
            start the run again"
            .to_owned(),
        _ => format!("the session could not be started in the pod: {text}"),
    }
}

/// Waits for the exit code, and passes on the sizes of the terminal meanwhile.
async fn exit(
    mut session: Session,
    mut changes: mpsc::Receiver<(u16, u16)>,
) -> Result<i32, String> {
    let mut is_open = true;
    loop {
        tokio::select! {
            code = session.wait_for_end() => return code.map_err(|error| error.to_string()),
            size = changes.recv(), if is_open => match size {
                Some((columns, rows)) => drop(session.resize(columns, rows).await),
                None => is_open = false,
            },
        }
    }
}

/// Controls a session.
struct Controls {
    task: Arc<TaskContainer>,
    process: u32,
    sizes: mpsc::Sender<(u16, u16)>,
}

impl Control for Controls {
    fn resize(&self, columns: u16, rows: u16) -> BoxFuture<'static, ()> {
        let sizes = self.sizes.clone();
        Box::pin(async move {
            let _ = sizes.send((columns, rows)).await;
        })
    }

    fn signal(&self, name: String) -> BoxFuture<'static, ()> {
        let (task, process) = (self.task.clone(), self.process);
        Box::pin(async move {
            let process = process.to_string();
            let command = [
                task.program.as_str(),
                "bootstrap",
                "signal",
                &process,
                &name,
            ];
            // The session may have ended.
            let _ = task.pod.output(command, Some(&task.container)).await;
        })
    }
}
