//! The reason why a command did not start, as reported by the child.

use std::{io, path::PathBuf};

use tokio::{io::AsyncReadExt, net::unix::pipe::Receiver};

use super::{
    child::Stage,
    command::Command,
    view::{Operation, Walk},
};

/// The reason why a command did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StartError {
    /// The command cannot be executed. The message is the same as in container runtimes.
    #[error("exec: {program:?}: {reason}")]
    Execute {
        /// The program.
        program: String,
        /// The reason.
        reason: String,
    },
    /// The working directory cannot be entered.
    #[error("workingDir {path:?}: {source}; give a folder that exists on this machine")]
    WorkingFolder {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file system view cannot be set up.
    #[error("mounting the container's files failed ({operation}): {}", mounting(.source))]
    View {
        /// The operation that failed.
        operation: String,
        /// The system's error.
        source: io::Error,
    },
    /// The existing container cannot be entered.
    #[error("{}", entering(.source))]
    Entered {
        /// The system's error.
        source: io::Error,
    },
    /// The arguments and the environment are larger than the system permits.
    #[error(
        "the environment is too large for this system ({variables} variables, {bytes} bytes): \
         shorten it; enableServiceLinks: false leaves out the variables of Services"
    )]
    TooLarge {
        /// The number of environment variables.
        variables: usize,
        /// The size of the arguments and the environment.
        bytes: usize,
    },
    /// Another stage between clone and execve failed.
    #[error("starting the container failed ({stage}): {source}")]
    Stage {
        /// The stage.
        stage: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Another system error, for example a lack of resources for another process.
    #[error("the process could not be started: {0}")]
    System(#[source] io::Error),
}

/// Reads the error pipe until it closes. No data means that the command runs.
pub(super) async fn read_report(
    report: &mut Receiver,
    command: &Command,
) -> Result<(), StartError> {
    let mut record = Vec::with_capacity(12);
    report
        .read_to_end(&mut record)
        .await
        .map_err(StartError::System)?;
    let Ok(record) = <[u8; 12]>::try_from(record.as_slice()) else {
        return Ok(());
    };
    let number = |at: usize| {
        u32::from_ne_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
    };
    let code = number(8).cast_signed();
    let source = io::Error::from_raw_os_error(code);
    let stage = |stage| StartError::Stage {
        stage,
        source: io::Error::from_raw_os_error(code),
    };
    Err(match Stage::from_number(number(0)) {
        Some(Stage::Execute | Stage::Init) if code == libc::E2BIG => StartError::TooLarge {
            variables: command.environment.len(),
            bytes: size(command),
        },
        Some(Stage::Execute) => execute_error(command, code),
        Some(Stage::WorkingFolder) => StartError::WorkingFolder {
            path: command.working_folder.clone(),
            source,
        },
        Some(Stage::View) => {
            let operation = command.operations.get(number(4) as usize);
            StartError::View {
                operation: operation.map_or_else(String::new, describe),
                source,
            }
        }
        Some(Stage::Session) => stage("tying it to the agent"),
        Some(Stage::Descriptors) => stage("its streams"),
        Some(Stage::UserMap) => stage("its user namespace"),
        Some(Stage::Hostname) => stage("its host name"),
        Some(Stage::Fork) => stage("its first process"),
        Some(Stage::User) => stage("changing to its user"),
        Some(Stage::Groups) => stage("changing to its groups"),
        Some(Stage::NoNewPrivileges) => stage("forbidding it more privileges"),
        Some(Stage::SystemCalls) => stage("filtering its system calls"),
        Some(Stage::Capabilities) => stage("limiting its capabilities"),
        Some(Stage::Terminal) => stage("its terminal"),
        Some(Stage::Init) => stage("executing its init"),
        Some(Stage::Enter) => StartError::Entered { source },
        None => StartError::System(source),
    })
}

fn size(command: &Command) -> usize {
    let sizes = command.environment.iter();
    sizes.map(|(name, value)| name.len() + value.len()).sum()
}

fn mounting(source: &io::Error) -> String {
    match source.raw_os_error() {
        Some(libc::ELOOP) => "a symbolic link in a volume is not followed, since a container \
                              may have made it; give the path without links"
            .to_owned(),
        Some(libc::ENOSYS) => "a subPath, and a volume in a volume, need Linux 5.2 and \
                               readOnlyRootFilesystem needs Linux 5.12"
            .to_owned(),
        _ => source.to_string(),
    }
}

fn entering(source: &io::Error) -> String {
    match source.raw_os_error() {
        Some(libc::ESRCH) => "the container has ended".to_owned(),
        _ => format!("the container cannot be entered: {source}"),
    }
}

fn execute_error(command: &Command, code: i32) -> StartError {
    let program = command
        .arguments
        .first()
        .map(|word| word.to_string_lossy().into_owned());
    let program = program.unwrap_or_default();
    let reason = match code {
        libc::ENOENT | libc::ENOTDIR if program.contains('/') => {
            format!("stat {program}: no such file or directory")
        }
        // A PATH search skips files that cannot be executed and ends with "not found".
        libc::ENOENT | libc::ENOTDIR | libc::EACCES if !program.contains('/') => {
            "executable file not found in $PATH".to_owned()
        }
        libc::EACCES => "permission denied".to_owned(),
        libc::ENOEXEC => "exec format error".to_owned(),
        _ => io::Error::from_raw_os_error(code).to_string(),
    };
    StartError::Execute { program, reason }
}

fn below(walk: &Walk) -> String {
    walk.from.join(&walk.below).display().to_string()
}

fn describe(operation: &Operation) -> String {
    match operation {
        Operation::Private => "separating mounts".to_owned(),
        Operation::Tmpfs { at, .. } => format!("tmpfs on {}", at.display()),
        Operation::Folder { at } => format!("folder {}", at.display()),
        Operation::File { at } => format!("file {}", at.display()),
        Operation::Link { at, .. } => format!("link {}", at.display()),
        Operation::Bind { from, at, .. } => format!("{} on {}", from.display(), at.display()),
        Operation::Make { walk, .. } => format!("making {}", below(walk)),
        Operation::Attach { from, at, .. } => format!("{} on {}", below(from), below(at)),
        Operation::ReadOnly { at } | Operation::ReadOnlyTree { at } | Operation::Protect { at } => {
            format!("read-only {}", at.display())
        }
        Operation::Writable { at } => format!("writable {}", at.display()),
        Operation::Detach { at } => format!("detaching {}", at.display()),
        Operation::Mask { at } => format!("hiding {}", at.display()),
        Operation::Processes { at } => format!("processes on {}", at.display()),
        Operation::Pivot { root, .. } | Operation::Enter { root } => {
            format!("root {}", root.display())
        }
    }
}
