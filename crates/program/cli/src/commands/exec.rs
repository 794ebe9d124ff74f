//! `longshore exec`: runs a command in a container.

use std::{io::Read as _, process::ExitCode};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::client::{Cluster, ExecOptions, Session};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    sync::mpsc,
};

use crate::{
    complete, config,
    error::{Error, Result},
    owners::{Access, OwnerArgs},
    place::Container,
    target::{self, ClusterArgs, Target},
    terminal::Terminal,
    ui,
};

/// Buffer size in bytes.
const PIECE: usize = 32 * 1024;

/// Arguments for a container and its streams.
#[derive(Debug, Args)]
pub(crate) struct ContainerArgs {
    /// Task, run or pod: RUN/ROLE/INDEX, RUN if it has one task, or POD
    #[arg(value_name = "TASK", add = ArgValueCompleter::new(complete::tasks))]
    pub(super) place: String,
    /// Container name [default: the one that runs the command, or the pod's only one]
    #[arg(long, short)]
    container: Option<String>,
    /// Pass stdin to the container
    #[arg(long, short = 'i')]
    stdin: bool,
    /// Allocate a terminal; requires that stdin and stdout are terminals
    #[arg(long, short = 't')]
    tty: bool,
    #[command(flatten)]
    pub(super) owners: OwnerArgs,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    pub(super) namespace: Option<String>,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
}

/// Run a command in the container of a task or pod
///
/// Exits with the exit code of the command. A task is RUN/ROLE/INDEX, as in
/// digits-x7k2p/worker/0. RUN is the name of a run, a prefix of it that no other of your runs
/// has, or `last` for your newest run; it suffices if the run has one task. POD is the
/// name of a pod, pod/NAME, or the host name of a Job's task, as in train-worker-0.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore exec last -- env
  longshore exec digits-x7k2p/worker/0 -it -- sh
  longshore exec pod/web -- ls /tmp
  longshore exec web -i -- sh -c 'cat > /tmp/data.csv' < data.csv")]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    container: ContainerArgs,
    /// Command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

impl ContainerArgs {
    /// Returns true if an option was given that applies only to containers.
    pub(super) fn needs_a_container(&self) -> bool {
        self.stdin || self.tty || self.container.is_some()
    }

    /// Returns the access to the run for a command in the container, or for a connection with its
    /// program.
    pub(super) fn access(&self, executes: bool) -> Access {
        match (executes, self.stdin || self.tty) {
            (true, _) => self.owners.act("run commands in"),
            (false, true) => self.owners.act("write to"),
            (false, false) => Access::Read,
        }
    }
}

pub(crate) async fn exec(args: ExecArgs) -> Result<ExitCode> {
    let target = args.container.cluster.open(&config::here()?).await?;
    session(target, args.container, Some(args.command)).await
}

/// Runs a command in a container, or attaches to its program.
pub(super) async fn session(
    target: Target,
    args: ContainerArgs,
    command: Option<Vec<String>>,
) -> Result<ExitCode> {
    if args.tty && Terminal::find().is_none() {
        return Err(Error::usage(
            "-t requires a terminal for stdin and stdout: omit it in scripts",
        ));
    }
    let cluster = target.cluster();
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let access = args.access(command.is_some());
    let container = args.container.as_deref();
    let container = Container::find(cluster, namespace, &args.place, container, access).await;
    enter(target, args, container, command).await
}

/// Like [`session`], with the result of finding the container.
pub(super) async fn enter(
    target: Target,
    args: ContainerArgs,
    container: Result<Container>,
    command: Option<Vec<String>>,
) -> Result<ExitCode> {
    let terminal = Terminal::find();
    let outcome = match container {
        Ok(container) => open(target.cluster(), &args, container, command).await,
        Err(error) => Err(error),
    };
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
    container: Container,
    command: Option<Vec<String>>,
) -> Result<Session> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let pods = cluster.pods().in_namespace(namespace)?;
    let options = ExecOptions {
        container: container.name,
        stdin: args.stdin,
        tty: args.tty,
    };
    Ok(match command {
        Some(command) => pods.exec(&container.pod, command, &options).await?,
        None => pods.attach(&container.pod, &options).await?,
    })
}

/// Copies the streams until the session ends. Returns its exit code.
pub(super) async fn talk(
    mut session: Session,
    stdin: bool,
    terminal: Option<Terminal>,
) -> Result<i32> {
    // Raw mode: input is passed through unchanged until this is dropped.
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
    let is_raw = raw.is_some();
    let (to_stdout, to_stderr) = (ui::Pass::stdout(is_raw), ui::Pass::stderr(is_raw));
    let moved = async { tokio::join!(show(stdout, to_stdout), show(stderr, to_stderr)) };
    tokio::select! {
        _ = moved => {}
        result = sizes => return result,
    }
    drop(raw);
    Ok(session.wait().await?)
}

/// Standard input, read by its own thread, because it may block forever.
pub(super) fn typed() -> mpsc::Receiver<Vec<u8>> {
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

async fn show(reader: Option<impl AsyncRead + Unpin>, mut output: ui::Pass) {
    let Some(mut reader) = reader else {
        return;
    };
    let mut buffer = vec![0; PIECE];
    while let Ok(length @ 1..) = reader.read(&mut buffer).await {
        output.piece(&buffer[..length]);
    }
}
