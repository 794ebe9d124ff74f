//! Several users share a namespace: each command selects the runs of its user, and asks before it acts
//! on a run of another user.

use crate::pseudoterminal::Terminal;
use crate::team::{NAMESPACE, Team, full_name};

/// Commands that act on runs. RUN is a run, SCHEDULE a schedule, POD the run's pod.
const ACTING: &[&str] = &[
    "cancel RUN",
    "resume SCHEDULE",
    "rm --force RUN",
    "rm --force OWN RUN",
    "retry RUN",
    "tag RUN best",
    "tag RUN best-",
    "note RUN text",
    "note RUN --remove",
    "exec RUN -- true",
    "exec RUN/main/0 -- true",
    "exec pod/POD -- true",
    "exec POD -- true",
    "shell RUN",
    "shell RUN/main/0",
    "ssh-proxy RUN.longshore",
    "attach RUN --on-interrupt cancel",
    "attach RUN/main/0 -i",
    "cp file RUN:/tmp",
    "cp file RUN/main/0:/tmp",
    "dev --run RUN",
];

/// Commands that read runs, including runs of other users that are named in full.
const READING: &[&str] = &[
    "logs RUN --tail 1",
    "outputs RUN --list",
    "sweep RUN",
    "why RUN",
    "top RUN --once",
    "metrics RUN",
    "diff RUN RUN",
    "tag RUN",
    "note RUN",
    "resolve RUN",
];

/// Commands that do not select runs by a word, or only connect to a run.
const WITHOUT_RUNS: &[&str] = &[
    "run",
    "runs",
    "ssh",
    "forward",
    "port-forward",
    "data",
    "ui",
    "get",
    "describe",
    "watch",
    "create",
    "apply",
    "label",
    "wait",
    "delete",
    "up",
    "down",
    "status",
    "envtest",
    "role",
    "zenml",
    "controllers",
    "record",
    "replay",
    "completions",
];

/// Two users with an active run each, and a paused schedule of the second.
struct Shared {
    team: Team,
    own: String,
    others: String,
    schedule: String,
    pod: String,
}

impl Shared {
    fn new() -> Self {
        let team = Team::new(&["ann", "bob"]);
        team.machine.write("file", "text\n");
        let own = team.start("ann", "anns", &[], "echo of ann; sleep 1000");
        let schedule = team.start("bob", "bobs-nightly", &["--cron", "0 3 1 1 *"], "true");
        team.longshore("bob", &["cancel", &schedule]).expect(0);
        let others = team.start("bob", "bobs", &[], "echo of bob; sleep 1000");
        team.until(&own, "running");
        team.until(&others, "running");
        let pods = ["get", "pods", "--namespace", NAMESPACE, "--output", "name"];
        let pods = team.machine.longshore(&pods).expect(0).out;
        let names = pods.lines().filter_map(|line| line.split_once('/'));
        let pod = names
            .map(|(_, name)| name)
            .find(|name| name.starts_with(&others));
        let pod = pod.unwrap().to_owned();
        Self {
            team,
            own,
            others,
            schedule,
            pod,
        }
    }

    /// The words of a command, about a run.
    fn words(&self, command: &str, run: &str, schedule: &str) -> Vec<String> {
        let replaced = |word: &str| {
            word.replace("RUN", run)
                .replace("SCHEDULE", schedule)
                .replace("POD", &self.pod)
                .replace("OWN", &self.own)
        };
        command.split(' ').map(replaced).collect()
    }

    fn ann(&self, words: &[String]) -> crate::machine::Answer {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.team.longshore("ann", &words)
    }
}

#[test]
fn each_command_is_known_to_this_test() {
    let machine = crate::machine::Machine::new();
    let help = machine.longshore(&["--help"]).expect(0).out;
    let names = crate::help::commands(&help);
    assert!(names.len() > 30, "{names:?}");
    let tested = ACTING.iter().chain(READING);
    let tested: Vec<&str> = tested
        .filter_map(|command| command.split(' ').next())
        .collect();
    for name in names {
        let is_known = tested.contains(&name) || WITHOUT_RUNS.contains(&name);
        assert!(is_known, "{name}: does it act on runs, or read them?");
    }
}

#[test]
fn commands_act_on_runs_of_another_user_only_on_request() {
    let shared = Shared::new();
    let (own, others) = (&shared.own, &shared.others);
    for command in ACTING {
        let named = shared.ann(&shared.words(command, others, &shared.schedule));
        assert_eq!(named.code, 2, "{command}: {}{}", named.out, named.err);
        for part in [&full_name("bob"), &full_name("ann"), "--all-users"] {
            assert!(named.err.contains(part), "{command}: {}", named.err);
        }
        if command.contains("POD") {
            continue;
        }
        let prefix = shared.ann(&shared.words(command, "bobs", "bobs-n"));
        assert_eq!(prefix.code, 2, "{command}: {}{}", prefix.out, prefix.err);
        assert!(prefix.err.contains("is yours"), "{command}: {}", prefix.err);
    }
    for command in READING {
        let named = shared.ann(&shared.words(command, others, ""));
        assert!(
            !named.err.contains("belongs to"),
            "{command}: {}",
            named.err
        );
        assert!(!named.err.contains("no run"), "{command}: {}", named.err);
        let prefix = shared.ann(&shared.words(command, "bobs", ""));
        assert_eq!(prefix.code, 2, "{command}: {}{}", prefix.out, prefix.err);
        assert!(prefix.err.contains("is yours"), "{command}: {}", prefix.err);
    }
    // The runs have not changed; `last` selects the user's own run.
    let all = ["runs", "--output", "json"];
    let all = shared.team.longshore("bob", &all).expect(0).json();
    for run in all.as_array().unwrap() {
        assert_eq!(
            (&run["tags"], &run["note"]),
            (&serde_json::json!({}), &serde_json::Value::Null)
        );
    }
    assert_eq!(shared.team.state(others), "running");
    assert_eq!(shared.team.state(&shared.schedule), "paused");
    assert_eq!(
        shared
            .team
            .longshore("ann", &["logs", "last"])
            .expect(0)
            .out,
        "main/0 | of ann\n"
    );
    assert_eq!(
        shared
            .team
            .longshore("bob", &["logs", "last"])
            .expect(0)
            .out,
        "main/0 | of bob\n"
    );
    let cancelled = shared.team.longshore("ann", &["cancel", "last"]).expect(0);
    assert!(cancelled.out.contains(own.as_str()), "{}", cancelled.out);
    assert_eq!(shared.team.state(others), "running");
    shared
        .team
        .longshore("ann", &["tag", others, "best", "--all-users"])
        .expect(0);
    shared
        .team
        .longshore("ann", &["cancel", others, "--all-users"])
        .expect(0);
    assert_eq!(shared.team.state(others), "cancelled");
    shared
        .team
        .longshore("ann", &["resume", &shared.schedule, "--all-users"])
        .expect(0);
    assert_eq!(shared.team.state(&shared.schedule), "scheduled");
}

#[test]
fn lists_show_owners_and_patterns_select_own_runs() {
    let shared = Shared::new();
    let (team, own, others) = (&shared.team, &shared.own, &shared.others);
    let listed = team.longshore("ann", &["runs"]).expect(0).out;
    for text in [
        "OWNER",
        own.as_str(),
        others.as_str(),
        &full_name("ann"),
        &full_name("bob"),
    ] {
        assert!(listed.contains(text), "{text}: {listed}");
    }
    let mine = team.longshore("ann", &["runs", "--mine"]).expect(0).out;
    assert!(
        mine.contains(own.as_str()) && !mine.contains("OWNER"),
        "{mine}"
    );
    assert!(!mine.contains(others.as_str()), "{mine}");
    let json = ["runs", "--mine", "--output", "json"];
    let json = team.longshore("bob", &json).expect(0).json();
    assert_eq!(json.as_array().unwrap().len(), 2);
    for run in json.as_array().unwrap() {
        assert_eq!(
            (&run["owner"], &run["ownerIsLocal"]),
            (&full_name("bob").into(), &false.into())
        );
    }
    // The runs that a schedule creates, and pods, have the owner, too.
    for kind in ["cronjobs", "pods"] {
        let found = ["get", kind, "--namespace", NAMESPACE, "--output", "json"];
        let found = team.machine.longshore(&found).expect(0).json();
        for item in found["items"].as_array().unwrap() {
            let template = &item["spec"]["jobTemplate"]["metadata"];
            let metadata = if kind == "pods" {
                &item["metadata"]
            } else {
                template
            };
            assert!(
                metadata["annotations"]["longshore.dev/owner"].is_string(),
                "{item}"
            );
            assert!(
                metadata["labels"]["longshore.dev/owner"].is_string(),
                "{item}"
            );
        }
    }

    let cancelled = team.longshore("ann", &["cancel", "*s-*"]).expect(0);
    assert!(cancelled.out.contains(own.as_str()), "{}", cancelled.out);
    assert!(
        cancelled.err.contains("2 runs of other users left out"),
        "{}",
        cancelled.err
    );
    assert_eq!(
        (team.state(own), team.state(others)),
        ("cancelled".into(), "running".into())
    );
    team.longshore("bob", &["cancel", others]).expect(0);
    let removed = team.longshore("ann", &["rm", "--finished"]).expect(0);
    assert!(
        removed.err.contains("1 run of other users left out"),
        "{}",
        removed.err
    );
    assert_eq!(
        (team.state(own), team.state(others)),
        ("removed".into(), "cancelled".into())
    );
    let none = team.longshore("ann", &["cancel", "last"]).expect(2);
    assert!(
        none.err.contains("no run in namespace \"team\" is yours"),
        "{}",
        none.err
    );
    team.longshore("ann", &["rm", "--finished", "--all-users"])
        .expect(0);
    assert_eq!(team.state(others), "removed");
}

#[test]
fn on_a_terminal_commands_ask_before_they_act_on_runs_of_others() {
    let shared = Shared::new();
    let ask = |answer: &str| {
        let command = shared.team.command("ann", &["cancel", &shared.others]);
        let mut terminal = Terminal::start(&command);
        terminal.wait_for("[y/N]");
        assert!(
            terminal.text().contains(&full_name("bob")),
            "{}",
            terminal.text()
        );
        terminal.write(answer);
        terminal.end()
    };
    let (status, text) = ask("\n");
    assert_eq!(status.code(), Some(130), "{text}");
    assert_eq!(shared.team.state(&shared.others), "running");
    let (status, text) = ask("y\n");
    assert!(status.success(), "{text}");
    assert_eq!(shared.team.state(&shared.others), "cancelled");
}

#[test]
fn a_retry_belongs_to_the_user_who_retries() {
    let team = Team::new(&["ann", "bob"]);
    let sweep = team.start("bob", "bobs", &["--sweep", "x=1,2"], "exit {x}");
    team.until(&sweep, "failed");
    let retry = ["retry", &sweep, "--detach", "--all-users"];
    let retry = team.longshore("ann", &retry).expect(0).out;
    let found = ["runs", "--mine", "--output", "json"];
    let found = team.longshore("ann", &found).expect(0).json();
    assert_eq!(found[0]["name"], retry.trim());
    assert_eq!(found.as_array().unwrap().len(), 1);
}

#[test]
fn several_names_and_patterns_are_one_command() {
    let machine = crate::machine::Machine::new();
    machine.longshore(&["up"]).expect(0);
    let run = |name: &str| {
        let words = ["run", "--name", name, "-d", "--", "sleep", "1000"];
        machine.longshore(&words).expect(0).out.trim().to_owned()
    };
    let [a, b, c] = ["a-one", "a-two", "b-one"].map(run);
    let state = |name: &str| {
        let found = machine.longshore(&["runs", "--name", name, "--output", "json"]);
        found.expect(0).json()[0]["state"]
            .as_str()
            .unwrap_or("removed")
            .to_owned()
    };
    // An invalid name: the command does nothing.
    let wrong = machine.longshore(&["cancel", &a, "unknown"]).expect(1);
    assert!(wrong.err.contains("\"unknown\""), "{}", wrong.err);
    assert!(["pending", "running"].contains(&state(&a).as_str()));
    let tagged = machine.longshore(&["tag", "a-*", "best"]).expect(0);
    assert_eq!(tagged.out, format!("{a}: best\n{b}: best\n"));
    machine
        .longshore(&["note", &format!("{a},{c}"), "text"])
        .expect(0);
    let note = |name: &str| machine.longshore(&["note", name]).expect(0).out;
    assert_eq!([note(&a), note(&b), note(&c)], ["text\n", "", "text\n"]);
    let ended = machine.longshore(&["cancel", "a-*", &c]).expect(0);
    assert_eq!(
        ended.out.matches("was cancelled").count(),
        3,
        "{}",
        ended.out
    );
    assert!(!ended.err.contains("users"), "{}", ended.err);
    let listed = machine.longshore(&["runs"]).expect(0).out;
    assert!(!listed.contains("OWNER"), "{listed}");
    let again = machine.longshore(&["cancel", "a-*"]).expect(0);
    assert!(
        again.err.contains("No run that matches is active"),
        "{}",
        again.err
    );
    machine.longshore(&["rm", &a, "b-*"]).expect(0);
    assert_eq!(
        [state(&a), state(&b), state(&c)],
        ["removed", "cancelled", "removed"]
    );
}
