//! `longshore zenml`: pipelines of ZenML 0.3.

mod run;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::{error::Result, last_event};

/// Run pipelines of ZenML 0.3
///
/// Reads the YAML configs of ZenML 0.3's pipelines. See docs/zenml.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore zenml run pipelines/training_digits.yaml
  longshore zenml run training.yaml --image registry.example/team/zenml:1 --context production
  longshore zenml run training.yaml --dry-run")]
pub(crate) struct ZenmlArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Run(Box<run::ZenmlRunArgs>),
}

pub(crate) async fn zenml(args: ZenmlArgs) -> Result<ExitCode> {
    let Action::Run(args) = args.action;
    let result = run::run(&args).await;
    last_event::after_launch(args.format(), result.as_ref().err());
    result
}
