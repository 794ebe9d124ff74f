//! The environment of the shell that invokes `longshore run`, as far as tasks on this machine
//! receive it. Pure: the variables and the folder are arguments.
//!
//! Only variables of fixed lists are recorded, so that no token, key or password
//! of the shell reaches the cluster by accident. Values that are kept in the plan can be
//! read by everyone who may read the run's Jobs.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

pub use crate::bundle::is_environment;

/// Variables that select the language environment of the command.
const LANGUAGES: [&str; 17] = [
    "PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "MAMBA_ROOT_PREFIX",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONWARNINGS",
    "LD_LIBRARY_PATH",
    "JAVA_HOME",
    "NODE_PATH",
    "R_LIBS_USER",
    "JULIA_PROJECT",
    "JULIA_DEPOT_PATH",
    "PKG_CONFIG_PATH",
];

/// Variables that select the machine's devices. They are not recorded for a role that requests
/// devices from the cluster, because the node then allocates the devices.
const DEVICES: [&str; 4] = [
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
];

/// Variables of numeric libraries, frameworks and the locale.
const LIBRARIES: [&str; 22] = [
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_DEVICE_ORDER",
    "ROCM_PATH",
    "ROCM_HOME",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NCCL_DEBUG",
    "NCCL_SOCKET_IFNAME",
    "GLOO_SOCKET_IFNAME",
    "XLA_FLAGS",
    "TF_CPP_MIN_LOG_LEVEL",
    "TORCH_HOME",
    "HF_HOME",
    "HF_HUB_OFFLINE",
    "XDG_CACHE_HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
];

/// Variables whose value is a path, or paths separated by colons. Relative paths are made absolute.
/// `PYTHONPATH` is not included, because a relative entry has the same meaning in the task's copy
/// of the folder.
const PATHS: [&str; 6] = [
    "PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "LD_LIBRARY_PATH",
    "JAVA_HOME",
    "CUDA_HOME",
];

/// Variables that the node of the embedded cluster takes from its own environment. If the shell
/// does not set them, the task does not have them either.
const INHERITED_BY_NODE: [&str; 4] = ["LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH"];

/// The longest recorded value in bytes, because annotations of an object have 256 KiB in total.
const LONGEST_VALUE: usize = 16 * 1024;

/// All recorded names, in the order of the documentation.
pub fn variables() -> impl Iterator<Item = &'static str> {
    LANGUAGES.into_iter().chain(DEVICES).chain(LIBRARIES)
}

/// The parts of the invoking shell's environment that a run on this machine receives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Variables and their values; `None` to unset a variable in the task.
    #[serde(default)]
    pub env: BTreeMap<String, Option<String>>,
    /// Links to create in the task's folder: names, and absolute paths of this machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, PathBuf>,
}

/// The recorded variables, and the variables that could not be recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The recorded variables.
    pub caller: Caller,
    /// Names of variables that are not recorded because they are too long or not UTF-8.
    pub left_out: Vec<&'static str>,
}

impl Caller {
    /// Records the variables of a shell in the folder `here`.
    #[must_use]
    pub fn record(variable: impl Fn(&str) -> Option<OsString>, here: &Path) -> Recorded {
        let mut recorded = Recorded::default();
        for name in variables() {
            let value = match variable(name).map(OsString::into_string) {
                None if INHERITED_BY_NODE.contains(&name) => None,
                None => continue,
                Some(Ok(value)) if value.len() <= LONGEST_VALUE => {
                    Some(match PATHS.contains(&name) {
                        true => absolute(&value, here),
                        false => value,
                    })
                }
                Some(_) => {
                    recorded.left_out.push(name);
                    continue;
                }
            };
            recorded.caller.env.insert(name.to_owned(), value);
        }
        recorded
    }

    /// Adds links to virtual environments that the command names and that are in the folder, but
    /// not in the bundle, so that `.venv/bin/python` works in the task as it does here. `is_sent`
    /// returns true if a name in the folder is in the bundle.
    pub fn link_environments(
        &mut self,
        folder: &Path,
        command: &[String],
        is_sent: impl Fn(&Path) -> bool,
    ) {
        for name in command.iter().flat_map(|word| names_of_folders(word)) {
            let path = folder.join(name);
            if is_environment(&path) && !is_sent(Path::new(name)) {
                self.links.insert(name.to_owned(), path);
            }
        }
    }

    /// Returns true if a relative path is below one of the links.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        let mut ancestors = path.ancestors();
        ancestors.any(|part| {
            part.to_str()
                .is_some_and(|name| self.links.contains_key(name))
        })
    }

    /// The recorded environment for one role: without the names in `taken`, whose values the pod's
    /// own template sets, and without the devices if the cluster allocates them.
    #[must_use]
    pub(crate) fn for_role(&self, taken: impl Fn(&str) -> bool, has_devices: bool) -> Self {
        let is_kept = |name: &str| !(taken(name) || has_devices && DEVICES.contains(&name));
        let env = self.env.iter().filter(|(name, _)| is_kept(name));
        Self {
            env: env
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            links: self.links.clone(),
        }
    }
}

/// The current folder. If it was removed, its former path, so that errors name it.
///
/// # Errors
/// The path is not known.
pub fn current_folder() -> io::Result<PathBuf> {
    env::current_dir().or_else(|error| fs::read_link("/proc/self/cwd").map_err(|_| error))
}

/// The first components of relative paths in a word of a command, which may be a line for a shell:
/// `.venv` of `. ./.venv/bin/activate && python train.py`.
fn names_of_folders(word: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c.is_whitespace() || "\"'=;&|()<>`$".contains(c);
    word.split(is_between).filter_map(|part| {
        let part = part.trim_start_matches("./");
        let (first, _) = part.split_once('/')?;
        (!matches!(first, "" | "." | "..")).then_some(first)
    })
}

/// Makes each path of a list absolute. Empty paths are not changed.
fn absolute(list: &str, here: &Path) -> String {
    let paths = list.split(':').map(|path| match path {
        "" => String::new(),
        path if path.starts_with('/') => path.to_owned(),
        path => here
            .join(path.trim_start_matches("./"))
            .display()
            .to_string(),
    });
    paths.collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shell(pairs: &[(&str, &str)]) -> Recorded {
        let pairs: BTreeMap<_, _> = pairs.iter().copied().collect();
        Caller::record(
            |name| pairs.get(name).map(OsString::from),
            Path::new("/home/me"),
        )
    }

    #[test]
    fn only_listed_variables_are_recorded() {
        let recorded = shell(&[
            ("PATH", "/venv/bin:.venv/bin:/usr/bin:"),
            ("VIRTUAL_ENV", "./.venv"),
            ("PYTHONPATH", "src:/lib"),
            ("HF_TOKEN", "hush"),
            ("AWS_SECRET_ACCESS_KEY", "hush"),
            ("HTTPS_PROXY", "http://me:hush@proxy"),
            ("LANG", "C.UTF-8"),
        ]);
        let env = &recorded.caller.env;
        let value = |name: &str| env[name].as_deref();
        assert_eq!(
            value("PATH"),
            Some("/venv/bin:/home/me/.venv/bin:/usr/bin:")
        );
        assert_eq!(value("VIRTUAL_ENV"), Some("/home/me/.venv"));
        assert_eq!(value("PYTHONPATH"), Some("src:/lib"));
        assert_eq!(value("LANG"), Some("C.UTF-8"));
        assert_eq!(
            value("LD_LIBRARY_PATH"),
            None,
            "the node's own must not come through"
        );
        assert!(!format!("{recorded:?}").contains("hush"));
        assert!(recorded.left_out.is_empty());
    }

    #[test]
    fn no_listed_name_holds_secrets() {
        for name in variables() {
            let is_secret = ["TOKEN", "KEY", "SECRET", "PASSWORD", "PROXY", "CREDENTIAL"];
            assert!(!is_secret.iter().any(|word| name.contains(word)), "{name}");
        }
    }

    #[test]
    fn every_listed_name_is_documented() {
        let page = include_str!("../../../../docs/launcher.md");
        for name in variables() {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn unrecorded_variables_are_named() {
        let long = "x".repeat(LONGEST_VALUE + 1);
        assert_eq!(shell(&[("PATH", &long)]).left_out, ["PATH"]);
    }

    #[test]
    fn device_variables_are_dropped_if_the_node_allocates_devices() {
        let caller = shell(&[("CUDA_VISIBLE_DEVICES", "3"), ("PATH", "/bin")]).caller;
        let kept = caller.for_role(|_| false, false);
        assert_eq!(kept.env["CUDA_VISIBLE_DEVICES"].as_deref(), Some("3"));
        let kept = caller.for_role(|name| name == "PATH", true);
        assert!(!kept.env.contains_key("CUDA_VISIBLE_DEVICES"));
        assert!(
            !kept.env.contains_key("PATH"),
            "the template's own value counts"
        );
    }

    #[test]
    fn environments_that_the_command_names_are_linked() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".venv", "env", "src"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join(".venv/pyvenv.cfg"), "").unwrap();
        std::fs::create_dir(folder.path().join("env/conda-meta")).unwrap();
        let links = |words: &[&str], is_sent: bool| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            let mut caller = Caller::default();
            caller.link_environments(folder.path(), &words, |_| is_sent);
            caller.links.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(
            links(&["./.venv/bin/python", "src/train.py"], false),
            [".venv"]
        );
        assert_eq!(links(&[".venv/bin/python"], true), [""; 0]);
        let line = "A=1 . .venv/bin/activate&&env/bin/x";
        assert_eq!(links(&["sh", "-c", line], false), [".venv", "env"]);
        // Tools that create their own environment must not find this one.
        assert_eq!(links(&["uv", "run", "train.py"], false), [""; 0]);
    }
}
