//! The operator of kubebuilder's tutorial. The module contains no operator, but the program
//! that writes it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    packages,
    run::{Outcome, run_command},
};

/// The folder of the tutorial's operator.
const OPERATOR: &str = "docs/book/src/cronjob-tutorial/testdata/project";

/// Builds kubebuilder and writes the operator, as `make generate-docs` does.
pub(super) fn prepare(copy: &Path) -> Outcome<PathBuf> {
    packages::install(&[("make", "make")])?;
    let program = copy.join("bin/kubebuilder");
    go(copy, &["build", "-o", "bin/kubebuilder", "."])?;
    // The module's own generator writes the operators of all tutorials.
    let generator = copy.join("hack/docs/cronjob");
    let source = format!(
        "package main\n\n\
         import tutorial \"sigs.k8s.io/kubebuilder/v4/hack/docs/internal/cronjob-tutorial\"\n\n\
         func main() {{\n\
         \tsample := tutorial.NewSample({program:?}, {OPERATOR:?})\n\
         \tsample.Prepare()\n\
         \tsample.GenerateSampleProject()\n\
         \tsample.UpdateTutorial()\n\
         }}\n"
    );
    fs::create_dir_all(&generator)
        .and_then(|()| fs::write(generator.join("main.go"), source))
        .map_err(|error| format!("{}: {error}", generator.display()))?;
    go(copy, &["run", "./hack/docs/cronjob"])?;
    Ok(copy.join(OPERATOR))
}

fn go(folder: &Path, arguments: &[&str]) -> Outcome {
    run_command(Command::new("go").current_dir(folder).args(arguments))
}
