//! Runs in the network of the node.

use crate::machine::Machine;

#[test]
fn tasks_in_the_network_of_the_node_share_it_and_resolve_names() {
    let machine = Machine::new();
    machine.write("code.txt", "");
    let script = "echo ip=$POD_IP; getent hosts $MASTER_ADDR > /dev/null && echo resolved";
    let run = |options: &[&str]| {
        let command = ["run", "--role", "worker=2"];
        let words = [&command, options, &["--", "sh", "-c", script]].concat();
        machine.longshore(&words).expect(0).out
    };
    let out = run(&["--host-network"]);
    assert_eq!(out.matches("ip=127.7.0.1\n").count(), 2, "{out}");
    assert_eq!(out.matches("resolved").count(), 2, "{out}");
    assert_eq!(run(&[]).matches("ip=127.7.0.1\n").count(), 0);
    // The command line overrides the file.
    machine.write("longshore.toml", "host_network = true\n");
    let out = run(&["--host-network=false"]);
    assert_eq!(out.matches("ip=127.7.0.1\n").count(), 0, "{out}");
    assert_eq!(run(&[]).matches("ip=127.7.0.1\n").count(), 2);
}

#[test]
fn a_namespace_that_forbids_the_network_of_the_node_is_reported_before_anything_is_created() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write(
        "team.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: team\n  labels: \
         {pod-security.kubernetes.io/enforce: baseline}\n",
    );
    machine.longshore(&["create", "-f", "team.yaml"]).expect(0);
    let run = ["run", "-n", "team", "--host-network", "--", "true"];
    let refused = machine.longshore(&run).expect(4);
    for part in [
        "violates PodSecurity \"baseline",
        "hostNetwork=true",
        "run it without --host-network",
    ] {
        assert!(refused.err.contains(part), "{}", refused.err);
    }
    assert!(!refused.err.contains("--restricted"), "{}", refused.err);
    for kind in ["jobs", "pods", "secrets", "services"] {
        let left = ["get", kind, "-n", "team", "--output", "name"];
        assert_eq!(machine.longshore(&left).expect(0).out, "", "{kind}");
    }
    machine
        .longshore(&["run", "-n", "team", "--", "true"])
        .expect(0);
}
