//! The resolver without `async`, for scripts and small programs. It has the same
//! names as the asynchronous API, and each function blocks until its result is
//! available. As with [`longshore_client::blocking`], every function returns an
//! error inside an asynchronous runtime.
//!
//! ```
//! # longshore_embedded::blocking_example(|cluster| {
//! use std::{collections::BTreeMap, time::Duration};
//! use longshore_resolver::{Error, blocking::Resolver};
//! let asynchronous = longshore_resolver::Resolver::new(cluster.clone().into())
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
//! // No pod matches, so no second generation follows.
//! assert!(generations.next(Some(Duration::from_millis(20)))?.is_none());
//! # Ok(()) });
//! ```

use std::{collections::BTreeMap, ops::Deref, time::Duration};

use longshore_client::blocking::wait_for;

use crate::{
    Error, Generation, Task, Tasks, accelerators::TaskAccelerators, resolver, spec::ClusterSpec,
};

/// Resolves label selectors over pods. Create it from a
/// [`Resolver`](crate::Resolver), which documents its behaviour.
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
    /// See [`Resolver::tasks`](crate::Resolver::tasks).
    ///
    /// The same as for the asynchronous method.
    pub fn tasks(&self) -> Result<Tasks, Error> {
        wait_for(self.inner.tasks())
    }

    /// See [`Resolver::cluster_spec`](crate::Resolver::cluster_spec).
    ///
    /// The same as for the asynchronous method.
    pub fn cluster_spec(&self) -> Result<ClusterSpec, Error> {
        wait_for(self.inner.cluster_spec())
    }

    /// See [`Resolver::master`](crate::Resolver::master).
    ///
    /// The same as for the asynchronous method.
    pub fn master(
        &self,
        task_type: Option<&str>,
        task_id: Option<u32>,
        rpc_layer: Option<&str>,
    ) -> Result<String, Error> {
        wait_for(self.inner.master(task_type, task_id, rpc_layer))
    }

    /// See [`Resolver::own_task`](crate::Resolver::own_task).
    ///
    /// The same as for the asynchronous method.
    pub fn own_task(&self) -> Result<Task, Error> {
        wait_for(self.inner.own_task())
    }

    /// See [`Resolver::accelerators`](crate::Resolver::accelerators).
    ///
    /// The same as for the asynchronous method.
    pub fn accelerators(&self) -> Result<Vec<TaskAccelerators>, Error> {
        wait_for(self.inner.accelerators())
    }

    /// See [`Resolver::num_accelerators`](crate::Resolver::num_accelerators).
    ///
    /// The same as for the asynchronous method.
    pub fn num_accelerators(
        &self,
        task_type: Option<&str>,
        task_id: Option<u32>,
    ) -> Result<BTreeMap<String, u64>, Error> {
        wait_for(self.inner.num_accelerators(task_type, task_id))
    }

    /// See [`Resolver::wait`](crate::Resolver::wait).
    ///
    /// The same as for the asynchronous method.
    pub fn wait(&self, needed: &BTreeMap<String, usize>, limit: Duration) -> Result<Tasks, Error> {
        wait_for(self.inner.wait(needed, limit))
    }

    /// See [`Resolver::watch`](crate::Resolver::watch).
    ///
    /// The same as for the asynchronous method.
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
    /// Returns the next generation, or `None` if the time limit passes first. A
    /// later call then returns that generation. Without a limit, the call waits
    /// indefinitely.
    ///
    /// # Errors
    /// See [`Generations::next`](crate::Generations::next).
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
