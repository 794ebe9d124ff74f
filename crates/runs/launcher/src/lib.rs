//! Pack a folder, launch it as Jobs, follow it to its end.
//!
//! Three calls launch a folder and follow the run:
//!
//! ```no_run
//! # async fn run(cluster: longshore_client::Cluster) -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//!
//! use longshore_launcher::{Flags, LaunchOptions, RunSpec};
//!
//! let folder = Path::new("train");
//! let spec = RunSpec::load(folder, &Flags::default())?;
//! let launched = spec.submit(&cluster, folder, LaunchOptions::default()).await?;
//! let mut follow = launched.follow(&cluster).await?;
//! while let Some(event) = follow.next().await {
//!     println!("{:?}", event?);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`launch`] combines these steps, each of which is also a function:
//!
//! 1. [`config`]: `longshore.toml` and flags become a [`RunSpec`]. Pure.
//! 2. [`bundle`]: a folder becomes a deterministic archive. `bundle::scan` finds the files to
//!    pack, `bundle::pack` packs them.
//! 3. [`PackedRun::plan`]: the objects to create, with k8s-openapi's types ([`plan`]). Pure. The
//!    roles become Jobs, CronJobs or a JobSet ([`jobset`]), by `RunSpec::workload`.
//! 4. [`preflight`]: `preflight::check` finds every problem of the plan before anything is
//!    created.
//! 5. [`PackedRun::deliver`]: the archive goes to the [`store`], if there is one.
//! 6. [`submit`]: creates the objects, all or none.
//! 7. [`follow`]: `Follow::next` returns each `Event`: `Progress`, `Waiting`, `Log`, `Gap` or,
//!    last, `Finished(Outcome)`. [`terminal_text`] makes what tasks write safe to show. Pure.
//! 8. [`runs`]: lists, finds, cancels and removes runs. With a schedule
//!    (`RunSpec::workload`), `runs::find_made` gives its last run.
//! 9. [`bootstrap`]: inside the pod: fetches the code and executes the command.
//!
//! [`compare`] compares two runs.
//! [`usage`] queries the resource usage of tasks, with a short series.
//! [`sweep`] contains the combinations of a sweep, [`sweeps`] its table and retries.
//! [`metrics`] reads the last values from the metrics files and logs of tasks.
//! [`notifier`] calls the webhook of a run from a pod, with the messages of [`webhook`].
//! [`outputs`] keeps files of tasks, and fetches them.
//! [`dev`] is the protocol by which tasks of `longshore dev` receive changes.
//! [`caller`] records the environment of the invoking shell for runs on this machine.
//! [`explain`] defines the causes for which a task does not start or fails.
//! [`why`] queries the cluster and explains: `why::why(&Cluster, &Run).await? -> Why`.
//!
//! A module imports only from those before it:
//!
//! - bundles, a separate crate: `bundle`, `store`, `data`
//! - diagnosis, a separate crate, pure: `names`, `escape`, `evidence`, `fit`, `explain`,
//!   `outcome`, `progress`, `role`, `track`
//! - pure: `suggest`, `value_name`, `metric_values`, `sweep`, `restarts`, `webhook`, `tag`, `dev`
//! - an existing run and the user who owns it: `run`, `owner`
//! - files that tasks leave: `outputs`
//! - planning, pure: `caller`, `config`, `pod`, `jobset`, `plan`
//! - text of tasks, pure: `terminal_text`
//! - queries: `queries`, `kueue`, `cluster_evidence`
//! - actions: `preflight`, `runs`, `usage`, `task_logs`, `run_outputs`, `metrics`, `sweeps`,
//!   `compare`, `submit`, `lines`, `follow`, `why`, `launch`
//! - in the pod and next to the cluster: `notifier`, `ready_note`, `bootstrap`, `kept`

pub mod bootstrap;
pub mod caller;
mod cluster_evidence;
pub mod compare;
pub mod config;
pub mod dev;
pub mod follow;
pub mod jobset;
pub mod kept;
mod kueue;
pub mod launch;
mod lines;
mod live_code;
pub mod memory;
mod metric_values;
pub mod metrics;
pub mod notifier;
pub mod notifier_trouble;
pub mod outputs;
mod owner;
pub mod plan;
pub mod pod;
pub mod preflight;
mod queries;
mod ready_note;
pub mod restarts;
mod run;
pub mod run_outputs;
pub mod runs;
pub mod submit;
pub mod suggest;
pub mod sweep;
pub mod sweeps;
pub mod tag;
pub mod task_logs;
pub mod terminal_text;
pub mod usage;
mod value_name;
pub mod webhook;
pub mod why;

pub use caller::Caller;
pub use config::{Flags, RoleSpec, RunOptions, RunSpec, Schedule, Settings, TaskOptions, Workload};
pub use follow::{Event, Follow, FollowOptions, Outcome};
pub use launch::{LaunchError, LaunchOptions, Launched, PackedRun};
pub use longshore_bundles::{Bundle, BundleInfo, PackOptions, Store, bundle, data, store};
pub use longshore_diagnosis::{explain, names, names::RunName};
pub use owner::{Owner, Ownership};
pub use plan::Plan;
pub use preflight::Purpose;
pub use runs::{Run, RunState, RunSummary};
