//! `up`, `status`, `down`, and recovery from a crash.

use crate::machine::{Answer, Machine, Running, eventually, signal};

#[test]
fn up_status_and_down_agree() {
    let machine = Machine::new();
    let before = machine.longshore(&["status"]).expect(3);
    assert!(before.out.contains("is not running"), "{}", before.out);

    let up = machine.longshore(&["up"]).expect(0);
    assert!(
        up.out
            .contains("The embedded cluster is up: https://127.0.0.1:"),
        "{}",
        up.out
    );
    assert!(up.out.contains("export KUBECONFIG="), "{}", up.out);
    let again = machine.longshore(&["up"]).expect(0);
    assert!(again.out.contains("is already up"), "{}", again.out);

    let status = machine
        .longshore(&["status", "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(
        (&status["running"], &status["ready"], &status["lasting"]),
        (&true.into(), &true.into(), &true.into())
    );
    assert_eq!(status["lifetime"], "lasting");
    let text = machine.longshore(&["status"]).expect(0).out;
    assert!(text.contains("  until       `longshore down`"), "{text}");
    assert!(text.contains("  runs        none in progress"), "{text}");
    let nodes = machine
        .longshore(&["get", "nodes", "--output", "name"])
        .expect(0);
    assert_eq!(nodes.out, "node/longshore\n");

    let pid = machine.pid().unwrap();
    let down = machine.longshore(&["down"]).expect(0);
    assert_eq!(down.out, "The embedded cluster has stopped.\n");
    assert!(!std::path::Path::new(&format!("/proc/{pid}/stat")).exists() || is_zombie(pid));
    assert_eq!(
        machine.longshore(&["down"]).expect(0).out,
        "The embedded cluster is not running.\n"
    );
}

#[test]
fn fault_injection_requires_its_option() {
    let machine = Machine::new();
    machine.longshore(&["up", "--ephemeral"]).expect(0);
    let refused = machine.longshore(&["up", "--faults"]).expect(2);
    assert!(refused.err.contains("without --faults"), "{}", refused.err);
    machine.longshore(&["down"]).expect(0);
    machine
        .longshore(&["up", "--ephemeral", "--faults"])
        .expect(0);
    let again = machine.longshore(&["up", "--faults"]).expect(0);
    assert!(again.out.contains("is already up"), "{}", again.out);
}

#[test]
fn several_nodes_are_an_option_of_the_start() {
    let machine = Machine::new();
    let up = |nodes: &str| machine.longshore(&["up", "--ephemeral", "--nodes", nodes]);
    let refused = up("0").expect(2);
    assert!(refused.err.contains("1..=100"), "{}", refused.err);
    up("2").expect(0);
    let nodes = machine.longshore(&["get", "nodes", "--output", "name"]);
    assert_eq!(nodes.expect(0).out, "node/longshore\nnode/longshore-2\n");
    up("2").expect(0);
    let refused = up("3").expect(2);
    let problem = "the embedded cluster is already running with 2 nodes, not 3";
    assert!(refused.err.contains(problem), "{}", refused.err);
    machine.longshore(&["up"]).expect(0);
}

#[test]
fn a_manual_clock_starts_at_its_time() {
    let machine = Machine::new();
    let alone = machine.longshore(&["up", "--clock", "manual"]).expect(2);
    assert!(alone.err.contains("--faults"), "{}", alone.err);
    let up = ["up", "--ephemeral", "--faults", "--clock"];
    let invalid = machine.longshore(&[&up[..], &["noon"]].concat()).expect(2);
    assert!(
        invalid.err.contains("expected system, manual"),
        "{}",
        invalid.err
    );
    let time = "2031-01-01T00:00:00Z";
    machine.longshore(&[&up[..], &[time]].concat()).expect(0);
    let node = machine.longshore(&["get", "node", "longshore", "--output", "json"]);
    let node = node.expect(0).json();
    assert_eq!(node["metadata"]["creationTimestamp"], time);
    machine.longshore(&["down"]).expect(0);
    machine.longshore(&up[..3]).expect(0);
    let refused = machine.longshore(&[&up[..], &[time]].concat()).expect(2);
    assert!(
        refused.err.contains("with the system's clock"),
        "{}",
        refused.err
    );
}

fn is_zombie(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.starts_with(" Z"))
    })
}

#[test]
fn a_kill_loses_no_acknowledged_write() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let run = machine.run_script("echo kept").expect(0);
    assert!(run.out.contains("| kept"), "{}", run.out);
    let before = machine
        .longshore(&["get", "jobs", "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(before["items"].as_array().unwrap().len(), 1);

    signal(machine.pid().unwrap(), "KILL");
    eventually("status reports the killed cluster as stopped", || {
        machine.pid().is_none()
    });
    machine.longshore(&["up"]).expect(0);
    let after = machine
        .longshore(&["get", "jobs", "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(
        after["items"][0]["metadata"]["uid"],
        before["items"][0]["metadata"]["uid"]
    );
    assert_eq!(after["items"][0]["status"]["succeeded"], 1);
}

#[test]
fn an_ephemeral_cluster_keeps_nothing() {
    let machine = Machine::new();
    machine.longshore(&["up", "--ephemeral"]).expect(0);
    machine.run_script("true").expect(0);
    machine.longshore(&["down"]).expect(0);
    machine.longshore(&["up", "--ephemeral"]).expect(0);
    let jobs = machine
        .longshore(&["get", "jobs", "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(jobs["items"].as_array().unwrap().len(), 0);
}

#[test]
fn in_the_foreground_a_signal_shuts_the_cluster_down_gracefully() {
    for name in ["INT", "TERM"] {
        let machine = Machine::new();
        let cluster = Running::start(machine.command(&["up", "--foreground"]));
        eventually("it serves", || machine.longshore(&["status"]).code == 0);
        cluster.signal(name);
        let end = cluster.end().expect(0);
        assert!(
            end.out.contains("The embedded cluster is up"),
            "{}",
            end.out
        );
        machine.longshore(&["status"]).expect(3);
    }
}

#[test]
fn concurrent_commands_start_one_cluster() {
    let machine = Machine::new();
    let both = [(); 2].map(|()| Running::start(machine.command(&["up"])));
    for one in both {
        one.end().expect(0);
    }
    machine.longshore(&["status"]).expect(0);
}

#[test]
fn the_last_command_stops_the_cluster_that_it_started() {
    let machine = Machine::new();
    let nodes = machine
        .longshore(&["get", "nodes", "--output", "name"])
        .expect(0);
    assert_eq!(nodes.out, "node/longshore\n");
    machine.longshore(&["status"]).expect(3);
    machine.assert_no_process(machine.data().to_str().unwrap());
}

#[test]
fn a_command_does_not_stop_a_cluster_that_up_started() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.longshore(&["get", "nodes"]).expect(0);
    machine.longshore(&["status"]).expect(0);
}

#[test]
fn a_cluster_without_work_stops_after_its_command_is_killed() {
    let machine = Machine::new();
    let watch = Running::start(machine.command(&["watch", "pods"]));
    eventually("the cluster runs", || machine.pid().is_some());
    watch.signal("KILL");
    drop(watch);
    eventually("the cluster has stopped", || machine.pid().is_none());
}

/// A command that runs while the cluster is about to stop uses that cluster or the next
/// one. It never uses one that is shutting down.
#[test]
fn overlapping_commands_all_find_a_cluster() {
    let machine = Machine::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..8 {
                    let nodes = machine.longshore(&["get", "nodes", "--output", "name"]);
                    assert_eq!(nodes.expect(0).out, "node/longshore\n");
                    // Varies the pause, so that in some rounds the last user ends just as
                    // the next begins.
                    std::thread::sleep(std::time::Duration::from_millis(round * 7));
                }
            });
        }
    });
    eventually("the cluster stops", || machine.pid().is_none());
}

#[test]
fn the_kubeconfig_is_written_only_to_the_requested_path() {
    let machine = Machine::new();
    machine.write("mine", "clusters: [{name: production}]\n");
    let refused = machine.longshore(&["up", "--kubeconfig", "mine"]).expect(2);
    assert!(
        refused.err.contains("contains other clusters"),
        "{}",
        refused.err
    );
    machine.longshore(&["status"]).expect(3);

    machine.longshore(&["up", "--kubeconfig", "ours"]).expect(0);
    let nodes = ["get", "nodes", "--output", "name", "--kubeconfig", "ours"];
    assert_eq!(machine.longshore(&nodes).expect(0).out, "node/longshore\n");
}

#[test]
fn several_kubeconfigs_are_merged() {
    let machine = Machine::new();
    machine.longshore(&["up", "--kubeconfig", "ours"]).expect(0);
    let text = std::fs::read_to_string(machine.code().join("ours")).unwrap();
    let (clusters, users) = text.split_once("users:").unwrap();
    machine.write("clusters", clusters);
    machine.write(
        "users",
        &format!("apiVersion: v1\nkind: Config\nusers:{users}"),
    );
    let nodes = ["get", "nodes", "-o", "name", "--context", "longshore"];
    let stacked = |variable: &str, list: &str| {
        let mut command = machine.command(&nodes);
        Answer::new(&command.env(variable, list).output().unwrap())
    };
    let folder = machine.code();
    let path = |name: &str| folder.join(name).display().to_string();
    // A missing file is skipped, as by kubectl.
    let all = [path("none"), path("clusters"), path("users")].join(":");
    for variable in ["KUBECONFIG", "LONGSHORE_KUBECONFIG"] {
        assert_eq!(stacked(variable, &all).expect(0).out, "node/longshore\n");
        let half = stacked(variable, &path("clusters")).expect(3);
        assert!(
            half.err.contains("no context \"longshore\""),
            "{variable}: {}",
            half.err
        );
    }
    let option = [&nodes[..], &["--kubeconfig", &all]].concat();
    assert_eq!(machine.longshore(&option).expect(0).out, "node/longshore\n");
    // A file whose name has a colon is one file.
    std::fs::copy(path("ours"), path("a:b")).unwrap();
    let colon = stacked("LONGSHORE_KUBECONFIG", &path("a:b"));
    assert_eq!(colon.expect(0).out, "node/longshore\n");
}

#[test]
fn in_a_pod_the_program_finds_its_own_cluster() {
    let machine = Machine::new();
    let program = env!("CARGO_BIN_EXE_longshore");
    let script = format!("env -u LONGSHORE_DATA_DIR {program} get nodes -o name");
    let answer = machine.run_script(&script).expect(0);
    assert!(answer.out.contains("node/longshore"), "{}", answer.out);
}

#[test]
fn descriptors_and_files_do_not_grow_with_runs() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let pid = machine.pid().unwrap();
    let open = || {
        std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .count()
    };
    let names = || std::fs::read_dir(machine.data()).unwrap().count();
    let runs = |count: usize| {
        for _ in 0..count {
            machine.run_script("echo a line").expect(0);
        }
    };
    runs(3);
    let (descriptors, files) = (open(), names());
    runs(6);
    // Connections and logs are closed shortly after the programs have ended.
    eventually("the descriptors are closed", || open() <= descriptors + 2);
    assert_eq!(names(), files);
}

#[test]
fn requests_are_recorded_in_the_audit_log() {
    let machine = Machine::new();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (log, policy) = (path("audit.log"), path("policy.yaml"));
    let up = ["up", "--ephemeral", "--audit-log", &log];
    std::fs::write(&policy, "kind: Policy").unwrap();
    let refused = machine
        .longshore(&[&up[..], &["--audit-policy-file", &policy]].concat())
        .expect(3);
    assert!(refused.err.contains("policy.yaml"), "{}", refused.err);

    let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n\
                 - {level: Metadata, resources: [{resources: [nodes]}], verbs: [list]}";
    std::fs::write(&policy, rules).unwrap();
    machine
        .longshore(&[&up[..], &["--audit-policy-file", &policy]].concat())
        .expect(0);
    machine.longshore(&["get", "nodes"]).expect(0);
    machine.longshore(&up).expect(0);
    let other = machine.longshore(&["up", "--audit-log", &policy]).expect(2);
    assert!(other.err.contains("without --audit-log"), "{}", other.err);
    machine.longshore(&["down"]).expect(0);
    let text = std::fs::read_to_string(&log).unwrap();
    let by_program = |line: &str| {
        line.contains("\"requestURI\":\"/api/v1/nodes") && line.contains("\"127.0.0.1\"")
    };
    assert!(text.lines().any(by_program), "{text}");
}
