//! Awaitables of asyncio for work on the threads of the runtime.
//!
//! CPython ends a thread that waits for the interpreter's lock while the interpreter exits, in the
//! middle of the code that it runs. So threads of the runtime take the lock only with [`attached`]:
//! the exit waits for threads that have the lock, and no other thread gets it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use futures::FutureExt as _;
use longshore::blocking::shared_runtime;
use pyo3::{exceptions::PyRuntimeError, intern, prelude::*, sync::PyOnceLock};
use tokio::task::AbortHandle;

use crate::{errors::raise, wait::check_process};

/// Makes the Python object of a result.
pub(crate) type Made = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// The longest time that the exit waits.
const LONGEST_EXIT: Duration = Duration::from_secs(5);

/// The number of threads of the runtime that have or wait for the interpreter's lock.
static ATTACHED: AtomicUsize = AtomicUsize::new(0);
static EXITING: AtomicBool = AtomicBool::new(false);
/// The thread that runs the exit of the interpreter.
static EXIT_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// Runs work on the shared runtime. Not generic: the code of the runtime is compiled once.
pub(crate) fn awaitable(
    py: Python<'_>,
    work: Pin<Box<dyn Future<Output = Made> + Send>>,
) -> PyResult<Bound<'_, PyAny>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    check_process(py)?;
    let runtime = shared_runtime().map_err(raise(py))?;
    prepare_exit(py)?;
    let running = RUNNING.import(py, "asyncio", "get_running_loop")?;
    let event_loop = running.call0()?;
    let future = event_loop.call_method0(intern!(py, "create_future"))?;
    let (event_loop, settled) = (event_loop.unbind(), future.clone().unbind());
    let task = runtime.spawn(async move {
        let work = AssertUnwindSafe(work).catch_unwind().await;
        let made = work.unwrap_or_else(|_| Box::new(|_| Err(defect())));
        attached(|py| settle_later(py, &event_loop, &settled, made));
    });
    let cancel = Cancel(task.abort_handle());
    future.call_method1(intern!(py, "add_done_callback"), (cancel,))?;
    Ok(future)
}

/// The error of a panic. Its message and its place are on standard error.
fn defect() -> PyErr {
    PyRuntimeError::new_err("an internal error of longshore: please report it")
}

/// Calls a function with the interpreter's lock, unless the interpreter exits.
pub(crate) fn attached<T>(function: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            ATTACHED.fetch_sub(1, Ordering::SeqCst);
        }
    }
    ATTACHED.fetch_add(1, Ordering::SeqCst);
    let _leave = Leave;
    (!EXITING.load(Ordering::SeqCst)).then(|| Python::attach(function))
}

/// Lets the event loop set the result of its future.
fn settle_later(py: Python<'_>, event_loop: &Py<PyAny>, future: &Py<PyAny>, made: Made) {
    static SETTLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = catch_unwind(AssertUnwindSafe(|| made(py)));
    let (method, value) = match made.unwrap_or_else(|_| Err(defect())) {
        Ok(value) => ("set_result", value),
        Err(error) => ("set_exception", error.into_value(py).into_any()),
    };
    let settle = SETTLE.get_or_try_init(py, || {
        Ok::<_, PyErr>(wrap_pyfunction!(settle, py)?.into_any().unbind())
    });
    if let Ok(settle) = settle {
        // Fails if the loop is closed, because nothing waits for the future.
        let _ = event_loop.call_method1(
            py,
            intern!(py, "call_soon_threadsafe"),
            (settle, future, method, value),
        );
    }
}

/// Sets the result of a future that is not cancelled.
#[pyfunction]
fn settle(future: &Bound<'_, PyAny>, method: &str, value: Bound<'_, PyAny>) -> PyResult<()> {
    // The thread that has scheduled this function may still wait for the lock, to return. No later
    // function of the exit waits for that thread.
    if EXIT_THREAD.get() == Some(&thread::current().id()) {
        wait_for_others(future.py());
    }
    let done = future.call_method0(intern!(future.py(), "done"))?;
    if done.is_truthy()? {
        return Ok(());
    }
    // asyncio refuses the exception StopIteration, for example of a user's function.
    if let Err(refused) = future.call_method1(method, (value,)) {
        let error = refused.into_value(future.py());
        future.call_method1(intern!(future.py(), "set_exception"), (error,))?;
    }
    Ok(())
}

/// Ends the work of a future that is cancelled.
#[pyclass(frozen)]
struct Cancel(AbortHandle);

#[pymethods]
impl Cancel {
    fn __call__(&self, future: &Bound<'_, PyAny>) -> PyResult<()> {
        let cancelled = future.call_method0(intern!(future.py(), "cancelled"))?;
        if cancelled.is_truthy()? {
            self.0.abort();
        }
        Ok(())
    }
}

/// Makes the exit of the interpreter call [`wait_for_attached`].
fn prepare_exit(py: Python<'_>) -> PyResult<()> {
    static REGISTERED: PyOnceLock<()> = PyOnceLock::new();
    // The exit itself may call functions that await results.
    if EXIT_THREAD.get() == Some(&thread::current().id()) {
        EXITING.store(false, Ordering::SeqCst);
    }
    REGISTERED
        .get_or_try_init(py, || {
            let register = py.import("atexit")?.getattr("register")?;
            register.call1((wrap_pyfunction!(wait_for_attached, py)?,))?;
            Ok(())
        })
        .copied()
}

#[pyfunction]
fn wait_for_attached(py: Python<'_>) {
    // In a forked child, the threads do not exist.
    if check_process(py).is_err() {
        return;
    }
    let _ = EXIT_THREAD.set(thread::current().id());
    EXITING.store(true, Ordering::SeqCst);
    wait_for_others(py);
}

/// Waits until no thread of the runtime has or waits for the interpreter's lock.
fn wait_for_others(py: Python<'_>) {
    py.detach(|| {
        let latest = Instant::now() + LONGEST_EXIT;
        while ATTACHED.load(Ordering::SeqCst) > 0 && Instant::now() < latest {
            thread::sleep(Duration::from_millis(1));
        }
    });
}
