//! The configuration of a run: its options, its store and its cluster. Nothing is started or
//! contacted.

use std::path::{Path, PathBuf};

use longshore::launcher::{
    RunSpec, Settings, Store,
    caller::current_folder,
    config::{self, ClusterSettings},
    launch::folder_name,
};

use super::{RunArgs, input, shell, usage};
use crate::{
    config as folder_config,
    error::{Error, Result},
    target::{Chosen, ClusterArgs},
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

/// The configuration of a run in one of several contexts.
pub(super) struct Candidate {
    /// The name of the context.
    pub(super) name: String,
    pub(super) spec: RunSpec,
    pub(super) store: Option<Store>,
    cluster: ClusterArgs,
    configured: ClusterSettings,
}

/// The contexts of a run.
pub(super) enum Loaded {
    /// A single context, or the embedded cluster.
    One(Box<Configuration>),
    /// Several contexts, in the order of preference.
    Several(Vec<Candidate>),
}

impl Loaded {
    /// Merges the arguments with the folder's longshore.toml, and validates the result.
    pub(super) async fn load(args: &RunArgs) -> Result<Self> {
        check_folder(args.folder())?;
        if args.tty && !args.dry_run && Terminal::find().is_none() {
            return Err(Error::usage(input::NO_TERMINAL));
        }
        let settings = folder_config::load(args.folder())?;
        let configured = folder_config::cluster(&settings, args.folder());
        let names = args.cluster.names(&configured);
        if names.len() < 2 {
            let settings = match names.first() {
                Some(name) => settings.in_context(name),
                None => settings,
            };
            let one = Configuration::of(args, &settings, &configured).await?;
            return Ok(Self::One(Box::new(one)));
        }
        let candidates = names.into_iter().map(|name| {
            let spec = resolve(args, &settings.in_context(&name), None)?;
            Ok(Candidate {
                store: store(&spec)?,
                spec,
                cluster: args.cluster.in_context(&name),
                configured: configured.clone(),
                name,
            })
        });
        Ok(Self::Several(candidates.collect::<Result<_>>()?))
    }

    /// The options of packing, which are the same in all contexts.
    pub(super) fn spec(&self) -> Option<&RunSpec> {
        match self {
            Self::One(one) => Some(&one.spec),
            Self::Several(candidates) => candidates.first().map(|first| &first.spec),
        }
    }
}

impl Loaded {
    /// The specifications of all contexts.
    pub(super) fn specs(&mut self) -> impl Iterator<Item = &mut RunSpec> {
        let (one, several) = match self {
            Self::One(one) => (Some(&mut one.spec), None),
            Self::Several(candidates) => (None, Some(candidates)),
        };
        let several = several.into_iter().flatten();
        one.into_iter()
            .chain(several.map(|candidate| &mut candidate.spec))
    }
}

impl Candidate {
    /// Selects its cluster.
    pub(super) async fn choice(&self) -> Result<Chosen> {
        self.cluster.choice(&self.configured).await
    }

    /// The configuration of a run in this context.
    pub(super) fn with(self, chosen: Chosen) -> Configuration {
        Configuration {
            spec: self.spec,
            store: self.store,
            chosen,
            here: None,
        }
    }
}

/// A hint about a longshore.toml in a folder above one that has none.
fn of_parent(folder: &Path) -> Option<String> {
    const FILE: &str = "longshore.toml";
    let folder = folder.canonicalize().ok()?;
    if folder.join(FILE).exists() {
        return None;
    }
    let mut above = folder.ancestors().skip(1).enumerate();
    let (count, _) = above.find(|(_, folder)| folder.join(FILE).is_file())?;
    let path = vec![".."; count + 1].join("/");
    Some(format!(
        "{path}/{FILE} is not used, because it is in another folder than the code: `longshore run {path}` runs that folder"
    ))
}

fn store(spec: &RunSpec) -> Result<Option<Store>> {
    let store = spec.store.as_deref().map(Store::parse).transpose();
    store.map_err(|error| usage(&error))
}

impl Configuration {
    async fn of(args: &RunArgs, settings: &Settings, configured: &ClusterSettings) -> Result<Self> {
        let here = match args.cluster.is_embedded(configured) {
            true => Some(current_folder().map_err(|error| usage(&error))?),
            false => None,
        };
        let spec = resolve(args, settings, here.clone())?;
        Ok(Self {
            store: store(&spec)?,
            chosen: args.cluster.choice(configured).await?,
            spec,
            here,
        })
    }
}

fn check_folder(folder: &Path) -> Result<()> {
    if folder.is_relative() && std::env::current_dir().is_err() {
        return Err(Error::usage("the current folder no longer exists")
            .hint("change to another folder, or give the folder of code as an absolute path"));
    }
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
    let spec = config::resolve(settings, &flags, &folder_name(args.folder()));
    let mut spec = spec.map_err(|error| usage(&error).hint_if(of_parent(args.folder())))?;
    spec.ignore
        .extend(shell::left_out(&args.env_file, args.folder()));
    Ok(spec)
}
