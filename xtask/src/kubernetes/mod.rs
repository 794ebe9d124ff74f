//! `cargo xtask real`: a single-node Kubernetes cluster of the current version on this machine,
//! for tests on a real cluster.
//!
//! The programs are built once from the Go modules in `xtask/kubernetes`. They run in a separate
//! network namespace without access to other networks; a veth pair connects it to the host.
//! `down` removes all processes, mounts, interfaces and cgroups that `up` created.

mod addons;
pub(crate) mod certificates;
mod cgroups;
mod ctr;
mod modules;
mod network;
mod process;
mod registry;
mod servers;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

pub(crate) use modules::VERSION;
use serde_json::{Value, json};

use crate::{
    image,
    run::{Outcome, output, root, target},
};

/// The action to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Build the programs if they do not exist (about 15 minutes on two cores).
    Build,
    /// Start the cluster, and build its programs if needed. Requires root.
    Up,
    /// Build JobSet and Kueue, and install them on the running cluster.
    Addons,
    /// Stop the cluster and remove everything that it created.
    Down,
    /// Show the status of the programs and of the node.
    Status,
}

/// The folders of the cluster.
struct Paths {
    /// The programs.
    programs: PathBuf,
    /// All files that the cluster writes.
    state: PathBuf,
}

impl Paths {
    fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    fn state(&self, name: &str) -> PathBuf {
        self.state.join(name)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.state("admin.kubeconfig")
    }

    fn kubectl(&self, args: &[&str]) -> Outcome<String> {
        let mut kubectl = Command::new(self.program("kubectl"));
        output(
            kubectl
                .arg("--kubeconfig")
                .arg(self.kubeconfig())
                .args(args),
        )
    }
}

/// The time to wait until a part of the cluster is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs the action.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let paths = paths();
    match arguments.action {
        Action::Build => build(),
        Action::Up => up(&paths),
        Action::Addons => addons::install(&paths),
        Action::Down => down(&paths),
        Action::Status => status(&paths),
    }
}

/// The running cluster. Dropping this stops the cluster, unless it was already running.
pub(crate) struct RunningCluster {
    started_here: bool,
}

impl RunningCluster {
    /// Uses the running cluster, or builds and starts one. It has the images as they were last built.
    pub(crate) fn find_or_start() -> Outcome<Self> {
        let paths = paths();
        let started_here = !paths.kubeconfig().exists();
        if started_here {
            up(&paths)?;
        } else {
            servers::import_built(&paths)?;
        }
        Ok(Self { started_here })
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        paths().kubeconfig()
    }

    /// A command in the network of the cluster, whose API server and loopback it reaches.
    pub(crate) fn enter(&self, program: &str) -> Command {
        network::enter(program)
    }

    /// Builds and installs JobSet and Kueue. They remain until the cluster stops.
    pub(crate) fn install_addons(&self) -> Outcome {
        addons::install(&paths())
    }

    /// A description of the cluster for the tests, as JSON.
    pub(crate) fn description(&self) -> Value {
        let paths = paths();
        let [image, private_image] = registry::images();
        json!({
            "kubeconfig": self.kubeconfig(),
            "programs": paths.programs,
            "state": paths.state,
            "machine": network::HOST_ADDRESS,
            "launcherImage": image::LONGSHORE,
            "image": image,
            "privateImage": private_image,
            "user": registry::USER,
            "password": registry::PASSWORD,
        })
    }
}

impl Drop for RunningCluster {
    fn drop(&mut self) {
        if self.started_here
            && let Err(problem) = down(&paths())
        {
            eprintln!("warning: {problem}");
        }
    }
}

fn paths() -> Paths {
    let folder = |name| env::var_os(name).filter(|value| !value.is_empty());
    let cache = folder("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(folder("HOME")?).join(".cache")));
    let cache = cache.map_or_else(target, |cache| cache.join("longshore"));
    Paths {
        programs: cache.join("kubernetes").join(modules::VERSION),
        state: PathBuf::from("/run/longshore-real"),
    }
}

/// Builds the programs of the cluster if they do not exist.
pub(crate) fn build() -> Outcome {
    modules::build(&paths())
}

/// Builds helm and kustomize in the same folder if they do not exist.
pub(crate) fn build_tools() -> Outcome {
    modules::build_tools(&paths())
}

/// Builds the Kubernetes conformance tests and agnhost in the same folder if they do not exist.
pub(crate) fn build_tests() -> Outcome {
    modules::build_tests(&paths())
}

/// The folder with the source code of the images of the Kubernetes conformance tests.
pub(crate) fn test_images() -> Outcome<PathBuf> {
    let module = modules::folder_of_tests()?;
    Ok(module.join("test/images"))
}

/// The folder of the programs.
pub(crate) fn programs() -> PathBuf {
    paths().programs
}

/// The folder of the Go modules.
fn sources() -> PathBuf {
    root().join("xtask/kubernetes")
}

fn up(paths: &Paths) -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return Err("the kubelet requires root: run this as root, in a container or a VM".into());
    }
    modules::build(paths)?;
    if paths.state.exists() {
        return Err(format!(
            "{} exists: the cluster is running or was not removed; run `cargo xtask real down` first",
            paths.state.display()
        ));
    }
    let begin = Instant::now();
    let started = start(paths);
    if let Err(problem) = &started {
        eprintln!("error: {problem}");
        println!("logs: {}", paths.state("log").display());
        return Err(
            "the cluster did not start; `cargo xtask real down` removes what was created".into(),
        );
    }
    println!(
        "Kubernetes {} is ready ({:.1} s)",
        modules::VERSION,
        begin.elapsed().as_secs_f32()
    );
    println!("  export KUBECONFIG={}", paths.kubeconfig().display());
    Ok(())
}

fn start(paths: &Paths) -> Outcome {
    create_folder(&paths.state("log"))?;
    network::up()?;
    certificates::create(paths)?;
    servers::start(paths)
}

fn down(paths: &Paths) -> Outcome {
    if !paths.state.exists() {
        println!("the cluster is not running");
        return Ok(());
    }
    servers::stop(paths);
    network::down(&paths.state)?;
    cgroups::remove();
    fs::remove_dir_all(&paths.state)
        .map_err(|error| format!("cannot remove {}: {error}", paths.state.display()))?;
    println!("the cluster was removed");
    Ok(())
}

fn status(paths: &Paths) -> Outcome {
    if !paths.state.exists() {
        println!("the cluster is not running; `cargo xtask real up` starts it");
        return Ok(());
    }
    for name in servers::NAMES {
        let state = match process::is_running(paths, name) {
            true => "running",
            false => "not running",
        };
        println!("{name:24} {state}");
    }
    println!("{}", paths.kubectl(&["get", "nodes", "-o", "wide"])?.trim());
    Ok(())
}

fn create_folder(path: &Path) -> Outcome {
    fs::create_dir_all(path).map_err(|error| format!("cannot create {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Waits until a condition holds; `what` describes it in the error.
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) -> Outcome {
    let begin = Instant::now();
    while !is_true() {
        if begin.elapsed() > READY_TIMEOUT {
            let seconds = READY_TIMEOUT.as_secs();
            return Err(format!("timed out after {seconds} s waiting until {what}"));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
