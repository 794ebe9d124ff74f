//! Tests of sweeps in longshore.toml and flags.
#![allow(clippy::unwrap_used)]

use std::fs;

use super::*;
use crate::{RunSpec, config};

fn file(text: &str) -> Settings {
    Settings::parse(text, Path::new("longshore.toml")).unwrap()
}

fn flags(sweep: &[&str], command: &[&str]) -> Flags {
    Flags {
        run: RunOptions {
            sweep: sweep.iter().map(|text| text.parse().unwrap()).collect(),
            ..RunOptions::default()
        },
        command: command.iter().map(ToString::to_string).collect(),
        ..Flags::default()
    }
}

fn resolved(settings: &Settings, flags: &Flags) -> Result<RunSpec, ConfigError> {
    config::resolve(settings, flags, "code")
}

fn shown(spec: &RunSpec) -> String {
    let sweep = &spec.sweep.as_ref().unwrap().sweep;
    let values = sweep.combinations.iter().map(|values| values.join(","));
    let values: Vec<String> = values.collect();
    format!("{}: {}", sweep.parameters.join(","), values.join(" "))
}

#[test]
fn parameters_are_in_the_order_of_the_file_and_flags_override_them() {
    let settings = file(
        "command = 'x'\nparallel = 3\nmax_failed = 99\nmetrics = ['loss', 'loss']\n\
         [sweep]\nz = [0.1, 1e-5, 2.0]\na = '1..2'\nf = true",
    );
    let spec = resolved(&settings, &Flags::default()).unwrap();
    assert_eq!(
        shown(&spec),
        "z,a,f: 0.1,1,true 0.1,2,true 1e-5,1,true 1e-5,2,true 2.0,1,true 2.0,2,true"
    );
    assert_eq!((spec.tasks(), spec.roles[0].count), (6, 6));
    let sweep = spec.sweep.unwrap();
    assert_eq!((sweep.parallel, sweep.max_failed), (3, Some(6)));
    let spec = resolved(&settings, &flags(&["z=7", "n=x"], &[])).unwrap();
    assert_eq!(shown(&spec), "z,a,f,n: 7,1,true,x 7,2,true,x");
    // A sweep of more tasks than ports above the first.
    let mut many = flags(&["n=1..10000"], &["true"]);
    many.run.port = Some(60_000.into());
    let spec = resolved(&Settings::default(), &many).unwrap();
    assert_eq!((spec.tasks(), spec.sweep.unwrap().parallel), (10_000, 16));
}

#[test]
fn combinations_are_tables_or_lines_of_a_file() {
    let settings = file("command = 'x'\n[[sweep]]\nlr = 0.1\nn = 1\n[[sweep]]\nn = 2\nlr = 'x,y'");
    let spec = resolved(&settings, &Flags::default()).unwrap();
    assert_eq!(shown(&spec), "lr,n: 0.1,1 x,y,2");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("runs.csv"), "lr,n\n1,2\n").unwrap();
    fs::write(
        folder.path().join("longshore.toml"),
        "command = 'x'\nsweep_file = 'runs.csv'",
    )
    .unwrap();
    let spec = RunSpec::load(folder.path(), &Flags::default()).unwrap();
    assert_eq!(shown(&spec), "lr,n: 1,2");
    fs::write(folder.path().join("runs.csv"), "lr,n\n1\n").unwrap();
    let error = RunSpec::load(folder.path(), &Flags::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with(
            "runs.csv is not valid: line 2: it has 1 values, and the first line has 2 names"
        ),
        "{error}"
    );
}

#[test]
fn samples_have_a_seed_that_is_stored() {
    let mut with_seed = flags(&["lr=0.0001..0.1:log", "n=1..3"], &["true"]);
    with_seed.run.samples = Some(4.into());
    let first = resolved(&Settings::default(), &with_seed).unwrap();
    assert_eq!(first.sweep.as_ref().unwrap().sweep.seed, Some(0));
    with_seed.run.sweep_seed = Some(7.into());
    let other = resolved(&Settings::default(), &with_seed).unwrap();
    assert_eq!(other.sweep.as_ref().unwrap().sweep.seed, Some(7));
    assert_ne!(shown(&first), shown(&other));
}

#[test]
fn invalid_sweeps_are_refused_with_the_remedy() {
    let of_flags = |sweep: &[&str], command: &[&str]| {
        let flags = flags(sweep, command);
        resolved(&Settings::default(), &flags)
            .unwrap_err()
            .to_string()
    };
    insta::assert_snapshot!(of_flags(&["lr="], &["x"]), @r#"invalid sweep "lr=": a value is empty: write NAME=VALUE,VALUE; a list in longshore.toml can contain an empty string"#);
    insta::assert_snapshot!(of_flags(&["a=1", "a=2"], &["x"]), @r#"invalid sweep "a": the parameter is given twice"#);
    insta::assert_snapshot!(of_flags(&["=1"], &["x"]), @r#"invalid sweep "": use letters, digits, '_', '-' and '.', not beginning with a digit, and at most 63 characters"#);
    insta::assert_snapshot!(of_flags(&["a=1..200", "b=1..200"], &["x"]), @"invalid sweep: 40000 combinations are too many: an Indexed Job and the objects of a run hold 10000; use fewer values, or random samples (--samples)");
    insta::assert_snapshot!(of_flags(&["lr=1", "seed=1"], &["train", "--lr={lrr}"]), @"invalid sweep: the placeholder {lrr} in the command names no parameter (did you mean {lr}?); its parameters: lr, seed; write {{lrr}} for the text {lrr}");
    insta::assert_snapshot!("lr".parse::<SweepEntry>().unwrap_err().to_string(), @r#"invalid --sweep "lr": write NAME=VALUES, as in lr=0.1,0.01 or seed=1..5"#);
    let of_file = |text: &str| {
        let settings = file(&format!("command = 'x'\n{text}"));
        resolved(&settings, &Flags::default())
            .unwrap_err()
            .to_string()
    };
    let mut without = flags(&[], &["x"]);
    without.run.parallel = Some(2.into());
    let error = resolved(&Settings::default(), &without)
        .unwrap_err()
        .to_string();
    insta::assert_snapshot!(error, @r#"invalid parallel "2": it applies only to sweeps: add --sweep NAME=VALUES, or remove it"#);
    let settings = file("command = 'x'\nparallel = 2\nmetrics = ['loss']");
    assert_eq!(resolved(&settings, &Flags::default()).unwrap().sweep, None);
    insta::assert_snapshot!(of_file("parallel = 0\nsweep = {a = 1}"), @r#"longshore.toml:2:12: invalid parallel "0": use 1 or more"#);
    insta::assert_snapshot!(of_file("sweep_seed = 2\nsweep = {a = 1}"), @r#"longshore.toml:2:14: invalid sweep_seed "2": it selects random samples: add --samples N (`samples`), or remove it"#);
    insta::assert_snapshot!(of_file("samples = 3\nsweep = [{a = 1}]"), @r#"longshore.toml:2:11: invalid samples "3": it applies only to the values of parameters, and these are combinations: remove it"#);
    insta::assert_snapshot!(of_file("sweep = {a = []}"), @r#"longshore.toml:2:10: invalid sweep "a": the list of its values is empty"#);
    insta::assert_snapshot!(of_file("sweep = [{a = 1}, {b = 1}]"), @r#"longshore.toml:2:11: invalid sweep "a": a combination lacks this parameter: all need the same parameters"#);
    insta::assert_snapshot!(of_file("sweep = [{a = 1}, {a = 1, b = 1}]"), @r#"longshore.toml:2:27: invalid sweep "b": the first combination lacks this parameter: all need the same parameters"#);
    insta::assert_snapshot!(of_file("sweep_file = 'a.csv'\nsweep = {a = 1}"), @"invalid sweep: a file has all combinations: remove `sweep_file` or `sweep`");
    insta::assert_snapshot!(of_file("sweep = {a = 1}\n[roles.a]\n[roles.b]"), @"invalid sweep: each combination runs one task: use one role, without other roles");
    insta::assert_snapshot!(of_file("sweep = {a = 1}\n[roles.a]\ncount = 2"), @"invalid sweep: each combination runs one task: remove `count` or `service` of the role a");
    insta::assert_snapshot!(of_file("sweep = {a = 1}\njobset = true"), @"invalid sweep: it needs a Job: remove `cron` or `jobset`");
    insta::assert_snapshot!(of_file("metrics = ['a b']\nsweep = {a = 1}"), @r#"longshore.toml:2:12: invalid metrics "a b": use letters, digits, '_', '-' and '.', not beginning with a digit, and at most 63 characters"#);
    let syntax = |text: &str| {
        Settings::parse(text, Path::new("x"))
            .unwrap_err()
            .to_string()
    };
    assert!(syntax("sweep = 3").contains("a table of parameters, or a list of combinations"));
    assert!(syntax("[sweep]\na = {}").contains("a list of values, or a string, as in \"1..5\""));
}

#[test]
fn a_sweep_has_no_standard_input() {
    let flags = Flags {
        input: config::Input::Piped,
        ..flags(&["a=1..3"], &["x"])
    };
    let error = resolved(&Settings::default(), &flags)
        .unwrap_err()
        .to_string();
    assert!(error.contains("this run has 3"), "{error}");
}
