//! Methods of pods: logs, commands in containers, ports, files, evictions.

use std::{collections::VecDeque, path::PathBuf, sync::Arc};

use futures::{
    FutureExt as _, StreamExt,
    future::{BoxFuture, Shared},
};
use longshore::{
    Error,
    client::{CopyOptions, ExecOptions, Input, LogOptions, Reader, Session as Inner},
    kinds::Pod,
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::Mutex,
};

use crate::{
    delete,
    errors::raise,
    face::Face,
    objects::Item,
    stream::{Piece, Stream},
    wait::{limit, within},
};

impl Item {
    fn pod(&self, py: Python<'_>) -> PyResult<longshore::Item<Pod>> {
        self.inner.clone().into_kind::<Pod>().map_err(raise(py))
    }
}

#[pymethods]
impl Item {
    /// The lines of a container's log. With `all_containers`, pairs of the container's name and
    /// the line.
    ///
    /// :param container: The container; required if the pod has several.
    /// :param all_containers: Read the logs of all containers at the same time.
    /// :param follow: Wait for further lines until the container terminates.
    /// :param previous: Read the log of the previous instance of the container, before its
    ///     restart.
    /// :param tail_lines: Only this number of lines from the end.
    /// :param since_seconds: Only lines of the last seconds.
    /// :param timestamps: Begin each line with its time.
    #[pyo3(signature = (
        *, container=None, all_containers=false, follow=false, previous=false, tail_lines=None,
        since_seconds=None, timestamps=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn logs<'py>(
        &self,
        py: Python<'py>,
        container: Option<String>,
        all_containers: bool,
        follow: bool,
        previous: bool,
        tail_lines: Option<u64>,
        since_seconds: Option<u64>,
        timestamps: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (face, pod) = (self.face, self.pod(py)?);
        let options = LogOptions {
            container,
            follow,
            previous,
            tail_lines,
            since_seconds,
            timestamps,
            ..LogOptions::default()
        };
        let opening = async move {
            Ok::<_, Error>(match all_containers {
                true => {
                    let lines = pod.logs_all(&options).await?;
                    lines.map(|line| line.map(Piece::LineOf)).boxed()
                }
                false => {
                    let lines = pod.log_lines(&options).await?;
                    lines.map(|line| line.map(Piece::Line)).boxed()
                }
            })
        };
        face.run(py, opening, move |py, lines| {
            let lines = Stream::new(face, lines).into_pyobject(py)?;
            Ok(lines.into_any().unbind())
        })
    }

    /// Runs a command in a container to its end. Returns a `longshore.Output`: exit code,
    /// standard output and standard error as bytes.
    ///
    /// :param container: The container; required if the pod has several.
    /// :param input: The standard input; default: none.
    /// :param timeout: The seconds after which the command must have ended. Then the connection to
    ///     it is closed.
    /// :raises WaitTimeoutError: If the timeout expires.
    #[pyo3(signature = (command, *, container=None, input=None, timeout=None))]
    fn exec<'py>(
        &self,
        py: Python<'py>,
        command: Vec<String>,
        container: Option<String>,
        input: Option<Vec<u8>>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let limit = limit(timeout)?;
        let pod = self.pod(py)?;
        let options = ExecOptions {
            container,
            stdin: input.is_some(),
            tty: false,
        };
        let running = async move {
            let mut session = pod.exec(command, &options).await?;
            let streams = (session.stdin(), session.stdout(), session.stderr());
            let (stdin, stdout, stderr) = streams;
            let write = async {
                if let (Some(mut stdin), Some(input)) = (stdin, input) {
                    // A command that does not read its input ends before.
                    let _ = stdin.write_all(&input).await;
                    let _ = stdin.shutdown().await;
                }
            };
            let (_, stdout, stderr) = tokio::join!(write, read_all(stdout), read_all(stderr));
            Ok::<_, Error>((session.wait().await?, stdout, stderr))
        };
        let running = within(limit, || "the command has not ended".to_owned(), running);
        self.face.run(py, running, |py, (code, stdout, stderr)| {
            let class = py.import("longshore.results")?.getattr("Output")?;
            let output = (code, PyBytes::new(py, &stdout), PyBytes::new(py, &stderr));
            Ok(class.call1(output)?.unbind())
        })
    }

    /// Starts a command in a container, and returns the `Session` with it.
    ///
    /// :param container: The container; required if the pod has several.
    /// :param tty: Run it in a terminal. Its standard error is then part of the standard
    ///     output.
    #[pyo3(signature = (command, *, container=None, tty=false))]
    fn open_exec<'py>(
        &self,
        py: Python<'py>,
        command: Vec<String>,
        container: Option<String>,
        tty: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (face, pod) = (self.face, self.pod(py)?);
        let options = ExecOptions {
            container,
            stdin: true,
            tty,
        };
        let opening = async move { pod.exec(command, &options).await };
        face.run(py, opening, move |py, session| {
            Session::new(session, face).into_python(py)
        })
    }

    /// Attaches to the main process of a container, and returns the `Session` with it.
    ///
    /// :param container: The container; required if the pod has several.
    /// :param stdin: Connect the standard input, which the container must have.
    /// :param tty: The container has a terminal.
    #[pyo3(signature = (*, container=None, stdin=false, tty=false))]
    fn attach<'py>(
        &self,
        py: Python<'py>,
        container: Option<String>,
        stdin: bool,
        tty: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (face, pod) = (self.face, self.pod(py)?);
        let options = ExecOptions {
            container,
            stdin,
            tty,
        };
        let opening = async move { pod.attach(&options).await };
        face.run(py, opening, move |py, session| {
            Session::new(session, face).into_python(py)
        })
    }

    /// Forwards connections from a port of this machine to a port of the pod.
    ///
    /// :param local_port: The port of 127.0.0.1; default: a free one.
    #[pyo3(signature = (port, *, local_port=0))]
    fn port_forward<'py>(
        &self,
        py: Python<'py>,
        port: u16,
        local_port: u16,
    ) -> PyResult<Bound<'py, PyAny>> {
        let pod = self.pod(py)?;
        let opening = async move {
            let forward = pod.port_forward(port)?;
            let cannot =
                |error| Error::Config(format!("port {local_port} of this machine: {error}"));
            let listener = TcpListener::bind(("127.0.0.1", local_port)).await;
            let listener = listener.map_err(cannot)?;
            let bound = listener.local_addr().map_err(cannot)?;
            let problems = Arc::new(std::sync::Mutex::new(VecDeque::new()));
            let reported = problems.clone();
            let task = tokio::spawn(async move {
                let report = move |problem| {
                    let mut problems = reported.lock().unwrap_or_else(|error| error.into_inner());
                    if problems.len() == MAX_PROBLEMS {
                        problems.pop_front();
                    }
                    problems.push_back(problem);
                };
                let _ = forward.serve(listener, report).await;
            });
            let task = tokio_util::task::AbortOnDropHandle::new(task);
            Ok::<_, Error>(PortForward {
                local_port: bound.port(),
                problems,
                task: std::sync::Mutex::new(Some(task)),
            })
        };
        self.face.run(py, opening, |py, forward| {
            Ok(forward.into_pyobject(py)?.into_any().unbind())
        })
    }

    /// Copies a file or folder of this machine into a container, which needs `tar`. Returns the
    /// path in the container.
    ///
    /// :param container: The container; required if the pod has several.
    #[pyo3(signature = (source, target, *, container=None))]
    fn copy_in<'py>(
        &self,
        py: Python<'py>,
        source: PathBuf,
        target: String,
        container: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let pod = self.pod(py)?;
        let options = CopyOptions {
            container,
            ..CopyOptions::default()
        };
        let copying = async move { pod.copy_in(&source, &target, &options).await };
        self.face.run(py, copying, |py, copied| {
            Ok(copied.path.into_pyobject(py)?.into_any().unbind())
        })
    }

    /// Copies a file or folder of a container, which needs `tar`, to this machine. Returns the
    /// path here.
    ///
    /// :param container: The container; required if the pod has several.
    #[pyo3(signature = (source, target, *, container=None))]
    fn copy_out<'py>(
        &self,
        py: Python<'py>,
        source: String,
        target: PathBuf,
        container: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let pod = self.pod(py)?;
        let options = CopyOptions {
            container,
            ..CopyOptions::default()
        };
        let copying = async move { pod.copy_out(&source, &target, &options).await };
        self.face.run(py, copying, |py, copied| {
            Ok(copied.path.into_pyobject(py)?.into_any().unbind())
        })
    }

    /// Asks for the pod's eviction, which a PodDisruptionBudget may refuse.
    ///
    /// :param grace_seconds: The seconds that the pod has to terminate; default: those of the
    ///     pod.
    #[pyo3(signature = (*, grace_seconds=None))]
    fn evict<'py>(
        &self,
        py: Python<'py>,
        grace_seconds: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let pod = self.pod(py)?;
        let options = delete::options(None, grace_seconds, None, None)?;
        self.face.done(py, async move { pod.evict(&options).await })
    }
}

async fn read_all(reader: Option<Reader>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut reader) = reader {
        // A connection that breaks is the error of the session.
        let _ = reader.read_to_end(&mut bytes).await;
    }
    bytes
}

/// The connection to a process in a container.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Session {
    face: Face,
    stdin: Arc<Mutex<Option<Input>>>,
    stdout: Arc<Mutex<Option<Reader>>>,
    stderr: Arc<Mutex<Option<Reader>>>,
    inner: Arc<Mutex<Option<Inner>>>,
    /// The end of the process, after a wait for it.
    ended: Arc<Mutex<Option<Ended>>>,
}

/// The exit code of a process, for several waits.
type Ended = Shared<BoxFuture<'static, Result<i32, Error>>>;

impl Session {
    fn new(mut inner: Inner, face: Face) -> Self {
        Self {
            face,
            stdin: Arc::new(Mutex::new(inner.stdin())),
            stdout: Arc::new(Mutex::new(inner.stdout())),
            stderr: Arc::new(Mutex::new(inner.stderr())),
            inner: Arc::new(Mutex::new(Some(inner))),
            ended: Arc::default(),
        }
    }

    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.into_pyobject(py)?.into_any().unbind())
    }

    fn read_from<'py>(
        &self,
        py: Python<'py>,
        reader: &Arc<Mutex<Option<Reader>>>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (reader, limit) = (reader.clone(), limit(timeout)?);
        let reading = async move {
            let mut bytes = Vec::with_capacity(BUFFER);
            if let Some(reader) = &mut *reader.lock().await {
                // A connection that breaks is the error of `wait`.
                let _ = reader.read_buf(&mut bytes).await;
            }
            Ok::<_, Error>(bytes)
        };
        let reading = within(
            limit,
            || "the process has written nothing".to_owned(),
            reading,
        );
        self.face.run(py, reading, |py, bytes| {
            Ok(PyBytes::new(py, &bytes).into_any().unbind())
        })
    }
}

/// The maximum number of bytes that one read returns.
const BUFFER: usize = 32 * 1024;

#[pymethods]
impl Session {
    /// Sends bytes to the standard input.
    fn write<'py>(&self, py: Python<'py>, data: Vec<u8>) -> PyResult<Bound<'py, PyAny>> {
        let stdin = self.stdin.clone();
        self.face.done(py, async move {
            let mut stdin = stdin.lock().await;
            let stdin = stdin.as_mut().ok_or(Error::Closed)?;
            stdin.write_all(&data).await.map_err(|_| Error::Closed)
        })
    }

    /// Ends the standard input, so that the process reads its end.
    fn close_input<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stdin = self.stdin.clone();
        self.face.done(py, async move {
            if let Some(mut stdin) = stdin.lock().await.take() {
                let _ = stdin.shutdown().await;
            }
            Ok::<_, Error>(())
        })
    }

    /// The next bytes of the standard output; empty at its end. Raises `WaitTimeoutError` if there
    /// are none within the timeout.
    #[pyo3(signature = (timeout=None))]
    fn read<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.read_from(py, &self.stdout, timeout)
    }

    /// The next bytes of the standard error; empty at its end, and with a terminal. Raises
    /// `WaitTimeoutError` if there are none within the timeout.
    #[pyo3(signature = (timeout=None))]
    fn read_error<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.read_from(py, &self.stderr, timeout)
    }

    /// Sets the size of the terminal.
    fn resize<'py>(&self, py: Python<'py>, columns: u16, rows: u16) -> PyResult<Bound<'py, PyAny>> {
        let inner = self.inner.clone();
        self.face.done(py, async move {
            let inner = inner.lock().await;
            let session = inner.as_ref().ok_or(Error::Closed)?;
            session.resize(columns, rows).await
        })
    }

    /// Closes the input, discards further output, and returns the exit code. Raises
    /// `WaitTimeoutError` if the process has not ended within the timeout; it can be waited for
    /// again.
    #[pyo3(signature = (timeout=None))]
    fn wait<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let limit = limit(timeout)?;
        let session = (
            self.inner.clone(),
            self.stdin.clone(),
            self.stdout.clone(),
            self.stderr.clone(),
        );
        let ended = self.ended.clone();
        let waiting = async move {
            let (inner, stdin, stdout, stderr) = session;
            stdin.lock().await.take();
            let drained = (stdout.lock().await.take(), stderr.lock().await.take());
            if let Some(session) = inner.lock().await.take() {
                *ended.lock().await = Some(session.wait().boxed().shared());
            }
            drop(drained);
            let waiting = ended.lock().await.clone().ok_or(Error::Closed)?;
            waiting.await
        };
        let waiting = within(limit, || "the process has not ended".to_owned(), waiting);
        self.face.run(py, waiting, |py, code| {
            Ok(code.into_pyobject(py)?.into_any().unbind())
        })
    }
}

/// The maximum number of failed connections that a forwarded port remembers.
const MAX_PROBLEMS: usize = 100;

/// A port of this machine that leads to a port of a pod.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct PortForward {
    local_port: u16,
    problems: Arc<std::sync::Mutex<VecDeque<String>>>,
    task: std::sync::Mutex<Option<tokio_util::task::AbortOnDropHandle<()>>>,
}

#[pymethods]
impl PortForward {
    /// The port of 127.0.0.1.
    #[getter]
    fn local_port(&self) -> u16 {
        self.local_port
    }

    /// Why the last 100 connections that failed did, oldest first.
    #[getter]
    fn problems(&self) -> Vec<String> {
        let problems = self.problems.lock();
        let problems = problems.unwrap_or_else(|error| error.into_inner());
        problems.iter().cloned().collect()
    }

    /// Closes the port and its connections.
    fn close(&self) {
        let mut task = self.task.lock().unwrap_or_else(|error| error.into_inner());
        task.take();
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        format!("<PortForward from 127.0.0.1:{}>", self.local_port)
    }
}
