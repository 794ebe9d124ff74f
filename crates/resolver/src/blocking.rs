//! The resolver without `async`, for scripts and small programs: the same names,
//! and each function waits for its answer. As with [`longshore_client::blocking`],
//! inside an asynchronous runtime every function is an error.
//!
//! ```
//! # longshore_embedded::blocking_example(|cluster| {
//! use std::{collections::BTreeMap, time::Duration};
//! use longshore_resolver::{Error, blocking::Resolver};
//! let asynchronous = longshore_resolver::Resolver::new((*cluster).clone())
//!     .with_mapping([("worker", vec!["app=none".parse()?])]);
//! let resolver = Resolver::from(asynchronous);
//!
//! assert_eq!(resolver.cluster_spec()?.num_tasks("worker"), Ok(0));
//! assert!(resolver.tasks()?.is_empty() && resolver.accelerators()?.is_empty());
//! assert!(resolver.num_accelerators(None, None)?.is_empty());
//! assert_eq!(resolver.master(None, None, None)?, "");
//! assert!(matches!(resolver.own_task(), Err(Error::NotATask { .. })));
//! let needed = BTreeMap::from([("worker".to_owned(), 1)]);
//! let error = resolver.wait(&needed, Duration::from_millis(20)).unwrap_err();
//! assert!(matches!(error, Error::Missing { .. }));
//!
//! let mut generations = resolver.watch()?;
//! let first = generations.next(None)?;
//! assert_eq!(first.map(|generation| generation.number), Some(1));
//! // Nobody comes.
//! assert!(generations.next(Some(Duration::from_millis(20)))?.is_none());
//! # Ok(()) });
//! ```

use std::{collections::BTreeMap, ops::Deref, time::Duration};

use longshore_client::blocking::wait_for;

use crate::{
    Error, Generation, Task, Tasks, accelerators::TaskAccelerators, resolver, spec::ClusterSpec,
};

/// Resolves label selectors over pods: see [`Resolver`](crate::Resolver), from
/// which it is made.
#[derive(Debug, Clone)]
pub struct Resolver {
    inner: resolver::Resolver,
}

impl From<resolver::Resolver> for Resolver {
    fn from(inner: resolver::Resolver) -> Self {
        Self { inner }
    }
}

impl Deref for Resolver {
    type Target = resolver::Resolver;

    fn deref(&self) -> &resolver::Resolver {
        &self.inner
    }
}

impl Resolver {
    /// As [`Resolver::tasks`](crate::Resolver::tasks).
    ///
    /// # Errors
    /// As there.
    pub fn tasks(&self) -> Result<Tasks, Error> {
        wait_for(self.inner.tasks())
    }

    /// As [`Resolver::cluster_spec`](crate::Resolver::cluster_spec).
    ///
    /// # Errors
    /// As there.
    pub fn cluster_spec(&self) -> Result<ClusterSpec, Error> {
        wait_for(self.inner.cluster_spec())
    }

    /// As [`Resolver::master`](crate::Resolver::master).
    ///
    /// # Errors
    /// As there.
    pub fn master(
        &self,
        task_type: Option<&str>,
        task_id: Option<u32>,
        rpc_layer: Option<&str>,
    ) -> Result<String, Error> {
        wait_for(self.inner.master(task_type, task_id, rpc_layer))
    }

    /// As [`Resolver::own_task`](crate::Resolver::own_task).
    ///
    /// # Errors
    /// As there.
    pub fn own_task(&self) -> Result<Task, Error> {
        wait_for(self.inner.own_task())
    }

    /// As [`Resolver::accelerators`](crate::Resolver::accelerators).
    ///
    /// # Errors
    /// As there.
    pub fn accelerators(&self) -> Result<Vec<TaskAccelerators>, Error> {
        wait_for(self.inner.accelerators())
    }

    /// As [`Resolver::num_accelerators`](crate::Resolver::num_accelerators).
    ///
    /// # Errors
    /// As there.
    pub fn num_accelerators(
        &self,
        task_type: Option<&str>,
        task_id: Option<u32>,
    ) -> Result<BTreeMap<String, u64>, Error> {
        wait_for(self.inner.num_accelerators(task_type, task_id))
    }

    /// As [`Resolver::wait`](crate::Resolver::wait).
    ///
    /// # Errors
    /// As there.
    pub fn wait(&self, needed: &BTreeMap<String, usize>, limit: Duration) -> Result<Tasks, Error> {
        wait_for(self.inner.wait(needed, limit))
    }

    /// As [`Resolver::watch`](crate::Resolver::watch).
    ///
    /// # Errors
    /// As there.
    pub fn watch(&self) -> Result<Generations, Error> {
        let inner = wait_for(self.inner.watch())?;
        Ok(Generations { inner })
    }
}

/// The generations of a job's tasks: see [`Generations`](crate::Generations).
pub struct Generations {
    inner: resolver::Generations,
}

impl Generations {
    /// The next generation; `None` when the time runs out before it comes. It is
    /// not lost then, but comes next time. Without a limit it waits for ever.
    ///
    /// # Errors
    /// As [`Generations::next`](crate::Generations::next).
    pub fn next(&mut self, limit: Option<Duration>) -> Result<Option<Generation>, Error> {
        let next = self.inner.next();
        wait_for(async {
            match limit {
                None => next.await.map(Some),
                Some(limit) => match tokio::time::timeout(limit, next).await {
                    Ok(generation) => generation.map(Some),
                    Err(_) => Ok(None),
                },
            }
        })
    }
}
