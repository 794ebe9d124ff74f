//! Commands in containers, and ports of pods, as readers and writers.

use std::{
    io::{self, Read, Write},
    net::TcpListener,
    path::Path,
};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Item, View, run, runtime};
use crate::{
    error::Result,
    kinds::Pod,
    pods::{self, Copied, CopyOptions, ExecOptions, Output},
};

/// A command that runs in a container, or a container that the session is attached to: see
/// [`Session`](crate::Session). Read each output in a separate thread while you write the input:
/// output that is not read blocks the command.
#[derive(Debug)]
pub struct Session {
    inner: pods::Session,
}

/// The input of a [`Session`]. Dropping it closes the input.
#[derive(Debug)]
pub struct Input(pods::Input);

/// An output of a [`Session`].
#[derive(Debug)]
pub struct Reader(pods::Reader);

/// A port of a pod: see [`PortForward`](crate::PortForward).
#[derive(Debug, Clone)]
pub struct PortForward {
    inner: pods::PortForward,
}

/// A connection to a port of a pod: see [`PortStream`](crate::PortStream).
#[derive(Debug)]
pub struct PortStream(pods::PortStream);

/// Blocks until a read or write completes.
fn io<T>(future: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    runtime().map_err(io::Error::other)?.block_on(future)
}

/// Blocking reads and writes.
macro_rules! streams {
    ($($name:ty: $($which:ident)+;)*) => {
        $($(streams!(@$which $name);)+)*
    };
    (@read $name:ty) => {
        impl Read for $name {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                io(self.0.read(buffer))
            }
        }
    };
    (@write $name:ty) => {
        impl Write for $name {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                io(self.0.write(bytes))
            }

            fn flush(&mut self) -> io::Result<()> {
                io(self.0.flush())
            }
        }
    };
}

streams! {
    Input: write;
    Reader: read;
    PortStream: read write;
}

impl Session {
    /// Takes the input. Returns `None` if no input was requested, or if it was taken
    /// before.
    pub fn stdin(&mut self) -> Option<Input> {
        self.inner.stdin().map(Input)
    }

    /// Takes the standard output. Returns `None` if it was taken before.
    pub fn stdout(&mut self) -> Option<Reader> {
        self.inner.stdout().map(Reader)
    }

    /// Takes the standard error. Returns `None` with a terminal, or if it was taken before.
    pub fn stderr(&mut self) -> Option<Reader> {
        self.inner.stderr().map(Reader)
    }

    /// Like [`Session::resize`](crate::Session::resize).
    ///
    /// # Errors
    /// The errors of [`Session::resize`](crate::Session::resize).
    pub fn resize(&self, columns: u16, rows: u16) -> Result<()> {
        run(self.inner.resize(columns, rows))
    }

    /// Like [`Session::wait`](crate::Session::wait).
    ///
    /// # Errors
    /// The errors of [`Session::wait`](crate::Session::wait).
    pub fn wait(self) -> Result<i32> {
        run(self.inner.wait())
    }
}

impl PortForward {
    /// Like [`PortForward::connect`](crate::PortForward::connect).
    ///
    /// # Errors
    /// The errors of [`PortForward::connect`](crate::PortForward::connect).
    pub fn connect(&self) -> Result<PortStream> {
        run(self.inner.connect()).map(PortStream)
    }

    /// Like [`PortForward::serve`](crate::PortForward::serve): returns only when
    /// the listener fails.
    ///
    /// # Errors
    /// The errors of [`PortForward::serve`](crate::PortForward::serve).
    pub fn serve(
        &self,
        listener: TcpListener,
        report: impl Fn(String) + Clone + Send + 'static,
    ) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        io(async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            self.inner.serve(listener, report).await
        })
    }
}

/// The functions of a view take a pod's name, the functions of an item do not.
macro_rules! sessions {
    ($kind:ident, $of:literal, $($name:ident: $named:ty)?) => {
        impl $kind<Pod> {
            #[doc = concat!("Like [`", $of, "::exec`](crate::", $of, "::exec).")]
            ///
            /// # Errors
            /// The errors of this function.
            pub fn exec<C: Into<String>>(
                &self,
                $($name: $named,)?
                command: impl IntoIterator<Item = C>,
                options: &ExecOptions,
            ) -> Result<Session> {
                run(self.inner().exec($($name,)? command, options)).map(|inner| Session { inner })
            }

            #[doc = concat!("Like [`", $of, "::attach`](crate::", $of, "::attach).")]
            ///
            /// # Errors
            /// The errors of this function.
            pub fn attach(&self, $($name: $named,)? options: &ExecOptions) -> Result<Session> {
                run(self.inner().attach($($name,)? options)).map(|inner| Session { inner })
            }

            #[doc = concat!("Like [`", $of, "::output`](crate::", $of, "::output).")]
            ///
            /// # Errors
            /// The errors of this function.
            pub fn output<C: Into<String>>(
                &self,
                $($name: $named,)?
                command: impl IntoIterator<Item = C>,
                container: Option<&str>,
            ) -> Result<Output> {
                run(self.inner().output($($name,)? command, container))
            }

            #[doc = concat!("Like [`", $of, "::copy_out`](crate::", $of, "::copy_out).")]
            ///
            /// # Errors
            /// The errors of this function.
            pub fn copy_out(
                &self,
                $($name: $named,)?
                from: &str,
                to: &Path,
                options: &CopyOptions,
            ) -> Result<Copied> {
                run(self.inner().copy_out($($name,)? from, to, options))
            }

            #[doc = concat!("Like [`", $of, "::copy_in`](crate::", $of, "::copy_in).")]
            ///
            /// # Errors
            /// The errors of this function.
            pub fn copy_in(
                &self,
                $($name: $named,)?
                from: &Path,
                to: &str,
                options: &CopyOptions,
            ) -> Result<Copied> {
                run(self.inner().copy_in($($name,)? from, to, options))
            }

            #[doc = concat!("Like [`", $of, "::port_forward`](crate::", $of, "::port_forward).")]
            ///
            /// # Errors
            /// The errors of this function.
            pub fn port_forward(&self, $($name: $named,)? port: u16) -> Result<PortForward> {
                let inner = self.inner().port_forward($($name,)? port)?;
                Ok(PortForward { inner })
            }
        }
    };
}

sessions!(View, "View", name: &str);
sessions!(Item, "Item",);
