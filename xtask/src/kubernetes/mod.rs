//! `cargo xtask real`: a single-node Kubernetes of today on this machine, for tests of what
//! is said about real clusters.
//!
//! Its programs are built once from the Go modules in `xtask/kubernetes`. All of them run
//! in a network namespace of their own, so that they reach nothing outside and nothing
//! outside reaches them; the machine is joined to it by a pair of interfaces. `down`
//! removes every process, mount, interface and control group that `up` has made.

mod addons;
mod certificates;
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

/// What to do with the cluster.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Build the programs, unless they are there: about 15 minutes on two cores.
    Build,
    /// Start the cluster, and build it first if needed. Needs root.
    Up,
    /// Build JobSet and Kueue, and install them on the cluster that runs.
    Addons,
    /// Stop it and remove all that it has made.
    Down,
    /// Say whether it runs, and what its node says.
    Status,
}

/// The folders of the cluster.
struct Places {
    /// Its programs.
    programs: PathBuf,
    /// All that it writes.
    state: PathBuf,
}

impl Places {
    fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    fn state(&self, name: &str) -> PathBuf {
        self.state.join(name)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.state("admin.kubeconfig")
    }

    fn kubectl(&self, words: &[&str]) -> Outcome<String> {
        let mut kubectl = Command::new(self.program("kubectl"));
        output(
            kubectl
                .arg("--kubeconfig")
                .arg(self.kubeconfig())
                .args(words),
        )
    }
}

/// How long a part of the cluster may take to be ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// Does it.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let places = places();
    match arguments.what {
        What::Build => build(),
        What::Up => up(&places),
        What::Addons => addons::install(&places),
        What::Down => down(&places),
        What::Status => status(&places),
    }
}

/// The cluster while tests run on it. It ends with this, if it was started for this.
pub(crate) struct Lease {
    is_ours: bool,
}

impl Lease {
    /// Of the cluster that runs, or of one that is built and started for it.
    pub(crate) fn take() -> Outcome<Self> {
        let places = places();
        let is_ours = !places.kubeconfig().exists();
        if is_ours {
            up(&places)?;
        }
        Ok(Self { is_ours })
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        places().kubeconfig()
    }

    /// Builds JobSet and Kueue and installs them. They go with the cluster.
    pub(crate) fn install_addons(&self) -> Outcome {
        addons::install(&places())
    }

    /// What tests need to know of the cluster, as JSON.
    pub(crate) fn facts(&self) -> Value {
        let places = places();
        let [image, private_image] = registry::images();
        json!({
            "kubeconfig": self.kubeconfig(),
            "programs": places.programs,
            "state": places.state,
            "machine": network::MACHINE,
            "launcherImage": image::LONGSHORE,
            "image": image,
            "privateImage": private_image,
            "user": registry::USER,
            "password": registry::PASSWORD,
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.is_ours
            && let Err(problem) = down(&places())
        {
            eprintln!("warning: {problem}");
        }
    }
}

fn places() -> Places {
    let folder = |name| env::var_os(name).filter(|value| !value.is_empty());
    let cache = folder("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(folder("HOME")?).join(".cache")));
    let cache = cache.map_or_else(target, |cache| cache.join("longshore"));
    Places {
        programs: cache.join("kubernetes").join(modules::VERSION),
        state: PathBuf::from("/run/longshore-real"),
    }
}

/// Builds its programs, unless they are there.
pub(crate) fn build() -> Outcome {
    modules::build(&places())
}

/// Builds helm and kustomize beside them, unless they are there.
pub(crate) fn build_tools() -> Outcome {
    modules::build_tools(&places())
}

/// Builds Kubernetes' own tests and agnhost beside them, unless they are there.
pub(crate) fn build_tests() -> Outcome {
    modules::build_tests(&places())
}

/// The folder of the programs.
pub(crate) fn programs() -> PathBuf {
    places().programs
}

/// Where the modules, and what else is built, are described.
fn sources() -> PathBuf {
    root().join("xtask/kubernetes")
}

fn up(places: &Places) -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return Err(
            "a kubelet needs root: run it as root, in a container or a VM of its own".into(),
        );
    }
    modules::build(places)?;
    if places.state.exists() {
        return Err(format!(
            "{} is there: the cluster runs, or did; `cargo xtask real down` ends it",
            places.state.display()
        ));
    }
    let begin = Instant::now();
    let started = start(places);
    if let Err(problem) = &started {
        eprintln!("error: {problem}");
        println!("logs: {}", places.state("log").display());
        return Err("the cluster did not start; `cargo xtask real down` removes the rest".into());
    }
    println!(
        "Kubernetes {} is ready ({:.1} s)",
        modules::VERSION,
        begin.elapsed().as_secs_f32()
    );
    println!("  export KUBECONFIG={}", places.kubeconfig().display());
    Ok(())
}

fn start(places: &Places) -> Outcome {
    make_folder(&places.state("log"))?;
    network::up()?;
    certificates::make(places)?;
    servers::start(places)
}

fn down(places: &Places) -> Outcome {
    if !places.state.exists() {
        println!("the cluster does not run");
        return Ok(());
    }
    servers::stop(places);
    network::down(&places.state)?;
    cgroups::remove();
    fs::remove_dir_all(&places.state)
        .map_err(|error| format!("cannot remove {}: {error}", places.state.display()))?;
    println!("the cluster is gone");
    Ok(())
}

fn status(places: &Places) -> Outcome {
    if !places.state.exists() {
        println!("the cluster does not run; `cargo xtask real up` starts it");
        return Ok(());
    }
    for name in servers::NAMES {
        let state = match process::is_running(places, name) {
            true => "runs",
            false => "does not run",
        };
        println!("{name:24} {state}");
    }
    println!(
        "{}",
        places.kubectl(&["get", "nodes", "-o", "wide"])?.trim()
    );
    Ok(())
}

fn make_folder(path: &Path) -> Outcome {
    fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) -> Outcome {
    let begin = Instant::now();
    while !holds() {
        if begin.elapsed() > PATIENCE {
            return Err(format!("{what}: not so within {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
