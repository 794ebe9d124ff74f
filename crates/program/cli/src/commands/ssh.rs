//! `longshore ssh`: OpenSSH's client with a task.

use std::{
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::{
    complete, config, env,
    error::{Error, Kind, Result},
    owners::OwnerArgs,
    ssh::{
        host_name, install, keys,
        options::{self, SshOption},
    },
    target::ClusterArgs,
    ui,
};

/// Connect to a task of a run with OpenSSH's client
///
/// Without a command, it opens a shell. The session has the environment and the folder of
/// the task's command. One word is a command line for the task's shell; several words are a
/// command and its arguments. Exits with the exit code of the command, or 255 if the
/// connection failed.
///
/// --config prints the options for other programs, such as VS Code and PyCharm; --install
/// adds them to ~/.ssh/config. Then `ssh`, `scp` and `sftp` know the hosts
/// RUN.ROLE.INDEX.longshore and RUN.longshore, such as last.longshore.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore ssh
  longshore ssh digits-x7k2p/worker/1 -- nvidia-smi
  longshore ssh last -N -L 8888:localhost:8888
  longshore ssh --install && scp last.longshore:model.pt .
  longshore ssh --config --context lab --suffix lab > lab.conf")]
pub(crate) struct SshArgs {
    /// Task or run: RUN/ROLE/INDEX, or RUN for its first running task
    #[arg(value_name = "TASK", default_value = "last", add = ArgValueCompleter::new(complete::tasks))]
    place: String,
    /// Forward a local port: [ADDRESS:]PORT:localhost:PORT of the task; can be repeated
    #[arg(short = 'L', value_name = "FORWARD", conflicts_with_all = ["config", "install"])]
    local_forward: Vec<String>,
    /// Serve SOCKS at a local port, for ports of the task; can be repeated
    #[arg(short = 'D', value_name = "PORT", conflicts_with_all = ["config", "install"])]
    dynamic_forward: Vec<String>,
    /// Run no command, only forward ports
    #[arg(short = 'N', conflicts_with_all = ["command", "config", "install"])]
    no_command: bool,
    /// Allocate a terminal for the command
    #[arg(long, short = 't', conflicts_with_all = ["config", "install"])]
    tty: bool,
    /// Option of ssh, as in ssh_config; can be repeated
    #[arg(short = 'o', value_name = "NAME=VALUE")]
    option: Vec<String>,
    /// Print the block of ssh_config for the hosts of tasks
    #[arg(long, conflicts_with = "command")]
    config: bool,
    /// Write the block to a file, and include it in ~/.ssh/config
    #[arg(long, conflicts_with_all = ["command", "config"])]
    install: bool,
    /// Last part of the host names
    #[arg(long, default_value = host_name::SUFFIX, value_parser = host_name::parse_suffix)]
    suffix: String,
    #[command(flatten)]
    owners: OwnerArgs,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Command line, or command and its arguments
    #[arg(last = true)]
    command: Vec<String>,
}

pub(crate) async fn ssh(args: SshArgs) -> Result<ExitCode> {
    let layout = args.cluster.layout()?;
    let keys = keys(&layout)?;
    let program =
        std::env::current_exe().map_err(|error| Error::from_source(Kind::Failed, &error))?;
    let namespace = args.namespace.as_deref();
    let mut words = args.cluster.words(&config::here()?, namespace)?;
    if args.owners.all_users {
        words.push("--all-users".to_owned());
    }
    let version = version();
    let of_host = |host: &str| {
        let proxy = options::proxy(&program, &words, &args.suffix, host);
        options::of(&keys, proxy, version.unwrap_or_default())
    };
    if args.config || args.install {
        let block = options::block(&of_host("%h"), &args.suffix);
        if args.config {
            ui::bytes(block.as_bytes());
            return Ok(ExitCode::SUCCESS);
        }
        let home = env::home().ok_or_else(|| {
            Error::usage("no home folder: HOME is not set")
                .hint("`longshore ssh --config` prints the options")
        })?;
        let config = home.join(".ssh/config");
        let (path, changed) = install(&block, &layout.ssh_config(), &args.suffix, &config)?;
        let state = if changed { "now includes" } else { "includes" };
        ui::note(format!("{} {state} {}", config.display(), path.display()));
        return Ok(ExitCode::SUCCESS);
    }
    if version.is_none() {
        let message = "the program ssh cannot be run: install OpenSSH's client";
        return Err(Error::new(Kind::Failed, message)
            .hint("`longshore shell`, `longshore cp` and `longshore forward` need no SSH client"));
    }
    let host = host_name::host(&args.place, &args.suffix)?;
    let mut command = command(&args, &of_host(&host), &host);
    ui::flush();
    Err(Error::new(
        Kind::Failed,
        format!("the program ssh cannot be run: {}", command.exec()),
    ))
}

/// The command of OpenSSH's client.
fn command(args: &SshArgs, options: &[SshOption], host: &str) -> Command {
    let mut command = Command::new("ssh");
    // The first setting of an option counts.
    for (name, value) in options {
        command.arg("-o").arg(format!("{name}={value}"));
    }
    for option in &args.option {
        command.arg("-o").arg(option);
    }
    for forward in &args.local_forward {
        command.arg("-L").arg(forward);
    }
    for forward in &args.dynamic_forward {
        command.arg("-D").arg(forward);
    }
    if args.no_command {
        command.arg("-N");
    }
    if args.tty {
        command.arg("-t");
    }
    command.arg("--").arg(host);
    match &args.command[..] {
        [] => {}
        [line] => {
            command.arg(line);
        }
        words => {
            let words = words.iter().map(|word| options::quoted(word));
            command.arg(words.collect::<Vec<_>>().join(" "));
        }
    }
    command
}

/// Returns the version of OpenSSH's client; `None` if it is not installed, `Some(None)` if its
/// version is not known.
fn version() -> Option<Option<(u32, u32)>> {
    let output = Command::new("ssh").arg("-V").output().ok()?;
    Some(options::version(&String::from_utf8_lossy(&output.stderr)))
}
