//! Runs the tests. Tests that can run in parallel share an embedded cluster; each of the others has
//! its own cluster. ginkgo would run the latter one after the other, and many tests wait for
//! minutes.

use std::{
    fs::{self, File},
    iter,
    ops::Range,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

use super::{images::Images, report};
use crate::{
    embedded::{self, Embedded},
    kubernetes,
    run::{Outcome, output},
};

/// The options of `longshore up`: the tests require two nodes.
const NODES: [&str; 2] = ["--nodes", "2"];
/// Parts of the names of tests that use the same file of the machine, which would be a file of each
/// container. The tests of a group run one after the other.
const SHARE_A_FILE: [&str; 2] = [MOVES_THE_CERTIFICATE, "/tmp/health"];
/// Tests that move the certificate away to make pods unready, and may leave it there.
const MOVES_THE_CERTIFICATE: &str = "StatefulSet Basic";
/// The number of clusters for single tests that run at a time.
const CLUSTERS: usize = 4;

/// The program and the tests to run, and the folder of ginkgo's reports.
pub(super) struct Suite<'a> {
    /// The program `longshore`; without it, a release build is made and used.
    pub(super) program: Option<&'a Path>,
    /// A regular expression of the tests' names.
    pub(super) focus: &'a str,
    /// The number of tests that run at a time on the shared cluster.
    pub(super) procs: usize,
    /// An empty folder for the reports and the output of single tests.
    pub(super) reports: &'a Path,
}

impl Suite<'_> {
    /// Runs all tests. Failed tests are in the reports and do not cause an error.
    pub(super) fn run(&self) -> Outcome {
        let images = Images::new(
            &kubernetes::programs().join("agnhost"),
            &kubernetes::test_images()?.join("agnhost"),
        )?;
        let program = match self.program {
            Some(path) => path.to_owned(),
            None => embedded::build()?,
        };
        let mut single = self.list("Conformance && Serial")?;
        let mut queues = vec![(Mutex::new(0..single.len()), CLUSTERS)];
        let others = self.list("Conformance && !Serial")?;
        for part in SHARE_A_FILE {
            let first = single.len();
            single.extend(others.iter().filter(|name| name.contains(part)).cloned());
            queues.push((Mutex::new(first..single.len()), 1));
        }
        println!("{} tests run on a cluster of their own", single.len());
        let (single, program, images) = (&single, &program, &images);
        let (shared, alone) = thread::scope(|scope| {
            let queues = queues.iter();
            let workers = queues.flat_map(|(queue, workers)| iter::repeat_n(queue, *workers));
            let workers: Vec<_> = workers
                .map(|queue| scope.spawn(move || self.run_from(queue, single, program, images)))
                .collect();
            let shared = self.run_parallel(program, images);
            let join = |worker: thread::ScopedJoinHandle<'_, Outcome>| match worker.join() {
                Ok(done) => done,
                Err(_) => Err("a thread of the tests panicked".to_owned()),
            };
            let alone: Vec<Outcome> = workers.into_iter().map(join).collect();
            (shared, alone)
        });
        shared?;
        alone.into_iter().collect()
    }

    /// The names of the tests with these labels.
    fn list(&self, labels: &str) -> Outcome<Vec<String>> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let report = folder.path().join("list.json");
        let mut list = test_program();
        list.arg("--ginkgo.dry-run")
            .arg(format!("--ginkgo.label-filter={labels}"))
            .arg(format!("--ginkgo.focus={}", self.focus))
            .arg(format!("--ginkgo.json-report={}", report.display()))
            .arg("--provider=skeleton");
        output(&mut list)?;
        let groups = report::read([report].iter())?;
        Ok(groups
            .into_values()
            .flat_map(|group| group.passed)
            .collect())
    }

    /// Runs the others on one cluster.
    fn run_parallel(&self, program: &Path, images: &Images) -> Outcome {
        let cluster = start(program, images)?;
        let mut tests = Command::new(kubernetes::programs().join("ginkgo"));
        tests
            .args([
                "run",
                "--label-filter=Conformance && !Serial",
                "--timeout=8h",
            ])
            .args(["--silence-skips", "--no-color", "--keep-going"])
            .arg(format!("--procs={}", self.procs))
            .arg(format!("--focus={}", self.focus))
            .arg(format!("--skip={}", SHARE_A_FILE.join("|")))
            .arg(format!("--output-dir={}", self.reports.display()))
            .arg("--json-report=parallel.json")
            .arg(kubernetes::programs().join("e2e.test"))
            .arg("--");
        with_cluster(&mut tests, &cluster);
        // The exit status is ignored: it shows that tests failed.
        (tests.status())
            .map(drop)
            .map_err(|error| format!("cannot run ginkgo: {error}"))
    }

    /// Runs tests of the queue, each on its own cluster, until the queue is empty.
    fn run_from(
        &self,
        queue: &Mutex<Range<usize>>,
        names: &[String],
        program: &Path,
        images: &Images,
    ) -> Outcome {
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some(number) = next() {
            let name = &names[number];
            if name.contains(MOVES_THE_CERTIFICATE) {
                images.renew_files();
            }
            let cluster = start(program, images)?;
            let file = |kind: &str| self.reports.join(format!("single-{number}.{kind}"));
            let log = file("log");
            let problem = |error: std::io::Error| format!("{}: {error}", log.display());
            let out = File::create(&log).map_err(problem)?;
            let errors = out.try_clone().map_err(problem)?;
            let begin = Instant::now();
            let mut test = test_program();
            test.args(["--ginkgo.label-filter=Conformance", "--ginkgo.no-color"])
                // The text that it is matched with begins with the suite's name.
                .arg(format!("--ginkgo.focus= {}$", escape(name)))
                .arg(format!("--ginkgo.json-report={}", file("json").display()));
            with_cluster(&mut test, &cluster);
            let done = test.stdout(out).stderr(errors).status();
            let done = done.map_err(|error| format!("cannot run e2e.test: {error}"))?;
            let groups = report::read([file("json")].iter())?;
            if groups.values().map(report::Group::count).sum::<usize>() != 1 {
                return Err(format!("{name} did not run, see {}", log.display()));
            }
            let result = if done.success() { "passed" } else { "failed" };
            println!("{result}: {name} ({} s)", begin.elapsed().as_secs());
        }
        Ok(())
    }
}

fn start(program: &Path, images: &Images) -> Outcome<Embedded> {
    let options: Vec<String> = NODES
        .map(str::to_owned)
        .into_iter()
        .chain(images.options())
        .collect();
    Embedded::start_with(program, &options, Some(&images.path()))
}

fn test_program() -> Command {
    Command::new(kubernetes::programs().join("e2e.test"))
}

fn with_cluster(command: &mut Command, cluster: &Embedded) {
    command
        .arg(format!("--kubeconfig={}", cluster.kubeconfig().display()))
        .args(["--provider=skeleton", "--allowed-not-ready-nodes=-1"])
        .env("KUBECTL_PATH", kubernetes::programs().join("kubectl"));
}

/// The name as a regular expression.
fn escape(name: &str) -> String {
    let mut text = String::new();
    for char in name.chars() {
        if r"\.+*?()|[]{}^$".contains(char) {
            text.push('\\');
        }
        text.push(char);
    }
    text
}

/// Makes an empty folder for reports.
pub(super) fn clear(folder: &Path) -> Outcome {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {error}", folder.display()));
        }
        _ => {}
    }
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// ginkgo's reports in a folder.
pub(super) fn reports(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        if path.extension().is_some_and(|kind| kind == "json") {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(escape("[sig-a] b (c) d."), r"\[sig-a\] b \(c\) d\.");
    }
}
