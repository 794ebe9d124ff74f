//! `longshore logs --all-containers`.

use crate::machine::Machine;

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: talker}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  initContainers:
  - {name: prepare, image: any, command: [sh, -c, 'echo one; echo two']}
  - {name: proxy, image: any, restartPolicy: Always, command: [sh, -c, 'echo ready; sleep 1000']}
  containers:
  - {name: main, image: any, command: [sh, -c, 'echo three']}
  - {name: other, image: any, command: [sh, -c, 'echo four']}
";

#[test]
fn lines_of_all_containers_begin_with_the_containers_name() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write("pod.yaml", POD);
    machine.longshore(&["create", "-f", "pod.yaml"]).expect(0);
    let follow = ["logs", "pod/talker", "--all-containers", "--follow"];
    let followed = machine.longshore(&follow).expect(0).out;
    assert_eq!(followed.lines().count(), 5, "{followed}");

    let expected = "prepare | one\nprepare | two\nproxy | ready\nmain | three\nother | four\n";
    let all = machine.longshore(&["logs", "pod/talker", "--all-containers"]);
    assert_eq!(all.expect(0).out, expected);
    let last = ["logs", "talker", "--all-containers", "--tail", "1"];
    let last = machine.longshore(&last).expect(0).out;
    assert!(last.starts_with("prepare | two\nproxy"), "{last}");

    let both = ["logs", "pod/talker", "--all-containers", "-c", "main"];
    let both = machine.longshore(&both).expect(2);
    assert!(both.err.contains("cannot be used with"), "{}", both.err);
    let one = machine.longshore(&["logs", "pod/talker"]).expect(1);
    assert!(
        one.err.contains("a container name must be specified"),
        "{}",
        one.err
    );
}
