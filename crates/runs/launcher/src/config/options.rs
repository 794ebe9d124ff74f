//! The options of a whole run; `task_options` declares the options of its tasks. Both declare the
//! keys of `longshore.toml` that are also flags of `longshore run`.
//!
//! A field's name is its key, and serde reads it from the file. With the feature `clap`, it
//! is also a flag, and its doc comment is the flag's help. `display_order` orders the flags of
//! a heading in the help across the structs that declare them.

use std::path::PathBuf;

#[cfg(feature = "clap")]
use clap::builder::TypedValueParser as _;
use serde::Deserialize;

use super::{Command, Located, Scalar, SweepEntry, Text, located::entries, sweep_entry};
#[cfg(feature = "clap")]
use super::{
    ConfigError,
    values::{pair, tag},
};

/// Options of the whole run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), group(skip))]
#[serde(default)]
pub struct RunOptions {
    /// Name of the run [default: the name of the folder]
    #[cfg_attr(feature = "clap", arg(long, display_order = 1))]
    pub name: Option<String>,
    /// Namespace [default: the namespace of the context]
    #[cfg_attr(feature = "clap", arg(long, short, display_order = 2))]
    pub namespace: Option<Text>,
    /// Where pods keep data that they fetch, for the next pods: host:/path for a folder of each
    /// node, or claim:NAME [default: each pod fetches its data]
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "KIND:NAME",
            help_heading = "Inputs",
            display_order = 2
        )
    )]
    pub data_cache: Option<Text>,
    /// Maximum size of the cache of data [default: 100Gi]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "SIZE", help_heading = "Inputs", display_order = 3)
    )]
    pub data_cache_limit: Option<Text>,
    /// Image that contains the program longshore, for images without it; an init
    /// container copies the program into the pod
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "IMAGE", help_heading = "Pods", display_order = 1)
    )]
    pub launcher_image: Option<Text>,
    /// `Always`, `Never` or `IfNotPresent`.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub image_pull_policy: Option<Text>,
    /// Names of Secrets with registry credentials.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub image_pull_secrets: Vec<Text>,
    /// Number of times to restart a failed task
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "N", help_heading = "Restarts", display_order = 0)
    )]
    pub retries: Option<u32>,
    /// What to restart when a task fails: task, or run for all tasks [default: task]
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "WHAT",
            help_heading = "Restarts",
            display_order = 1
        )
    )]
    pub restart: Option<Text>,
    /// Do not restart a task that ends with this exit code; can be repeated
    #[cfg_attr(
        feature = "clap",
        arg(
            long = "no-retry-exit-code",
            value_name = "CODE",
            value_parser = clap::value_parser!(u8).map(Located::from),
            help_heading = "Restarts",
            display_order = 2
        )
    )]
    pub no_retry_exit_codes: Vec<Located<u8>>,
    /// Maximum duration of each attempt of a task
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "TIME",
            help_heading = "Restarts",
            display_order = 3
        )
    )]
    pub task_timeout: Option<Text>,
    /// Send a signal this long before `task_timeout`, so that the task can write a checkpoint
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "TIME",
            help_heading = "Restarts",
            display_order = 4
        )
    )]
    pub timeout_warning: Option<Text>,
    /// The signal of `timeout_warning` [default: USR1]
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "SIGNAL",
            help_heading = "Restarts",
            display_order = 5
        )
    )]
    pub timeout_signal: Option<Text>,
    /// Folder for checkpoints, on a volume; each attempt gets its path in
    /// LONGSHORE_CHECKPOINT_DIR
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "PATH",
            help_heading = "Restarts",
            display_order = 6
        )
    )]
    pub checkpoint_dir: Option<Text>,
    /// Maximum duration of the run, as in 90s or 2h
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", display_order = 6))]
    pub timeout: Option<Text>,
    /// Maximum time until a task starts
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", display_order = 7))]
    pub start_timeout: Option<Text>,
    /// How long a task waits until its peers' names resolve.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub peer_timeout: Option<Text>,
    /// End tasks whose GPUs are idle for this time, as in 30m
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", display_order = 7))]
    pub idle_timeout: Option<Text>,
    /// Up to this utilisation in percent, a GPU is idle; 5 by default.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub idle_gpu_percent: Option<Located<u32>>,
    /// Time to keep the run's objects after it ends, as in 7d
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", display_order = 8))]
    pub ttl: Option<Text>,
    /// Port of the first task; each further task uses the next port
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_parser = clap::value_parser!(u16).map(Located::from),
            help_heading = "Pods",
            display_order = 7
        )
    )]
    pub port: Option<Located<u16>>,
    /// Forward a port of a task to this machine while the run is followed, and print its
    /// URL when the task listens: PORT, LOCAL:PORT, ROLE:PORT or ROLE/INDEX:LOCAL:PORT; can
    /// be repeated
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "PORT",
            value_parser = clap::builder::StringValueParser::new()
                .map(|text| Located::from(Scalar::Text(text)))
        )
    )]
    pub forward: Vec<Located<Scalar>>,
    /// Store for code bundles, as in s3://bucket/prefix or file:///srv/bundles
    #[cfg_attr(feature = "clap", arg(long, value_name = "URL", help_heading = "Code"))]
    pub store: Option<Text>,
    /// Exclude files that match a .gitignore pattern
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "PATTERN", help_heading = "Code")
    )]
    pub ignore: Vec<String>,
    /// Include files that look like secrets and match a .gitignore pattern
    #[cfg_attr(
        feature = "clap",
        arg(long = "allow-secret", value_name = "PATTERN", help_heading = "Code")
    )]
    pub allow_secrets: Vec<String>,
    /// Do not upload code; the image contains the command
    #[cfg_attr(
        feature = "clap",
        arg(
            long = "no-code",
            action = clap::ArgAction::SetTrue,
            value_parser = clap::builder::BoolValueParser::new().map(|no_code| !no_code),
            help_heading = "Code"
        )
    )]
    pub code: Option<bool>,
    /// Service account of the pods; without one they get no token
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAME", help_heading = "Pods", display_order = 13)
    )]
    pub service_account: Option<Text>,
    /// Add a label to every object of the run
    #[cfg_attr(
        feature = "clap",
        arg(
            long = "label",
            value_name = "KEY=VALUE",
            value_parser = |text: &str| pair("--label", text),
            help_heading = "Pods",
            display_order = 14
        )
    )]
    #[serde(deserialize_with = "entries")]
    pub labels: Vec<(Text, Text)>,
    /// Tag the run, for `longshore runs --tag`; can be repeated
    #[cfg_attr(
        feature = "clap",
        arg(
            long = "tag",
            value_name = "KEY[=VALUE]",
            value_parser = |text: &str| Ok::<_, ConfigError>(tag(text)),
            display_order = 9
        )
    )]
    #[serde(deserialize_with = "entries")]
    pub tags: Vec<(Text, Text)>,
    /// Note about the run, which `longshore note` shows and changes
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT", display_order = 10))]
    pub note: Option<Text>,
    /// Program to run on this machine when the followed run ends or waits, with the state in
    /// LONGSHORE_STATE; in longshore.toml, a list with arguments
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "PROGRAM",
            value_parser = |text: &str| Ok::<_, ConfigError>(Command::Line(text.to_owned())),
            display_order = 11
        )
    )]
    pub notify: Option<Command>,
    /// Call this webhook from the cluster when the run ends or is stuck, also if no client follows
    /// it: secret:NAME/KEY for a URL in a Secret, or the URL
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "SECRET|URL",
            help_heading = "Webhook",
            display_order = 1
        )
    )]
    pub webhook: Option<Text>,
    /// States to call it about: succeeded, failed, cancelled, stuck [default: all]
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "STATE",
            help_heading = "Webhook",
            display_order = 2
        )
    )]
    pub webhook_on: Vec<Text>,
    /// Form of the message: auto, json, slack, discord or teams [default: auto, by the host]
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "FORMAT",
            help_heading = "Webhook",
            display_order = 3
        )
    )]
    pub webhook_format: Option<Text>,
    /// Time that a task may wait before the run is stuck [default: 2m]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "TIME", help_heading = "Webhook", display_order = 4)
    )]
    pub webhook_stuck_after: Option<Text>,
    /// Service account of the pod that calls it, which may read Jobs, pods and events [default:
    /// one is created]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAME", help_heading = "Webhook", display_order = 5)
    )]
    pub webhook_account: Option<Text>,
    /// Annotations of every object of the run.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(deserialize_with = "entries")]
    pub annotations: Vec<(Text, String)>,
    /// Kueue LocalQueue that admits the run
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAME", help_heading = "Pods", display_order = 15)
    )]
    pub queue: Option<Text>,
    /// Create pods that meet the Pod Security Standard `restricted`: no root, no
    /// privileges
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Pods", display_order = 16))]
    pub restricted: bool,
    /// Create one JobSet for all roles; requires JobSet in the cluster
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            action = clap::ArgAction::SetTrue,
            value_parser = clap::builder::BoolValueParser::new().map(Located::from),
            help_heading = "Pods",
            display_order = 17
        )
    )]
    pub jobset: Located<bool>,
    /// Run on a schedule, in cron syntax: "0 3 * * *"
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "SCHEDULE", help_heading = "Schedule")
    )]
    pub cron: Option<Text>,
    /// Time zone of the schedule, as in Europe/Berlin
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "ZONE", help_heading = "Schedule")
    )]
    pub time_zone: Option<Text>,
    /// What happens when a run is due while the previous one is still active: `Forbid`,
    /// `Allow` or `Replace`.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub concurrency_policy: Option<Text>,
    /// Run all combinations of the values of parameters, each as a task, as in lr=0.1,0.01
    /// or seed=1..5; can be repeated; {lr} in the command stands for the value
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "NAME=VALUES",
            help_heading = "Sweeps",
            display_order = 1
        )
    )]
    #[serde(deserialize_with = "sweep_entry::entries")]
    pub sweep: Vec<SweepEntry>,
    /// Run the combinations of a file: CSV with a header, or one JSON object per line
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "FILE",
            value_parser = clap::builder::PathBufValueParser::new()
                .map(|path| std::path::absolute(&path).unwrap_or(path)),
            value_hint = clap::ValueHint::FilePath,
            help_heading = "Sweeps",
            display_order = 2
        )
    )]
    pub sweep_file: Option<PathBuf>,
    /// Run this number of random combinations; a range can then have a scale, as in
    /// lr=0.0001..0.1:log
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "N",
            value_parser = clap::value_parser!(u32).map(Located::from),
            help_heading = "Sweeps",
            display_order = 3
        )
    )]
    pub samples: Option<Located<u32>>,
    /// Seed of the random combinations [default: 0]
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "N",
            value_parser = clap::value_parser!(u64).map(Located::from),
            help_heading = "Sweeps",
            display_order = 4
        )
    )]
    pub sweep_seed: Option<Located<u64>>,
    /// Number of combinations that run at the same time [default: 16]
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "N",
            value_parser = clap::value_parser!(u32).map(Located::from),
            help_heading = "Sweeps",
            display_order = 5
        )
    )]
    pub parallel: Option<Located<u32>>,
    /// Stop the sweep when more than this number of combinations have failed
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "N",
            value_parser = clap::value_parser!(u32).map(Located::from),
            help_heading = "Sweeps",
            display_order = 6
        )
    )]
    pub max_failed: Option<Located<u32>>,
    /// Read this metric from log lines such as loss=0.1, for `longshore metrics` and
    /// `longshore sweep`; can be repeated
    #[cfg_attr(
        feature = "clap",
        arg(long = "metric", value_name = "NAME", display_order = 11)
    )]
    pub metrics: Vec<Text>,
}
