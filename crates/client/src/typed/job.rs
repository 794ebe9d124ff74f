//! Jobs.

use jiff::Timestamp;

use crate::{error::Result, item::Item, kinds::Job};

/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use longshore_client::Patch;
/// use serde_json::json;
///
/// let jobs = cluster.jobs().in_namespace("default")?;
/// let job = jobs.create(&json!({
///     "metadata": {"name": "sums"},
///     "spec": {
///         "completions": 5, "parallelism": 2, "completionMode": "Indexed",
///         "template": {"spec": {
///             "restartPolicy": "Never",
///             "containers": [{"name": "main", "image": "busybox"}],
///         }},
///     },
/// })).await?;
/// assert_eq!((job.completions()?, job.parallelism()?), (Some(5), 2));
/// // Its controller has not seen it yet.
/// assert_eq!((job.active()?, job.succeeded()?, job.failed()?), (0, 0, 0));
/// assert!(job.start_time().is_err());
/// # let status = json!({"status": {
/// #     "startTime": "2026-01-05T10:00:00Z", "active": 2, "succeeded": 3, "failed": 1,
/// #     "completedIndexes": "0-2", "uncountedTerminatedPods": {},
/// # }});
/// # jobs.patch_status("sums", &Patch::merge(status)).await?;
///
/// // A while later:
/// let job = job.fetch().await?;
/// assert_eq!((job.active()?, job.succeeded()?, job.failed()?), (2, 3, 1));
/// assert_eq!(job.completed_indexes()?, "0-2");
/// assert!(!job.is_complete()? && !job.is_failed()?);
/// # let since = |kind| json!({
/// #     "type": kind, "status": "True", "lastTransitionTime": "2026-01-05T10:05:00Z",
/// # });
/// # let status = json!({"status": {
/// #     "active": 0, "succeeded": 5, "completedIndexes": "0-4",
/// #     "completionTime": "2026-01-05T10:05:00Z",
/// #     "conditions": [since("SuccessCriteriaMet"), since("Complete")],
/// # }});
/// # jobs.patch_status("sums", &Patch::merge(status)).await?;
///
/// let job = job.fetch().await?;
/// assert!(job.is_complete()?);
/// assert_eq!((job.completion_time()? - job.start_time()?).get_seconds(), 300);
/// # Ok(()) });
/// ```
impl Item<Job> {
    /// How many pods must succeed; `None` when one success is enough for a
    /// work queue.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no number.
    pub fn completions(&self) -> Result<Option<u64>> {
        self.field(&["spec", "completions"])
    }

    /// How many pods may run at once; 1 when nothing is said.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no number.
    pub fn parallelism(&self) -> Result<u64> {
        Ok(self.field(&["spec", "parallelism"])?.unwrap_or(1))
    }

    /// How many pods run or wait now. The API leaves zeros out, so an absent
    /// count is 0.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no number.
    pub fn active(&self) -> Result<u64> {
        self.count("active")
    }

    /// How many pods have succeeded.
    ///
    /// # Errors
    /// As [`Item::active`].
    pub fn succeeded(&self) -> Result<u64> {
        self.count("succeeded")
    }

    /// How many pods have failed.
    ///
    /// # Errors
    /// As [`Item::active`].
    pub fn failed(&self) -> Result<u64> {
        self.count("failed")
    }

    fn count(&self, field: &str) -> Result<u64> {
        Ok(self.field(&["status", field])?.unwrap_or(0))
    }

    /// Which indexes have succeeded, as `0-3,7`.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it is absent.
    pub fn completed_indexes(&self) -> Result<String> {
        self.status_field(&["completedIndexes"])
    }

    /// When its controller began with it.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) while it has not.
    pub fn start_time(&self) -> Result<Timestamp> {
        self.status_field(&["startTime"])
    }

    /// When it was completed.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it is not, or has failed.
    pub fn completion_time(&self) -> Result<Timestamp> {
        self.status_field(&["completionTime"])
    }

    /// Whether it is complete.
    ///
    /// # Errors
    /// As [`Item::condition`].
    pub fn is_complete(&self) -> Result<bool> {
        self.holds("Complete")
    }

    /// Whether it has failed for good.
    ///
    /// # Errors
    /// As [`Item::condition`].
    pub fn is_failed(&self) -> Result<bool> {
        self.holds("Failed")
    }
}
