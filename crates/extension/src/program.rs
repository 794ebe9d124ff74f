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

use crate::{
    cluster::Cluster,
    errors::{Failure, one, raise, raised},
    outputs,
    wait::wait,
};

/// The embedded clusters that this process uses. A cluster on demand runs at least as long as the
/// process.
static IN_USE: Mutex<BTreeMap<PathBuf, Usage>> = Mutex::new(BTreeMap::new());

/// The path of the program; `None` if it is not installed.
pub(crate) fn find(py: Python<'_>) -> PyResult<Option<PathBuf>> {
    py.import("longshore._program")?
        .call_method0("find")?
        .extract()
}

/// The cluster of a folder, as the program selects it: by the given context, the environment, the
/// folder's `longshore.toml`, and the pod in which this process runs; otherwise the embedded
/// cluster, which it starts if needed. With the name of the context, if one is selected.
#[pyfunction]
#[pyo3(signature = (folder, context=None))]
pub(crate) fn selected_cluster(
    py: Python<'_>,
    folder: PathBuf,
    context: Option<String>,
) -> PyResult<(Cluster, Option<String>)> {
    let settings = Settings::load(&folder);
    let settings = settings.map_err(Failure::from).map_err(raise(py))?;
    let home = path("HOME");
    let given = ClusterSettings {
        context: context.or_else(|| env::var(CONTEXT_ENV).ok()),
        kubeconfig: path(KUBECONFIG_ENV),
        ..ClusterSettings::default()
    };
    let configured = ClusterSettings::of_folder(&settings, &folder, home.as_deref());
    let mut names = ClusterChoice::contexts(&given, &configured);
    if names.len() > 1 {
        let text = format!(
            "several contexts: {}; only the command `longshore run` chooses one of several: give \
             the name of one as cluster",
            names.join(", ")
        );
        return Err(raised(py, longshore::Error::Config(text).into()));
    }
    let chosen = ClusterChoice::of([&given, &configured], Connection::is_in_pod());
    Ok((open(py, chosen)?, names.pop()))
}

fn open(py: Python<'_>, choice: ClusterChoice) -> PyResult<Cluster> {
    match choice {
        ClusterChoice::InPod => wait(py, Connection::connect()).map(Cluster::blocking),
        ClusterChoice::Kubeconfig {
            file,
            context,
            namespace,
        } => {
            let connecting = Connection::from_kubeconfig(file.as_deref(), context.as_deref());
            let connection = wait(py, connecting)?;
            Ok(Cluster::blocking(match namespace {
                Some(namespace) => connection.with_default_namespace(&namespace),
                None => connection,
            }))
        }
        ClusterChoice::Embedded => embedded(py),
    }
}

fn path(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

fn embedded(py: Python<'_>) -> PyResult<Cluster> {
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
    let opened = wait(py, daemon::open(&layout, Path::new(&program)))?;
    let Opened { record, usage, .. } = opened;
    let mut in_use = IN_USE.lock().unwrap_or_else(|error| error.into_inner());
    in_use.insert(layout.dir().to_owned(), usage);
    drop(in_use);
    let connection = wait(
        py,
        Connection::from_kubeconfig(Some(&record.kubeconfig), None),
    )?;
    Ok(Cluster {
        code_folder: Some(layout.bundles()),
        data_folder: Some(layout.data()),
        outputs: Some(outputs::of(&layout, record.ephemeral)),
        ..Cluster::blocking(connection)
    })
}
