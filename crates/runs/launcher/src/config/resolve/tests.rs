//! Tests of merging settings and flags.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::config::{TaskOptions, Toleration, Volume, values::pair};

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
fn flags_override_roles_and_roles_override_the_run() {
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
fn flags_override_the_image_of_a_role_but_not_its_pod_settings() {
    let settings = file(
        "command = 'x'\nimage = 'file'\npriority_class = 'file'\nnode_selector = { a = 'file', b = 'file', c = 'file' }\n\
         [[volumes]]\nclaim = 'file'\npath = '/a'\n[[volumes]]\nclaim = 'file'\npath = '/b'\n\
         [roles.own]\nimage = 'role'\npriority_class = 'role'\nnode_selector = { c = 'role' }\n\
         [[roles.own.volumes]]\nclaim = 'role'\npath = '/b/'\n[roles.plain]",
    );
    let flags = Flags {
        task: TaskOptions {
            image: Some("flag".into()),
            priority_class: Some("flag".into()),
            node_selector: ["b=flag", "c=flag"]
                .map(|text| pair("--node-selector", text).unwrap())
                .into(),
            volumes: ["claim:flag:/a", "claim:flag:/b"]
                .map(|text| text.parse::<Volume>().unwrap())
                .into(),
            ..TaskOptions::default()
        },
        ..Flags::default()
    };
    let spec = resolve(&settings, &flags, "code").unwrap();
    let [own, plain] = spec.roles.as_slice() else {
        panic!("{:?}", spec.roles);
    };
    let selected = |role: &crate::RoleSpec| -> Vec<String> {
        role.pods.node_selector.values().cloned().collect()
    };
    let claims = |role: &crate::RoleSpec| -> Vec<String> {
        let volumes = role.pods.volumes.iter();
        let claims = volumes.map(|(volume, _)| volume.persistent_volume_claim.as_ref());
        claims
            .map(|claim| claim.unwrap().claim_name.clone())
            .collect()
    };
    assert_eq!((own.image.as_str(), plain.image.as_str()), ("flag", "flag"));
    assert_eq!(own.pods.priority_class.as_deref(), Some("role"));
    assert_eq!(plain.pods.priority_class.as_deref(), Some("flag"));
    assert_eq!(selected(own), ["file", "flag", "role"]);
    assert_eq!(selected(plain), ["file", "flag", "flag"]);
    assert_eq!(claims(own), ["flag", "role"]);
    assert_eq!(claims(plain), ["flag", "flag"]);
}

#[test]
fn an_unknown_role_names_the_known_ones() {
    let settings = file("command = 'x'\n[roles.worker]\n[roles.ps]");
    assert_eq!(
        error(&settings, &flags(&["wroker=2"], &[])),
        "unknown role \"wroker\" in `--role wroker=2`; known roles: ps, worker"
    );
    let spec = resolve(&file("command = 'x'"), &flags(&["trainer=3"], &[]), "code").unwrap();
    assert_eq!((spec.roles[0].name.as_str(), spec.tasks()), ("trainer", 3));
}

#[test]
fn invalid_values_are_reported_with_their_rule() {
    let plain = Settings::default();
    assert!(
        error(&plain, &flags(&["worker"], &["x"])).contains("--role \"worker\": write NAME=COUNT")
    );
    assert!(error(&plain, &flags(&["worker=-1"], &["x"])).contains("NAME=COUNT"));
    assert!(error(&plain, &flags(&["Worker=1"], &["x"])).contains("invalid role \"Worker\""));
    assert!(error(&plain, &flags(&["worker=0"], &["x"])).contains("at least one role"));
    assert!(error(&plain, &flags(&["ps=1"], &["x"])).contains("add a role that is not a service"));
    assert!(error(&plain, &flags(&[], &[])).starts_with("no command: give one after `--`, as in"));
    let worker = error(&plain, &flags(&["worker=2"], &[]));
    assert!(
        worker.starts_with("no command for role \"worker\": give one"),
        "{worker}"
    );
    let no_program = error(&plain, &flags(&[], &["", "x"]));
    assert!(
        no_program.contains("its first word is the program"),
        "{no_program}"
    );
    let store = error(&file("store = 'https://me:hush@x/'"), &flags(&[], &["x"]));
    assert!(
        store.contains("invalid store \"https://…@x/\": it has an unknown scheme"),
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
    let nul = error(&plain, &flags(&[], &["a\0b"]));
    assert!(nul.contains("contains a NUL character"), "{nul}");
    let env = Flags {
        env: vec!["A=hush\0".into()],
        ..flags(&[], &["x"])
    };
    let nul = error(&plain, &env);
    assert!(
        nul.contains("variable \"A\"") && !nul.contains("hush"),
        "{nul}"
    );
    let env = Flags {
        env: vec!["1A=2".into()],
        ..flags(&[], &["x"])
    };
    assert!(error(&plain, &env).contains("variable name"));
}

#[test]
fn an_invalid_quantity_gets_a_suggestion() {
    for (text, rule) in [
        (
            "16GB",
            "write 16G (powers of 1000) or 16Gi (powers of 1024)",
        ),
        (
            "1.5 gb",
            "write 1.5G (powers of 1000) or 1.5Gi (powers of 1024)",
        ),
        ("16GiB", "write 16Gi"),
        (
            "512kb",
            "write 512k (powers of 1000) or 512Ki (powers of 1024)",
        ),
        ("16g", "write 16G (powers of 1000) or 16Gi (powers of 1024)"),
        (
            "256m",
            "the suffix m means thousandths of a byte; write 256Mi (powers of 1024) or 256M (powers of 1000)",
        ),
        ("much", "use a quantity such as 512Mi or 4Gi"),
        ("-1", "use a quantity such as 512Mi or 4Gi"),
    ] {
        let flags = Flags {
            memory: Some(text.into()),
            ..flags(&[], &["x"])
        };
        let expected = format!("invalid --memory {text:?}: {rule}");
        assert_eq!(error(&Settings::default(), &flags), expected);
    }
    let settings = file("command = 'x'\n[resources]\nmemory = '4GB'");
    assert_eq!(
        error(&settings, &Flags::default()),
        "longshore.toml:3:10: invalid resource memory \"4GB\": write 4G (powers of 1000) or 4Gi (powers of 1024)"
    );
    let misplaced = Settings::parse("memory = '4Gi'", Path::new("longshore.toml")).unwrap_err();
    assert!(
        misplaced.to_string().starts_with(
            "longshore.toml:1:1: unknown key `memory`, did you mean `resources.memory`?"
        ),
        "{misplaced}"
    );
}

#[test]
fn relative_host_folders_are_on_this_machine_or_rejected() {
    let with = |text: &str, flag: Option<&str>, here: Option<&str>| {
        let mut settings = Settings::parse(text, Path::new("code/longshore.toml")).unwrap();
        settings.task.command = file("command = 'x'").task.command;
        let flags = Flags {
            here: here.map(Into::into),
            task: TaskOptions {
                volumes: flag.iter().map(|flag| flag.parse().unwrap()).collect(),
                ..TaskOptions::default()
            },
            ..Flags::default()
        };
        let spec = resolve(&settings, &flags, "code").map_err(|error| error.to_string())?;
        let paths = spec.roles[0].pods.volumes.iter();
        let paths = paths.map(|(volume, _)| volume.host_path.as_ref().unwrap().path.clone());
        Ok::<_, String>(paths.collect::<Vec<_>>())
    };
    let here = Some("/home/me");
    assert_eq!(
        with("", Some("host:outs:/out"), here).unwrap(),
        ["/home/me/outs"]
    );
    assert_eq!(
        with("", Some("host:../outs:/out"), here).unwrap(),
        ["/home/outs"]
    );
    let own = "volumes = [{ host = 'outs', path = '/out' }]";
    assert_eq!(with(own, None, here).unwrap(), ["/home/me/code/outs"]);
    let of_role = "[[roles.main.volumes]]\nhost = './outs'\npath = '/out'";
    assert_eq!(with(of_role, None, here).unwrap(), ["/home/me/code/outs"]);
    let refused = with("", Some("host:outs:/out"), None).unwrap_err();
    assert!(
        refused.starts_with(
            "invalid volumes host \"outs\": give the absolute path of a folder on the nodes"
        ),
        "{refused}"
    );
    let refused = with(own, None, None).unwrap_err();
    assert!(
        refused.starts_with("code/longshore.toml:1:21: invalid volumes host"),
        "{refused}"
    );
    assert!(with("", Some("host:/a/../b:/out"), None).is_err());
}

#[test]
fn env_files_override_settings_and_flags_override_env_files() {
    let settings = file("command = 'x'\n[env]\nA = 1\nB = 1\nC = { secret = 's' }");
    let flags = Flags {
        env_file: vec![
            ("B".into(), "2".into()),
            ("C".into(), "2".into()),
            ("D".into(), "2".into()),
        ],
        env: vec!["D=3".into()],
        ..Flags::default()
    };
    let spec = resolve(&settings, &flags, "code").unwrap();
    let env: Vec<_> = spec.roles[0].env.values().map(String::as_str).collect();
    assert_eq!(env, ["1", "2", "2", "3"]);
    assert!(
        spec.roles[0].pods.env.is_empty(),
        "the value replaces its source"
    );
}

#[test]
fn standard_input_is_for_one_task() {
    let with = |settings: &str, roles: &[&str], input| {
        let flags = Flags {
            input,
            ..flags(roles, &["x"])
        };
        resolve(&file(settings), &flags, "code")
    };
    assert!(with("", &[], Input::Piped).is_ok());
    assert!(with("retries = 2", &[], Input::Terminal).is_err());
    let refused =
        |settings, roles: &[&str], input| with(settings, roles, input).unwrap_err().to_string();
    assert_eq!(
        refused("", &["worker=3"], Input::Piped),
        "-i sends the standard input to one task, and this run has 3: leave it out, or run one task"
    );
    assert!(refused("retries = 1", &[], Input::Piped).contains("remove `retries`"));
    assert!(refused("cron = '@daily'", &[], Input::Terminal).starts_with("-it sends"));
}

proptest! {
    #[test]
    fn no_flag_panics(role in "\\PC{0,20}", env in "\\PC{0,20}", time in "\\PC{0,12}") {
        let flags = Flags {
            roles: vec![role],
            env: vec![env],
            run: RunOptions {
                timeout: Some(time.into()),
                ..RunOptions::default()
            },
            command: vec!["x".into()],
            ..Flags::default()
        };
        let _ = resolve(&Settings::default(), &flags, "code");
    }
}

#[test]
fn flags_about_pods() {
    let flags = |task| Flags {
        command: vec!["a".into()],
        task,
        ..Flags::default()
    };
    let volumes = [
        "claim:datasets:/data:ro",
        "empty::/scratch",
        "config-map:a:/a",
    ];
    let tolerations = ["nvidia.com/gpu=present:NoSchedule", "spot"];
    let task = TaskOptions {
        volumes: volumes.map(|text| text.parse::<Volume>().unwrap()).into(),
        node_selector: vec![pair("--node-selector", "pool=gpu").unwrap()],
        tolerations: tolerations
            .map(|text| text.parse::<Toleration>().unwrap())
            .into(),
        priority_class: Some("low".into()),
        ..TaskOptions::default()
    };
    let spec = resolve(&Settings::default(), &flags(task), "code").unwrap();
    let pods = &spec.roles[0].pods;
    insta::assert_json_snapshot!((&pods.tolerations, &pods.volumes));
    assert_eq!(pods.node_selector, [("pool".into(), "gpu".into())].into());
    assert_eq!(pods.priority_class.as_deref(), Some("low"));
    for (text, rule) in [
        ("data:/data", "write KIND:NAME:PATH"),
        ("disk:a:/data", "write KIND:NAME:PATH"),
        ("claim::/data", "write KIND:NAME:PATH"),
        ("claim:a:../data", "give an absolute path"),
        ("claim:A B:/data", "invalid claim"),
    ] {
        let refused = match text.parse::<Volume>() {
            Err(error) => error.to_string(),
            Ok(volume) => {
                let task = TaskOptions {
                    volumes: vec![volume],
                    ..TaskOptions::default()
                };
                error(&Settings::default(), &flags(task))
            }
        };
        assert!(refused.contains(rule), "{text}: {refused}");
    }
}
