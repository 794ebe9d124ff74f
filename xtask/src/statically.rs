//! `cargo xtask static`: the program alone, with no library of the system's.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, cargo, finish, output, target};

/// Builds the program into `target/static`, looks whether it needs a loader, and
/// starts it once.
pub(crate) fn run() -> Outcome<PathBuf> {
    let triple = host()?;
    finish(
        cargo()
            .args(["build", "--release", "--locked"])
            .args(["--package", "longshore-cli", "--target", &triple])
            // With a triple, build scripts and macros are left out of this.
            .env("RUSTFLAGS", "-C target-feature=+crt-static"),
    )?;
    let built = target().join(&triple).join("release/longshore");
    let failed = |error| format!("{}: {error}", built.display());
    let bytes = fs::read(&built).map_err(failed)?;
    match needs_loader(&bytes) {
        Some(false) => {}
        Some(true) => {
            return Err(format!(
                "{} is not static: it needs a loader; can {triple} be linked with `crt-static`?",
                built.display()
            ));
        }
        None => return Err(format!("{} is no ELF file of 64 bits", built.display())),
    }
    let folder = target().join("static");
    let program = folder.join("longshore");
    fs::create_dir_all(&folder).map_err(failed)?;
    fs::copy(&built, &program).map_err(failed)?;
    finish(Command::new(&program).arg("--version"))?;
    println!("built {} ({} MiB)", program.display(), bytes.len() >> 20);
    Ok(program)
}

/// The triple of the machine that builds.
fn host() -> Outcome<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let told = output(Command::new(Path::new(&rustc)).arg("-vV"))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "`rustc -vV` tells no host".to_owned())
}

/// Whether an ELF program is started by a dynamic loader: whether it has a program
/// header that names one. `None` when it is none of 64 bits, little end first.
fn needs_loader(elf: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let short = |at: usize| {
        let bytes = elf.get(at..at + 2)?.try_into().ok()?;
        Some(usize::from(u16::from_le_bytes(bytes)))
    };
    let begin = u64::from_le_bytes(elf.get(32..40)?.try_into().ok()?);
    let begin = usize::try_from(begin).ok()?;
    let (size, count) = (short(54)?, short(56)?);
    for header in 0..count {
        let at = begin.checked_add(header * size)?;
        let kind = elf.get(at..at.checked_add(4)?)?.try_into().ok()?;
        if u32::from_le_bytes(kind) == INTERPRETER {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A header, and program headers of these kinds.
    fn elf(kinds: &[u32]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(64, 0);
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = u8::try_from(kinds.len()).unwrap();
        for kind in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn a_loader_is_found_by_its_header() {
        assert_eq!(needs_loader(&elf(&[1, 1, 2])), Some(false));
        assert_eq!(needs_loader(&elf(&[6, 3, 1])), Some(true));
        assert_eq!(needs_loader(b"#!/bin/sh"), None);
        let cut = elf(&[1, 3]);
        assert_eq!(needs_loader(&cut[..70]), None);
        // This test is a program, and is what it is built as.
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let is_static = cfg!(target_feature = "crt-static");
        assert_eq!(needs_loader(&own), Some(!is_static));
    }
}
