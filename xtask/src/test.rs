//! `cargo xtask test`: everything that must hold.

mod programs;

use std::{env, process::Command, time::Instant};

use crate::{
    conformance, frameworks, golang, image,
    kubernetes::{self, Lease},
    leftovers,
    real::{Cluster, Release},
    run::{Outcome, cargo, finish, read_lines},
    tidy, tools,
};

/// Which tests to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only this package (`longshore-engine`); all of them without.
    #[arg(short, long)]
    package: Option<String>,
    /// The server that is judged. With `real`, Kubernetes of today: the rules' tests and the
    /// corpus of kinds on its kube-apiserver alone, runs and the judges in Go on all of it,
    /// which is built and started as by `cargo xtask real up`. With `old`, the rules' tests
    /// on the kube-apiserver of Kubernetes 1.20 that `cargo xtask real-apiserver` built.
    #[arg(long, value_enum, default_value = "embedded")]
    cluster: Server,
    /// Only the tests in which frameworks judge (TensorFlow, PyTorch, JAX,
    /// DeepSpeed, Horovod), which this installs: several gigabytes.
    #[arg(long, conflicts_with_all = ["package", "cluster"])]
    frameworks: bool,
    /// Only the tests in which client-go, controller-runtime, helm and kustomize judge;
    /// needs Go. With `--cluster real` on that cluster.
    #[arg(long, conflicts_with_all = ["package", "frameworks", "dev"])]
    go: bool,
    /// With `--cluster real`: only the tests of the rules and kinds.
    #[arg(long, conflicts_with_all = ["package", "frameworks", "go"])]
    rules: bool,
    /// With `--cluster real`: only the tests of runs.
    #[arg(long, conflicts_with_all = ["package", "frameworks", "go", "rules"])]
    runs: bool,
    /// With `--cluster real`: only the tests of runs with JobSet and Kueue, which are
    /// installed for them.
    #[arg(long, conflicts_with_all = ["package", "frameworks", "go", "rules", "runs"])]
    queues: bool,
    /// Build without optimisation: sooner ready, slower to run.
    #[arg(long)]
    dev: bool,
    /// Passed on to cargo test: a filter, or `--` and the harness's own options.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// What the tests talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Server {
    Embedded,
    Real,
    Old,
}

/// Checks the map, builds, runs every test, looks for processes left behind.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.frameworks {
        return leftovers::watch(|| test_frameworks(arguments));
    }
    if arguments.go {
        return leftovers::watch(|| match arguments.cluster {
            Server::Embedded => golang::test_embedded(&arguments.rest),
            Server::Real => golang::test_real(&arguments.rest),
            Server::Old => Err("there is no such cluster with controllers".into()),
        });
    }
    leftovers::watch(|| match arguments.cluster {
        Server::Embedded => test(arguments),
        Server::Real => test_today(arguments),
        Server::Old => test_on_real(arguments, Release::Old),
    })
}

fn test(arguments: &Arguments) -> Outcome {
    let begin = Instant::now();
    tidy::run()?;
    // Where they cannot be had, the rest is tested all the same; but what lands
    // has been judged.
    let judges = tools::fetch();
    if env::var_os("CI").is_some() {
        judges.all()?;
    }
    let kubectls = env::join_paths(judges.kubectls.iter().flatten());
    let kubectls = kubectls.map_err(|error| error.to_string())?;
    let profile = profile(arguments);
    finish(
        cargo()
            .arg("build")
            .args(profile)
            .args(["--workspace", "--bins"]),
    )?;
    let mut command = cargo();
    command.args(["test", "--no-fail-fast"]).args(profile);
    match &arguments.package {
        Some(package) => command.args(["--package", package]),
        None => command.arg("--workspace"),
    };
    let python = judges.python.as_deref().unwrap_or("".as_ref());
    let prepare = |command: &mut Command| {
        command
            .env("LONGSHORE_TEST_KUBECTLS", &kubectls)
            .env("LONGSHORE_TEST_PYTHON", python);
    };
    // cargo runs a part: its options and those of the harness look alike here.
    let done = if arguments.rest.is_empty() && arguments.package.is_none() {
        let mut sum = Sum::default();
        let done = programs::run(&mut command, prepare, |line| sum.read(line));
        let mut examples = cargo();
        examples
            .args(["test", "--no-fail-fast", "--workspace", "--doc"])
            .args(profile);
        prepare(&mut examples);
        let documented = read_lines(&mut examples, |line| sum.read(line));
        sum.report("the embedded cluster", begin);
        done.and(documented)
    } else {
        prepare(command.args(&arguments.rest));
        count(command, "the embedded cluster", begin)
    };
    if let Err(problem) = judges.all() {
        eprintln!("warning: not everybody has judged this: {problem}");
    }
    done
}

fn test_frameworks(arguments: &Arguments) -> Outcome {
    let begin = Instant::now();
    let folder = frameworks::install()?;
    let mut command = cargo();
    command
        .args(["test", "--no-fail-fast"])
        .args(profile(arguments))
        .args(["--package", "longshore-cli", "--package", "longshore-python"])
        .args(["--test", "frameworks", "--test", "suite"])
        // One run at a time: each takes all the machine has.
        .args(["--", "--ignored", "--test-threads", "1"])
        .args(&arguments.rest)
        .env(frameworks::FOLDER, folder);
    count(command, "the embedded cluster", begin)
}

/// All that a Kubernetes of today judges, or a part of it.
fn test_today(arguments: &Arguments) -> Outcome {
    if arguments.runs {
        return test_runs(arguments);
    }
    if arguments.queues {
        return test_queues(arguments);
    }
    kubernetes::build()?;
    if arguments.rules || !arguments.rest.is_empty() {
        return test_on_real(arguments, Release::Today);
    }
    // Each of them, whatever the others find.
    let parts = [
        test_on_real(arguments, Release::Today),
        test_runs(arguments),
        test_queues(arguments),
        golang::test_real(&[]),
    ];
    let problems: Vec<String> = parts.into_iter().filter_map(Outcome::err).collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n")),
    }
}

/// The launcher's tests, on a cluster with a node.
fn test_runs(arguments: &Arguments) -> Outcome {
    let begin = Instant::now();
    let used = ["tensorflow", "pytorch", "jax"];
    let frameworks = frameworks::install_some(|name| used.contains(&name))?;
    image::make_missing()?;
    let cluster = Lease::take()?;
    let mut command = on_node(arguments, &cluster);
    command
        .args(["--skip", QUEUES])
        .args(&arguments.rest)
        .env(frameworks::FOLDER, frameworks);
    count(command, "Kubernetes with a node", begin)
}

/// The module of the tests that need JobSet and Kueue.
const QUEUES: &str = "queues::";

/// The launcher's tests on a cluster with JobSet and Kueue. The other tests do without:
/// Kueue's webhooks see every pod.
fn test_queues(arguments: &Arguments) -> Outcome {
    let begin = Instant::now();
    image::make_missing()?;
    let cluster = Lease::take()?;
    cluster.install_addons()?;
    let mut command = on_node(arguments, &cluster);
    match arguments.rest.is_empty() {
        true => command.arg(QUEUES),
        false => command.args(&arguments.rest),
    };
    count(command, "Kubernetes with JobSet and Kueue", begin)
}

/// The tests that need a node.
fn on_node(arguments: &Arguments, cluster: &Lease) -> Command {
    let mut command = cargo();
    command
        .args(["test", "--no-fail-fast"])
        .args(profile(arguments))
        .args(["--package", "longshore-cli", "--test", "real"])
        // What one of them does to the node, the others would see.
        .args(["--", "--ignored", "--test-threads", "1"])
        .env("LONGSHORE_TEST_REAL", cluster.facts().to_string());
    command
}

fn test_on_real(arguments: &Arguments, release: Release) -> Outcome {
    let begin = Instant::now();
    let cluster = Cluster::start(release)?;
    let mut command = cargo();
    command
        .args(["test", "--no-fail-fast"])
        .args(profile(arguments))
        .args(conformance::JUDGED)
        .args(["--test", "kinds"])
        .args(&arguments.rest)
        .env(conformance::REAL, cluster.description());
    count(command, &cluster.version, begin)
}

fn profile(arguments: &Arguments) -> &'static [&'static str] {
    if arguments.dev { &[] } else { &["--release"] }
}

/// Runs the tests, shows their output, and prints the sum at the end.
fn count(mut command: Command, server: &str, begin: Instant) -> Outcome {
    let mut sum = Sum::default();
    let done = read_lines(&mut command, |line| sum.read(line));
    sum.report(server, begin);
    done
}

/// The sum of what test programs report.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    programs: usize,
    passed: usize,
    failed: usize,
    ignored: usize,
    /// Of tests that failed.
    names: Vec<String>,
}

impl Sum {
    fn report(&self, server: &str, begin: Instant) {
        for name in &self.names {
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
            self.names.push(name.to_owned());
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
    fn sums_what_programs_report() {
        let mut sum = Sum::default();
        for line in [
            "running 3 tests",
            "test a::b ... ok",
            "test a::c ... FAILED",
            "test result: FAILED. 5 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s",
        ] {
            sum.read(line);
        }
        let expected = Sum {
            programs: 2,
            passed: 12,
            failed: 1,
            ignored: 2,
            names: vec!["a::c".into()],
        };
        assert_eq!(sum, expected);
    }
}
