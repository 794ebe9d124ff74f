//! Waits for asynchronous work. It releases the interpreter's lock and checks for signals
//! such as Ctrl-C.

use std::{
    pin::{Pin, pin},
    process,
    sync::OnceLock,
    time::Duration,
};

use longshore::{Error, blocking::wait_for};
use pyo3::prelude::*;
use tokio::time::timeout;

use crate::errors::{Failure, invalid, one, raised};

/// The interval between checks for signals.
const SLICE: Duration = Duration::from_millis(50);

/// The ID of the process that has the worker threads.
static OWNER: OnceLock<u32> = OnceLock::new();

/// Fails in a forked child: the worker threads exist only in the parent, so the wait
/// would never end.
pub(crate) fn check_process(py: Python<'_>) -> PyResult<()> {
    let own = process::id();
    match *OWNER.get_or_init(|| own) == own {
        true => Ok(()),
        false => Err(forked(py)),
    }
}

fn forked(py: Python<'_>) -> PyErr {
    let message = "longshore was used before this process was forked, and its threads are \
                   not here: use it in the parent, or start processes with the methods \
                   'spawn' or 'forkserver' of multiprocessing";
    match one(py, "ClosedError", message) {
        Ok(error) | Err(error) => error,
    }
}

/// Waits for a result. Ctrl-C drops the future and raises `KeyboardInterrupt`.
pub(crate) fn wait<T: Send, E: Into<Failure> + Send>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, E>> + Send,
) -> PyResult<T> {
    let mut result = None;
    complete(py, pin!(async { result = Some(future.await) }))?;
    match result {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(raised(py, error.into())),
        None => Err(raised(py, Error::Closed.into())),
    }
}

/// Polls a future to its end. Not generic: the code of the runtime is compiled once.
fn complete(
    py: Python<'_>,
    mut future: Pin<&mut (dyn Future<Output = ()> + Send)>,
) -> PyResult<()> {
    check_process(py)?;
    loop {
        let slice = py.detach(|| {
            wait_for(async { Ok::<_, Error>(timeout(SLICE, future.as_mut()).await.is_ok()) })
        });
        match slice {
            Ok(true) => return Ok(()),
            Ok(false) => py.check_signals()?,
            Err(error) => return Err(raised(py, error.into())),
        }
    }
}

/// Limits the time of a future. `what` describes the missing event in the error.
pub(crate) async fn within<T, E: Into<Failure>>(
    limit: Option<Duration>,
    what: impl FnOnce() -> String + Send,
    future: impl Future<Output = Result<T, E>> + Send,
) -> Result<T, Failure> {
    let Some(limit) = limit else {
        return future.await.map_err(Into::into);
    };
    match timeout(limit, future).await {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err(Failure::Late(format!(
            "timed out after {limit:?}: {}",
            what()
        ))),
    }
}

/// Converts a timeout in seconds; `None` means no timeout.
pub(crate) fn limit(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let timeout = seconds.map(|seconds| duration("timeout", seconds));
    timeout.transpose()
}

/// Converts an argument in seconds.
pub(crate) fn duration(argument: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        invalid(format!(
            "{argument} must be a number of seconds, 0 or above, but is {seconds}"
        ))
    })
}
