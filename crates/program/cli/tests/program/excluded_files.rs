//! Files that `run` does not send, as it reports them.

use crate::machine::{Answer, Machine};

#[test]
fn all_excluded_files_can_be_listed() {
    let machine = Machine::new();
    machine.write(".longshoreignore", "*.log\n");
    for n in 10..35 {
        machine.write(&format!("{n}.log"), "");
    }
    machine.write("odd\n\x1b.log", "");
    let answer = machine.longshore(&["run", "--", "true"]).expect(0);
    let named: Vec<String> = (10..20).map(|n| format!("{n}.log")).collect();
    let said = format!(
        "; excluded {} and 16 more (--dry-run lists them)\n",
        named.join(", ")
    );
    assert!(answer.err.contains(&said), "{}", answer.err);
    let answer = machine
        .longshore(&["run", "--dry-run", "--", "true"])
        .expect(0);
    let (_, listed) = answer.err.split_once("; excluded:\n").unwrap();
    let mut expected: Vec<String> = (10..35).map(|n| format!("  {n}.log")).collect();
    expected.push("  odd\\n^[.log".to_owned());
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
    assert!(!answer.out.contains("34.log"), "{}", answer.out);
}

#[test]
fn the_files_that_git_lists_are_packed() {
    let machine = Machine::new();
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        let git = git.arg("-C").arg(machine.code()).args(arguments);
        assert!(git.status().unwrap().success());
    };
    git(&["init", "-q"]);
    for (name, text) in [
        (".gitignore", "data/\nlogs\\\n*.{pt,ckpt}\n"),
        ("pkg/data/__init__.py", ""),
        ("pkg/data/big.bin", ""),
        ("a.pt", ""),
        ("env/pyvenv.cfg", ""),
    ] {
        let path = machine.code().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        machine.write(name, text);
    }
    git(&["add", "-f", "pkg/data/__init__.py"]);
    let run = ["run", "--", "find", "-type", "f"];
    let answer = machine.longshore(&run).expect(0);
    for (file, is_packed) in [
        ("./pkg/data/__init__.py", true),
        ("./pkg/data/big.bin", false),
        ("./a.pt", true),
        ("./env/pyvenv.cfg", false),
    ] {
        assert_eq!(
            answer.out.contains(file),
            is_packed,
            "{file}: {}",
            answer.out
        );
    }
    let named = "excluded .git/, env/ (a virtual environment), pkg/data/big.bin";
    assert!(answer.err.contains(named), "{}", answer.err);
}

#[test]
fn a_home_folder_is_recognized() {
    let machine = Machine::new();
    machine.write(".env", "A=1");
    let mut command = machine.command(&["run", "--dry-run", "--", "true"]);
    let answer = Answer::new(&command.env("HOME", machine.code()).output().unwrap());
    let err = answer.expect(2).err;
    assert!(err.contains("this is your home folder"), "{err}");
}
