//! The program `longshore` of the wheel, and the cluster that it would use.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    sync::Mutex,
};

use longshore::{
    Cluster as Connection,
    embedded::{
        DATA_DIR_ENV, Layout,
        daemon::{self, Opened, Usage},
    },
    launcher::{
        Settings,
        config::{CONTEXT_ENV, ClusterChoice, ClusterSettings, KUBECONFIG_ENV},
    },
};
use pyo3::prelude::*;

use crate::errors::{Failure, one, raise, raised};

/// The embedded clusters that this process uses. A cluster on demand runs at least as long as the
/// process.
static IN_USE: Mutex<BTreeMap<PathBuf, Usage>> = Mutex::new(BTreeMap::new());

/// The path of the program; `None` if it is not installed.
pub(crate) fn find(py: Python<'_>) -> PyResult<Option<PathBuf>> {
    py.import("longshore._program")?
        .call_method0("find")?
        .extract()
}

/// A connection to a selected cluster.
pub(crate) struct Selected {
    pub(crate) connection: Connection,
    /// The folder of the embedded cluster, and whether it is removed with the cluster.
    pub(crate) embedded: Option<(Layout, bool)>,
}

/// The cluster of a folder, as the program selects it: by the given context, the environment, the
/// folder's `longshore.toml`, and the pod in which this process runs; otherwise the embedded
/// cluster. With the name of the context, if one is selected.
pub(crate) fn choose(
    py: Python<'_>,
    folder: &Path,
    context: Option<String>,
) -> PyResult<(ClusterChoice, Option<String>)> {
    let settings = Settings::load(folder);
    let settings = settings.map_err(Failure::from).map_err(raise(py))?;
    let home = path("HOME");
    let given = ClusterSettings {
        context: context.or_else(|| env::var(CONTEXT_ENV).ok()),
        kubeconfig: path(KUBECONFIG_ENV),
        ..ClusterSettings::default()
    };
    let configured = ClusterSettings::of_folder(&settings, folder, home.as_deref());
    let mut names = ClusterChoice::contexts(&given, &configured);
    if names.len() > 1 {
        let text = format!(
            "several contexts: {}; only the command `longshore run` chooses one of several: give \
             the name of one as cluster",
            names.join(", ")
        );
        return Err(raised(py, longshore::Error::Config(text).into()));
    }
    let choice = ClusterChoice::of([&given, &configured], Connection::is_in_pod());
    Ok((choice, names.pop()))
}

/// Connects to a selected cluster. Starts the embedded one if needed.
pub(crate) fn open(
    py: Python<'_>,
    choice: ClusterChoice,
) -> PyResult<impl Future<Output = Result<Selected, Failure>> + Send + 'static> {
    let embedded = match choice {
        ClusterChoice::Embedded => Some(embedded(py)?),
        _ => None,
    };
    Ok(async move {
        let connection = match (choice, embedded) {
            (
                ClusterChoice::Kubeconfig {
                    file,
                    context,
                    namespace,
                },
                _,
            ) => {
                let connecting = Connection::from_kubeconfig(file.as_deref(), context.as_deref());
                let connection = connecting.await?;
                match namespace {
                    Some(namespace) => connection.with_default_namespace(&namespace),
                    None => connection,
                }
            }
            (_, Some((layout, program))) => return start(layout, &program).await,
            (_, None) => Connection::connect().await?,
        };
        Ok(Selected {
            connection,
            embedded: None,
        })
    })
}

fn path(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// The folder of the embedded cluster, and the program that starts it.
fn embedded(py: Python<'_>) -> PyResult<(Layout, PathBuf)> {
    let layout = match path(DATA_DIR_ENV) {
        Some(dir) => Some(Layout::new(std::path::absolute(dir)?)),
        None => Layout::of_user(),
    };
    let problem = |text: &str| match one(py, "EmbeddedError", text) {
        Ok(error) | Err(error) => error,
    };
    let layout = layout.ok_or_else(|| {
        problem("no folder for the embedded cluster: HOME is not set; set LONGSHORE_DATA_DIR")
    })?;
    let program = find(py)?.ok_or_else(|| {
        problem(
            "the embedded cluster needs the program longshore, which is neither beside this \
             Python nor in PATH: install the wheel, or give the cluster to use",
        )
    })?;
    Ok((layout, program))
}

/// Starts the embedded cluster unless it runs, and connects to it.
async fn start(layout: Layout, program: &Path) -> Result<Selected, Failure> {
    let opened = daemon::open(&layout, program).await?;
    let Opened { record, usage, .. } = opened;
    keep(&layout, usage);
    let connection = Connection::from_kubeconfig(Some(&record.kubeconfig), None).await?;
    Ok(Selected {
        connection,
        embedded: Some((layout, record.ephemeral)),
    })
}

/// Keeps the embedded cluster running for as long as this process.
fn keep(layout: &Layout, usage: Usage) {
    let mut in_use = IN_USE.lock().unwrap_or_else(|error| error.into_inner());
    in_use.insert(layout.dir().to_owned(), usage);
}
