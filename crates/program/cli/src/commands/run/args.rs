//! The arguments of `longshore run`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::Args;
use longshore::launcher::{Flags, RunOptions, config::Input};

use super::shell;
use crate::{env, error::Result, follow::OnInterrupt, output::EventFormat, target::ClusterArgs};

/// Run a folder of code as a job, and follow it to its end
///
/// Packs and uploads the folder, starts one process per task, prints the logs of all
/// tasks, each line prefixed with its task, and exits with the exit code of the command.
/// Put recurring options in the folder's longshore.toml.
///
/// Files that .gitignore or .longshoreignore match are not packed; --dry-run lists them.
/// An unchanged folder is not packed or uploaded again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore run -- python train.py
  longshore run examples/digits --role worker=4
  longshore run --env EPOCHS=3 --timeout 2h --detach -- python train.py
  longshore run -it -- python -m pdb train.py
  gunzip < data.gz | longshore run -i -- python count.py
  longshore run --output-files '*.json' --fetch -- python train.py
  longshore run --data cifar=./data/cifar -- python train.py
  longshore run --sweep lr=0.1,0.01 --sweep seed=1..5 -- python train.py --lr {lr}
  longshore run --dry-run -- python train.py
  longshore run --cron \"0 3 * * *\" --time-zone Europe/Berlin -- python train.py
  longshore run --context production --image registry.example/train -- python train.py")]
pub(crate) struct RunArgs {
    /// Folder of code [default: .]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(in super::super) dir: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
    /// Read environment variables from a file, in the format of `docker run --env-file`;
    /// --env overrides them
    #[arg(long, value_name = "FILE", help_heading = "Pods", display_order = 3)]
    pub(super) env_file: Vec<PathBuf>,
    /// Pass stdin to the task; requires a run with a single task
    #[arg(long, short = 'i', conflicts_with_all = ["detach", "cron"], display_order = 3)]
    pub(in super::super) stdin: bool,
    /// Allocate a terminal for the task, as for a shell or a debugger: -it
    #[arg(
        long,
        short = 't',
        requires = "stdin",
        conflicts_with = "output",
        display_order = 4
    )]
    pub(super) tty: bool,
    /// Print the objects as YAML without creating them; list excluded files on standard
    /// error
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print the name of the run and exit without following it
    #[arg(long, short = 'd', visible_alias = "no-follow")]
    pub(in super::super) detach: bool,
    /// Fetch the outputs at the end of the run, also if it fails [default DIR: outputs/RUN]
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_hint = clap::ValueHint::DirPath,
        conflicts_with_all = ["detach", "cron", "dry_run"],
        help_heading = "Outputs",
        display_order = 4
    )]
    pub(super) fetch: Option<OsString>,
    /// Effect of Ctrl-C on the run; without a terminal, `ask` cancels it
    ///
    /// SIGTERM leaves the run alone, except with `cancel`. SIGKILL, SIGHUP and closing the
    /// terminal always leave it alone.
    #[arg(long, value_enum, default_value_t, value_name = "ACTION", env = env::ON_INTERRUPT, hide_env_values = true)]
    pub(in super::super) on_interrupt: OnInterrupt,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    pub(in super::super) output: EventFormat,
    #[command(flatten)]
    pub(in super::super) cluster: ClusterArgs,
}

impl RunArgs {
    /// The folder of code.
    pub(in super::super) fn folder(&self) -> &Path {
        self.dir.as_deref().unwrap_or(Path::new("."))
    }

    /// The options of the whole run, as given.
    pub(in super::super) fn options(&self) -> &RunOptions {
        &self.flags.run
    }

    /// The flags of the run. `here` is the current folder, if pods share this machine's files.
    pub(super) fn flags(&self, here: Option<PathBuf>) -> Result<Flags> {
        let flags = Flags {
            env_file: shell::of_files(&self.env_file)?,
            env: shell::passed_through(&self.flags.env)?,
            input: self.input(),
            here,
            ..self.flags.clone()
        };
        Ok(flags.with_environment(env::text))
    }

    fn input(&self) -> Input {
        match (self.stdin, self.tty) {
            (_, true) => Input::Terminal,
            (true, false) => Input::Piped,
            (false, false) => Input::None,
        }
    }
}
