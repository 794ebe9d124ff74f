//! Runs real processes, with namespaces where the machine allows them, and
//! without.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, fs, path::Path};

use tokio::io::AsyncReadExt;

use super::{
    Command, Spawner, StartError,
    view::{self, Mount, Restrictions, Source, ThisMachine},
};

struct Fixture {
    spawner: Spawner,
    folder: tempfile::TempDir,
}

impl Fixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["probe", "base"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let spawner = Spawner::start(&folder.path().join("probe")).await.unwrap();
        Self { spawner, folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    async fn run(&self, command: &Command) -> Result<(i32, String, String), StartError> {
        let mut started = self.spawner.run(command).await?;
        let (mut output, mut errors) = (String::new(), String::new());
        let (out, err, code) = tokio::join!(
            started
                .ends
                .output
                .as_mut()
                .unwrap()
                .read_to_string(&mut output),
            started
                .ends
                .errors
                .as_mut()
                .unwrap()
                .read_to_string(&mut errors),
            started.process.wait(),
        );
        out.unwrap();
        err.unwrap();
        Ok((code, output, errors))
    }

    fn views(&self, mounts: &[Mount]) -> Vec<view::Operation> {
        let base = self.path().join("base");
        view::plan(mounts, Restrictions::default(), &ThisMachine, &base).unwrap()
    }
}

fn command(words: &[&str]) -> Command {
    Command {
        arguments: words.iter().map(Into::into).collect(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        working_folder: "/".into(),
        hostname: "box".to_owned(),
        ..Command::default()
    }
}

fn shell(script: &str) -> Command {
    command(&["sh", "-c", script])
}

/// Fixtures with namespaces, if this machine allows them, and without.
async fn both() -> [Fixture; 2] {
    let plain = Fixture::new().await;
    let plain = Fixture {
        spawner: plain.spawner.without_namespaces(),
        folder: plain.folder,
    };
    [Fixture::new().await, plain]
}

#[tokio::test]
async fn output_code_and_environment() {
    for fixture in both().await {
        let mut command = shell("echo out $A; echo err >&2; pwd; env; exit 7");
        command.environment.push(("A".into(), "1".into()));
        command.working_folder = "/usr".into();
        let (code, output, errors) = fixture.run(&command).await.unwrap();
        assert_eq!((code, errors.as_str()), (7, "err\n"));
        let mut lines = output.lines();
        assert_eq!((lines.next(), lines.next()), (Some("out 1"), Some("/usr")));
        let variables: BTreeMap<_, _> = lines.filter_map(|line| line.split_once('=')).collect();
        let names: Vec<_> = variables
            .keys()
            .filter(|name| !["PWD", "_", "SHLVL", "OLDPWD"].contains(name))
            .collect();
        assert_eq!(names, [&"A", &"PATH"]);
    }
}

#[tokio::test]
async fn descriptors_and_signals_are_reset() {
    for fixture in both().await {
        let script = "ls /proc/self/fd | tr '\\n' ' '; grep -E 'Sig(Blk|Ign)' /proc/self/status";
        let (code, output, _) = fixture.run(&shell(script)).await.unwrap();
        assert_eq!(code, 0);
        assert!(output.starts_with("0 1 2 3 "), "{output}");
        assert!(!output.starts_with("0 1 2 3 4"), "{output}");
        assert_eq!(output.matches("0000000000000000").count(), 2, "{output}");
    }
}

#[tokio::test]
async fn start_errors_match_container_runtimes() {
    for fixture in both().await {
        let file = fixture.path().join("plain");
        fs::write(&file, "no program").unwrap();
        let message = async |word: &str| {
            fixture
                .run(&command(&[word]))
                .await
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            message("nosuch").await,
            "exec: \"nosuch\": executable file not found in $PATH"
        );
        assert_eq!(
            message("/no/such").await,
            "exec: \"/no/such\": stat /no/such: no such file or directory"
        );
        assert!(
            message(file.to_str().unwrap())
                .await
                .ends_with(": permission denied")
        );
        let mut lost = shell("true");
        lost.working_folder = "/no/such/folder".into();
        let error = fixture.run(&lost).await.unwrap_err();
        assert!(matches!(error, StartError::WorkingFolder { .. }), "{error}");
    }
}

#[tokio::test]
async fn signals_reach_the_command_and_kill_reaches_all_processes() {
    for fixture in both().await {
        let trap = shell("trap 'echo got; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
        let mut started = fixture.spawner.run(&trap).await.unwrap();
        let mut ready = [0; 6];
        started
            .ends
            .output
            .as_mut()
            .unwrap()
            .read_exact(&mut ready)
            .await
            .unwrap();
        started.process.terminate();
        let mut rest = String::new();
        started
            .ends
            .output
            .as_mut()
            .unwrap()
            .read_to_string(&mut rest)
            .await
            .unwrap();
        assert_eq!((started.process.wait().await, rest.as_str()), (3, "got\n"));

        let started = fixture
            .spawner
            .run(&command(&["sleep", "1000"]))
            .await
            .unwrap();
        started.process.terminate();
        assert_eq!(started.process.wait().await, 143);

        let family = shell("sleep 1000 & echo ready; trap '' TERM; wait; sleep 1000");
        let mut started = fixture.spawner.run(&family).await.unwrap();
        started
            .ends
            .output
            .as_mut()
            .unwrap()
            .read_exact(&mut ready)
            .await
            .unwrap();
        started.process.terminate();
        started.process.kill();
        assert_eq!(started.process.wait().await, 137);
        // The pipe ends only after the last descendant has ended.
        let mut rest = String::new();
        started
            .ends
            .output
            .as_mut()
            .unwrap()
            .read_to_string(&mut rest)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn leftover_children_end_with_the_command() {
    for fixture in both().await {
        let (code, ..) = fixture.run(&shell("sleep 1000 & exit 5")).await.unwrap();
        assert_eq!(code, 5);
    }
}

/// Returns true if a process ends soon or has ended.
async fn ends(pid: &str) -> bool {
    let gone = async {
        while runs(pid) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let at_most = std::time::Duration::from_secs(60);
    tokio::time::timeout(at_most, gone).await.is_ok()
}

/// Processes that leave the session and whose parents have ended can only be identified by their
/// position below the init.
#[tokio::test]
async fn children_with_own_sessions_end_with_the_command() {
    let detach = "setsid sh -c 'setsid sleep 1000 & echo $!; setsid sh -c \
                  \"sleep 1000 & echo \\$!\" & wait $!' & wait; ";
    for fixture in both().await {
        let (code, output, _) = fixture
            .run(&shell(&format!("{detach} exit 5")))
            .await
            .unwrap();
        assert_eq!(code, 5);
        // Processes of a PID namespace have other ids here, and end with it.
        if !fixture.spawner.features().has_mounts() {
            let pids: Vec<_> = output.split_whitespace().collect();
            assert_eq!(pids.len(), 2, "{output}");
            // The processes are reaped before the init ends.
            for pid in pids {
                assert!(!runs(pid), "{pid} of {output}");
            }
        }

        let script = format!("{detach} echo ready; sleep 1000");
        let mut started = fixture.spawner.run(&shell(&script)).await.unwrap();
        let mut output = String::new();
        while !output.contains("ready") {
            let mut byte = [0];
            let pipe = started.ends.output.as_mut().unwrap();
            pipe.read_exact(&mut byte).await.unwrap();
            output.push(char::from(byte[0]));
        }
        started.process.kill();
        assert_eq!(started.process.wait().await, 137);
        if !fixture.spawner.features().has_mounts() {
            for pid in output.split_whitespace().take(2) {
                assert!(ends(pid).await, "{pid} of {output}");
            }
        }
    }
}

#[tokio::test]
async fn an_empty_command_waits_for_term() {
    for fixture in both().await {
        let nothing = Command {
            working_folder: "/".into(),
            ..Command::default()
        };
        let started = fixture.spawner.run(&nothing).await.unwrap();
        started.process.terminate();
        assert_eq!(started.process.wait().await, 0);
    }
}

#[tokio::test]
async fn dropping_the_spawner_kills_all_processes() {
    for fixture in both().await {
        let started = fixture
            .spawner
            .run(&command(&["sleep", "1000"]))
            .await
            .unwrap();
        let Fixture {
            spawner,
            folder: _folder,
        } = fixture;
        drop(spawner);
        assert_eq!(started.process.wait().await, 137);
    }
}

#[tokio::test]
async fn a_dropped_process_is_killed() {
    let fixture = Fixture::new().await;
    let started = fixture
        .spawner
        .run(&command(&["sleep", "1000"]))
        .await
        .unwrap();
    let id = started.process.id();
    drop(started);
    assert!(!Path::new(&format!("/proc/{id}")).exists());
}

/// Returns a fixture with namespaces, or `None` if the kernel does not allow them, so that the
/// tests below cannot run.
async fn with_mounts() -> Option<Fixture> {
    let fixture = Fixture::new().await;
    fixture.spawner.features().has_mounts().then_some(fixture)
}

#[tokio::test]
async fn a_container_has_its_own_namespaces() {
    let Some(fixture) = with_mounts().await else {
        return;
    };
    let mut command = shell("hostname; ps -e -o comm= | sort | tr '\\n' ' '");
    command.operations = fixture.views(&[]);
    let (_, output, errors) = fixture.run(&command).await.unwrap();
    let mut lines = output.lines();
    assert_eq!(lines.next(), Some("box"), "{errors}");
    assert!(lines.next().unwrap().contains("longshore-init"), "{output}");
}

/// Before it executes the init, a process uses the agent's memory. If the kernel killed it with its
/// cgroup, it would also kill the agent.
#[tokio::test]
async fn a_process_joins_its_cgroup_when_it_has_memory_of_its_own() {
    let Some(fixture) = with_mounts().await else {
        return;
    };
    let folder = fixture.path().join("group");
    fs::create_dir(&folder).unwrap();
    let mut command = shell("cat $FILE; ls /proc/self/fd | tr '\\n' ' '");
    command.cgroup = Some(crate::cgroups::Group::of_test(&folder));
    let list = folder.join("cgroup.procs");
    command
        .environment
        .push(("FILE".into(), list.clone().into()));
    let missing = fixture.path().join("missing");
    command.operations = vec![view::Operation::ReadOnly { at: missing }];
    let error = fixture.run(&command).await.unwrap_err();
    assert!(matches!(error, StartError::View { .. }), "{error}");
    assert_eq!(fs::read_to_string(&list).unwrap(), "");
    command.operations = Vec::new();
    let (_, output, errors) = fixture.run(&command).await.unwrap();
    assert!(output.starts_with("00 1 2 3 "), "{output} {errors}");
}

#[tokio::test]
async fn volumes_at_existing_and_missing_paths() {
    let Some(fixture) = with_mounts().await else {
        return;
    };
    let volume = fixture.path().join("volume");
    fs::create_dir(&volume).unwrap();
    fs::write(volume.join("file"), "text").unwrap();
    fs::write(fixture.path().join("hosts"), "own hosts\n").unwrap();
    let mount = |source: &Path, target: &str, read_only| Mount {
        source: Source::whole(source),
        target: target.into(),
        read_only,
    };
    let mut command = shell(
        "cat /etc/hosts /longshore-data/deep/file /etc/longshore-test/file /usr/longshore-f; \
         echo written > /longshore-data/deep/new; \
         touch /etc/longshore-test/new 2>/dev/null && echo WRITABLE; \
         test -x /bin/sh -a -d /usr/lib -a -e /etc/passwd -a -e /dev/null -a -d /proc/self && echo fine; \
         ls -a / | grep -c old",
    );
    command.operations = fixture.views(&[
        mount(&fixture.path().join("hosts"), "/etc/hosts", false),
        mount(&volume, "/longshore-data/deep", false),
        mount(&volume, "/etc/longshore-test", true),
        mount(&volume.join("file"), "/usr/longshore-f", true),
    ]);
    let (_, output, errors) = fixture.run(&command).await.unwrap();
    let leftover = usize::from(Path::new("/old_root").exists());
    assert_eq!(
        output,
        format!("own hosts\ntexttexttextfine\n{leftover}\n"),
        "{errors}"
    );
    assert_eq!(fs::read_to_string(volume.join("new")).unwrap(), "written\n");
    for path in ["/longshore-data", "/etc/longshore-test", "/usr/longshore-f"] {
        assert!(!Path::new(path).exists(), "{path}");
    }
}

/// Not a test: runs as the agent that the next test kills.
#[tokio::test]
#[ignore = "run by a_killed_agent_leaves_no_process"]
async fn agent_to_be_killed() {
    let Ok(file) = std::env::var("LONGSHORE_TEST_PIDS") else {
        return;
    };
    let stages = both().await;
    let mut running = Vec::new();
    for (number, fixture) in stages.iter().enumerate() {
        let mut started = fixture
            .spawner
            .run(&shell(
                "sleep 1000 & setsid sh -c 'setsid sleep 1000 & echo $!'; echo ready; wait",
            ))
            .await
            .unwrap();
        let mut output = String::new();
        while !output.contains("ready") {
            let mut byte = [0];
            let pipe = started.ends.output.as_mut().unwrap();
            pipe.read_exact(&mut byte).await.unwrap();
            output.push(char::from(byte[0]));
        }
        let text = format!("{} {output}", started.process.id());
        fs::write(format!("{file}.{number}"), text).unwrap();
        running.push(started);
    }
    fs::write(&file, "").unwrap();
    std::future::pending::<()>().await;
}

/// Returns `pid` and its descendants.
fn family(pid: &str) -> Vec<String> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let mut all = vec![pid.to_owned()];
    for child in children.unwrap_or_default().split_whitespace() {
        all.extend(family(child));
    }
    all
}

/// Returns true if the process runs and is not an unreaped zombie.
fn runs(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

#[test]
fn a_killed_agent_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let mut agent = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::tests::agent_to_be_killed", "--ignored"])
        .env("LONGSHORE_TEST_PIDS", &file)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pause = || std::thread::sleep(std::time::Duration::from_millis(5));
    while !file.exists() {
        assert!(
            agent.try_wait().unwrap().is_none(),
            "the agent ended by itself"
        );
        pause();
    }
    let pids = ["0", "1"].map(|number| fs::read_to_string(file.with_extension(number)).unwrap());
    let [first, second] = pids.each_ref().map(|text| text.split(' ').next().unwrap());
    let mut families: Vec<String> = [first, second].into_iter().flat_map(family).collect();
    assert!(
        families.len() >= 6,
        "init, shell and sleep, twice: {families:?}"
    );
    // The process that left its parents; known by this id only if there is no
    // PID namespace.
    families.extend(pids[1].split_whitespace().nth(1).map(str::to_owned));
    agent.kill().unwrap();
    agent.wait().unwrap();
    // The processes end soon; otherwise this test does not end.
    while families.iter().any(|pid| runs(pid)) {
        pause();
    }
}

/// A command in an existing container runs inside its namespaces.
#[tokio::test]
async fn exec_in_a_running_container() {
    let fixture = Fixture::new().await;
    fs::write(fixture.path().join("data"), "shown").unwrap();
    let at = fixture.path().join("missing/data");
    let mounts = [Mount {
        source: Source::whole(fixture.path().join("data")),
        target: at.clone(),
        read_only: false,
    }];
    let host = Command {
        operations: fixture.views(&mounts),
        ..command(&["sleep", "1000"])
    };
    let host = fixture.spawner.run(&host).await.unwrap();
    let script = format!("hostname; cat {}; exit 5", at.display());
    let inside = command(&["sh", "-c", &script]);
    let mut started = fixture
        .spawner
        .run_in(&host.process, &inside)
        .await
        .unwrap();
    let mut text = String::new();
    let output = started.ends.output.as_mut().unwrap();
    output.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "box\nshown");
    assert_eq!(started.process.wait().await, 5);
    // The command ends with its container. A container that has ended cannot be entered.
    let sleeping = command(&["sleep", "1000"]);
    let sleeping = fixture.spawner.run_in(&host.process, &sleeping).await;
    host.process.kill();
    host.process.wait().await;
    assert_eq!(sleeping.unwrap().process.wait().await, 137);
    let late = fixture.spawner.run_in(&host.process, &inside).await;
    assert!(matches!(late, Err(StartError::Entered { .. })));
}

#[tokio::test]
async fn a_command_with_a_terminal() {
    let fixture = Fixture::new().await;
    let talk = Command {
        wiring: super::Wiring::Terminal,
        ..command(&[
            "sh",
            "-c",
            "read word; stty size; echo got $word; kill -INT $$",
        ])
    };
    let mut started = fixture.spawner.run(&talk).await.unwrap();
    started.ends.terminal.unwrap().resize(90, 20);
    use tokio::io::AsyncWriteExt as _;
    let input = started.ends.input.as_mut().unwrap();
    input.write_all(b"one\n").await.unwrap();
    let mut text = String::new();
    let output = started.ends.output.as_mut().unwrap();
    output.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "one\r\n20 90\r\ngot one\r\n");
    assert_eq!(started.process.wait().await, 130);
}

/// Without namespaces, the command runs independently of the container, and its leftover processes
/// end with the command.
#[tokio::test]
async fn exec_without_namespaces() {
    let [_, fixture] = both().await;
    let host = fixture
        .spawner
        .run(&command(&["sleep", "1000"]))
        .await
        .unwrap();
    let inside = command(&["sh", "-c", "sleep 1000 & echo $!; exit 4"]);
    let mut started = fixture
        .spawner
        .run_in(&host.process, &inside)
        .await
        .unwrap();
    let mut text = String::new();
    let output = started.ends.output.as_mut().unwrap();
    output.read_to_string(&mut text).await.unwrap();
    assert_eq!(started.process.wait().await, 4);
    assert!(!Path::new("/proc").join(text.trim()).exists(), "{text}");
    let sleeping = command(&["sleep", "1000"]);
    let sleeping = fixture
        .spawner
        .run_in(&host.process, &sleeping)
        .await
        .unwrap();
    sleeping.process.kill();
    assert_eq!(sleeping.process.wait().await, 137);
}
