//! Tests of the positions in errors.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::config::{Flags, RunOptions, Settings, resolve};

fn file(text: &str) -> Settings {
    Settings::parse(text, Path::new("longshore.toml")).unwrap()
}

fn error(settings: &Settings, flags: &Flags) -> String {
    resolve(settings, flags, "code").unwrap_err().to_string()
}

#[test]
fn invalid_values_are_reported_with_their_position() {
    let refused = |text: &str| error(&file(&format!("command = 'a'\n{text}")), &Flags::default());
    for (text, expected) in [
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
            "volumes = [{ path = '../data', claim = 'a' }]",
            "longshore.toml:2:21: invalid volumes path \"../data\": give an absolute path",
        ),
        (
            "volumes = [{ path = '/longshore/work', empty = '' }]",
            "longshore.toml:2:21: invalid volumes path \"/longshore/work\": /longshore is reserved",
        ),
        (
            "volumes = [{ path = '/data', claim = 'a', secret = 'b' }]",
            "longshore.toml:2:21: invalid volumes path \"/data\": set exactly one of claim, ",
        ),
        (
            "shared_memory = 'much'",
            "longshore.toml:2:17: invalid shared_memory \"much\": use a quantity",
        ),
        (
            "restricted = true\nhost_network = true",
            "longshore.toml:3:16: invalid host_network \"true\": the Pod Security Standard `restricted` forbids",
        ),
        (
            "env = { A = { secret = 'a', field = 'b' } }",
            "longshore.toml:2:9: invalid env \"A\": set exactly one of secret, ",
        ),
        (
            "[[env_from]]\nprefix = 'A'",
            "invalid env_from \"\": set exactly one of secret, ",
        ),
        (
            "[template]\nkind = 'Pod'",
            "longshore.toml:3:1: invalid template \"kind\": a pod template has",
        ),
        ("template = 'none.yaml'", "cannot read none.yaml: "),
        (
            "queue = 'Team A'",
            "longshore.toml:2:9: invalid queue \"Team A\": ",
        ),
        (
            "store = 'https://me:hush@x/'",
            "longshore.toml:2:9: invalid store \"https://…@x/\": it has an unknown scheme",
        ),
        (
            "image_pull_secrets = ['a', 'B b']",
            "longshore.toml:2:28: invalid image_pull_secrets \"B b\": ",
        ),
        (
            "port = 0",
            "longshore.toml:2:8: invalid port \"0\": each of the 1 tasks",
        ),
        (
            "cron = '@daily'\njobset = true",
            "longshore.toml:3:10: invalid jobset \"true\": a schedule",
        ),
        (
            "[roles.Worker]",
            "longshore.toml:2:8: invalid role \"Worker\": ",
        ),
        (
            "[roles.ps]",
            "longshore.toml:2:8: invalid service \"ps\": service roles end",
        ),
        (
            "[roles.a]\ncount = 0\n[roles.b]\ncount = 0",
            "longshore.toml:3:9: invalid count of role a, b \"0\": at least",
        ),
        (
            "[roles.a]\ncommand = ['']",
            "longshore.toml:3:12: invalid command \"\": its first word",
        ),
        (
            "[env]\nA = \"a\\u0000\"",
            "longshore.toml:3:1: invalid variable \"A\": its value contains",
        ),
        (
            "[env]\nA = { secret = 'B b' }",
            "longshore.toml:3:16: invalid secret \"B b\": ",
        ),
        (
            "[[env_from]]\nconfig_map = 'B b'",
            "longshore.toml:3:14: invalid config_map \"B b\": ",
        ),
        (
            "# the same text before the value: a\nlabels = { a = 'a b' }",
            "longshore.toml:3:16: invalid label a \"a b\": ",
        ),
    ] {
        let refused = refused(text);
        assert!(refused.starts_with(expected), "{text}: {refused}");
    }
    let flag = Flags {
        run: RunOptions {
            namespace: Some("Team B".into()),
            ..RunOptions::default()
        },
        ..Flags::default()
    };
    // A value of the command line has no position, even if the file contains the same text.
    for text in ["command = 'a'", "command = 'a'\nnamespace = 'Team B'"] {
        let refused = error(&file(text), &flag);
        assert!(
            refused.starts_with("invalid namespace \"Team B\""),
            "{refused}"
        );
    }
}
