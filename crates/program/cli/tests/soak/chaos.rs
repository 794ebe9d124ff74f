//! Disruptions: killed tasks, killed clusters, injected faults, clients that disconnect in
//! the middle of a response.

use std::{process::Stdio, thread, time::Duration};

use rand::{RngExt as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value, json};

use crate::{Stage, machine, manifests, resources};

fn pause(rng: &mut StdRng, milliseconds: std::ops::Range<u64>) {
    thread::sleep(Duration::from_millis(rng.random_range(milliseconds)));
}

/// Kills the cluster with SIGKILL and starts it again.
pub(crate) fn kill_cluster(stage: &Stage, mut rng: StdRng) {
    while !stage.is_over() {
        // A Job restarts a lost task after ten seconds or more: it must have a chance to
        // end.
        pause(&mut rng, 500..40_000);
        let Some(pid) = stage.machine.pid() else {
            let status = stage.machine.longshore(&["status", "--output", "json"]);
            stage.tally.fail(format!(
                "the cluster that was started does not run: {} {}\n{}",
                status.out,
                status.err,
                last_lines(&status.json())
            ));
            return;
        };
        machine::signal(pid, "KILL");
        // A process still appears to run while it dies.
        while resources::is_running(pid) {
            thread::sleep(Duration::from_millis(1));
        }
        stage.tally.count("clusters killed");
        pause(&mut rng, 0..1_000);
        // Runs that start meanwhile may start the cluster first.
        let up = stage.machine.longshore(&["up"]);
        if up.code != 0 {
            stage
                .tally
                .fail(format!("the killed cluster does not start: {}", up.err));
            return;
        }
    }
}

/// The end of the log that a status names.
fn last_lines(status: &serde_json::Value) -> String {
    let path = status["log"].as_str().unwrap_or_default();
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| error.to_string());
    let mut lines: Vec<&str> = text.lines().rev().take(30).collect();
    lines.reverse();
    lines.join("\n")
}

/// Makes the server reject, delay and abort some requests for a while.
pub(crate) fn inject_faults(stage: &Stage, mut rng: StdRng) {
    let runtime = manifests::runtime();
    let proxy = runtime.block_on(manifests::connect(stage)).proxy();
    let faults = "/longshore.dev/v1/faults";
    while !stage.is_over() {
        let reading = json!({"verbs": ["get", "list", "watch"]});
        let watching = json!({"verbs": ["watch"]});
        let rules = [
            json!({"match": reading, "effect": {"answer": {"code": 503}}, "share": 0.05}),
            json!({"match": reading, "effect": {"answer": {"code": 429, "retryAfterSeconds": 1}}, "share": 0.05}),
            json!({"match": reading, "effect": {"delay": {"milliseconds": 200}}, "share": 0.3}),
            json!({"match": reading, "effect": "drop", "share": 0.05}),
            json!({"match": watching, "effect": {"watch": {"end": "break", "afterEvents": 3}}}),
            json!({"match": watching, "effect": {"watch": {"end": "expire", "afterEvents": 5}}}),
            json!({"match": watching, "effect": {"watch": {"end": "close", "afterEvents": 2}}}),
        ];
        let mut rule: Value = rules.choose(&mut rng).unwrap().clone();
        rule["seed"] = json!(rng.random_range(0..1_000));
        rule["times"] = json!(20);
        let answer = runtime.block_on(proxy.post(faults, &[], &rule));
        match answer {
            Ok(_) => stage.tally.count("faults injected"),
            Err(error) => stage
                .tally
                .fail(format!("a fault cannot be injected: {error}")),
        }
        pause(&mut rng, 200..3_000);
        let _ = runtime.block_on(proxy.delete(faults, &[], None));
        pause(&mut rng, 200..3_000);
    }
}

/// Clients that are killed while the server sends to them.
pub(crate) fn watch_and_leave(stage: &Stage, mut rng: StdRng) {
    let commands: &[&[&str]] = &[
        &["watch", "pods"],
        &["get", "pods", "-A"],
        &["watch", "events", "-A"],
        &["runs"],
        &["get", "configmaps", "-A", "-o", "json"],
    ];
    while !stage.is_over() {
        let mut command = stage.machine.command(commands.choose(&mut rng).unwrap());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut client = command.spawn().unwrap();
        pause(&mut rng, 10..1_500);
        let _ = client.kill();
        let _ = client.wait();
        stage.tally.count("clients killed");
    }
}
