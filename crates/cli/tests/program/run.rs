//! `run`: from a folder to the command's exit code.

use crate::desk::Desk;

#[test]
fn the_exit_code_is_the_commands() {
    let desk = Desk::new();
    desk.longshore(&["up"]).expect(0);
    desk.run_script("exit 0").expect(0);
    let failed = desk.run_script("echo going; exit 7").expect(7);
    assert!(failed.out.contains("main/0 | going"), "{}", failed.out);
    assert!(
        failed.err.contains("main/0"),
        "names the task:\n{}",
        failed.err
    );
    assert!(failed.err.contains('7'), "{}", failed.err);
}

#[test]
fn the_first_line_names_the_cluster() {
    let desk = Desk::new();
    let answer = desk.run_script("true").expect(0);
    let first = answer.err.lines().next().unwrap();
    assert_eq!(first, "cluster embedded, local processes");
}

#[test]
fn a_run_without_a_cluster_brings_one_and_takes_it_away() {
    let desk = Desk::new();
    desk.run_script("true").expect(0);
    desk.longshore(&["status"]).expect(3);
    desk.run_script("exit 7").expect(7);
    desk.longshore(&["status"]).expect(3);
    desk.assert_no_process(desk.data().to_str().unwrap());
}

#[test]
fn the_folder_comes_along() {
    let desk = Desk::new();
    desk.write("say.sh", "cat words\n");
    desk.write("words", "from the folder\n");
    desk.write(".gitignore", "secret\n");
    desk.write("secret", "x");
    let answer = desk.longshore(&["run", "--", "sh", "say.sh"]).expect(0);
    assert!(
        answer.out.contains("main/0 | from the folder"),
        "{}",
        answer.out
    );
    assert!(answer.err.contains("3 files"), "{}", answer.err);
    desk.longshore(&["run", "--", "test", "!", "-e", "secret"])
        .expect(0);
}

#[test]
fn a_command_that_is_not_there() {
    let desk = Desk::new();
    let answer = desk
        .longshore(&["run", "--", "no-such-program-anywhere"])
        .expect(4);
    let all = format!("{}{}", answer.out, answer.err);
    assert!(all.contains("no-such-program-anywhere"), "{all}");
    assert!(all.contains("not found"), "{all}");
}

#[test]
fn variables_arrive() {
    let desk = Desk::new();
    let arguments = [
        "run",
        "--env",
        "A=b c",
        "-e",
        "N=1",
        "--",
        "sh",
        "-c",
        "echo \"<$A$N>\"",
    ];
    let answer = desk.longshore(&arguments).expect(0);
    assert!(answer.out.contains("| <b c1>"), "{}", answer.out);
}

#[test]
fn two_roles_see_each_other() {
    let desk = Desk::new();
    // They end at once: who is slower must find the others all the same.
    desk.write(
        "longshore.toml",
        "command = [\"sh\", \"-c\", \"echo $TF_CONFIG\"]\n\
         [roles.worker]\ncount = 1\n[roles.chief]\ncount = 1\n",
    );
    let answer = desk.longshore(&["run", "--role", "worker=2"]).expect(0);
    let configs: Vec<(&str, serde_json::Value)> = answer
        .out
        .lines()
        .map(|line| line.split_once(" | ").unwrap())
        .map(|(task, text)| (task.trim(), serde_json::from_str(text).unwrap()))
        .collect();
    let mut tasks: Vec<&str> = configs.iter().map(|(task, _)| *task).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, ["chief/0", "worker/0", "worker/1"]);
    for (task, config) in &configs {
        let (role, index) = task.split_once('/').unwrap();
        assert_eq!(config["task"]["type"], role);
        assert_eq!(config["task"]["index"].to_string(), index);
        assert_eq!(config["cluster"]["worker"].as_array().unwrap().len(), 2);
        assert_eq!(config["cluster"], configs[0].1["cluster"]);
    }
}

#[test]
fn a_dry_run_prints_what_would_be_sent_and_sends_nothing() {
    let desk = Desk::new();
    let answer = desk
        .longshore(&["run", "--name", "dry", "--dry-run", "--", "true"])
        .expect(0);
    assert!(
        answer.out.contains("kind: Job") && answer.out.contains("kind: Secret"),
        "{}",
        answer.out
    );
    assert!(!desk.data().join("cluster.log").exists());
}

#[test]
fn a_timeout_ends_the_run() {
    let desk = Desk::new();
    let answer = desk.longshore(&["run", "--timeout", "1s", "--", "sleep", "300"]);
    assert_ne!(answer.code, 0);
    assert!(
        answer.err.contains("deadline") || answer.err.contains("time"),
        "{}",
        answer.err
    );
}
