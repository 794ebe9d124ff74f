//! Watches the tasks of a job.

use std::{collections::BTreeSet, time::Duration};

use futures::{Stream, stream};
use serde::Serialize;
use tokio::time::Instant;

use super::{Resolver, pod_feeds::PodFeeds, wait::complete_tasks};
use crate::{
    error::Error,
    spec::ClusterSpec,
    tasks::{Assembly, Task, Tasks},
};

/// The time for which pods must not change before a new generation is returned.
const QUIET_PERIOD: Duration = Duration::from_millis(200);
/// The maximum delay of a generation in quiet periods, for a job that changes all
/// the time.
const MAX_QUIET_PERIODS: u32 = 10;

/// The tasks of a job between two changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Generation {
    /// Counts from 1 without gaps within one [`Generations`].
    pub number: u64,
    /// The current tasks.
    pub tasks: Tasks,
    /// The tasks whose pods are new.
    pub joined: Vec<Task>,
    /// The tasks of the previous generation whose pods no longer exist.
    pub left: Vec<Task>,
}

impl Generation {
    /// Returns the addresses of the current tasks.
    #[must_use]
    pub fn spec(&self) -> ClusterSpec {
        self.tasks.spec()
    }
}

impl Serialize for Generation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            generation: u64,
            cluster: ClusterSpec,
            joined: &'a [Task],
            left: &'a [Task],
        }
        let Self {
            number,
            joined,
            left,
            ..
        } = self;
        let fields = Fields {
            generation: *number,
            cluster: self.spec(),
            joined,
            left,
        };
        fields.serialize(serializer)
    }
}

/// The successive generations of a job's tasks. It ends after [`Error::Closed`].
pub struct Generations {
    feeds: PodFeeds,
    assembly: Assembly,
    quiet: Duration,
    last: Option<(u64, Tasks)>,
    started: bool,
    /// The times of the first and the last change that no generation contains yet.
    pending: Option<(Instant, Instant)>,
}

impl Resolver {
    /// Watches the tasks. The first generation is returned immediately. Another one
    /// follows when pods are added, deleted or moved, after no pod has changed for
    /// 0.2 s, or after 2 s if pods keep changing. Pods that the policy refuses are
    /// left out until it accepts them.
    ///
    /// # Errors
    /// See [`Resolver::tasks`].
    ///
    /// ```
    /// # longshore_embedded::example_with_pods(async |cluster| {
    /// # use longshore_resolver::Resolver;
    /// let resolver = Resolver::new(cluster).with_mapping([("worker", vec!["app=none".parse()?])]);
    /// let mut generations = resolver.watch().await?;
    /// let first = generations.next().await?;
    /// assert_eq!((first.number, first.tasks.len()), (1, 0));
    /// assert_eq!(serde_json::to_string(&first)?, r#"{"generation":1,"cluster":{"worker":[]},"joined":[],"left":[]}"#);
    /// # Ok(()) });
    /// ```
    pub async fn watch(&self) -> Result<Generations, Error> {
        Ok(Generations {
            feeds: PodFeeds::open(self).await?,
            assembly: self.assembly_for_waiting(),
            quiet: QUIET_PERIOD,
            last: None,
            started: false,
            pending: None,
        })
    }
}

impl Generations {
    /// Sets how long no pod may change before a new generation is returned.
    #[must_use]
    pub fn with_quiet(mut self, quiet: Duration) -> Self {
        self.quiet = quiet;
        self
    }

    /// Returns the next generation. The future may be dropped and the method called
    /// again; no generation is lost.
    ///
    /// # Errors
    /// [`Error::Pods`] for pods that cannot become tasks, such as two with the same
    /// completion index. That can be temporary, so callers may call this method
    /// again. After [`Error::Closed`] there are no further generations.
    pub async fn next(&mut self) -> Result<Generation, Error> {
        loop {
            // The first generation needs no quiet period.
            if std::mem::replace(&mut self.started, true) {
                self.settle().await?;
                self.pending = None;
            }
            let tasks = complete_tasks(self.feeds.selected(), &self.assembly)?;
            if let Some(generation) = self.next_generation(tasks) {
                return Ok(generation);
            }
        }
    }

    /// Converts to a stream, which ends after [`Error::Closed`].
    pub fn into_stream(self) -> impl Stream<Item = Result<Generation, Error>> + Send {
        stream::unfold(Some(self), |generations| async {
            let mut generations = generations?;
            match generations.next().await {
                Err(Error::Closed) => Some((Err(Error::Closed), None)),
                outcome => Some((outcome, Some(generations))),
            }
        })
    }

    /// Waits for a change, and then until no pod changes for the quiet period.
    async fn settle(&mut self) -> Result<(), Error> {
        loop {
            let Some((first, last)) = self.pending else {
                self.feeds.changed().await?;
                self.pending = Some((Instant::now(), Instant::now()));
                continue;
            };
            let until = (last + self.quiet).min(first + self.quiet * MAX_QUIET_PERIODS);
            if Instant::now() >= until {
                return Ok(());
            }
            if let Ok(changed) = tokio::time::timeout_at(until, self.feeds.changed()).await {
                changed?;
                self.pending = Some((first, Instant::now()));
            }
        }
    }

    fn next_generation(&mut self, tasks: Tasks) -> Option<Generation> {
        let (number, before) = match &self.last {
            Some((_, before)) if *before == tasks => return None,
            Some((number, before)) => (*number, before),
            None => (0, &Tasks::default()),
        };
        let generation = Generation {
            number: number + 1,
            joined: tasks_not_in(&tasks, before),
            left: tasks_not_in(before, &tasks),
            tasks,
        };
        self.last = Some((generation.number, generation.tasks.clone()));
        Some(generation)
    }
}

/// Returns the tasks whose pods are not among the other tasks' pods.
fn tasks_not_in(tasks: &Tasks, others: &Tasks) -> Vec<Task> {
    let key = |task: &Task| {
        (
            task.role.clone(),
            task.pod.namespace.clone(),
            task.pod.name.clone(),
            task.pod.uid.clone(),
        )
    };
    let known: BTreeSet<_> = others.iter().map(key).collect();
    let new = tasks.iter().filter(|task| !known.contains(&key(task)));
    new.cloned().collect()
}
