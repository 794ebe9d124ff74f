//! Waits for what is asynchronous: without the interpreter's lock, and with an
//! ear for Ctrl-C.

use std::{pin::pin, time::Duration};

use longshore::{Error, blocking::wait_for};
use pyo3::prelude::*;
use tokio::time::timeout;

use crate::errors::{Failure, raised};

/// So often signals are looked at.
const SLICE: Duration = Duration::from_millis(50);

/// Waits for a result. A Ctrl-C drops the future, and raises `KeyboardInterrupt`.
pub(crate) fn wait<T: Send, E: Into<Failure> + Send>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, E>> + Send,
) -> PyResult<T> {
    let mut future = pin!(future);
    loop {
        let slice = py.detach(|| {
            wait_for(async { Ok::<_, Error>(timeout(SLICE, future.as_mut()).await.ok()) })
        });
        match slice {
            Ok(Some(result)) => return result.map_err(|error| raised(py, error.into())),
            Ok(None) => py.check_signals()?,
            Err(error) => return Err(raised(py, error.into())),
        }
    }
}

/// A limit in seconds, as Python has it: `None` for none.
pub(crate) fn limit(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let made = seconds.map(|seconds| {
        Duration::try_from_secs_f64(seconds).map_err(|_| {
            pyo3::exceptions::PyValueError::new_err(format!(
                "a timeout must be a number of seconds, 0 or above, but is {seconds}"
            ))
        })
    });
    made.transpose()
}
