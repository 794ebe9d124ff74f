//! Runs whose pods have other containers in addition to the command's: proxies that do not end,
//! helpers that fail early or late. The command decides about the end of the run, and all reports
//! of the run agree.

use serde_json::{Value, json};

use crate::machine::{Machine, Running, eventually};

/// The names of the templates, and the script of the additional container.
const OTHERS: [(&str, &str); 4] = [
    ("endless", "while true; do sleep 0.2; done"),
    ("early", "exit 9"),
    ("late", "sleep 3; exit 9"),
    ("done", "sleep 1"),
];

fn template(script: &str) -> String {
    let container = json!({"name": "proxy", "image": "x", "command": ["sh", "-c", script]});
    json!({"spec": {"containers": [container]}}).to_string()
}

fn machine() -> Machine {
    let machine = Machine::new();
    for (name, script) in OTHERS {
        machine.write(&format!("{name}.yaml"), &template(script));
    }
    // A sidecar in the notation of Kubernetes, which is restarted repeatedly.
    let sidecar = json!({
        "name": "proxy", "image": "x", "restartPolicy": "Always", "command": ["sh", "-c", "exit 1"],
    });
    let sidecar = json!({"spec": {"initContainers": [sidecar]}});
    machine.write("sidecar.yaml", &sidecar.to_string());
    machine.longshore(&["up"]).expect(0);
    machine
}

/// The words of a run with a script as its command. Lines of the script count its executions.
fn words<'a>(
    name: &'a str,
    template: &'a str,
    options: &[&'a str],
    script: &'a str,
) -> Vec<&'a str> {
    let mut words = vec!["run", "--name", name, "--template", template];
    words.extend(options);
    words.extend(["--", "sh", "-c", script]);
    words
}

/// The run with this name in the list of runs.
fn listed(machine: &Machine, name: &str) -> Value {
    let pattern = format!("{name}-*");
    let runs = machine.longshore(&["runs", "--name", &pattern, "--output", "json"]);
    runs.expect(0).json()[0].clone()
}

/// Asserts that all readers report this end of the run, and that its objects are removed.
#[track_caller]
fn assert_ended(machine: &Machine, name: &str, state: &str, code: i32) {
    let ended = |run: &Value| (run["state"].clone(), run["exitCode"].clone());
    let expected = (json!(state), json!(code));
    eventually(&format!("{name} {state}"), || {
        listed(machine, name)["finished"].is_string()
    });
    let run = listed(machine, name);
    assert_eq!(ended(&run), expected, "{name} in the list");
    let run = run["name"].as_str().unwrap().to_owned();
    let why = machine.longshore(&["why", &run, "--output", "json"]).json();
    assert_eq!(ended(&why), expected, "{name}: {why:#}");
    machine.longshore(&["attach", &run]).expect(code);
    let label = format!("longshore.dev/run={run}");
    eventually(&format!("no pod of {name} is active"), || {
        let pods = machine.longshore(&["get", "pods", "-l", &label, "--output", "json"]);
        let pods = pods.expect(0).json();
        let mut pods = pods["items"].as_array().unwrap().iter();
        pods.all(|pod| {
            matches!(
                pod["status"]["phase"].as_str(),
                Some("Succeeded" | "Failed")
            )
        })
    });
    assert_eq!(
        ended(&listed(machine, name)),
        expected,
        "{name} after its pods"
    );
}

#[test]
fn the_command_of_a_followed_run_decides() {
    let machine = machine();
    let mut runs = Vec::new();
    for other in ["endless", "early", "late", "done", "sidecar"] {
        for code in [0, 3] {
            let name = format!("{other}{code}");
            let script = format!("sleep 1; exit {code}");
            let template = format!("{other}.yaml");
            let run = Running::start(machine.command(&words(&name, &template, &[], &script)));
            runs.push((name, code, run));
        }
    }
    for (name, code, run) in runs {
        let answer = run.end();
        assert_eq!(answer.code, code, "{name}: {}", answer.err);
        let state = if code == 0 { "succeeded" } else { "failed" };
        assert_ended(&machine, &name, state, code);
    }
}

#[test]
fn the_command_of_a_detached_run_decides() {
    let machine = machine();
    for other in ["endless", "early", "late"] {
        for code in [0, 3] {
            let (name, template) = (format!("{other}{code}"), format!("{other}.yaml"));
            let script = format!("sleep 1; exit {code}");
            let words = words(&name, &template, &["--detach"], &script);
            machine.longshore(&words).expect(0);
        }
    }
    for other in ["endless", "early", "late"] {
        assert_ended(&machine, &format!("{other}0"), "succeeded", 0);
        assert_ended(&machine, &format!("{other}3"), "failed", 3);
    }
}

/// Each command runs as often as its own failures demand.
#[test]
fn retries_follow_from_the_command_alone() {
    let machine = machine();
    let log = machine.code().join("log").display().to_string();
    let once = format!("echo once >> {log}; sleep 1");
    let twice = format!("echo twice >> {log}; test $LONGSHORE_ATTEMPT = 2 || exit 3");
    let runs = [
        ("early-once", "early.yaml", &once),
        ("late-once", "late.yaml", &once),
        ("endless-once", "endless.yaml", &once),
        ("early-twice", "early.yaml", &twice),
        ("endless-twice", "endless.yaml", &twice),
    ];
    for (name, template, script) in runs {
        let options = ["--detach", "--retries", "2"];
        let words = words(name, template, &options, script);
        machine.longshore(&words).expect(0);
    }
    for (name, ..) in runs {
        assert_ended(&machine, name, "succeeded", 0);
    }
    let text = std::fs::read_to_string(&log).unwrap();
    let count = |word: &str| text.lines().filter(|line| *line == word).count();
    assert_eq!((count("once"), count("twice")), (3, 4), "{text}");
}

/// A container that fails next to a task's command ends neither the other tasks nor the run.
#[test]
fn other_containers_do_not_end_tasks_of_the_same_run() {
    let machine = machine();
    let settings = "command = 'sleep $((LONGSHORE_INDEX * 3 + 1))'\n\
                    template = 'early.yaml'\n\
                    [roles.worker]\ncount = 2\n\
                    [roles.ps]\ncount = 1\nservice = true\ncommand = 'sleep 600'\n";
    machine.write("longshore.toml", settings);
    let run = machine.longshore(&["run", "--name", "several"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_ended(&machine, "several", "succeeded", 0);
    machine
        .longshore(&["run", "--name", "apart", "--detach"])
        .expect(0);
    assert_ended(&machine, "apart", "succeeded", 0);
}

#[test]
fn a_sweep_goes_on_beside_containers_that_do_not_end() {
    let machine = machine();
    for (name, template) in [("endless", "endless.yaml"), ("early", "early.yaml")] {
        let options = ["--detach", "--sweep", "n=1..3", "--parallel", "1"];
        let words = words(name, template, &options, "test {n} != 2 || exit 7");
        machine.longshore(&words).expect(0);
    }
    for name in ["endless", "early"] {
        assert_ended(&machine, name, "failed", 7);
        let run = listed(&machine, name)["name"].as_str().unwrap().to_owned();
        let table = machine
            .longshore(&["sweep", &run, "--output", "json"])
            .expect(0)
            .json();
        let rows = table["combinations"].as_array().unwrap().iter();
        let states: Vec<&str> = rows.map(|row| row["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["succeeded", "failed", "succeeded"], "{name}");
    }
}

/// The plan does not know a container that the cluster adds.
#[test]
fn an_injected_container_does_not_keep_a_run_active() {
    let machine = machine();
    let rules = json!([{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
    }]);
    let container = "Object.spec.containers{name: 'mesh', image: 'x', command: ['sleep', '600']}";
    let expression =
        format!("[JSONPatch{{op: 'add', path: '/spec/containers/-', value: {container}}}]");
    let change = json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}});
    let version = "admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "mesh"},
        "spec": {
            "matchConstraints": {"resourceRules": rules}, "failurePolicy": "Fail",
            "reinvocationPolicy": "Never", "mutations": [change],
        },
    });
    let binding = json!({
        "apiVersion": version, "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "mesh"}, "spec": {"policyName": "mesh"},
    });
    let both = json!({"apiVersion": "v1", "kind": "List", "items": [policy, binding]});
    machine.write("mesh.json", &both.to_string());
    machine.longshore(&["apply", "-f", "mesh.json"]).expect(0);
    let injected = |name: &str| {
        let run = listed(&machine, name)["name"].as_str().unwrap().to_owned();
        let label = format!("longshore.dev/run={run}");
        let pods = machine.longshore(&["get", "pods", "-l", &label, "--output", "json"]);
        let pods = pods.expect(0).json();
        assert_eq!(pods["items"][0]["spec"]["containers"][1]["name"], "mesh");
    };
    eventually("the policy applies", || {
        let script = ["run", "--name", "probe", "--detach", "--", "true"];
        machine.longshore(&script).expect(0);
        let pods = machine
            .longshore(&["get", "pods", "--output", "json"])
            .expect(0)
            .json();
        pods.to_string().contains("mesh")
    });
    for (name, code) in [("good", 0), ("bad", 3)] {
        let script = format!("exit {code}");
        let detached = format!("{name}-apart");
        let words = |name, options: &[&'static str]| {
            let mut words = vec!["run", "--name", name];
            words.extend(options);
            words.extend(["--", "sh", "-c", script.as_str()]);
            machine.longshore(&words)
        };
        words(&detached, &["--detach"]).expect(0);
        words(name, &[]).expect(code);
        injected(name);
        let state = if code == 0 { "succeeded" } else { "failed" };
        assert_ended(&machine, name, state, code);
        assert_ended(&machine, &detached, state, code);
    }
}

#[test]
fn a_sidecar_that_never_starts_is_named() {
    let machine = machine();
    let sidecar = json!({
        "name": "proxy", "image": "x", "restartPolicy": "Always", "command": ["sleep", "300"],
        "startupProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 600},
    });
    let sidecar = json!({"spec": {"initContainers": [sidecar]}});
    machine.write("unready.yaml", &sidecar.to_string());
    let options = ["--detach"];
    let started = machine.longshore(&words("unready", "unready.yaml", &options, "true"));
    let run = started.expect(0).out.trim().to_owned();
    eventually("why names the sidecar", || {
        let why = machine.longshore(&["why", &run]).out;
        why.contains("the sidecar \"proxy\" has not started: its startup probe")
    });
}
