//! Calls the webhook of a run, from a pod next to it. It follows the run, and reports its end and
//! the causes for which it is stuck. It reads Jobs, pods and events, but never logs, which may
//! contain secrets.

mod deliver;
mod error;

use std::{collections::BTreeSet, fs, path::PathBuf, time::Duration};

use longshore_client::Cluster;
use longshore_diagnosis::explain::{Cause, Explanation};
use tokio::time::Instant;

use crate::{
    follow::{Ending, Event, Follow, FollowOptions, Outcome},
    runs::{self, RunSummary, RunsError},
    store::{SignedUrl, check_url},
    webhook::{Notice, WebhookFormat, WebhookState},
    why::{State, why},
};
use deliver::Delivery;
pub use error::NotifyError;

/// The maximum time to wait for the objects of the run.
const FIND_TIMEOUT: Duration = Duration::from_secs(300);
/// The interval between checks for the objects.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// A start timeout longer than any run, because only the client that starts a run gives it up.
const NO_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 86_400);
/// The time for clients that follow a run to record its end.
const RECORD_DELAY: Duration = Duration::from_secs(1);
/// The time for which a message about the end of a run is repeated.
const END_TIMEOUT: Duration = Duration::from_secs(3600);
/// The time for which a message about a stuck run is repeated. It is shorter, because the message
/// about the end must not wait for it.
const STUCK_TIMEOUT: Duration = Duration::from_secs(300);
/// The largest URL in bytes.
const LONGEST_URL: usize = 8192;

/// Options of the reports about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyOptions {
    /// The name of the run, or of its schedule.
    pub run: String,
    /// The namespace.
    pub namespace: String,
    /// The Job of this pod, if a schedule creates it.
    pub job: Option<String>,
    /// The states to report.
    pub on: Vec<WebhookState>,
    /// The form of the message.
    pub format: WebhookFormat,
    /// The time that a task may wait before the run is stuck.
    pub stuck_after: Duration,
    /// The file with the URL.
    pub url: PathBuf,
}

impl NotifyOptions {
    /// The name of the run. For a schedule, it ends like the name of this pod's Job.
    fn run_name(&self) -> String {
        let job = self.job.as_deref();
        let execution = job.and_then(|job| Some(job.rsplit_once('-')?.1));
        match execution {
            Some(execution) => format!("{}-{execution}", self.run),
            None => self.run.clone(),
        }
    }
}

/// Reports a run until it has ended. Blocks.
///
/// # Errors
/// See [`NotifyError`].
pub fn notify(options: &NotifyOptions) -> Result<(), NotifyError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(NotifyError::Runtime)?;
    runtime.block_on(async {
        let cluster = Cluster::connect().await?;
        report(&cluster, options).await
    })
}

/// Like [`notify`], but with an existing connection.
///
/// # Errors
/// See [`NotifyError`].
pub async fn report(cluster: &Cluster, options: &NotifyOptions) -> Result<(), NotifyError> {
    let read = |source| NotifyError::Url {
        path: options.url.clone(),
        source,
    };
    let url = fs::read_to_string(&options.url).map_err(read)?;
    let url = url.trim();
    let host = check_url(url).ok().filter(|_| url.len() <= LONGEST_URL);
    let host = host.ok_or(NotifyError::NotAUrl)?;
    let delivery = Delivery {
        url: SignedUrl::new(url),
        format: options.format.of_host(&host),
        host,
    };
    // A run that a schedule has skipped does not exist.
    let Some(found) = find(cluster, options).await? else {
        say(&format!("the run {} does not exist", options.run_name()));
        return Ok(());
    };
    let reporter = Reporter {
        cluster,
        options,
        delivery,
        found,
    };
    reporter.follow().await
}

/// Waits for the run.
async fn find(
    cluster: &Cluster,
    options: &NotifyOptions,
) -> Result<Option<RunSummary>, NotifyError> {
    let name = options.run_name();
    let end = Instant::now() + FIND_TIMEOUT;
    loop {
        match runs::find(cluster, &options.namespace, &name).await {
            Ok(found) if found.run.name.as_str() == name => return Ok(Some(found)),
            Err(RunsError::Cluster(error)) if !error.is_not_found() => return Err(error.into()),
            _ if Instant::now() >= end => return Ok(None),
            _ => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }
}

/// A run that is reported.
struct Reporter<'a> {
    cluster: &'a Cluster,
    options: &'a NotifyOptions,
    delivery: Delivery,
    found: RunSummary,
}

impl Reporter<'_> {
    async fn follow(&self) -> Result<(), NotifyError> {
        let options = FollowOptions {
            logs: false,
            // Only the user's clients change the run.
            stop: false,
            start_timeout: NO_TIMEOUT,
            ..FollowOptions::default()
        };
        let mut follow = Follow::start(self.cluster, &self.found.run, options).await?;
        let mut reported = BTreeSet::new();
        let mut check: Option<Instant> = None;
        loop {
            let is_due = async {
                match check {
                    Some(time) => tokio::time::sleep_until(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                event = follow.next() => match event {
                    Some(Ok(Event::Finished(outcome))) => {
                        let outcome = self.recorded(outcome).await;
                        return self.ended(outcome).await;
                    }
                    Some(Ok(Event::Waiting(_))) if check.is_none() => {
                        check = Some(Instant::now() + self.options.stuck_after);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error.into()),
                    None => return Err(NotifyError::Closed),
                },
                () = is_due => {
                    check = None;
                    self.check(&mut reported).await;
                }
            }
        }
    }

    /// The recorded end of the run. A client that follows the run decides the end at the same time,
    /// perhaps by another failed task, and records it.
    async fn recorded(&self, seen: Outcome) -> Outcome {
        tokio::time::sleep(RECORD_DELAY).await;
        let run = &self.found.run;
        let found = runs::find(self.cluster, &run.namespace, run.name.as_str()).await;
        let found = found.ok().filter(|found| found.run.name == run.name);
        match found.and_then(|found| found.outcome) {
            Some(recorded) => Outcome {
                began: seen.began,
                finished: seen.finished,
                ..recorded
            },
            None => seen,
        }
    }

    /// Reports that the run is stuck, once for each cause.
    async fn check(&self, reported: &mut BTreeSet<&'static str>) {
        if !self.options.on.contains(&WebhookState::Stuck) {
            return;
        }
        let Ok(now) = why(self.cluster, &self.found.run).await else {
            return;
        };
        let cause = now.explanation.filter(|_| now.state == State::Waiting);
        let Some(cause) = cause.filter(|cause| cause.kind != Cause::Unknown) else {
            return;
        };
        if reported.insert(cause.kind.as_str()) {
            let sent = self.delivery.send(&self.stuck(&cause), STUCK_TIMEOUT).await;
            if let Err(error) = sent {
                say(&error.to_string());
            }
        }
    }

    fn notice(&self, state: WebhookState) -> Notice {
        Notice {
            run: self.found.run.name.to_string(),
            namespace: self.found.run.namespace.clone(),
            tags: self.found.tags.clone(),
            state,
            exit_code: None,
            task: None,
            reason: String::new(),
            remedy: None,
            started: self.found.submitted.or(self.found.created),
            finished: None,
        }
    }

    fn stuck(&self, cause: &Explanation) -> Notice {
        Notice {
            task: cause.task().map(|task| task.to_string()),
            reason: cause.sentence(),
            remedy: Some(cause.remedy.clone()),
            ..self.notice(WebhookState::Stuck)
        }
    }

    async fn ended(&self, outcome: Outcome) -> Result<(), NotifyError> {
        let state = match outcome.ending {
            Ending::Succeeded => WebhookState::Succeeded,
            Ending::Cancelled => WebhookState::Cancelled,
            Ending::Failed | Ending::NotStarted => WebhookState::Failed,
        };
        if !self.options.on.contains(&state) {
            return Ok(());
        }
        let plain = self.notice(state);
        let notice = Notice {
            exit_code: Some(outcome.exit_code),
            task: outcome.task.map(|task| task.to_string()),
            reason: outcome.reason,
            remedy: outcome.remedy,
            started: outcome.began.or(plain.started),
            finished: outcome.finished.or_else(|| Some(jiff::Timestamp::now())),
            ..plain
        };
        self.delivery.send(&notice, END_TIMEOUT).await
    }
}

/// A line in the log of the pod.
#[expect(clippy::print_stdout, reason = "the log of the pod is its output")]
fn say(line: &str) {
    println!("longshore: {line}");
}
