//! Names that a run gives to its objects: run names, labels, annotations,
//! paths and variables inside the pod.

use std::fmt;

pub use longshore_model::meta::COMPLETION_INDEX;
use longshore_model::name::{self, NameError, SUFFIX_LETTERS};
use rand::RngExt;
use serde::Serialize;

/// Label: the program that created the object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`].
pub const LONGSHORE: &str = "longshore";
/// Label: the run's name.
pub const RUN: &str = "longshore.dev/run";
/// Label: the role's name.
pub const ROLE: &str = "longshore.dev/role";
/// Label of sweeps: the name of the run, or of the first run of its combinations.
pub const SWEEP: &str = "longshore.dev/sweep";
/// Label: the owner of the run, in a form that fits a label. Annotation: the cluster's name for the
/// owner.
pub const OWNER: &str = "longshore.dev/owner";
/// Annotation: the owner of the run by a name of the owner's machine, if the cluster does not tell
/// names of users.
pub const LOCAL_OWNER: &str = "longshore.dev/local-owner";
/// Label of the objects that notify about a run: the run's name.
pub const NOTIFIES: &str = "longshore.dev/notifies";
/// The mount path of the Secret with a webhook's URL.
pub const WEBHOOK_DIR: &str = "/longshore/webhook";
/// The file with the URL.
pub const WEBHOOK_FILE: &str = "url";
/// The exit code of a notifier whose message was refused.
pub const UNDELIVERED: i32 = 9;
/// Prefix of the labels of a run's Jobs that are its tags.
pub const TAG_PREFIX: &str = "tag.longshore.dev/";
/// Annotation of a run's Jobs: the user's note.
pub const NOTE: &str = "longshore.dev/note";
/// Annotation of the Jobs of `longshore dev`: data for clients that attach later, as JSON. See
/// `longshore_launcher::dev::DevRecord`.
pub const DEV: &str = "longshore.dev/dev";
/// Annotation of the first Job of `longshore dev`: the number of the latest session that has
/// attached to the run.
pub const DEV_SESSION: &str = "longshore.dev/dev-session";
/// Annotation: the name that the user specified.
pub const FULL_NAME: &str = "longshore.dev/name";
/// Annotation: the command, as a JSON list.
pub const COMMAND: &str = "longshore.dev/command";
/// Annotation: the recorded environment of the invoking shell, as JSON. See
/// `longshore_launcher::Caller`.
pub const CALLER: &str = "longshore.dev/caller";
/// Variable of a container: the value of [`CALLER`].
pub const CALLER_VARIABLE: &str = "LONGSHORE_CALLER";
/// Annotation: the bundle's sha256, in hexadecimal.
pub const BUNDLE: &str = "longshore.dev/bundle-sha256";
/// Annotation: the files of the task's folder to keep when the task ends, as JSON. See
/// `longshore_launcher::outputs::OutputRequest`.
pub const OUTPUTS: &str = "longshore.dev/outputs";
/// Annotation: the names of the metrics to read from log lines, as a JSON list.
pub const METRICS: &str = "longshore.dev/metrics";
/// The variable with the path of a task's metrics file.
pub const METRICS_VARIABLE: &str = "LONGSHORE_METRICS";
/// The metrics file in the folder of the task's code: one JSON object per line.
pub const METRICS_FILE: &str = "longshore-metrics.jsonl";
/// Annotation: the sha256 of each data set of the tasks, by name, as JSON.
pub const DATA: &str = "longshore.dev/data";
/// Annotation: the first files and folders that were excluded from the code, as a JSON list.
pub const EXCLUDED: &str = "longshore.dev/excluded";
/// Annotation: the roles of the run, as a JSON list.
pub const ROLES: &str = "longshore.dev/roles";
/// Annotation: the time when the run was submitted, by the submitter's clock, because the server's
/// times are whole seconds.
pub const SUBMITTED: &str = "longshore.dev/submitted";
/// Annotation: the time when the user cancelled the run.
pub const CANCELLED: &str = "longshore.dev/cancelled";
/// Annotation: the time and the reason of the role's stop with its run.
pub const STOPPED: &str = "longshore.dev/stopped";
/// Annotation: the explanation for [`STOPPED`], as JSON.
pub const WHY: &str = "longshore.dev/why";

/// Annotation: the end of the run for [`STOPPED`], as JSON.
pub const ENDED: &str = "longshore.dev/ended";

/// Label of Kueue: the queue that admits a Job.
pub const QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// The kind of JobSets.
pub const JOBSET: &str = "JobSet";
/// A placeholder in host names for the execution of a schedule.
pub const EXECUTION: &str = "$(EXECUTION)";
/// Label of a pod: its Job.
pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// Annotation of a pod of a Job with a backoff limit per index: the number of failures of its
/// index.
pub const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// Annotation of a pod of a Job with a backoff limit per index: the number of ignored failures of
/// its index.
pub const DISRUPTIONS: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// Label of the Jobs and pods of a JobSet: the number of restarts.
pub const SET_RESTARTS: &str = "jobset.sigs.k8s.io/restart-attempt";
/// Variable of a container: the value of [`FAILURES`].
pub const FAILURES_VARIABLE: &str = "LONGSHORE_FAILURES";
/// Variable of a container: the value of [`DISRUPTIONS`].
pub const DISRUPTIONS_VARIABLE: &str = "LONGSHORE_DISRUPTIONS";
/// Variable of a container: the value of [`SET_RESTARTS`].
pub const SET_RESTARTS_VARIABLE: &str = "LONGSHORE_SET_RESTARTS";
/// Annotation of a Job: the tasks that are restarted when one fails, if not only the failed one.
pub const RESTART: &str = "longshore.dev/restart";
/// The value of [`RESTART`] if all tasks of the run are restarted.
pub const WHOLE_RUN: &str = "run";
/// Annotation of the Jobs of a JobSet that restarts them: the maximum number of restarts.
pub const MAX_RESTARTS: &str = "longshore.dev/max-restarts";
/// The condition of a pod that was ended by a disruption.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// The mount path of the run's volume.
pub const HOME: &str = "/longshore";
/// The folder into which the code is unpacked and in which the command runs.
pub const WORK: &str = "/longshore/work";
/// The folder of [`WORK`] in the run's volume.
pub const WORK_FOLDER: &str = "work";
/// The name of the run's volume.
pub const HOME_VOLUME: &str = "longshore";
/// A file in the run's volume: a node creates it after it has placed the unpacked code there.
pub const READY: &str = ".ready-copy";
/// A file in the home folder: it exists if the task itself has fetched the code.
pub const FETCHED: &str = ".fetched";
/// The mount path of the run's Secret.
pub const CONFIG: &str = "/longshore/config";
/// The mount path of the bundle's Secret, or of the store's folder.
pub const BUNDLE_DIR: &str = "/longshore/bundle";
/// The file of the termination message of tasks of the embedded cluster.
pub const TERMINATION_FILE: &str = "/longshore/termination-log";
/// The beginning of a line at the end of a task's log: the rest is the reason why its outputs were
/// not uploaded.
pub const OUTPUTS_LOST: &str = "longshore: the outputs were not uploaded: ";
/// The folder of the tasks' data, unless the user chose another path.
pub const DATA_DIR: &str = "/longshore/data";
/// The folder for volumes that appear in the folder of the code.
pub const VOLUMES_DIR: &str = "/longshore/volumes";
/// The mount path of the cache of the init container that fetches data.
pub const DATA_CACHE: &str = "/longshore/cache";
/// The hostfile in the run's volume.
pub const HOSTFILE: &str = "hostfile";
/// The folder into which the program is copied if the image does not contain it.
pub const BIN: &str = "/longshore/bin";
/// The init container that fetches the code.
pub const FETCH: &str = "fetch";
/// The init container that fetches data.
pub const FETCH_DATA: &str = "data";
/// The init container that installs the program.
pub const INSTALL: &str = "install";
/// The container that runs the command, unless [`CONTAINER`] names another one.
pub const MAIN: &str = "main";
/// Annotation of a pod: the container that runs the command.
pub const CONTAINER: &str = "longshore.dev/container";

/// Five random letters and digits, like the suffix of Kubernetes' generated names.
#[must_use]
pub fn random_suffix() -> String {
    let mut random = rand::rng();
    (0..5)
        .map(|_| char::from(SUFFIX_LETTERS[random.random_range(0..SUFFIX_LETTERS.len())]))
        .collect()
}

/// The name of a run: `<name>-<suffix>`. It is valid for a Service and, followed by a role and
/// an index, for a host name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunName(String);

/// The maximum length of a run's name: a host name has 63 characters, including role and
/// index.
const LIMIT: usize = 40;
/// The same limit, with a schedule's execution or a JobSet's index in between.
const SHORT: usize = 30;

impl RunName {
    /// Creates a name from any text and a suffix of lower-case letters and digits.
    ///
    /// ```
    /// use longshore_diagnosis::names::RunName;
    /// assert_eq!(RunName::new("My Model", "ab2cd").as_str(), "my-model-ab2cd");
    /// assert_eq!(RunName::new("2024", "ab2cd").as_str(), "run-2024-ab2cd");
    /// assert!(RunName::new(&"x".repeat(90), "ab2cd").as_str().len() <= 40);
    /// ```
    #[must_use]
    pub fn new(name: &str, suffix: &str) -> Self {
        Self::limited(name, suffix, LIMIT)
    }

    /// Creates a shorter name of at most 30 characters, for workloads that extend the names of
    /// Jobs.
    #[must_use]
    pub fn short(name: &str, suffix: &str) -> Self {
        Self::limited(name, suffix, SHORT)
    }

    fn limited(name: &str, suffix: &str, limit: usize) -> Self {
        let suffix: String = suffix
            .chars()
            .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            .take(8)
            .collect();
        let limit = limit - 1 - suffix.len();
        let mut label = name::to_dns_label(name, limit);
        if !label.starts_with(|c: char| c.is_ascii_lowercase()) {
            // Names of Services must begin with a letter.
            label = name::to_dns_label(&format!("run-{label}"), limit);
        }
        Self(format!("{label}-{suffix}"))
    }

    /// Wraps the name of an existing run.
    ///
    /// # Errors
    /// The text is not a DNS label.
    pub fn existing(text: &str) -> Result<Self, NameError> {
        name::dns_label("run name", text)?;
        Ok(Self(text.to_owned()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the Job of one role.
    #[must_use]
    pub fn job(&self, role: &str) -> String {
        format!("{}-{role}", self.0)
    }

    /// The host name of a task of a Job, which resolves through the run's Service.
    #[must_use]
    pub fn host(&self, job: &str, index: u32) -> String {
        format!("{job}-{index}.{}", self.0)
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A task of a run: `worker/1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Task {
    /// The role's name.
    pub role: String,
    /// The index within the role.
    pub index: u32,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.role, self.index)
    }
}
