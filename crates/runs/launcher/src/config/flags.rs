//! Command line flags.

use std::path::PathBuf;

use super::{Input, RunOptions, TaskOptions};

/// The environment variable with the launcher image of all runs of a user.
pub const LAUNCHER_IMAGE_ENV: &str = "LONGSHORE_LAUNCHER_IMAGE";
/// The environment variable with the store of all runs of a user.
pub const STORE_ENV: &str = "LONGSHORE_STORE";

/// Command line flags, which override `longshore.toml`.
///
/// With the feature `clap`, they are arguments of a program.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args), group(skip))]
pub struct Flags {
    /// Options of the whole run.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub run: RunOptions,
    /// Options of all tasks. Those of the command line override those of roles, except
    /// volumes, node selection, priority, shared memory, host network and template.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub task: TaskOptions,
    /// Command that each task runs
    // The command replaces the command of every role, except of service roles with their own
    // command.
    #[cfg_attr(feature = "clap", arg(last = true))]
    pub command: Vec<String>,
    /// Number of tasks of a role that longshore.toml defines; can be repeated
    #[cfg_attr(
        feature = "clap",
        arg(long = "role", value_name = "NAME=N", display_order = 0)
    )]
    pub roles: Vec<String>,
    /// CPU request of each task, as in 2 or 500m
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Pods", display_order = 4))]
    pub cpu: Option<String>,
    /// Memory request and limit of each task, as in 4Gi (powers of 1024) or 4G (powers of
    /// 1000)
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Pods", display_order = 5))]
    pub memory: Option<String>,
    /// Number of GPUs of each task
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Pods", display_order = 6))]
    pub gpu: Option<String>,
    /// Variables of environment files, in order; `env` overrides them.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub env_file: Vec<(String, String)>,
    /// Set an environment variable; NAME alone takes its value from this shell
    // `pass_through` adds missing values.
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            short,
            value_name = "NAME[=VALUE]",
            help_heading = "Pods",
            display_order = 2
        )
    )]
    pub env: Vec<String>,
    /// The standard input of the task.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub input: Input,
    /// The current folder, if the cluster's pods share this machine's files: relative
    /// folders of `host` volumes are resolved against it.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub here: Option<PathBuf>,
}

impl Flags {
    /// Adds the options that environment variables set for all runs of a user. Flags override them,
    /// and they override `longshore.toml`. The store does not apply to the embedded cluster, which
    /// needs none. Empty values count as absent.
    ///
    /// ```
    /// use longshore_launcher::config::{Flags, LAUNCHER_IMAGE_ENV};
    ///
    /// let image = |name: &str| (name == LAUNCHER_IMAGE_ENV).then(|| "registry/longshore:1".to_owned());
    /// let flags = Flags::default().with_environment(image);
    /// assert_eq!(flags.run.launcher_image.unwrap().as_str(), "registry/longshore:1");
    /// ```
    #[must_use]
    pub fn with_environment(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |option: &mut Option<super::Text>, name| {
            let value = variable(name).filter(|value| !value.is_empty());
            if option.is_none() {
                *option = value.map(Into::into);
            }
        };
        set(&mut self.run.launcher_image, LAUNCHER_IMAGE_ENV);
        if self.here.is_none() {
            set(&mut self.run.store, STORE_ENV);
        }
        self
    }
}
