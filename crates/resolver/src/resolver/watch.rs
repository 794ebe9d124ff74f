//! The tasks of a job as they come and go.

use std::{collections::BTreeSet, time::Duration};

use futures::{Stream, stream};
use serde::Serialize;
use tokio::time::Instant;

use super::{Resolver, live::Live, wait::there};
use crate::{
    error::Error,
    spec::ClusterSpec,
    tasks::{Assembly, Task, Tasks},
};

/// So long nothing may change until what has changed counts.
const QUIET: Duration = Duration::from_millis(200);
/// So many times that, at most, for a job that never rests.
const PATIENCE: u32 = 10;

/// The tasks from one change to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Generation {
    /// Counts from 1, without gaps, in one [`Generations`].
    pub number: u64,
    /// Who is there now.
    pub tasks: Tasks,
    /// Whose pod was not there before.
    pub joined: Vec<Task>,
    /// Whose pod was there before and is no longer.
    pub left: Vec<Task>,
}

impl Generation {
    /// The addresses of those who are there.
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

/// The generations of a job's tasks, one after the other. Ends when it is
/// dropped, and after [`Error::Closed`].
pub struct Generations {
    live: Live,
    how: Assembly,
    quiet: Duration,
    last: Option<(u64, Tasks)>,
    begun: bool,
    /// Since when something has changed that nobody was told of, and when last.
    news: Option<(Instant, Instant)>,
}

impl Resolver {
    /// Follows the tasks: a generation now, and one whenever pods have joined,
    /// left or moved, once nothing has changed for 0.2 s (or for 2 s something
    /// has all the time). Pods that the policy refuses are left out as long as
    /// it does.
    ///
    /// # Errors
    /// As [`Resolver::tasks`].
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
            live: Live::open(self).await?,
            how: self.patient(),
            quiet: QUIET,
            last: None,
            begun: false,
            news: None,
        })
    }
}

impl Generations {
    /// The same, where so long nothing may change until what has changed
    /// counts.
    #[must_use]
    pub fn with_quiet(mut self, quiet: Duration) -> Self {
        self.quiet = quiet;
        self
    }

    /// The next generation. May be given up and called again; none is lost.
    ///
    /// # Errors
    /// [`Error::Pods`] for pods that do not make tasks, such as two with one
    /// completion index: that may come right again, so go on with the next.
    /// [`Error::Closed`] is the end.
    pub async fn next(&mut self) -> Result<Generation, Error> {
        loop {
            // What is there at the beginning needs no rest.
            if std::mem::replace(&mut self.begun, true) {
                self.settle().await?;
                self.news = None;
            }
            let tasks = there(self.live.selected(), &self.how)?;
            if let Some(generation) = self.turn(tasks) {
                return Ok(generation);
            }
        }
    }

    /// As a stream, which ends after [`Error::Closed`].
    pub fn into_stream(self) -> impl Stream<Item = Result<Generation, Error>> + Send {
        stream::unfold(Some(self), |generations| async {
            let mut generations = generations?;
            match generations.next().await {
                Err(Error::Closed) => Some((Err(Error::Closed), None)),
                outcome => Some((outcome, Some(generations))),
            }
        })
    }

    /// Waits until something has changed and nothing does any more.
    async fn settle(&mut self) -> Result<(), Error> {
        loop {
            let Some((first, last)) = self.news else {
                self.live.changed().await?;
                self.news = Some((Instant::now(), Instant::now()));
                continue;
            };
            let until = (last + self.quiet).min(first + self.quiet * PATIENCE);
            if Instant::now() >= until {
                return Ok(());
            }
            if let Ok(changed) = tokio::time::timeout_at(until, self.live.changed()).await {
                changed?;
                self.news = Some((first, Instant::now()));
            }
        }
    }

    fn turn(&mut self, tasks: Tasks) -> Option<Generation> {
        let (number, before) = match &self.last {
            Some((_, before)) if *before == tasks => return None,
            Some((number, before)) => (*number, before),
            None => (0, &Tasks::default()),
        };
        let generation = Generation {
            number: number + 1,
            joined: without(&tasks, before),
            left: without(before, &tasks),
            tasks,
        };
        self.last = Some((generation.number, generation.tasks.clone()));
        Some(generation)
    }
}

/// The tasks of the one whose pods the other does not have.
fn without(tasks: &Tasks, others: &Tasks) -> Vec<Task> {
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
