//! `longshore resolve`: the cluster spec of a distributed job.

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use base64::Engine as _;
use clap::{Args, ValueEnum};
use longshore::{
    client::{Cluster, LabelSelector},
    launcher::{Run, names, pod, runs},
    resolver::{self, ClusterSpec, Resolver, pods::Assembly, render},
};

use crate::{
    config,
    error::{Error, Kind, Result},
    output::{self, Format},
    target::ClusterArgs,
};

/// Turn pods, or a run, into the cluster spec of a distributed job
///
/// Of a run: the spec that its tasks see. Of selectors: the addresses of the
/// pods that they match, in the order of their numbers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore resolve digits-x7k2p
  longshore resolve worker=job-name=tensorflow --port 2222
  longshore resolve worker=app=train,role=worker ps=app=train,role=ps --wait worker=4
  longshore resolve digits-x7k2p --output tf-config --task worker/1")]
pub(crate) struct ResolveArgs {
    /// A run's name, or the pods of each role as ROLE=SELECTOR
    #[arg(required = true, value_name = "RUN|ROLE=SELECTOR")]
    what: Vec<String>,
    /// The port of the pods that selectors match
    #[arg(long, default_value_t = 8470)]
    port: u16,
    /// Wait until a role has so many running pods
    #[arg(long, value_name = "ROLE=N")]
    wait: Vec<String>,
    /// How many seconds to wait for them
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// What to write
    #[arg(long, short, value_enum, default_value_t)]
    output: SpecFormat,
    /// The task that a tf-config is for, as in worker/0
    #[arg(long, value_name = "ROLE/INDEX", required_if_eq("output", "tf-config"))]
    task: Option<String>,
    /// The namespace; the context's own without it
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// The forms of a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum SpecFormat {
    /// Role to addresses, as JSON
    #[default]
    Json,
    /// The same as YAML
    Yaml,
    /// The value of TF_CONFIG for one task
    TfConfig,
}

/// What is to be resolved.
#[derive(Debug, PartialEq)]
enum What {
    Run(String),
    Selectors(Vec<(String, Vec<LabelSelector>)>),
}

pub(crate) async fn resolve(args: ResolveArgs) -> Result<ExitCode> {
    let what = read_what(&args.what)?;
    let needed = args
        .wait
        .iter()
        .map(|text| count(text))
        .collect::<Result<BTreeMap<_, _>>>()?;
    let task = args.task.as_deref().map(read_task).transpose()?;
    if let (What::Run(_), false) = (&what, needed.is_empty()) {
        return Err(Error::usage(
            "--wait is for selectors: the tasks of a run have names that are known before they start",
        ));
    }
    let target = args.cluster.open(&config::here()?).await?;
    let spec = find(target.cluster(), &what, &needed, &args).await;
    target.close().await?;
    let spec = spec?;
    match args.output {
        SpecFormat::Json => output::value(Format::Json, &spec.as_dict())?,
        SpecFormat::Yaml => output::value(Format::Yaml, &spec.as_dict())?,
        SpecFormat::TfConfig => {
            let (role, index) = task.unwrap_or_default();
            spec.task_address(&role, index)
                .map_err(|error| Error::from_source(Kind::Usage, &error))?;
            output::value(Format::Json, &render::tf_config(&spec, &role, index))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn find(
    cluster: &Cluster,
    what: &What,
    needed: &BTreeMap<String, usize>,
    args: &ResolveArgs,
) -> Result<ClusterSpec> {
    let namespace = args
        .namespace
        .as_deref()
        .unwrap_or_else(|| cluster.default_namespace());
    let mapping = match what {
        What::Run(name) => {
            let found = runs::find(cluster, namespace, name).await?;
            return spec_of_run(cluster, &found.run).await;
        }
        What::Selectors(mapping) => mapping.clone(),
    };
    let resolver = Resolver::new(cluster.clone())
        .with_namespace(Some(namespace))
        .with_mapping(mapping)
        .with_assembly(Assembly {
            port: args.port,
            ..Assembly::default()
        });
    let spec = if needed.is_empty() {
        resolver.cluster_spec().await
    } else {
        resolver
            .wait(needed, Duration::from_secs(args.timeout))
            .await
    };
    spec.map_err(|error| match error {
        resolver::Error::Cluster(error) => error.into(),
        resolver::Error::Missing { .. } => Error::from_source(Kind::Failed, &error)
            .hint("`longshore get pods` shows them; --timeout waits longer"),
        other => Error::from_source(Kind::Failed, &other),
    })
}

/// The spec that a run's tasks were given.
async fn spec_of_run(cluster: &Cluster, run: &Run) -> Result<ClusterSpec> {
    let secrets = cluster
        .secrets()
        .in_namespace(&run.namespace)?
        .filter(&format!("{}={}", names::RUN, run.name.as_str()))?;
    for secret in secrets.list().await?.items {
        let Some(text) = secret.field::<String>(&["data", pod::FILE])? else {
            continue;
        };
        let config = base64::engine::general_purpose::STANDARD
            .decode(text)
            .ok()
            .and_then(|text| serde_json::from_slice::<pod::PodConfig>(&text).ok());
        if let Some(config) = config {
            return Ok(config.cluster_spec());
        }
    }
    Err(Error::new(
        Kind::Failed,
        format!(
            "the run {} has lost the record of its tasks",
            run.name.as_str()
        ),
    ))
}

fn read_what(words: &[String]) -> Result<What> {
    if let [name] = words
        && !name.contains('=')
    {
        return Ok(What::Run(name.clone()));
    }
    let mut mapping: Vec<(String, Vec<LabelSelector>)> = Vec::new();
    for word in words {
        let (role, selector) = word
            .split_once('=')
            .filter(|(role, selector)| !role.is_empty() && !selector.is_empty())
            .ok_or_else(|| {
                Error::usage(format!("{word:?} is not of the form ROLE=SELECTOR"))
                    .hint("as in `worker=job-name=tensorflow`, or one run's name alone")
            })?;
        let selector = selector
            .parse::<LabelSelector>()
            .map_err(|error| Error::from_source(Kind::Usage, &error))?;
        match mapping.iter_mut().find(|(known, _)| known == role) {
            Some((_, selectors)) => selectors.push(selector),
            None => mapping.push((role.to_owned(), vec![selector])),
        }
    }
    Ok(What::Selectors(mapping))
}

fn count(text: &str) -> Result<(String, usize)> {
    let parts = text
        .split_once('=')
        .and_then(|(role, n)| Some((role, n.parse().ok()?)));
    let (role, number) = parts.filter(|(role, _)| !role.is_empty()).ok_or_else(|| {
        Error::usage(format!("invalid --wait {text:?}")).hint("as in `--wait worker=4`")
    })?;
    Ok((role.to_owned(), number))
}

fn read_task(text: &str) -> Result<(String, u32)> {
    let parts = text
        .rsplit_once('/')
        .and_then(|(role, n)| Some((role, n.parse().ok()?)));
    let (role, index) = parts.filter(|(role, _)| !role.is_empty()).ok_or_else(|| {
        Error::usage(format!("invalid --task {text:?}")).hint("as in `--task worker/0`")
    })?;
    Ok((role.to_owned(), index))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn words(words: &[&str]) -> Result<What> {
        read_what(
            &words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn runs_and_selectors_are_told_apart() {
        assert_eq!(
            words(&["digits-x7k2p"]).unwrap(),
            What::Run("digits-x7k2p".into())
        );
        let mapping = words(&["worker=app=a,tier in (x,y)", "ps=app=b", "worker=app=c"]).unwrap();
        let selector = |text: &str| text.parse::<LabelSelector>().unwrap();
        assert_eq!(
            mapping,
            What::Selectors(vec![
                (
                    "worker".into(),
                    vec![selector("app=a,tier in (x,y)"), selector("app=c")]
                ),
                ("ps".into(), vec![selector("app=b")]),
            ])
        );
        for wrong in [&["a", "b"][..], &["=x"], &["worker="], &["worker=a b"]] {
            assert_eq!(words(wrong).unwrap_err().kind(), Kind::Usage, "{wrong:?}");
        }
    }

    #[test]
    fn counts_and_tasks() {
        assert_eq!(count("worker=4").unwrap(), ("worker".into(), 4));
        assert_eq!(read_task("worker/1").unwrap(), ("worker".into(), 1));
        assert!(count("worker").is_err() && count("=1").is_err());
        assert!(read_task("worker").is_err() && read_task("/1").is_err());
    }
}
