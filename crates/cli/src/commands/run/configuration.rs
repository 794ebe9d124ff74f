//! The configuration of a run: its options, its store and its cluster. Nothing is started or
//! contacted.

use std::path::{Path, PathBuf};

use longshore::launcher::{RunSpec, Settings, Store, config, launch::folder_name};

use super::{RunArgs, input, shell, usage};
use crate::{
    config as folder_config,
    error::{Error, Result},
    target::Chosen,
    terminal::Terminal,
};

/// The configuration of a run.
pub(super) struct Configuration {
    pub(super) spec: RunSpec,
    /// The configured store.
    pub(super) store: Option<Store>,
    pub(super) chosen: Chosen,
    /// The current folder, if pods share this machine's files.
    pub(super) here: Option<PathBuf>,
}

impl Configuration {
    /// Merges the arguments with the folder's longshore.toml, and validates the result.
    pub(super) async fn load(args: &RunArgs) -> Result<Self> {
        check_folder(&args.folder)?;
        if args.tty && !args.dry_run && Terminal::find().is_none() {
            return Err(Error::usage(input::NO_TERMINAL));
        }
        let settings = folder_config::load(&args.folder)?;
        let configured = folder_config::cluster(&settings, &args.folder);
        let here = match args.cluster.is_embedded(&configured) {
            true => Some(std::env::current_dir().map_err(|error| usage(&error))?),
            false => None,
        };
        let spec = resolve(args, &settings, here.clone())?;
        let store = spec.store.as_deref().map(Store::parse).transpose();
        Ok(Self {
            store: store.map_err(|error| usage(&error))?,
            chosen: args.cluster.choice(&configured).await?,
            spec,
            here,
        })
    }
}

fn check_folder(folder: &Path) -> Result<()> {
    let problem = match folder.metadata() {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "is a file, not a folder".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        Err(error) => format!("cannot be opened: {error}"),
    };
    Err(Error::usage(format!("{} {problem}", folder.display())).hint(
        "the first argument is the folder of code; the command comes after `--`, as in `longshore run -- python train.py`",
    ))
}

fn resolve(args: &RunArgs, settings: &Settings, here: Option<PathBuf>) -> Result<RunSpec> {
    let flags = args.flags(here)?;
    let spec = config::resolve(settings, &flags, &folder_name(&args.folder));
    let mut spec = spec.map_err(|error| usage(&error))?;
    spec.ignore
        .extend(shell::left_out(&args.env_file, &args.folder));
    Ok(spec)
}
