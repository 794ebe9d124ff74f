//! `cargo xtask static`: builds the static program, without system libraries.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, cargo, output, run_command, target};

/// Builds the program into `target/static`, checks that it needs no dynamic loader, and runs
/// it once.
pub(crate) fn run() -> Outcome<PathBuf> {
    let triple = host()?;
    run_command(
        cargo()
            .args(["build", "--profile", "dist", "--locked"])
            .args(["--package", "longshore-cli", "--target", &triple])
            // With `--target`, the flags do not apply to build scripts and procedural macros.
            .env("RUSTFLAGS", "-C target-feature=+crt-static"),
    )?;
    let built = target().join(&triple).join("dist/longshore");
    let failed = |error| format!("{}: {error}", built.display());
    let bytes = fs::read(&built).map_err(failed)?;
    match needs_loader(&bytes) {
        Some(false) => {}
        Some(true) => {
            return Err(format!(
                "{} is not static: it needs a dynamic loader; does {triple} support `crt-static`?",
                built.display()
            ));
        }
        None => return Err(format!("{} is not a 64-bit ELF file", built.display())),
    }
    let folder = target().join("static");
    let program = folder.join("longshore");
    fs::create_dir_all(&folder).map_err(failed)?;
    fs::copy(&built, &program).map_err(failed)?;
    run_command(Command::new(&program).arg("--version"))?;
    println!("built {} ({} MiB)", program.display(), bytes.len() >> 20);
    Ok(program)
}

/// The target triple of this machine.
fn host() -> Outcome<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = output(Command::new(Path::new(&rustc)).arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "`rustc -vV` printed no host".to_owned())
}

/// Returns true if an ELF program has a program header that names a dynamic loader. `None` if it is
/// not a little-endian 64-bit ELF file.
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

    /// An ELF header and program headers of these types.
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
    fn a_dynamic_loader_is_detected() {
        assert_eq!(needs_loader(&elf(&[1, 1, 2])), Some(false));
        assert_eq!(needs_loader(&elf(&[6, 3, 1])), Some(true));
        assert_eq!(needs_loader(b"#!/bin/sh"), None);
        let truncated = elf(&[1, 3]);
        assert_eq!(needs_loader(&truncated[..70]), None);
        // This test program itself is static only if it was built with `crt-static`.
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let is_static = cfg!(target_feature = "crt-static");
        assert_eq!(needs_loader(&own), Some(!is_static));
    }
}
