//! Runs the Python tests of the package: each test runs one file of the folder `python`
//! with a Python that finds the package with the layout of a wheel.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The folder with the package: the Python sources and the extension module that Cargo built.
fn package() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        // With an installed wheel, the tests use the wheel instead.
        if env::var_os("LONGSHORE_TEST_WHEEL").is_some() {
            return PathBuf::new();
        }
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{}", std::process::id()));
        let package = folder.join("longshore");
        if package.exists() {
            fs::remove_dir_all(&package).unwrap();
        }
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/longshore");
        copy(&sources, &package).unwrap();
        let own = env::current_exe().unwrap();
        let built = own.parent().unwrap().join("liblongshore_native.so");
        fs::copy(&built, package.join("_native.abi3.so"))
            .unwrap_or_else(|error| panic!("{}: {error}", built.display()));
        folder
    })
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// The `PATH` of the tests. The first folder is the one where Cargo puts the `longshore`
/// program, which pods need.
fn path() -> OsString {
    let own = env::current_exe().unwrap();
    let built = own.parent().and_then(Path::parent).unwrap();
    let known = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(built.to_owned()).chain(env::split_paths(&known));
    env::join_paths(folders).unwrap()
}

fn run(python: &Path, arguments: &[&str]) {
    let output = Command::new(python)
        .args(["-B", "-W", "error::ResourceWarning"])
        .args(arguments)
        .env("PYTHONPATH", package())
        .env("PATH", path())
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python"))
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", python.display()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout);
    println!("{stdout}");
    // Since Python 3.12, unittest fails if all tests of a file are skipped.
    if stderr.contains("NO TESTS RAN (skipped=") {
        println!("skipped: {arguments:?} needs packages that this Python does not have");
        return;
    }
    assert!(
        output.status.success(),
        "{arguments:?}: {}\n{stderr}",
        output.status
    );
    // unittest also succeeds if a file has no tests.
    assert!(
        !stderr.contains("Ran 0 tests"),
        "{arguments:?} has no tests"
    );
}

/// The Python that has the official client, or any Python if it is not installed.
fn python() -> PathBuf {
    let known = env::var_os("LONGSHORE_TEST_PYTHON").filter(|python| !python.is_empty());
    known.map_or_else(|| "python3".into(), PathBuf::from)
}

fn unittest(file: &str) {
    run(&python(), &["-m", "unittest", "-q", file]);
}

macro_rules! files {
    ($($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                unittest(stringify!($name));
            }
        )*
    };
}

files! {
    test_arguments,
    test_client,
    test_clusters,
    test_documents,
    test_election,
    test_environment_resolvers,
    test_errors,
    test_hostile,
    test_hostile_server,
    test_html,
    test_itself,
    test_kube,
    test_notebook,
    test_official_client,
    test_operations,
    test_pod,
    test_pytest,
    test_recipes,
    test_reference,
    test_resolver,
    test_response,
    test_run_options,
    test_runs,
    test_signals,
    test_spec,
    test_stubs,
    test_tracking,
    test_typing,
    test_zenml,
}

/// The tests of the library `kube` 0.10, with this package instead of the library. The server is
/// `stub`, the library's own, or `embedded`.
fn kube(server: &str) {
    let sdist = env::var_os("LONGSHORE_TEST_KUBE").unwrap_or_default();
    if sdist.is_empty() {
        println!("skipped: `cargo xtask test` downloads the library kube 0.10");
        return;
    }
    let sdist = sdist.to_string_lossy();
    run(&python(), &["kube_suite.py", &sdist, server]);
}

#[test]
fn kube_with_its_stub() {
    kube("stub");
}

#[test]
fn kube_on_the_embedded_cluster() {
    kube("embedded");
}

/// The Python of a framework.
fn framework(name: &str) -> PathBuf {
    let folder = env::var_os("LONGSHORE_TEST_FRAMEWORKS");
    let folder = folder.expect("`cargo xtask test --frameworks` runs this");
    PathBuf::from(folder).join(name).join("bin/python3")
}

/// Compares the package with TensorFlow's own classes.
#[test]
#[ignore = "cargo xtask test --frameworks"]
fn test_tensorflow() {
    run(
        &framework("tensorflow"),
        &["-m", "unittest", "-q", "frameworks_tensorflow"],
    );
}

/// Runs pipelines of the current ZenML.
#[test]
#[ignore = "cargo xtask test --frameworks"]
fn test_current_zenml() {
    run(
        &framework("zenml"),
        &["-m", "unittest", "-q", "zenml_today"],
    );
}

/// Checks the types of the package and of its tests with pyright. The tests check them, and the
/// documentation's examples, with mypy.
#[test]
#[ignore = "cargo xtask test --frameworks"]
fn test_pyright() {
    let (python, package) = (framework("pyright"), package().join("longshore"));
    let (own, package) = (python.display().to_string(), package.display().to_string());
    let pyright = ["-m", "pyright", "--pythonpath", &own];
    run(
        &python,
        &[&pyright[..], &["--pythonversion", "3.10", &package]].concat(),
    );
    run(
        &python,
        &[&pyright[..], &["--project", "pyrightconfig.json"]].concat(),
    );
}
