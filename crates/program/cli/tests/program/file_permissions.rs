//! File permissions: the embedded cluster uses only its own user's files.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink},
    path::Path,
};

use crate::machine::Machine;

/// Another local user.
const OTHER_USER: u32 = 65534;

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Another local user prepares the data folder: a token known to that user, and a log that
/// is a link to that user's file.
#[test]
fn a_data_folder_of_another_user_is_rejected() {
    let machine = Machine::new();
    if fs::metadata(machine.code()).unwrap().uid() != 0 {
        return;
    }
    let (data, target) = (machine.data(), machine.code().join("target"));
    fs::create_dir(&data).unwrap();
    let settings = format!("{{\"port\":0,\"token\":\"{}\"}}", "0".repeat(64));
    fs::write(data.join("settings.json"), settings).unwrap();
    symlink(&target, data.join("cluster.log")).unwrap();
    chown(&data, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    for words in [
        &["up"][..],
        &["status"],
        &["down"],
        &["get", "nodes"],
        &["run", "--", "true"],
    ] {
        let answer = machine.longshore(words).expect(3);
        assert!(
            answer.err.contains("belongs to another user (uid 65534)"),
            "{words:?}: {}",
            answer.err
        );
        assert!(answer.err.contains("--data-dir"), "{}", answer.err);
    }
    // Owning the folder itself is not enough.
    chown(&data, Some(0), Some(0)).unwrap();
    let answer = machine.longshore(&["up"]).expect(3);
    assert!(answer.err.contains("symbolic link"), "{}", answer.err);
    assert!(!target.exists(), "nothing was written through the link");
    fs::remove_file(data.join("cluster.log")).unwrap();
    chown(data.join("settings.json"), Some(OTHER_USER), None).unwrap();
    let answer = machine.longshore(&["up"]).expect(3);
    assert!(answer.err.contains("settings.json"), "{}", answer.err);
    assert!(machine.pid().is_none());
}

#[test]
fn a_data_folder_that_others_may_write_is_rejected() {
    let machine = Machine::new();
    fs::create_dir(machine.data()).unwrap();
    set_mode(&machine.data(), 0o777);
    let answer = machine.longshore(&["up"]).expect(3);
    assert!(
        answer.err.contains("every user may write"),
        "{}",
        answer.err
    );
    assert!(answer.err.contains("chmod go-w"), "{}", answer.err);
    set_mode(&machine.data(), 0o755);
    machine.longshore(&["up"]).expect(0);
    assert_eq!(mode(&machine.data()), 0o700);
}

/// With any umask, and with any mode that an earlier version used.
#[test]
fn all_files_are_private() {
    let machine = Machine::new();
    let program = env!("CARGO_BIN_EXE_longshore");
    let mut up = machine.shell(&format!(
        "umask 000; exec {program} up --kubeconfig ../ours"
    ));
    assert!(up.output().unwrap().status.success());
    machine.run_script("true").expect(0);
    let check = || {
        assert_eq!(mode(&machine.data()), 0o700);
        assert_eq!(mode(&machine.home().join("ours")), 0o600);
        for entry in fs::read_dir(machine.data()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
            }
        }
    };
    check();
    machine.longshore(&["down"]).expect(0);
    for name in ["objects.redb", "settings.json", "lock", "cluster.log"] {
        set_mode(&machine.data().join(name), 0o644);
    }
    machine.longshore(&["up"]).expect(0);
    check();
}

#[test]
fn a_kubeconfig_is_not_written_where_other_users_could_replace_it() {
    let machine = Machine::new();
    let shared = machine.code().join("shared");
    fs::create_dir(&shared).unwrap();
    set_mode(&shared, 0o777);
    let answer = machine
        .longshore(&["up", "--kubeconfig", "shared/k"])
        .expect(3);
    assert!(
        answer.err.contains("every user may write"),
        "{}",
        answer.err
    );
    assert!(machine.pid().is_none());
    symlink(
        machine.code().join("elsewhere"),
        machine.code().join("link"),
    )
    .unwrap();
    let answer = machine.longshore(&["up", "--kubeconfig", "link"]).expect(3);
    assert!(answer.err.contains("symbolic link"), "{}", answer.err);
}

#[test]
fn a_command_of_any_user_can_write_to_its_folder() {
    let machine = Machine::new();
    if fs::metadata(machine.code()).unwrap().uid() != 0 {
        return;
    }
    // The user of the command has access to the machine's folders.
    set_mode(machine.home(), 0o755);
    fs::create_dir(machine.code().join("src")).unwrap();
    machine.write("src/a.py", "");
    machine.longshore(&["up"]).expect(0);
    let main = |context: &str| {
        format!("spec: {{containers: [{{name: main, securityContext: {{{context}}}}}]}}")
    };
    let pod = |context: &str| format!("spec: {{securityContext: {{{context}}}}}");
    let templates = [
        main("runAsUser: 1000"),
        main("runAsUser: 1000, runAsGroup: 1000, readOnlyRootFilesystem: true"),
        main("runAsUser: 0, runAsGroup: 1000, capabilities: {drop: [ALL]}"),
        pod("runAsUser: 1000, fsGroup: 2000"),
        // A pod like OpenShift's.
        pod("runAsUser: 1000680000, runAsGroup: 0, fsGroup: 1000680000"),
    ];
    let script = "echo x > model && echo x >> src/a.py && mkdir out && echo x > out/file \\
        && echo '{\"loss\": 1}' >> $LONGSHORE_METRICS";
    for template in templates {
        machine.write("pod.yaml", &template);
        let words = ["run", "--template", "pod.yaml", "--output-files", "out"];
        let words = [&words[..], &["--", "sh", "-c", script]].concat();
        machine.longshore(&words).expect(0);
        let outputs = machine.longshore(&["outputs", "last", "--list"]).expect(0);
        assert!(
            outputs.out.contains("out/file"),
            "{template}: {}",
            outputs.out
        );
    }
}

/// Files that the agent writes, such as /etc/hosts, and files of volumes.
#[test]
fn a_container_of_another_user_reads_its_files_whatever_the_umask_is() {
    let machine = Machine::new();
    if fs::metadata(machine.code()).unwrap().uid() != 0 {
        return;
    }
    set_mode(machine.home(), 0o755);
    let program = env!("CARGO_BIN_EXE_longshore");
    for umask in ["077", "000"] {
        let mut up = machine.shell(&format!("umask {umask}; exec {program} up"));
        assert!(up.output().unwrap().status.success());
        let template = "spec: {volumes: [{name: ca, configMap: {name: kube-root-ca.crt}}], \
             containers: [{name: main, securityContext: {runAsUser: 1000}, \
             volumeMounts: [{name: ca, mountPath: /ca}]}]}";
        machine.write("pod.yaml", template);
        let script = "cat /etc/hosts /etc/resolv.conf /ca/ca.crt > /dev/null && \
             find /etc/hosts /etc/resolv.conf -perm /022";
        let words = [
            "run",
            "--no-code",
            "--template",
            "pod.yaml",
            "--",
            "sh",
            "-c",
            script,
        ];
        let answer = machine.longshore(&words).expect(0);
        assert!(!answer.out.contains("/etc/"), "{}", answer.out);
        machine.longshore(&["down"]).expect(0);
    }
}
