//! What `longshore resolve` is asked, as written and as meant.

use std::{collections::BTreeMap, time::Duration};

use clap::{Args, ValueEnum};
use longshore::{
    client::{Cluster, LabelSelector},
    resolver::{self, Address, Assembly, Doubled, Family, Generation, Order, Policy, Port, render},
};

use crate::{
    error::{Error, Kind, Result},
    target::ClusterArgs,
};

/// Turn pods, or a run, into the cluster spec of a distributed job
///
/// Of selectors: the addresses of the pods that they match, in the order of
/// their completion indices or of the numbers in their names. Of a run: what its
/// tasks see.
///
/// In a selector, commas join what a pod's labels must be; a label that comes
/// twice begins another selector, so that `job-name=a,job-name=b` are the pods of
/// two Jobs, in that order.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore resolve --job worker=job-name=train
  longshore resolve --job worker=job-name=train --job ps=job-name=ps-1,job-name=ps-2 --wait worker=4
  longshore resolve --job worker=app=train --format torch --task worker:1
  longshore resolve --job worker=app=train --format hostfile > hostfile
  eval \"$(longshore resolve --job worker=app=train --format shell --task self)\"
  longshore resolve --job worker=app=train --watch
  longshore resolve digits-x7k2p --format tf-config --task worker:0")]
pub(crate) struct ResolveArgs {
    /// A run, instead of selectors
    #[arg(value_name = "RUN", conflicts_with_all = ["jobs", "wait", "watch"])]
    run: Option<String>,
    /// The pods of a role; comes once for each role, or for each selector
    #[arg(long = "job", short, value_name = "ROLE=SELECTOR")]
    jobs: Vec<String>,
    /// What to write
    #[arg(long, short, visible_alias = "output", value_enum, default_value_t)]
    format: FormatName,
    /// The task that it is for, as in worker:0; self: the pod this runs in
    #[arg(long, value_name = "ROLE:INDEX")]
    task: Option<String>,
    /// Wait until a role has so many running pods
    #[arg(long, value_name = "ROLE=N")]
    wait: Vec<String>,
    /// How many seconds to wait for them
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Go on: write it again whenever pods come or go
    ///
    /// As JSON, a line each time: generation, cluster, joined, left. With --wait,
    /// only while there are so many.
    #[arg(long, short)]
    watch: bool,
    /// The port of the tasks: a number, or the name of a container's port
    /// [default: 8470; torch 29500, jax 8476, ray 6379]
    #[arg(long)]
    port: Option<String>,
    /// Which address of a pod
    #[arg(long, value_enum, default_value_t)]
    address: AddressName,
    /// Of which family, where pods have two
    #[arg(long, value_enum)]
    family: Option<FamilyName>,
    /// In which order pods become tasks
    #[arg(long, value_enum, default_value_t)]
    order: OrderName,
    /// What to do about pods that do not run
    #[arg(long, value_enum, default_value_t)]
    not_running: NotRunning,
    /// Running is not enough: pods must be ready
    #[arg(long)]
    ready: bool,
    /// Count a pod that two selectors match once, instead of refusing it
    #[arg(long)]
    once: bool,
    /// The namespace; the context's own without it
    #[arg(long, short)]
    namespace: Option<String>,
    /// All namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
}

/// The names of formats are the library's; the words about them are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum FormatName {
    /// The value of TF_CONFIG, of one task
    TfConfig,
    /// PyTorch's variables, of one task
    Torch,
    /// JAX's variables, of one task
    Jax,
    /// A line a host, for Open MPI and Horovod: host slots=N
    Hostfile,
    /// The same, for DeepSpeed
    Deepspeed,
    /// RAY_ADDRESS
    Ray,
    /// Role to addresses, as JSON
    #[default]
    Json,
    /// The same as YAML
    Yaml,
    /// All variables of one task, as NAME=value lines
    Env,
    /// The same, for a shell to eval
    Shell,
}

impl FormatName {
    fn meant(self) -> render::Format {
        use render::Format;
        match self {
            Self::TfConfig => Format::TfConfig,
            Self::Torch => Format::Torch,
            Self::Jax => Format::Jax,
            Self::Hostfile => Format::Hostfile,
            Self::Deepspeed => Format::DeepSpeed,
            Self::Ray => Format::Ray,
            Self::Json => Format::Json,
            Self::Yaml => Format::Yaml,
            Self::Env => Format::Env,
            Self::Shell => Format::Shell,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum AddressName {
    /// The pod's own
    #[default]
    PodIp,
    /// Its node's
    HostIp,
    /// Its name behind a headless Service
    Dns,
    /// Its host name alone
    Hostname,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FamilyName {
    /// IPv4
    Ipv4,
    /// IPv6
    Ipv6,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum OrderName {
    /// By completion index, if all have one, else by the numbers in their names
    #[default]
    Natural,
    /// By name, byte by byte, as TensorFlow's own resolver does
    Lexical,
    /// By completion index, which all must have
    CompletionIndex,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum NotRunning {
    /// Fail
    #[default]
    Fail,
    /// Leave out those that have ended; fail for those that have not begun
    SkipFinished,
    /// Leave out all of them
    Skip,
    /// Take those that have not begun, too: their names are known beforehand
    Keep,
}

/// Whom something is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Who {
    Task(String, u32),
    /// The pod this process runs in.
    Own,
}

/// What is asked.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) run: Option<String>,
    pub(super) mapping: Vec<(String, Vec<LabelSelector>)>,
    pub(super) assembly: Assembly,
    pub(super) format: render::Format,
    pub(super) task: Option<Who>,
    pub(super) needed: BTreeMap<String, usize>,
    pub(super) limit: Duration,
    pub(super) watch: bool,
    namespace: Option<String>,
    all_namespaces: bool,
}

impl Question {
    /// Where to look; `None`: everywhere.
    pub(super) fn namespace<'a>(&'a self, cluster: &'a Cluster) -> Option<&'a str> {
        let own = self.namespace.as_deref();
        (!self.all_namespaces).then(|| own.unwrap_or_else(|| cluster.default_namespace()))
    }

    /// Whether a generation has fewer tasks than it needs.
    pub(super) fn lacks(&self, generation: &Generation) -> bool {
        let mut needed = self.needed.iter();
        needed.any(|(role, number)| generation.tasks.of_role(role).count() < *number)
    }
}

impl ResolveArgs {
    pub(super) fn question(&self) -> Result<Question> {
        if self.run.is_none() && self.jobs.is_empty() {
            return Err(
                Error::usage("nobody is named: give a run, or the pods of each role")
                    .hint("as in `longshore resolve --job worker=job-name=train`"),
            );
        }
        let format = self.format.meant();
        let task = self.task.as_deref().map(who).transpose()?;
        if task.is_none() && format.is_of_a_task() {
            let message = format!("the format {} is of one task", format.name());
            return Err(
                Error::usage(message).hint("name it: `--task worker:0`, or `--task self` in a pod")
            );
        }
        let port = match &self.port {
            Some(text) => text
                .parse()
                .map_err(|error| Error::from_source(Kind::Usage, &error))?,
            None => Port::Number(format.default_port()),
        };
        let needed = self.wait.iter().map(|text| count(text));
        let needed: BTreeMap<_, _> = needed.collect::<Result<_>>()?;
        let mut mapping = Vec::new();
        for word in &self.jobs {
            mapping.push(role(word)?);
        }
        if let Some(role) = needed
            .keys()
            .find(|role| !mapping.iter().any(|(known, _)| known == *role))
        {
            return Err(
                Error::usage(format!("--wait names the role {role:?}, and no --job does"))
                    .hint(format!("`--job {role}=SELECTOR` says which pods it has")),
            );
        }
        Ok(Question {
            run: self.run.clone(),
            mapping,
            assembly: Assembly {
                port,
                address: self.address(),
                family: match self.family {
                    None => Family::Primary,
                    Some(FamilyName::Ipv4) => Family::V4,
                    Some(FamilyName::Ipv6) => Family::V6,
                },
                order: match self.order {
                    OrderName::Natural => Order::Natural,
                    OrderName::Lexical => Order::Lexical,
                    OrderName::CompletionIndex => Order::CompletionIndex,
                },
                policy: self.policy(),
            },
            format,
            task,
            needed,
            limit: Duration::from_secs(self.timeout),
            watch: self.watch,
            namespace: self.namespace.clone(),
            all_namespaces: self.all_namespaces,
        })
    }

    fn address(&self) -> Address {
        match self.address {
            AddressName::PodIp => Address::PodIp,
            AddressName::HostIp => Address::HostIp,
            AddressName::Dns => Address::Dns,
            AddressName::Hostname => Address::Hostname,
        }
    }

    fn policy(&self) -> Policy {
        let not_running = match self.not_running {
            NotRunning::Fail => resolver::NotRunning::Fail,
            NotRunning::SkipFinished => resolver::NotRunning::SkipFinished,
            NotRunning::Skip => resolver::NotRunning::Skip,
            NotRunning::Keep => resolver::NotRunning::Keep,
        };
        let mut policy = Policy::of(not_running, self.ready);
        if self.once {
            policy.doubled = Doubled::First;
        }
        policy
    }
}

fn role(word: &str) -> Result<(String, Vec<LabelSelector>)> {
    let (role, text) = word
        .split_once('=')
        .filter(|(role, text)| !role.is_empty() && !text.is_empty())
        .ok_or_else(|| {
            Error::usage(format!("{word:?} is not of the form ROLE=SELECTOR"))
                .hint("as in `--job worker=job-name=tensorflow`")
        })?;
    let selectors = LabelSelector::alternatives(text);
    let selectors = selectors.map_err(|error| Error::from_source(Kind::Usage, &error))?;
    Ok((role.to_owned(), selectors))
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

fn who(text: &str) -> Result<Who> {
    if text == "self" {
        return Ok(Who::Own);
    }
    // Names of roles have neither; a slash is how runs write it in their logs.
    let parts = text
        .rsplit_once([':', '/'])
        .and_then(|(role, n)| Some((role, n.parse().ok()?)));
    let (role, index) = parts.filter(|(role, _)| !role.is_empty()).ok_or_else(|| {
        Error::usage(format!("invalid --task {text:?}"))
            .hint("as in `--task worker:0`, or `--task self` in a pod")
    })?;
    Ok(Who::Task(role.to_owned(), index))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: ResolveArgs,
    }

    fn asked(words: &[&str]) -> Result<Question> {
        let words = ["resolve"].iter().chain(words);
        let program = Program::try_parse_from(words).unwrap();
        program.args.question()
    }

    #[test]
    fn roles_and_their_selectors() {
        let question = asked(&[
            "--job",
            "worker=app=a,tier in (x,y)",
            "--job",
            "ps=job-name=p-1,job-name=p-2",
        ])
        .unwrap();
        let selector = |text: &str| text.parse::<LabelSelector>().unwrap();
        assert_eq!(
            question.mapping,
            [
                ("worker".to_owned(), vec![selector("app=a,tier in (x,y)")]),
                (
                    "ps".to_owned(),
                    vec![selector("job-name=p-1"), selector("job-name=p-2")]
                ),
            ]
        );
        for wrong in ["worker", "=x", "worker=", "worker=a b"] {
            let error = asked(&["--job", wrong]).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage, "{wrong}");
        }
    }

    #[test]
    fn counts_and_tasks() {
        assert_eq!(count("worker=4").unwrap(), ("worker".into(), 4));
        assert_eq!(who("worker:1").unwrap(), Who::Task("worker".into(), 1));
        assert_eq!(who("worker/1").unwrap(), Who::Task("worker".into(), 1));
        assert_eq!(who("self").unwrap(), Who::Own);
        assert!(count("worker").is_err() && count("=1").is_err());
        assert!(who("worker").is_err() && who(":1").is_err() && who("a:b").is_err());
        assert!(asked(&["--job", "worker=a=b", "--wait", "ps=1"]).is_err());
        assert!(asked(&["--job", "worker=a=b", "--format", "torch"]).is_err());
    }

    #[test]
    fn a_format_brings_its_port() {
        let port = |words: &[&str]| {
            let words: Vec<&str> = ["--job", "worker=a=b", "--task", "worker:0"]
                .iter()
                .chain(words)
                .copied()
                .collect();
            asked(&words).unwrap().assembly.port
        };
        assert_eq!(port(&[]), Port::Number(8470));
        assert_eq!(port(&["--format", "torch"]), Port::Number(29500));
        assert_eq!(
            port(&["--format", "ray", "--port", "http"]),
            Port::Named("http".to_owned())
        );
        assert!(asked(&["--job", "worker=a=b", "--port", "0"]).is_err());
    }

    #[test]
    fn policies() {
        let policy = |words: &[&str]| {
            let words: Vec<&str> = ["--job", "worker=a=b"]
                .iter()
                .chain(words)
                .copied()
                .collect();
            asked(&words).unwrap().assembly.policy
        };
        assert_eq!(policy(&[]), Policy::default());
        assert_eq!(policy(&["--not-running", "skip"]), Policy::running());
        assert_eq!(
            policy(&["--not-running", "skip", "--ready"]),
            Policy::ready()
        );
        assert_eq!(policy(&["--once"]).doubled, Doubled::First);
        assert_eq!(
            policy(&["--not-running", "keep"]).pending,
            resolver::Act::Keep
        );
    }
}
