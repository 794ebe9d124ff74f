//! Distributed runs of the examples.

use std::path::Path;

use crate::{install::environment, machine::Machine};

/// Processes of Open MPI connect to each other at the addresses of network interfaces, where pods
/// of the embedded cluster do not listen otherwise.
const HOST_NETWORK: &str = "--host-network";

/// Runs an example with the Python of a framework; returns its output.
fn run(framework: &str) -> String {
    run_with(framework, &[])
}

fn run_with(framework: &str, more: &[&str]) -> String {
    let machine = Machine::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    let mut path = environment(framework).join("bin").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let permissions = examples.join(framework).join("permissions.yaml");
    if permissions.exists() {
        let apply = [
            "apply".as_ref(),
            "--filename".as_ref(),
            permissions.as_os_str(),
        ];
        let output = machine.command(&apply).output().unwrap();
        crate::machine::Answer::new(&output).expect(0);
    }
    let mut command = machine.command(&["run".as_ref(), examples.join(framework).as_os_str()]);
    command.args(more);
    let output = command.env("PATH", path).output().unwrap();
    let answer = crate::machine::Answer::new(&output).expect(0);
    answer.out
}

fn lines<'a>(text: &'a str, with: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter(move |line| line.contains(with))
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn tensorflow_trains_on_two_workers() {
    let said = run("tensorflow");
    assert_eq!(lines(&said, "replicas in sync: 2").count(), 2, "{said}");
    assert_eq!(lines(&said, "] ok").count(), 2, "{said}");
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn torch_trains_on_three_workers() {
    let said = run("pytorch");
    assert_eq!(lines(&said, "over 3 tasks: 6 ").count(), 3, "{said}");
    assert_eq!(lines(&said, "] ok").count(), 3, "{said}");
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn jax_trains_in_two_processes() {
    let said = run("jax");
    assert_eq!(lines(&said, "over all processes: 3 ").count(), 2, "{said}");
    assert_eq!(lines(&said, "] ok").count(), 2, "{said}");
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn ray_works_on_two_nodes() {
    let said = run("ray");
    assert_eq!(
        lines(&said, "work done on 2 of them, sum 140").count(),
        1,
        "{said}"
    );
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn mpi_starts_processes_on_three_hosts() {
    let said = run_with("mpi", &[HOST_NETWORK]);
    assert_eq!(lines(&said, "] ok").count(), 1, "{said}");
    assert_eq!(
        lines(&said, "[3 processes on 3 hosts]").count(),
        1,
        "{said}"
    );
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn every_example_runs_with_one_worker() {
    for framework in ["tensorflow", "pytorch", "jax", "ray", "mpi"] {
        let network = (framework == "mpi").then_some(HOST_NETWORK);
        let options = ["--role", "worker=1"].into_iter().chain(network);
        run_with(framework, &options.collect::<Vec<_>>());
    }
}
