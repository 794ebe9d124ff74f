//! `longshore bootstrap`: the steps that a run's pods execute before the command. This command is
//! internal: only the generated pods run it.

use std::{path::Path, process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};
use longshore::launcher::{
    bootstrap, names,
    notifier::{self, NotifyOptions},
    webhook::{WebhookFormat, WebhookState},
};

use crate::ui;

const VERB: &str = "bootstrap";

/// Prepare a task inside its pod
#[derive(Debug, Parser)]
#[command(name = "longshore bootstrap", bin_name = "longshore bootstrap")]
pub(crate) struct BootstrapArgs {
    #[command(subcommand)]
    step: Step,
}

impl BootstrapArgs {
    /// Parses the arguments of this process if it is a bootstrap. Every container of a run calls
    /// it, and parsing takes a millisecond with all other commands. Ends the process if the
    /// arguments are invalid.
    pub(crate) fn of(arguments: std::env::ArgsOs) -> Option<Self> {
        let mut arguments = arguments.skip(1).peekable();
        arguments.next_if(|verb| verb == VERB)?;
        Some(Self::parse_from(
            std::iter::once(VERB.into()).chain(arguments),
        ))
    }
}

/// The steps, in the order in which a pod executes them.
#[derive(Debug, Subcommand)]
enum Step {
    /// Copy this program into a folder that the other containers mount
    Install {
        /// Target folder
        target: std::path::PathBuf,
    },
    /// Fetch, verify and unpack the bundle
    Fetch,
    /// Upload the current outputs of the running task in this container
    UploadOutputs,
    /// Print what this container has used
    Usage,
    /// Fetch and verify the data
    Data,
    /// Resolve the peers, set the framework variables, and run the command
    Exec {
        /// Fetch the code first, unless an earlier container of the pod has done so
        #[arg(long)]
        fetch: bool,
        /// Command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// As `exec`, and apply changes of the code, each of which restarts the command
    Dev {
        /// Milliseconds that the command may take to end after SIGTERM
        #[arg(long)]
        grace: u64,
        /// Command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Pass changes of the code from standard input to the supervisor of `dev`
    Receive,
    /// Call the webhook of a run when it ends or is stuck
    Notify {
        /// Name of the run
        #[arg(long)]
        run: String,
        /// States
        #[arg(long, value_delimiter = ',')]
        on: Vec<WebhookState>,
        /// Form of the message
        #[arg(long)]
        format: WebhookFormat,
        /// Seconds that a task may wait before the run is stuck
        #[arg(long)]
        stuck_after: u64,
    },
    /// Replace this process by a shell with the environment of the task
    Shell,
    /// Execute the session of an SSH client, which standard input describes
    Ssh,
    /// Send a signal to the session of an SSH client
    Signal {
        /// Process id of the session
        process: i32,
        /// Name of the signal without SIG
        name: String,
    },
}

/// Executes the step. It starts without a runtime because every container of a run calls it.
pub(crate) fn bootstrap(args: BootstrapArgs) -> ExitCode {
    let result = match args.step {
        Step::Install { target } => bootstrap::install(&target).map(|()| 0),
        Step::Fetch => bootstrap::fetch().map(|()| 0),
        Step::UploadOutputs => bootstrap::upload_now().map(|()| 0),
        Step::Usage => match bootstrap::usage::print() {
            Ok(()) => Ok(0),
            Err(_) => return ExitCode::FAILURE,
        },
        Step::Data => bootstrap::fetch_data().map(|()| 0),
        Step::Exec {
            fetch: true,
            command,
        } => bootstrap::fetch_and_exec(&command),
        Step::Exec { command, .. } => bootstrap::exec(&command),
        Step::Dev { grace, command } => bootstrap::dev::dev(&command, Duration::from_millis(grace)),
        Step::Notify {
            run,
            on,
            format,
            stuck_after,
        } => {
            let variable = |name: &str| std::env::var(name).ok();
            let options = NotifyOptions {
                run,
                namespace: variable("POD_NAMESPACE").unwrap_or_default(),
                job: variable("LONGSHORE_JOB"),
                on,
                format,
                stuck_after: Duration::from_secs(stuck_after),
                url: Path::new(names::WEBHOOK_DIR).join(names::WEBHOOK_FILE),
            };
            return match notifier::notify(&options) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    ui::note(format!("longshore: {error}"));
                    ExitCode::from(error.exit_code())
                }
            };
        }
        Step::Receive => bootstrap::dev::receive().map(|()| 0),
        Step::Shell => Err(bootstrap::shell()),
        Step::Ssh => bootstrap::ssh().map(|()| 0),
        Step::Signal { process, name } => bootstrap::signal(process, &name).map(|()| 0),
    };
    match result {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        Err(error) => {
            ui::note(format!("longshore: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}
