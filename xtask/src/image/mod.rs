//! `cargo xtask image`: builds container images without a container engine.

mod archive;
mod python;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    run::{Outcome, root, run_command, target},
    static_build,
};
use archive::{Image, write};

/// The pause image, whose container holds the namespaces of a pod.
pub(crate) const PAUSE: &str = "localhost/longshore/pause:1";
/// The image with only the program, for `--launcher-image`.
pub(crate) const LONGSHORE: &str = "localhost/longshore/longshore:dev";
/// The image for the private registry, also with only the program. Its digest must differ from the
/// digest of [`LONGSHORE`]: once a kubelet has pulled an image with a secret, pods without that
/// secret cannot use it under any name.
pub(crate) const PRIVATE: &str = "localhost/longshore/private:dev";
/// The default image of runs, as the container runtime names it.
pub(crate) const PYTHON: &str = "docker.io/library/python:3-slim";

const LONGSHORE_FILE: &str = "longshore.tar";
const PRIVATE_FILE: &str = "private.tar";
const PYTHON_FILE: &str = "python.tar";

/// The images to build.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The images to build; default: all.
    #[arg(value_enum)]
    images: Vec<ImageChoice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ImageChoice {
    /// The static program, as in docker/Dockerfile.
    Longshore,
    /// Python and a shell from Debian packages, in place of `python:3-slim`.
    Python,
}

/// Builds the images.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let all = [ImageChoice::Longshore, ImageChoice::Python];
    let chosen = all
        .into_iter()
        .filter(|image| arguments.images.is_empty() || arguments.images.contains(image));
    for image in chosen {
        let path = match image {
            ImageChoice::Longshore => build_longshore()?,
            ImageChoice::Python => python::build(&folder()?)?,
        };
        let size = fs::metadata(&path).map_or(0, |found| found.len() >> 20);
        println!("built {} ({size} MiB)", path.display());
    }
    Ok(())
}

/// Builds the program's image, because the program may have changed, and the Python image if it
/// does not exist.
pub(crate) fn build_missing() -> Outcome {
    let has_python = built_archives()
        .iter()
        .any(|path| path.ends_with(PYTHON_FILE));
    let images = if has_python {
        vec![ImageChoice::Longshore]
    } else {
        Vec::new()
    };
    run(&Arguments { images })
}

/// The existing archives.
pub(crate) fn built_archives() -> Vec<PathBuf> {
    let paths =
        [LONGSHORE_FILE, PRIVATE_FILE, PYTHON_FILE].map(|name| target().join("image").join(name));
    paths.into_iter().filter(|path| path.exists()).collect()
}

fn folder() -> Outcome<PathBuf> {
    let folder = target().join("image");
    create_folder(&folder)?;
    Ok(folder)
}

/// Creates an empty folder for the files of an image; removes an existing one.
fn create_empty_folder(path: &Path) -> Outcome {
    let _ = fs::remove_dir_all(path);
    create_folder(path)
}

fn create_folder(path: &Path) -> Outcome {
    fs::create_dir_all(path).map_err(|error| format!("cannot create {}: {error}", path.display()))
}

fn save(path: &Path, image: &Image<'_>, root: &Path) -> Outcome {
    write(path, image, root).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn build_longshore() -> Outcome<PathBuf> {
    let program = static_build::run()?;
    let folder = folder()?;
    let (root, path) = (folder.join("longshore"), folder.join(LONGSHORE_FILE));
    let bin = root.join("usr/local/bin");
    create_empty_folder(&root)?;
    create_folder(&bin)?;
    fs::copy(&program, bin.join("longshore"))
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

/// Builds an image with only a static program, as `/manager`.
pub(crate) fn build_from_program(folder: &Path, name: &str, program: &Path) -> Outcome<PathBuf> {
    let (root, path) = (folder.join("root"), folder.join("image.tar"));
    create_empty_folder(&root)?;
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

/// Builds [`PAUSE`].
pub(crate) fn build_pause(folder: &Path) -> Outcome<PathBuf> {
    let (files, path) = (folder.join("pause"), folder.join("pause.tar"));
    create_empty_folder(&files)?;
    let mut compiler = Command::new("cc");
    compiler
        .args(["-static", "-Os", "-o"])
        .arg(files.join("pause"));
    run_command(compiler.arg(root().join("xtask/kubernetes/pause.c")))?;
    let image = Image {
        name: PAUSE,
        entrypoint: &["/pause"],
        command: &[],
        keeps_owners: false,
    };
    save(&path, &image, &files)?;
    Ok(path)
}
