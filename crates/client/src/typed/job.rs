//! Jobs.

use jiff::Timestamp;

use crate::{error::Result, item::Item, kinds::Job};

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
