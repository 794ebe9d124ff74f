//! `longshore exec`: in the containers of pods.

use std::{io::Read as _, process::ExitCode};

use clap::Args;
use longshore::client::{Cluster, ExecOptions, Session};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    sync::mpsc,
};

use crate::{
    config,
    error::{Error, Result},
    target::{ClusterArgs, Target},
    terminal::Terminal,
    ui,
};

/// Bytes that are moved at a time.
const PIECE: usize = 32 * 1024;

/// Which container, and what of it.
#[derive(Debug, Args)]
pub(crate) struct ContainerArgs {
    /// The pod's name, or the host name of a Job's task (train-worker-0)
    pub(super) pod: String,
    /// The container; needed when the pod has several
    #[arg(long, short)]
    container: Option<String>,
    /// Send the standard input
    #[arg(long, short = 'i')]
    stdin: bool,
    /// With a terminal, as for a shell
    #[arg(long, short = 't')]
    tty: bool,
    /// The namespace; the context's own without it
    #[arg(long, short)]
    pub(super) namespace: Option<String>,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
}

/// Run a command in a container of a pod
///
/// Its exit code is that of the command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore exec web -- ls /tmp
  longshore exec web -it -- sh
  longshore exec train-x7k2p-worker-0 -- nvidia-smi
  longshore exec web -i -- tar xf - < data.tar")]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    container: ContainerArgs,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

impl ContainerArgs {
    /// Whether what is asked for is a container's alone.
    pub(super) fn is_surely_a_pod(&self) -> bool {
        self.stdin || self.tty || self.container.is_some()
    }
}

pub(crate) async fn exec(args: ExecArgs) -> Result<ExitCode> {
    let target = args.container.cluster.open(&config::here()?).await?;
    session(target, args.container, Some(args.command)).await
}

/// Runs a command in a container, or takes its own program's input and output.
pub(super) async fn session(
    target: Target,
    args: ContainerArgs,
    command: Option<Vec<String>>,
) -> Result<ExitCode> {
    let terminal = Terminal::find();
    if args.tty && terminal.is_none() {
        return Err(Error::usage(
            "-t needs a terminal here, too: leave it out in a script",
        ));
    }
    let outcome = open(target.cluster(), &args, command).await;
    let result = match outcome {
        Ok(session) => {
            let terminal = terminal.filter(|_| args.tty);
            tokio::select! {
                result = talk(session, args.stdin, terminal) => result,
                _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
            }
        }
        Err(error) => Err(error),
    };
    target.close().await?;
    let code = result?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

async fn open(
    cluster: &Cluster,
    args: &ContainerArgs,
    command: Option<Vec<String>>,
) -> Result<Session> {
    let namespace = args.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| cluster.default_namespace());
    let pods = cluster.pods().in_namespace(namespace)?;
    let options = ExecOptions {
        container: args.container.clone(),
        stdin: args.stdin,
        tty: args.tty,
    };
    let pod = crate::pods::find(&pods, &args.pod).await?;
    Ok(match command {
        Some(command) => pods.exec(&pod, command, &options).await?,
        None => pods.attach(&pod, &options).await?,
    })
}

/// Moves everything to the end of the session; its exit code.
async fn talk(mut session: Session, stdin: bool, terminal: Option<Terminal>) -> Result<i32> {
    // What is typed goes to the other side as it is, until this is dropped.
    let raw = terminal.map(|terminal| terminal.raw()).transpose()?;
    if let Some(input) = session.stdin().filter(|_| stdin) {
        // Never awaited: a terminal's input has no end.
        tokio::spawn(async move {
            let (mut input, mut typed) = (input, typed());
            while let Some(bytes) = typed.recv().await {
                if input.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            let _ = input.shutdown().await;
        });
    }
    let (stdout, stderr) = (session.stdout(), session.stderr());
    let sizes = async {
        let Some(raw) = &raw else {
            return std::future::pending().await;
        };
        let mut changes = raw.size_changes()?;
        loop {
            let (columns, rows) = raw.size();
            if session.resize(columns, rows).await.is_err() {
                return std::future::pending().await;
            }
            changes.recv().await;
        }
    };
    let moved = async { tokio::join!(show(stdout, ui::bytes), show(stderr, ui::error_bytes),) };
    tokio::select! {
        _ = moved => {}
        result = sizes => return result,
    }
    drop(raw);
    Ok(session.wait().await?)
}

/// The standard input, read by a thread of its own: it may wait for ever.
fn typed() -> mpsc::Receiver<Vec<u8>> {
    let (send, typed) = mpsc::channel(8);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = vec![0; PIECE];
        while let Ok(length @ 1..) = stdin.read(&mut buffer) {
            if send.blocking_send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    typed
}

async fn show(reader: Option<impl AsyncRead + Unpin>, write: impl Fn(&[u8])) {
    let Some(mut reader) = reader else {
        return;
    };
    let mut buffer = vec![0; PIECE];
    while let Ok(length @ 1..) = reader.read(&mut buffer).await {
        write(&buffer[..length]);
        ui::flush();
    }
}
