//! Runs that could do something else than the user expects: they say so, or are refused.

use std::fs;

use crate::machine::{Answer, Machine};

#[test]
fn parameters_that_nothing_uses_are_a_warning() {
    let machine = Machine::new();
    machine.write("train.py", "print('hi')");
    let sweep = ["run", "--sweep", "lr=1,2", "--sweep", "seed=3"];
    let run = |command: &[&str]| {
        let arguments = [&sweep[..], &["--dry-run", "--"], command].concat();
        machine.longshore(&arguments).expect(0).err
    };
    let warning = "warning: nothing refers to the parameter";
    let err = run(&["python3", "train.py"]);
    assert!(
        err.contains(&format!("{warning} lr, seed of the sweep")),
        "{err}"
    );
    let err = run(&["python3", "train.py", "--lr={lr}"]);
    assert!(
        err.contains(&format!("{warning} seed of the sweep")),
        "{err}"
    );
    let err = run(&["sh", "-c", "echo $LONGSHORE_PARAM_LR {seed}"]);
    assert!(!err.contains(warning), "{err}");
    machine.write(
        "read.py",
        "for name in 'LR', 'SEED': os.environ[f'LONGSHORE_PARAM_{name}']",
    );
    let err = run(&["python3", "train.py"]);
    assert!(!err.contains(warning), "{err}");
}

#[test]
fn a_sweep_runs_with_the_values_that_were_given() {
    let machine = Machine::new();
    let sweep = ["run", "--sweep", "layers=[64,64],[128]", "--"];
    let command = ["sh", "-c", "echo \"value $1\"", "sh", "{layers}"];
    let out = machine
        .longshore(&[&sweep[..], &command].concat())
        .expect(0)
        .out;
    assert_eq!(out.matches("value ").count(), 2, "{out}");
    assert!(
        out.contains("value [64,64]\n") && out.contains("value [128]\n"),
        "{out}"
    );
}

#[test]
fn an_editable_install_of_the_code_is_a_warning() {
    let machine = Machine::new();
    let code = machine.code().canonicalize().unwrap();
    let site = machine.home().join("env/lib/python3.12/site-packages");
    for folder in [&site, &code.join("src/pkg")] {
        fs::create_dir_all(folder).unwrap();
    }
    let source = code.join("src").display().to_string();
    fs::write(site.join("__editable__.pkg-0.pth"), &source).unwrap();
    let run = |more: &[&str]| {
        let arguments = [&["run", "--dry-run"], more, &["--", "true"]].concat();
        let mut command = machine.command(&arguments);
        command.env("VIRTUAL_ENV", machine.home().join("env"));
        Answer::new(&command.output().unwrap()).expect(0).err
    };
    let warning = format!("warning: tasks import the live code in {source} (");
    let err = run(&[]);
    assert!(err.contains(&warning), "{err}");
    assert!(!run(&["-e", "PYTHONPATH=src"]).contains(&warning));
}

#[test]
fn data_and_volumes_are_where_the_code_looks_for_them() {
    let machine = Machine::new();
    fs::create_dir_all(machine.code().join("data/raw")).unwrap();
    machine.write("data/raw/a.csv", "1\n");
    machine.write(".gitignore", "data/\n");
    for option in [
        ["--data", "raw=./data/raw:data/raw"],
        ["--data", "raw=data/raw:/longshore/work/data/raw"],
        ["--volume", "host:./data:data"],
        ["--volume", "host:./data:./data:ro"],
    ] {
        let arguments = [&["run"], &option[..], &["--", "cat", "data/raw/a.csv"]].concat();
        let out = machine.longshore(&arguments).expect(0).out;
        assert!(out.contains("| 1\n"), "{option:?}: {out}");
    }
    machine.write("a.csv", "");
    for (path, problem) in [
        (
            "a.csv",
            "at a.csv in the folder of the code: the code has files there",
        ),
        ("../data", "in the folder of the code, as in data/raw"),
    ] {
        let data = format!("raw=./data/raw:{path}");
        let err = machine
            .longshore(&["run", "--data", &data, "--", "true"])
            .expect(2)
            .err;
        assert!(err.contains(problem), "{err}");
    }
}

#[test]
fn the_settings_of_a_folder_above_are_named() {
    let machine = Machine::new();
    machine.write("longshore.toml", "command = 'true'");
    fs::create_dir_all(machine.code().join("a/b")).unwrap();
    let mut command = machine.command(&["run"]);
    let answer = Answer::new(
        &command
            .current_dir(machine.code().join("a/b"))
            .output()
            .unwrap(),
    );
    let err = answer.expect(2).err;
    assert!(err.contains("../../longshore.toml is not used"), "{err}");
    assert!(err.contains("`longshore run ../..`"), "{err}");
}

#[test]
fn a_removed_current_folder_is_named_if_it_is_needed() {
    let machine = Machine::new();
    let gone = machine.home().join("gone");
    let code = machine.code().display().to_string();
    let run = |line: &str| {
        let program = env!("CARGO_BIN_EXE_longshore");
        let script = format!(
            "mkdir {0}; cd {0}; rmdir {0}; {program} run {line} -- true",
            gone.display()
        );
        Answer::new(&machine.shell(&script).output().unwrap())
    };
    run(&code).expect(0);
    let err = run("").expect(2).err;
    assert!(err.contains("the current folder no longer exists"), "{err}");
    let err = run(&format!("{code} --data a=./data")).err;
    assert!(
        err.contains("the data folder ./data does not exist"),
        "{err}"
    );
}
