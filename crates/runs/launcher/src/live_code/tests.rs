//! Tests of the warnings about live code.
#![allow(clippy::unwrap_used)]

use std::fs;

use super::*;

struct Machine {
    folder: tempfile::TempDir,
    caller: Caller,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["code/src/pkg", "code/tools", "other/src", "env/bin"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::create_dir_all(at("env/lib/python3.12/site-packages")).unwrap();
        fs::write(at("env/pyvenv.cfg"), "").unwrap();
        fs::write(at("env/bin/python3"), "").unwrap();
        let mut caller = Caller::default();
        let path = format!("{}:/nowhere", at("env/bin").display());
        caller.env.insert("PATH".to_owned(), Some(path));
        Self { folder, caller }
    }

    fn at(&self, path: &str) -> String {
        let root = self.folder.path().canonicalize().unwrap();
        root.join(path).display().to_string()
    }

    fn install(&self, name: &str, text: &str) {
        let path = self.at("env/lib/python3.12/site-packages");
        let path = Path::new(&path).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn warnings(&self, command: &str, env: &[(&str, &str)]) -> Vec<String> {
        let code = self.folder.path().join("code");
        let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let found = warnings(&self.caller, &code, &command, &env.collect(), None);
        found.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn each_form_of_an_editable_install_is_found() {
    for (name, text) in [
        ("__editable__.pkg-0.pth", "AT/code/src\n"),
        ("pkg.pth", "# a comment\nimport something\nAT/code/src"),
        ("easy-install.pth", "./more\nAT/code/src\n"),
        ("pkg.egg-link", "AT/code/src\n."),
        (
            "__editable___pkg_0_finder.py",
            "import sys\nMAPPING: dict[str, str] = {'pkg': 'AT/code/src/pkg'}\nNAMESPACES = {}\n",
        ),
        (
            "pkg-0.dist-info/direct_url.json",
            r#"{"dir_info": {"editable": true}, "url": "file://AT/code/src"}"#,
        ),
    ] {
        let machine = Machine::new();
        machine.install(name, &text.replace("AT/code", &machine.at("code")));
        let warnings = machine.warnings("python -c pass", &[]);
        assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
        let live = format!("the live code in {} (", machine.at("code/src"));
        assert!(warnings[0].contains(&live), "{name}: {warnings:?}");
        assert!(
            warnings[0].contains("add `-e PYTHONPATH=src`"),
            "{warnings:?}"
        );
        // With these values, the remedy is a single entry.
        for path in ["src", "./src/", "tools:src"] {
            let remedied = machine.warnings("python -c pass", &[("PYTHONPATH", path)]);
            assert_eq!(remedied, [""; 0], "{path}");
        }
    }
}

#[test]
fn code_outside_of_the_bundle_is_named() {
    let machine = Machine::new();
    for n in 0..5 {
        let folder = machine.at(&format!("other/{n}"));
        fs::create_dir(&folder).unwrap();
        machine.install(&format!("__editable__.p{n}.pth"), &folder);
    }
    let warnings = machine.warnings("train", &[]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains(&machine.at("other/0")), "{warnings:?}");
    assert!(warnings[0].contains("and 2 more folders"), "{warnings:?}");

    let mut machine = Machine::new();
    let folders = [
        "other/src",
        "code/tools",
        "env/lib/python3.12/site-packages",
    ];
    let list = folders.map(|folder| machine.at(folder)).join(":");
    let list = format!("{list}:/usr/lib:relative");
    machine
        .caller
        .env
        .insert("PYTHONPATH".to_owned(), Some(list));
    let warnings = machine.warnings("python -c pass", &[]);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("code/tools (PYTHONPATH)"),
        "{warnings:?}"
    );
    assert!(
        warnings[1].contains("other/src (PYTHONPATH)"),
        "{warnings:?}"
    );
}

#[test]
fn the_packed_copy_is_imported_without_a_warning() {
    let machine = Machine::new();
    machine.install(
        "numpy-2.dist-info/direct_url.json",
        r#"{"url": "file:///tmp"}"#,
    );
    machine.install("pkg/__init__.py", "");
    machine.install("nested.pth", "pkg");
    assert_eq!(machine.warnings("python train.py", &[]), [""; 0]);
    // The copy of the folder of the code is searched first, but not by other programs.
    machine.install("__editable__.pkg-0.pth", &machine.at("code"));
    for command in [
        "python train.py",
        "python3 -u ./train.py",
        "python -m pkg",
        "/bin/python -c x",
    ] {
        assert_eq!(machine.warnings(command, &[]), [""; 0], "{command}");
    }
    for command in ["python tools/train.py", "train"] {
        let warnings = machine.warnings(command, &[]);
        assert!(
            warnings[0].contains("add `-e PYTHONPATH=.`"),
            "{command}: {warnings:?}"
        );
    }
}
