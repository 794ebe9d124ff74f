//! The client without `async`, for scripts and small programs. It has the same names, and
//! each function blocks until the response arrives.
//!
//! Items, lists, events and labels are the types of the asynchronous client with another
//! connection. Functions that only read them are the same; functions that send requests
//! block.
//!
//! ```
//! # longshore_embedded::blocking_example(|cluster| {
//! use std::time::Duration;
//! use longshore_client::blocking::WatchEvent;
//!
//! let maps = cluster.configmaps().in_namespace("default")?;
//! let mut watch = maps.watch()?;
//! let map = maps.create(&serde_json::json!({"metadata": {"name": "a"}, "data": {"x": "1"}}))?;
//! let event = watch.next(Some(Duration::from_secs(5)))?;
//! assert_eq!(event.item().map(|item| item.name()), Some("a"));
//! watch.close();
//!
//! let map = map.labels().set("app", "web")?;
//! let found = maps.filter("app=web")?.list()?;
//! assert_eq!(found.items[0].version(), map.version());
//!
//! // A cache reports what has changed.
//! let cache = cluster.configmaps().cache()?;
//! let mut changes = cache.subscribe();
//! map.delete(&Default::default())?;
//! changes.next(Some(Duration::from_secs(5)))?;
//! # Ok(()) });
//! ```
//!
//! Threads of this process do the work; they start with the first request. Inside an
//! asynchronous runtime, which a blocking call would stop, every function returns
//! [`Error::Config`]: use the asynchronous [`Cluster`](crate::Cluster) there.

mod cache;
mod cluster;
mod connection;
mod item;
mod kinds;
mod labels;
mod pods;
mod proxy;
mod relations;
#[cfg(feature = "exec")]
mod session;
mod view;
mod watch;

use std::{future::Future, sync::OnceLock};

use futures::{Stream, StreamExt, stream::BoxStream};
use tokio::runtime::{Builder, Handle, Runtime};

pub use cache::{Cache, CacheSnapshot, Change, Changes};
pub use connection::Cluster;
pub use item::{Item, List};
pub use labels::Words;
pub use pods::Logs;
pub use proxy::{ApiServerProxy, ProxyWatch};
#[cfg(feature = "exec")]
pub use session::{Input, PortForward, PortStream, Reader, Session};
pub use view::View;
pub use watch::{Watch, WatchEvent};

use crate::error::{Error, Result};

/// The number of threads that drive connections. They have little work, but a slow one must
/// not delay the others.
const THREADS: usize = 2;

fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if Handle::try_current().is_ok() {
        return Err(Error::Config(
            "a blocking call inside an asynchronous runtime would stop it: \
             use longshore_client::Cluster, or tokio::task::spawn_blocking"
                .to_owned(),
        ));
    }
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(THREADS).thread_name("longshore");
    let made = builder.enable_all().build().map_err(|error| {
        Error::Config(format!(
            "the threads for requests cannot be started: {error}"
        ))
    })?;
    Ok(RUNTIME.get_or_init(|| made))
}

/// The threads of this module, for libraries that also start asynchronous work on them.
///
/// # Errors
/// [`Error::Config`] inside an asynchronous runtime, and if the threads cannot be started.
///
/// ```
/// let task = longshore_client::blocking::shared_runtime()?.spawn(async { 1 + 1 });
/// assert_eq!(longshore_client::blocking::shared_runtime()?.block_on(task).ok(), Some(2));
/// # Ok::<_, longshore_client::Error>(())
/// ```
pub fn shared_runtime() -> Result<&'static Runtime> {
    runtime()
}

/// Blocks until a future completes, on the threads of this module. Libraries can implement their
/// own blocking functions with it.
///
/// # Errors
/// The future's errors; [`Error::Config`] inside an asynchronous runtime.
///
/// ```
/// # longshore_embedded::blocking_example(|cluster| {
/// use longshore_client::{Cluster, Error, blocking};
/// let inner = Cluster::from(cluster);
/// let version = blocking::wait_for(async move {
///     let list = inner.nodes().list().await?;
///     Ok::<_, Error>(list.version)
/// })?;
/// assert!(!version.is_empty());
/// # Ok(()) });
/// ```
pub fn wait_for<T, E: From<Error>>(future: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    runtime()?.block_on(future)
}

/// Blocks until a result arrives.
fn run<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    wait_for(future)
}

/// The blocking counterpart of an asynchronous value.
trait Mirror {
    type Here;

    fn mirror(self) -> Self::Here;
}

impl<T: Mirror> Mirror for Option<T> {
    type Here = Option<T::Here>;

    fn mirror(self) -> Self::Here {
        self.map(T::mirror)
    }
}

impl<T: Mirror> Mirror for Vec<T> {
    type Here = Vec<T::Here>;

    fn mirror(self) -> Self::Here {
        self.into_iter().map(T::mirror).collect()
    }
}

/// Values that are the same in both clients.
macro_rules! same {
    ($($kind:ty),* $(,)?) => {
        $(impl Mirror for $kind {
            type Here = Self;

            fn mirror(self) -> Self {
                self
            }
        })*
    };
}

same!(
    (),
    bool,
    usize,
    String,
    std::collections::BTreeMap<String, String>,
    serde_json::Value,
    bytes::Bytes,
    crate::view::Scale,
    crate::view::Table
);

impl<T: ?Sized> Mirror for &T {
    type Here = Self;

    fn mirror(self) -> Self {
        self
    }
}

/// Generates functions that return the result of the function of the same name, without a
/// request.
macro_rules! reads {
    ($($of:literal: $name:ident($($argument:ident: $kind:ty),*) -> $here:ty;)*) => {
        $(
            #[doc = concat!("Like [`", $of, "::", stringify!($name), "`](crate::", $of, "::", stringify!($name), ").")]
            pub fn $name(&self, $($argument: $kind),*) -> $here {
                crate::blocking::Mirror::mirror(self.inner().$name($($argument),*))
            }
        )*
    };
}
use reads;

/// Generates functions that block on the function of the same name.
macro_rules! waits {
    ($($of:literal: $name:ident($($argument:ident: $kind:ty),*) -> $here:ty;)*) => {
        $(
            #[doc = concat!("Like [`", $of, "::", stringify!($name), "`](crate::", $of, "::", stringify!($name), ").")]
            ///
            /// # Errors
            /// The errors of this function.
            pub fn $name(&self, $($argument: $kind),*) -> crate::error::Result<$here> {
                let found = crate::blocking::run(self.inner().$name($($argument),*));
                found.map(crate::blocking::Mirror::mirror)
            }
        )*
    };
}
use waits;

/// An iterator over a stream.
struct Taken<T> {
    stream: BoxStream<'static, Result<T>>,
}

impl<T> Taken<T> {
    fn new(stream: impl Stream<Item = Result<T>> + Send + 'static) -> Self {
        Self {
            stream: stream.boxed(),
        }
    }
}

impl<T> Iterator for Taken<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        match runtime() {
            Ok(runtime) => runtime.block_on(self.stream.next()),
            Err(error) => Some(Err(error)),
        }
    }
}
