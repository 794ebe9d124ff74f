//! Compiles `init/`, the init of containers, which the agent embeds.
//!
//! Calls rustc itself, because stable Cargo cannot depend on the bytes of another program. The init
//! uses only the crate `core`, so it needs nothing that is not part of every build.

use std::{env, ffi::OsString, path::PathBuf, process::Command};

/// The options of the code generator.
const CODE: [&str; 7] = [
    "panic=abort",
    "opt-level=s",
    "strip=symbols",
    "relocation-model=static",
    "target-feature=+crt-static",
    "default-linker-libraries=no",
    "link-args=-nostdlib -nostartfiles -static -no-pie",
];

fn main() {
    println!("cargo::rerun-if-changed=init");
    let variable = |name: &str| env::var_os(name).unwrap_or_default();
    let output = PathBuf::from(variable("OUT_DIR")).join("longshore-init");
    let mut rustc = Command::new(variable("RUSTC"));
    rustc
        .args(["--crate-name", "longshore_init", "--crate-type", "bin"])
        .args(["--edition", "2024"])
        .arg("--target")
        .arg(variable("TARGET"))
        .args(CODE.iter().flat_map(|option| ["-C", option]))
        .arg("-o")
        .arg(&output)
        .arg("init/main.rs");
    if env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("musl") {
        // Otherwise rustc adds its own start files.
        rustc.args(["-C", "link-self-contained=no"]);
    }
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    match rustc.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("rustc could not compile crates/cluster/node/init: {status}"),
        Err(error) => panic!("rustc cannot be run to compile crates/cluster/node/init: {error}"),
    }
}
