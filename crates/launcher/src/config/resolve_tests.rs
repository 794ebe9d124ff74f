//! Tests of the merge of file and flags.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use proptest::prelude::*;

use super::*;

fn file(text: &str) -> Settings {
    Settings::parse(text, Path::new("longshore.toml")).unwrap()
}

fn flags(roles: &[&str], command: &[&str]) -> Flags {
    let texts = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    Flags {
        roles: texts(roles),
        command: texts(command),
        ..Flags::default()
    }
}

fn error(settings: &Settings, flags: &Flags) -> String {
    resolve(settings, flags, "code").unwrap_err().to_string()
}

#[test]
fn a_bare_command_is_one_task() {
    let spec = resolve(&Settings::default(), &flags(&[], &["true"]), "code").unwrap();
    assert_eq!(spec.name, "code");
    assert_eq!(spec.tasks(), 1);
    assert_eq!(spec.roles[0].name, "main");
    assert_eq!(spec.roles[0].command, ["true"]);
    assert!(spec.code);
}

#[test]
fn flags_win_over_roles_and_roles_over_the_run() {
    let settings = file(
        "command = 'general'\nimage = 'a'\n[env]\nA = 1\nB = 1\nC = 1\n\
         [roles.worker]\ncount = 2\nimage = 'b'\n[roles.worker.env]\nB = 2\nC = 2\n\
         [roles.ps]\ncommand = ['serve']\n[roles.chief]",
    );
    let mut flags = flags(&["worker=4"], &["train"]);
    flags.env = vec!["C=3=x".into()];
    let spec = resolve(&settings, &flags, "code").unwrap();
    let names: Vec<_> = spec
        .roles
        .iter()
        .map(|role| (role.name.as_str(), role.count))
        .collect();
    assert_eq!(names, [("chief", 1), ("ps", 1), ("worker", 4)]);
    let worker = &spec.roles[2];
    assert_eq!(worker.image, "b");
    assert_eq!(worker.command, ["train"]);
    let env: Vec<_> = worker.env.values().map(String::as_str).collect();
    assert_eq!(env, ["1", "2", "3=x"]);
    let ps = &spec.roles[1];
    assert!(ps.service);
    assert_eq!(
        ps.command,
        ["serve"],
        "a service keeps the command of its own"
    );
    assert_eq!(spec.roles[0].image, "a");
}

#[test]
fn an_unknown_role_names_the_known_ones() {
    let settings = file("command = 'x'\n[roles.worker]\n[roles.ps]");
    assert_eq!(
        error(&settings, &flags(&["wroker=2"], &[])),
        "unknown role \"wroker\" in `--role wroker=2`; roles known: ps, worker"
    );
    let spec = resolve(&file("command = 'x'"), &flags(&["trainer=3"], &[]), "code").unwrap();
    assert_eq!((spec.roles[0].name.as_str(), spec.tasks()), ("trainer", 3));
}

#[test]
fn wrong_values_are_named_with_their_rule() {
    let plain = Settings::default();
    assert!(
        error(&plain, &flags(&["worker"], &["x"])).contains("--role \"worker\": write NAME=COUNT")
    );
    assert!(error(&plain, &flags(&["worker=-1"], &["x"])).contains("NAME=COUNT"));
    assert!(error(&plain, &flags(&["Worker=1"], &["x"])).contains("invalid role \"Worker\""));
    assert!(error(&plain, &flags(&["worker=0"], &["x"])).contains("at least one role"));
    assert!(error(&plain, &flags(&["ps=1"], &["x"])).contains("ends by itself"));
    assert!(error(&plain, &flags(&[], &[])).contains("no command for role \"main\""));
    let store = error(&file("store = 'https://me:hush@x/'"), &flags(&[], &["x"]));
    assert!(
        store.contains("invalid store \"https://…@x/\": it has a scheme that is not known"),
        "{store}"
    );
    assert!(
        !store.contains("hush") && store.contains("gs://bucket/prefix"),
        "{store}"
    );
    assert!(
        error(&file("image_pull_policy = 'Often'"), &flags(&[], &["x"]))
            .contains("Always, Never, IfNotPresent")
    );
    assert!(
        error(&file("timeout = '2 weeks'"), &flags(&[], &["x"])).contains("timeout \"2 weeks\"")
    );
    assert!(
        error(&file("[resources]\ncpu = 'many'"), &flags(&[], &["x"]))
            .contains("resource cpu \"many\"")
    );
    assert!(
        error(&file("[resources]\ncpus = 1"), &flags(&[], &["x"])).contains("resource \"cpus\"")
    );
    assert!(error(&file("[labels]\nteam = 'a b'"), &flags(&[], &["x"])).contains("label team"));
    assert!(error(&file("port = 65535"), &flags(&["worker=2"], &["x"])).contains("port"));
    assert!(error(&file("namespace = 'A'"), &flags(&[], &["x"])).contains("namespace \"A\""));
    let env = Flags {
        env: vec!["A".into()],
        ..flags(&[], &["x"])
    };
    assert!(error(&plain, &env).contains("--env \"A\""));
    let env = Flags {
        env: vec!["1A=2".into()],
        ..flags(&[], &["x"])
    };
    assert!(error(&plain, &env).contains("variable name"));
}

#[test]
fn times_are_read() {
    let seconds = |text| duration("t", text).unwrap().as_secs();
    assert_eq!(seconds("90"), 90);
    assert_eq!(seconds("1h30m"), 5_400);
    assert_eq!(seconds("7d"), 604_800);
    for wrong in [
        "",
        "0s",
        "h",
        "1x",
        "99999999999999999999s",
        "9999999999d",
        "-1s",
    ] {
        assert!(duration("t", wrong).is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn no_flag_panics(role in "\\PC{0,20}", env in "\\PC{0,20}", time in "\\PC{0,12}") {
        let flags = Flags {
            roles: vec![role],
            env: vec![env],
            timeout: Some(time),
            command: vec!["x".into()],
            ..Flags::default()
        };
        let _ = resolve(&Settings::default(), &flags, "code");
    }
}

#[test]
fn bad_values_are_told_with_their_place() {
    let refused = |text: &str| error(&file(&format!("command = 'a'\n{text}")), &Flags::default());
    for (text, told) in [
        (
            "[labels]\n'bad key' = 'x'",
            "longshore.toml:3:1: invalid label key \"bad key\": ",
        ),
        (
            "[resources]\ngpu = 'lots'",
            "longshore.toml:3:7: invalid resource gpu \"lots\": use a quantity",
        ),
        (
            "[roles.worker]\ncount = 20000",
            "longshore.toml:3:9: invalid count of role worker \"20000\": ",
        ),
        (
            "namespace = 'Team A'",
            "longshore.toml:2:13: invalid namespace \"Team A\": ",
        ),
        (
            "tolerations = [{ key = 'a', effect = 'Never' }]",
            "longshore.toml:2:38: invalid toleration effect \"Never\": use one of NoSchedule, ",
        ),
        (
            "volumes = [{ path = 'data', claim = 'a' }]",
            "longshore.toml:2:21: invalid volumes path \"data\": give the absolute path",
        ),
        (
            "volumes = [{ path = '/longshore/work', empty = '' }]",
            "longshore.toml:2:21: invalid volumes path \"/longshore/work\": the run's own files",
        ),
        (
            "volumes = [{ path = '/data', claim = 'a', secret = 'b' }]",
            "longshore.toml:2:21: invalid volumes path \"/data\": give it one of claim, ",
        ),
        (
            "shared_memory = 'much'",
            "longshore.toml:2:17: invalid shared_memory \"much\": use a quantity",
        ),
        (
            "env = { A = { secret = 'a', field = 'b' } }",
            "longshore.toml:2:9: invalid env \"A\": give it one of secret, ",
        ),
        (
            "[[env_from]]\nprefix = 'A'",
            "invalid env_from \"\": give each one of secret, ",
        ),
        (
            "[template]\nkind = 'Pod'",
            "longshore.toml:3:1: invalid template \"kind\": a pod's template has",
        ),
        ("template = 'none.yaml'", "cannot read none.yaml: "),
        (
            "queue = 'Team A'",
            "longshore.toml:2:9: invalid queue \"Team A\": ",
        ),
    ] {
        let refused = refused(text);
        assert!(refused.starts_with(told), "{text}: {refused}");
    }
    let flag = Flags {
        namespace: Some("Team B".into()),
        ..Flags::default()
    };
    let refused = error(&file("command = 'a'"), &flag);
    assert!(
        refused.starts_with("invalid namespace \"Team B\""),
        "{refused}"
    );
}

#[test]
fn flags_about_pods() {
    let words = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    let flags = |pods| Flags {
        command: words(&["a"]),
        pods,
        ..Flags::default()
    };
    let pods = super::super::PodFlags {
        volumes: words(&[
            "claim:datasets:/data:ro",
            "empty::/scratch",
            "config-map:a:/a",
        ]),
        node_selector: words(&["pool=gpu"]),
        tolerations: words(&["nvidia.com/gpu=present:NoSchedule", "spot"]),
        priority_class: Some("low".into()),
        ..Default::default()
    };
    let spec = resolve(&Settings::default(), &flags(pods), "code").unwrap();
    insta::assert_debug_snapshot!(spec.roles[0].pods);
    for (volume, rule) in [
        ("data:/data", "write KIND:NAME:PATH"),
        ("disk:a:/data", "write KIND:NAME:PATH"),
        ("claim::/data", "write KIND:NAME:PATH"),
        ("claim:a:data", "give the absolute path"),
        ("claim:A B:/data", "invalid claim"),
    ] {
        let pods = super::super::PodFlags {
            volumes: words(&[volume]),
            ..Default::default()
        };
        let refused = error(&Settings::default(), &flags(pods));
        assert!(refused.contains(rule), "{volume}: {refused}");
    }
}
