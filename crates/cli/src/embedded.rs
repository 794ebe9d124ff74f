//! The embedded cluster from the program's side: its folder, and the arguments
//! that make this program run it in the background.

use std::{ffi::OsString, path::PathBuf};

use longshore_embedded::{
    Layout,
    daemon::{self, Record, SpawnOptions},
};

use crate::{
    env,
    error::{Error, Kind, Result},
};

/// The folder of an instance, checked as far as can be without touching it.
pub(crate) fn layout(data_dir: Option<&PathBuf>) -> Result<Layout> {
    let dir = match data_dir.filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) => {
            std::path::absolute(dir).map_err(|error| Error::from_source(Kind::Usage, &error))?
        }
        None => env::default_data_dir().ok_or_else(|| {
            Error::usage("there is no folder for the embedded cluster: HOME is not set")
                .hint("name one with --data-dir or LONGSHORE_DATA_DIR")
        })?,
    };
    if dir.exists() && !dir.is_dir() {
        return Err(Error::usage(format!("{} is not a folder", dir.display()))
            .hint("--data-dir names the folder of an embedded cluster"));
    }
    Ok(Layout::new(dir))
}

/// How the background process is to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wish {
    pub(crate) ephemeral: bool,
    pub(crate) on_demand: bool,
    pub(crate) faults: bool,
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// Starts the background process and waits until it serves.
pub(crate) async fn spawn(layout: &Layout, wish: &Wish) -> Result<Record> {
    let program = std::env::current_exe().map_err(|error| {
        Error::new(
            Kind::Cluster,
            format!("cannot find the program itself: {error}"),
        )
    })?;
    let mut arguments: Vec<OsString> = ["up", "--foreground", "--spawned", "--data-dir"]
        .map(OsString::from)
        .to_vec();
    arguments.push(layout.dir().into());
    if wish.ephemeral {
        arguments.push("--ephemeral".into());
    }
    if wish.faults {
        arguments.push("--faults".into());
    }
    if wish.on_demand {
        arguments.push("--on-demand".into());
    }
    if let Some(file) = &wish.kubeconfig {
        arguments.extend(["--kubeconfig".into(), file.into()]);
    }
    let options = SpawnOptions {
        program,
        arguments,
        dir: layout.dir().to_owned(),
    };
    Ok(daemon::spawn(options).await?)
}
