//! The documented Role is sufficient for the commands that manage runs, and preflight knows each of
//! its permissions without which a run fails.

use serde_json::{Value, json};

use crate::machine::eventually;
use crate::team::{NAMESPACE, Team, full_name};

/// Optional queries, whose results are not used if they are forbidden.
const OPTIONAL: &[&str] = &[
    "get namespaces",
    // The Secret is listed instead.
    "get secrets",
    "list nodes",
    "list resourcequotas",
    "list limitranges",
    "list metrics.k8s.io/pods",
    "get metrics.k8s.io/pods",
    "list configmaps",
    "get configmaps",
    "list workloads",
    "create persistentvolumeclaims",
    // The dry run of a pod, whose template a policy may refuse.
    "create pods",
];

/// The rules of the documented Role.
fn documented(team: &Team) -> Value {
    let text = include_str!("../../../../runs/launcher/src/preflight/role.yaml");
    team.machine.write("role.yaml", text);
    let apply = ["apply", "--namespace", NAMESPACE, "--filename", "role.yaml"];
    team.machine.longshore(&apply).expect(0);
    let get = [
        "get",
        "role",
        "longshore",
        "--namespace",
        NAMESPACE,
        "--output",
        "json",
    ];
    let role = team.machine.longshore(&get).expect(0).json();
    json!({"metadata": {}, "rules": role["rules"]})
}

fn create(team: &Team, name: &str, mut role: Value, user: &str) {
    role["metadata"]["name"] = json!(name);
    let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles");
    team.post(&path, &role);
    let of = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
    team.bind(name, &of, &[user]);
}

/// The forbidden requests of a user in an audit log, as `VERB GROUP/RESOURCE`, without duplicates.
fn forbidden(log: &str, user: &str) -> Vec<String> {
    let events = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let own = events.filter(|event| event["user"]["username"] == full_name(user).as_str());
    let refused = own.filter(|event| event["responseStatus"]["code"] == 403);
    let request = |event: Value| {
        let object = &event["objectRef"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let group = match text(&object["apiGroup"]) {
            group if group.is_empty() => group,
            group => format!("{group}/"),
        };
        let sub = match text(&object["subresource"]) {
            sub if sub.is_empty() => sub,
            sub => format!("/{sub}"),
        };
        format!(
            "{} {group}{}{sub}",
            text(&event["verb"]),
            text(&object["resource"])
        )
    };
    let mut requests: Vec<String> = refused.map(request).collect();
    requests.sort();
    requests.dedup();
    requests
}

#[test]
fn the_documented_role_is_enough_for_the_commands() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("audit.log");
    let team = Team::without_rights(&["ann"], &["--audit-log", log.to_str().unwrap()]);
    create(&team, "documented", documented(&team), "ann");
    team.machine.write("file", "text\n");
    let did = |words: &[&str], code: i32| team.longshore("ann", words).expect(code).out;
    let image = ["--launcher-image", "longshore:1"];
    for _ in 0..2 {
        did(
            &[&["run"], &image[..], &["--name", "same", "--", "true"]].concat(),
            0,
        );
    }
    let input = [&["run", "-i"], &image[..], &["--", "cat"]].concat();
    did(&input, 0);
    let script = "echo here; touch made; sleep 1000";
    let run = team.start("ann", "long", &["--role", "main=2"], script);
    team.until(&run, "running");
    for words in [
        &["runs"][..],
        &["runs", "-l", "a=b"],
        &["why", &run],
        &["logs", &run, "--tail", "1"],
        &["top", "--once", &run],
        &["top", "--once"],
        &["metrics", &run],
        &["diff", &run, "same"],
        &["tag", &run, "best"],
        &["note", &run, "text"],
        &["resolve", &run],
        &["outputs", &run, "--list"],
        &["exec", &format!("{run}/main/0"), "--", "true"],
        &["cp", "file", &format!("{run}/main/0:/tmp")],
        &["cancel", &run],
        &["rm", &run],
    ] {
        let answer = team.longshore("ann", words);
        // Without a metrics server, other measurements are shown.
        let lines = answer
            .err
            .lines()
            .filter(|line| !line.contains("metrics.k8s.io"));
        let is_denied = lines.into_iter().any(|line| line.contains("forbidden"));
        assert!(!is_denied, "{words:?}: {}", answer.err);
    }
    let sweep = team.start("ann", "sweep", &["--sweep", "x=1,2"], "exit {x}");
    team.until(&sweep, "failed");
    did(&["sweep", &sweep], 0);
    let retry = did(&["retry", &sweep, "--detach"], 0);
    team.until(retry.trim(), "failed");
    let schedule = team.start("ann", "cron", &["--cron", "0 3 1 1 *"], "true");
    did(&["cancel", &schedule], 0);
    did(&["resume", &schedule], 0);
    did(&["rm", &schedule], 0);
    did(&["rm", "--finished", "--force"], 0);

    let read = || std::fs::read_to_string(&log).unwrap();
    // The log is written in the background.
    eventually("the log has the last request", || {
        read().contains("\"verb\":\"delete\"")
    });
    let refused = forbidden(&read(), "ann");
    let needed: Vec<&String> = refused
        .iter()
        .filter(|request| !OPTIONAL.contains(&request.as_str()))
        .collect();
    assert!(needed.is_empty(), "the Role lacks {needed:?}");
    // The check above is valid only if the log has entries.
    assert!(!read().is_empty());
}

#[test]
fn preflight_knows_each_permission_without_which_a_run_fails() {
    let role = {
        let team = Team::without_rights(&[], &[]);
        documented(&team)
    };
    let mut without = Vec::new();
    for (n, rule) in role["rules"].as_array().unwrap().iter().enumerate() {
        for (m, verb) in rule["verbs"].as_array().unwrap().iter().enumerate() {
            let mut less = role.clone();
            match rule["verbs"].as_array().unwrap().len() {
                1 => drop(less["rules"].as_array_mut().unwrap().remove(n)),
                _ => drop(less["rules"][n]["verbs"].as_array_mut().unwrap().remove(m)),
            }
            let resources = rule["resources"][0].as_str().unwrap().to_owned();
            without.push((less, verb.as_str().unwrap().to_owned(), resources));
        }
    }
    let users: Vec<String> = (0..without.len()).map(|n| format!("user-{n}")).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let team = Team::without_rights(&users, &[]);
    let mut refused = 0;
    for (user, (role, verb, resource)) in users.iter().zip(without) {
        create(&team, user, role, user);
        // The second run finds the code of the first.
        for _ in 0..2 {
            let words = [
                "run",
                "--launcher-image",
                "longshore:1",
                "--name",
                user,
                "--",
                "true",
            ];
            let answer = team.longshore(user, &words);
            if answer.code == 0 {
                continue;
            }
            refused += 1;
            let (code, err) = (answer.code, &answer.err);
            let is_named = err.contains("you are not allowed to")
                && err.contains(&verb)
                && err.contains(&resource);
            assert!(
                code == 4 && is_named,
                "without {verb} {resource}: {code}: {err}"
            );
            assert!(err.contains("kind: RoleBinding"), "{err}");
            assert!(err.contains(&format!("name: {user}")), "{err}");
            let hint = err.lines().find(|line| line.starts_with("hint")).unwrap();
            assert!(!hint.contains("kubeconfig"), "{hint}");
        }
    }
    assert!(refused > 5, "{refused}");
}

#[test]
fn the_printed_manifest_grants_the_permissions() {
    let team = Team::without_rights(&["ann"], &[]);
    let run = [
        "run",
        "--launcher-image",
        "longshore:1",
        "--",
        "echo",
        "granted",
    ];
    team.longshore("ann", &run).expect(4);
    let manifest = team.longshore("ann", &["role"]).expect(0).out;
    team.machine.write("role.yaml", &manifest);
    team.machine
        .longshore(&["apply", "--namespace", NAMESPACE, "--filename", "role.yaml"])
        .expect(0);
    let answer = team.longshore("ann", &run).expect(0);
    assert!(answer.out.contains("granted"), "{}", answer.out);
}
