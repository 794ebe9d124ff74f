//! `cargo xtask image`: images for a container runtime, without a container engine.

mod archive;
mod python;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    run::{Outcome, finish, root, target},
    statically,
};
use archive::{Image, write};

/// The image that holds a pod's namespaces.
pub(crate) const PAUSE: &str = "localhost/longshore/pause:1";
/// The program alone, for `--launcher-image`.
pub(crate) const LONGSHORE: &str = "localhost/longshore/longshore:dev";
/// The program in an image that is for the private registry alone. It must be another one:
/// once a kubelet has pulled an image with a secret, pods without that secret may not use
/// it, whatever the name by which they ask for it.
pub(crate) const PRIVATE: &str = "localhost/longshore/private:dev";
/// What runs use that name no image: under the name that a node gives it.
pub(crate) const PYTHON: &str = "docker.io/library/python:3-slim";

const LONGSHORE_FILE: &str = "longshore.tar";
const PRIVATE_FILE: &str = "private.tar";
const PYTHON_FILE: &str = "python.tar";

/// Which images to make.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these.
    #[arg(value_enum)]
    which: Vec<Which>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Which {
    /// The static program, as docker/Dockerfile makes it.
    Longshore,
    /// Python and a shell, from Debian's packages, in place of `python:3-slim`.
    Python,
}

/// Makes them.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let all = [Which::Longshore, Which::Python];
    let chosen = all
        .into_iter()
        .filter(|which| arguments.which.is_empty() || arguments.which.contains(which));
    for which in chosen {
        let path = match which {
            Which::Longshore => longshore()?,
            Which::Python => python::image(&folder()?)?,
        };
        let size = fs::metadata(&path).map_or(0, |found| found.len() >> 20);
        println!("made {} ({size} MiB)", path.display());
    }
    Ok(())
}

/// Makes the program's image, which changes with it, and the other one unless it is there.
pub(crate) fn make_missing() -> Outcome {
    let is_there = made().iter().any(|path| path.ends_with(PYTHON_FILE));
    let which = if is_there {
        vec![Which::Longshore]
    } else {
        Vec::new()
    };
    run(&Arguments { which })
}

/// The archives that are there.
pub(crate) fn made() -> Vec<PathBuf> {
    let paths =
        [LONGSHORE_FILE, PRIVATE_FILE, PYTHON_FILE].map(|name| target().join("image").join(name));
    paths.into_iter().filter(|path| path.exists()).collect()
}

fn folder() -> Outcome<PathBuf> {
    let folder = target().join("image");
    make_folder(&folder)?;
    Ok(folder)
}

/// An empty folder for an image's files.
fn empty(path: &Path) -> Outcome {
    let _ = fs::remove_dir_all(path);
    make_folder(path)
}

fn make_folder(path: &Path) -> Outcome {
    fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()))
}

fn save(path: &Path, image: &Image<'_>, root: &Path) -> Outcome {
    write(path, image, root).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn longshore() -> Outcome<PathBuf> {
    let program = statically::run()?;
    let folder = folder()?;
    let (root, path) = (folder.join("longshore"), folder.join(LONGSHORE_FILE));
    let place = root.join("usr/local/bin");
    empty(&root)?;
    make_folder(&place)?;
    fs::copy(&program, place.join("longshore"))
        .map_err(|error| format!("cannot copy {}: {error}", program.display()))?;
    let image = Image {
        name: LONGSHORE,
        entrypoint: &["longshore"],
        command: &[],
        keeps_owners: false,
    };
    save(&path, &image, &root)?;
    let private = Image {
        name: PRIVATE,
        command: &["--version"],
        ..image
    };
    save(&folder.join(PRIVATE_FILE), &private, &root)?;
    Ok(path)
}

/// Makes an image of a static program, as `/manager`.
pub(crate) fn of_program(folder: &Path, name: &str, program: &Path) -> Outcome<PathBuf> {
    let (root, path) = (folder.join("root"), folder.join("image.tar"));
    empty(&root)?;
    fs::copy(program, root.join("manager"))
        .map_err(|error| format!("cannot copy {}: {error}", program.display()))?;
    let image = Image {
        name,
        entrypoint: &["/manager"],
        command: &[],
        keeps_owners: false,
    };
    save(&path, &image, &root)?;
    Ok(path)
}

/// Makes the image of [`PAUSE`].
pub(crate) fn pause(folder: &Path) -> Outcome<PathBuf> {
    let (files, path) = (folder.join("pause"), folder.join("pause.tar"));
    empty(&files)?;
    let mut compiler = Command::new("cc");
    compiler
        .args(["-static", "-Os", "-o"])
        .arg(files.join("pause"));
    finish(compiler.arg(root().join("xtask/kubernetes/pause.c")))?;
    let image = Image {
        name: PAUSE,
        entrypoint: &["/pause"],
        command: &[],
        keeps_owners: false,
    };
    save(&path, &image, &files)?;
    Ok(path)
}
