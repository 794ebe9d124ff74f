//! `cargo xtask test`: runs all checks and tests.

mod programs;

use std::{env, panic, process::Command, sync::LazyLock, thread, time::Instant};

use self::programs::{Job, Program};
use crate::{
    conformance, frameworks, go_clients, image,
    kubernetes::{self, RunningCluster},
    orphans,
    real::{Cluster, Release},
    run::{Outcome, cargo, output, read_lines, run_command},
    tidy, tools,
};

/// The tests to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Test only this package, for example `longshore-engine`; default: all.
    #[arg(short, long)]
    package: Option<String>,
    /// The server under test. `real` is the current Kubernetes: the tests of the rules and
    /// kinds run on its kube-apiserver alone; the tests of runs and the Go clients run on the
    /// whole cluster, which is built and started as by `cargo xtask real up`. `old` is the
    /// kube-apiserver of Kubernetes 1.20 that `cargo xtask real-apiserver` built; only the
    /// tests of the rules and kinds run on it.
    #[arg(long, value_enum, default_value = "embedded")]
    cluster: Server,
    /// Run only the tests with frameworks (TensorFlow, PyTorch, JAX, DeepSpeed, Horovod), and
    /// install the frameworks (several gigabytes).
    #[arg(long, conflicts_with_all = ["package", "cluster"])]
    frameworks: bool,
    /// Run only the tests of `longshore ui` in a browser. Requires Debian's packages `chromium`
    /// and `chromium-driver`, or `LONGSHORE_TEST_CHROMIUM` and `LONGSHORE_TEST_CHROMEDRIVER` with
    /// the paths of both programs.
    #[arg(long, conflicts_with_all = ["package", "cluster", "frameworks", "go"])]
    browser: bool,
    /// Run only the tests of code, outputs and data in Azure Blob Storage and Google Cloud
    /// Storage, with Azurite and a server of these tests. Requires Node.js with npm, which
    /// installs Azurite.
    #[arg(long, conflicts_with_all = ["package", "cluster", "frameworks", "browser", "go"])]
    stores: bool,
    /// Run only the tests with client-go, controller-runtime, helm and kustomize, on the
    /// embedded cluster or with `--cluster real`. Requires Go.
    #[arg(long, conflicts_with_all = ["package", "frameworks"])]
    go: bool,
    /// With `--cluster real`: run only the tests of the rules and kinds.
    #[arg(long, conflicts_with_all = ["package", "frameworks", "go"])]
    rules: bool,
    /// With `--cluster real`: run only the tests of runs.
    #[arg(long, conflicts_with_all = ["package", "frameworks", "go", "rules"])]
    runs: bool,
    /// With `--cluster real`: install JobSet and Kueue, and run only the tests of runs with
    /// them.
    #[arg(long, conflicts_with_all = ["package", "frameworks", "go", "rules", "runs"])]
    queues: bool,
    /// Arguments for `cargo test`: a filter, or `--` and options of the test harness. All tests run,
    /// also after a failure: `--no-fail-fast` changes nothing.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// The server under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Server {
    Embedded,
    Real,
    Old,
}

/// The option of cargo with which all tests run, also after a failure.
const NO_FAIL_FAST: &str = "--no-fail-fast";

/// Returns the arguments of a user without [`NO_FAIL_FAST`], which cargo accepts only once. The
/// arguments after `--` are for the test harness.
fn without_no_fail_fast(rest: Vec<String>) -> Vec<String> {
    let mut is_of_cargo = true;
    let mut is_kept = |word: &String| {
        is_of_cargo &= word != "--";
        !is_of_cargo || word != NO_FAIL_FAST
    };
    rest.into_iter().filter(|word| is_kept(word)).collect()
}

/// Runs the selected tests; fails if they leave processes running.
pub(crate) fn run(mut arguments: Arguments) -> Outcome {
    arguments.rest = without_no_fail_fast(arguments.rest);
    let arguments = &arguments;
    if arguments.frameworks {
        return orphans::watch(|| test_frameworks(arguments));
    }
    if arguments.browser {
        return orphans::watch(|| test_browser(arguments));
    }
    if arguments.stores {
        return orphans::watch(|| test_stores(arguments));
    }
    if arguments.go {
        return orphans::watch(|| match arguments.cluster {
            Server::Embedded => go_clients::test_embedded(&arguments.rest),
            Server::Real => go_clients::test_real(&arguments.rest),
            Server::Old => Err("`--go` requires controllers, and `--cluster old` runs none".into()),
        });
    }
    orphans::watch(|| match arguments.cluster {
        Server::Embedded => test(arguments),
        Server::Real => test_current(arguments),
        Server::Old => test_on_real(arguments, Release::Old),
    })
}

fn test(arguments: &Arguments) -> Outcome {
    let begin = Instant::now();
    tidy::run()?;
    // They are downloaded during the build. Without them, the other tests still run.
    let clients = thread::spawn(tools::fetch);
    let clients =
        LazyLock::new(|| (clients.join()).unwrap_or_else(|error| panic::resume_unwind(error)));
    // With all packages, cargo builds the program for its own tests.
    if arguments.package.as_deref().is_some_and(starts_program) {
        run_command(cargo().arg("build").args(["--package", "longshore-cli"]))?;
    }
    let mut command = cargo();
    let packages = |command: &mut Command| match &arguments.package {
        Some(package) => _ = command.args(["--package", package]),
        None => _ = command.arg("--workspace"),
    };
    command.args(["test", NO_FAIL_FAST]);
    packages(&mut command);
    let prepare = |command: &mut Command| {
        let kubectls = clients.kubectls.as_deref().unwrap_or_default();
        let python = clients.python.as_deref().unwrap_or("".as_ref());
        let kube = clients.kube.as_deref().unwrap_or("".as_ref());
        command
            .env("LONGSHORE_TEST_KUBECTLS", kubectls)
            .env("LONGSHORE_TEST_PYTHON", python)
            .env("LONGSHORE_TEST_KUBE", kube);
        // Most tests wait, and one package has few test programs to run at a time.
        if arguments.package.is_some() && env::var_os("RUST_TEST_THREADS").is_none() {
            let cores = std::thread::available_parallelism().map_or(2, usize::from);
            command.env("RUST_TEST_THREADS", (6 * cores).to_string());
        }
    };
    // cargo itself runs a part of the tests: `rest` may contain options of cargo.
    let result = if arguments.rest.is_empty() {
        let mut totals = Totals::default();
        let suite = Suite::read(arguments.package.as_deref())?;
        let mut programs = programs::build(&mut command)?;
        match &arguments.package {
            Some(_) => programs.retain(|program| !suite.long.contains(&program.target)),
            // Programs that take long start first.
            None => programs.sort_by_key(|program| !suite.long.contains(&program.target)),
        }
        let mut jobs: Vec<Job> = programs.into_iter().map(Program::job).collect();
        let mut examples = suite.has_examples.then(|| {
            let mut command = cargo();
            command.args(["test", NO_FAIL_FAST, "--doc"]);
            packages(&mut command);
            let name = "examples of the documentation".to_owned();
            Job { name, command }
        });
        for job in jobs.iter_mut().chain(&mut examples) {
            prepare(&mut job.command);
        }
        let result = programs::run(jobs, examples, |line| totals.read(line));
        totals.report("the embedded cluster", begin);
        if let Some(package) = &arguments.package {
            for target in &suite.long {
                println!(
                    "not run: {target}, part of the whole suite (cargo xtask test); alone: cargo xtask test -p {package} --test {target}",
                );
            }
        }
        result
    } else {
        prepare(command.args(&arguments.rest));
        count(command, "the embedded cluster", begin)
    };
    if let Err(problem) = clients.require_all() {
        eprintln!("warning: some reference clients are missing: {problem}");
        if env::var_os("CI").is_some() {
            return result.and(Err("CI requires the reference clients, see above".into()));
        }
    }
    result
}

/// The properties of the tests of a package, or of all packages.
#[derive(Debug, Default)]
struct Suite {
    /// True if there is a library, which may have examples to test.
    has_examples: bool,
    /// The test targets that test the interaction of all crates and take long: `whole-suite` in
    /// the packages' metadata. They do not run with the tests of one package.
    long: Vec<String>,
}

impl Suite {
    fn read(package: Option<&str>) -> Outcome<Self> {
        let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: serde_json::Value =
            serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let packages: Vec<_> = packages
            .filter(|found| package.is_none_or(|name| found["name"] == name))
            .collect();
        if let (Some(name), true) = (package, packages.is_empty()) {
            return Err(format!("no package {name} in this workspace"));
        }
        let mut suite = Self::default();
        for package in packages {
            let mut targets = package["targets"].as_array().into_iter().flatten();
            suite.has_examples |= targets.any(|target| target["doctest"] == true);
            let long = package["metadata"]["longshore"]["whole-suite"].as_array();
            let long = long.into_iter().flatten().filter_map(|name| name.as_str());
            suite.long.extend(long.map(str::to_owned));
        }
        Ok(suite)
    }
}

/// Returns true if the tests of another package start the program `longshore`.
fn starts_program(package: &str) -> bool {
    ["longshore", "longshore-conformance", "longshore-python"].contains(&package)
}

fn test_frameworks(arguments: &Arguments) -> Outcome {
    let begin = Instant::now();
    let folder = frameworks::install()?;
    let mut command = cargo();
    command
        .args(["test", NO_FAIL_FAST])
        .args(["--package", "longshore-cli", "--package", "longshore-python"])
        .args(["--test", "frameworks", "--test", "suite"])
        // The tests run one at a time, because each uses all CPUs.
        .args(["--", "--ignored", "--test-threads", "1"])
        .args(&arguments.rest)
        .env(frameworks::FOLDER_ENV, folder);
    count(command, "the embedded cluster", begin)
}

/// The tests of `longshore ui` in a browser.
fn test_browser(arguments: &Arguments) -> Outcome {
    let begin = Instant::now();
    let mut command = cargo();
    command
        .args(["test", NO_FAIL_FAST])
        // With the features that all tests have, so nothing is built again.
        .args(["--workspace", "--test", "browser"])
        // Each test has a browser.
        .args(["--", "--ignored", "--test-threads", "1"])
        .args(&arguments.rest);
    count(command, "the embedded cluster", begin)
}

/// The tests with servers of Azure Blob Storage and Google Cloud Storage.
fn test_stores(arguments: &Arguments) -> Outcome {
    let begin = Instant::now();
    let azurite = tools::azurite()?;
    let mut command = cargo();
    command
        .args(["test", NO_FAIL_FAST])
        .args(["--workspace", "--test", "emulators"])
        .args(["--", "--ignored"])
        .args(&arguments.rest)
        .env("LONGSHORE_TEST_AZURITE", azurite);
    count(command, "the embedded cluster", begin)
}

/// Runs the tests on the current Kubernetes, or the selected part.
fn test_current(arguments: &Arguments) -> Outcome {
    if arguments.runs {
        return test_runs(arguments);
    }
    if arguments.queues {
        return test_queues(arguments);
    }
    kubernetes::build()?;
    if arguments.rules || !arguments.rest.is_empty() {
        return test_on_real(arguments, Release::Current);
    }
    // A failure of one part does not stop the others.
    let parts = [
        test_on_real(arguments, Release::Current),
        test_runs(arguments),
        test_queues(arguments),
        go_clients::test_real(&[]),
    ];
    let problems: Vec<String> = parts.into_iter().filter_map(Outcome::err).collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n")),
    }
}

/// The tests of the launcher, on a cluster with a node.
fn test_runs(arguments: &Arguments) -> Outcome {
    let begin = Instant::now();
    let used = ["tensorflow", "pytorch", "jax"];
    let frameworks = frameworks::install_some(|name| used.contains(&name))?;
    image::build_missing()?;
    let cluster = RunningCluster::find_or_start()?;
    let mut command = on_node(&cluster);
    command
        .args(["--skip", QUEUES])
        .args(&arguments.rest)
        .env(frameworks::FOLDER_ENV, frameworks);
    count(command, "Kubernetes with a node", begin)
}

/// The module of the tests that need JobSet and Kueue.
const QUEUES: &str = "queues::";

/// The tests of the launcher with JobSet and Kueue. They are separate because Kueue's webhooks
/// receive every pod of the cluster.
fn test_queues(arguments: &Arguments) -> Outcome {
    let begin = Instant::now();
    image::build_missing()?;
    let cluster = RunningCluster::find_or_start()?;
    cluster.install_addons()?;
    let mut command = on_node(&cluster);
    match arguments.rest.is_empty() {
        true => command.arg(QUEUES),
        false => command.args(&arguments.rest),
    };
    count(command, "Kubernetes with JobSet and Kueue", begin)
}

/// The `cargo test` command for the tests that need a node.
fn on_node(cluster: &RunningCluster) -> Command {
    let mut command = cargo();
    command
        .args(["test", NO_FAIL_FAST])
        .args(["--workspace", "--test", "real"])
        // The tests change the node, so they run one at a time.
        .args(["--", "--ignored", "--test-threads", "1"])
        .env("LONGSHORE_TEST_REAL", cluster.description().to_string());
    command
}

fn test_on_real(arguments: &Arguments, release: Release) -> Outcome {
    let begin = Instant::now();
    let cluster = Cluster::start(release)?;
    let mut command = cargo();
    command
        .args(["test", NO_FAIL_FAST])
        .args(conformance::SERVER_TESTS)
        .args(["--test", "kinds"])
        .args(&arguments.rest)
        .env(conformance::REAL_SERVER_ENV, cluster.description());
    count(command, &cluster.version, begin)
}

/// Runs the tests, shows their output, and prints the totals at the end.
fn count(mut command: Command, server: &str, begin: Instant) -> Outcome {
    let mut totals = Totals::default();
    let result = read_lines(&mut command, |line| totals.read(line));
    totals.report(server, begin);
    result
}

/// The totals over all test programs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    programs: usize,
    passed: usize,
    failed: usize,
    ignored: usize,
    /// The names of the failed tests.
    failures: Vec<String>,
}

impl Totals {
    fn report(&self, server: &str, begin: Instant) {
        for name in &self.failures {
            println!("failed: {name}");
        }
        let Self {
            programs,
            passed,
            failed,
            ignored,
            ..
        } = self;
        println!(
            "test: {passed} passed, {failed} failed, {ignored} ignored, in {programs} programs, on {server}; {} s",
            begin.elapsed().as_secs()
        );
    }

    fn read(&mut self, line: &str) {
        if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.push(name.to_owned());
        }
        let Some((_, counts)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        self.programs += 1;
        for part in counts.split("; ") {
            match part.split_once(' ') {
                Some((count, "passed")) => self.passed += count.parse().unwrap_or(0),
                Some((count, "failed")) => self.failed += count.parse().unwrap_or(0),
                Some((count, "ignored")) => self.ignored += count.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_fail_fast_is_passed_once() {
        let kept = |rest: &[&str]| {
            without_no_fail_fast(rest.iter().map(|word| (*word).to_owned()).collect()).join(" ")
        };
        assert_eq!(kept(&["--no-fail-fast"]), "");
        assert_eq!(
            kept(&["--lib", "--no-fail-fast", "filter", "--", "--no-fail-fast"]),
            "--lib filter -- --no-fail-fast"
        );
    }

    #[test]
    fn results_of_all_programs_are_added() {
        let mut totals = Totals::default();
        for line in [
            "running 3 tests",
            "test a::b ... ok",
            "test a::c ... FAILED",
            "test result: FAILED. 5 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s",
        ] {
            totals.read(line);
        }
        let expected = Totals {
            programs: 2,
            passed: 12,
            failed: 1,
            ignored: 2,
            failures: vec!["a::c".into()],
        };
        assert_eq!(totals, expected);
    }
}
