//! The arguments of `longshore resolve`, parsed and checked.

use std::{collections::BTreeMap, time::Duration};

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    client::{Cluster, LabelSelector},
    resolver::{self, Address, Assembly, Doubled, Family, Generation, Order, Policy, Port, render},
};

use crate::{
    complete,
    error::{Error, Kind, Result},
    target::ClusterArgs,
};

/// Print the cluster spec of a distributed job
///
/// With selectors: the addresses of the matching pods, in the order of their completion
/// indices or of the numbers in their names. With a run: the spec that its tasks see.
///
/// A selector is a list of requirements with commas. A label that occurs a second time
/// begins another selector: job-name=a,job-name=b selects the pods of two Jobs, in that
/// order.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore resolve --job worker=job-name=train
  longshore resolve --job worker=job-name=train --job ps=job-name=ps-1,job-name=ps-2 --wait worker=4
  longshore resolve --job worker=app=train --format torch --task worker:1
  longshore resolve --job worker=app=train --format hostfile > hostfile
  eval \"$(longshore resolve --job worker=app=train --format shell --task worker:0)\"
  longshore resolve --job worker=app=train --watch
  longshore resolve --job worker=app=train --task worker:0 --master
  longshore resolve --job worker=app=train --accelerators
  longshore resolve digits-x7k2p --format tf-config --task worker:0")]
pub(crate) struct ResolveArgs {
    /// Run, instead of selectors: its name, a prefix of it, or `last`
    #[arg(value_name = "RUN", add = ArgValueCompleter::new(complete::runs), conflicts_with_all = ["jobs", "wait", "watch"])]
    run: Option<String>,
    /// Pods of a role; can be repeated for more roles and more selectors
    #[arg(long = "job", short, value_name = "ROLE=SELECTOR")]
    jobs: Vec<String>,
    /// Output format
    #[arg(long, short, visible_alias = "output", value_enum, default_value_t)]
    format: FormatName,
    /// Print the URL of the task, with this protocol: --master=http
    #[arg(
        long,
        value_name = "PROTOCOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "grpc",
        conflicts_with_all = ["run", "format", "watch"],
        requires = "task"
    )]
    master: Option<String>,
    /// Print the accelerators of each task as JSON: their numbers by resource, and their model if the
    /// nodes may be read
    #[arg(long, conflicts_with_all = ["run", "format", "watch", "task", "master"])]
    accelerators: bool,
    /// Task that the output is for, as in worker:0; self is the pod this runs in
    #[arg(long, value_name = "ROLE:INDEX")]
    task: Option<String>,
    /// Wait until a role has this many running pods
    #[arg(long, value_name = "ROLE=N")]
    wait: Vec<String>,
    /// Seconds to wait for them
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Print the spec each time that pods join or leave
    ///
    /// Prints one line of JSON per change: generation, cluster, joined, left. With --wait,
    /// prints only while there are that many pods.
    #[arg(long, short)]
    watch: bool,
    /// Port of the tasks: a number, or the name of a container's port
    /// [default: 8470; torch 29500, jax 8476, ray 6379]
    #[arg(long)]
    port: Option<String>,
    /// Address of a pod to use
    #[arg(long, value_enum, default_value_t)]
    address: AddressName,
    /// Address family, for pods with two
    #[arg(long, value_enum)]
    family: Option<FamilyName>,
    /// Order of the pods
    #[arg(long, value_enum, default_value_t)]
    order: OrderName,
    /// Handling of pods that are not running
    #[arg(long, value_enum, default_value_t)]
    not_running: NotRunning,
    /// Require pods to be ready, not only running
    #[arg(long)]
    ready: bool,
    /// Count a pod that two selectors match only once, instead of failing
    #[arg(long)]
    once: bool,
    /// Select pods as TensorFlow's own resolver does
    ///
    /// Node addresses, names in byte order, all namespaces, only the phase of pods, and a pod
    /// once for each selector that matches it.
    #[arg(long, conflicts_with_all = ["address", "order", "not_running", "ready", "once"])]
    tensorflow: bool,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    /// All namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
}

/// Output formats, named as in the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum FormatName {
    /// Value of TF_CONFIG of one task
    TfConfig,
    /// PyTorch's variables of one task
    Torch,
    /// JAX's variables of one task
    Jax,
    /// One line per host, for Open MPI and Horovod: host slots=N
    Hostfile,
    /// The same, for DeepSpeed
    Deepspeed,
    /// RAY_ADDRESS
    Ray,
    /// Roles and their addresses, as JSON
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
    /// Omit pods that have ended; fail for pods that have not started
    SkipFinished,
    /// Omit all of them
    Skip,
    /// Include pods that have not started: their names are known in advance
    Keep,
}

/// The task that the output is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Who {
    Task(String, u32),
    /// The pod that this process runs in.
    Own,
}

/// The parsed arguments.
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
    /// The protocol of the URL to print, instead of the spec.
    pub(super) master: Option<String>,
    /// Print the accelerators instead of the spec.
    pub(super) accelerators: bool,
    namespace: Option<String>,
    all_namespaces: bool,
}

impl Question {
    /// The namespace; `None` for all namespaces.
    pub(super) fn namespace<'a>(&'a self, cluster: &'a Cluster) -> Option<&'a str> {
        let own = self.namespace.as_deref();
        (!self.all_namespaces).then(|| own.unwrap_or_else(|| cluster.default_namespace()))
    }

    /// Returns true if a generation has fewer tasks than the command needs.
    pub(super) fn lacks(&self, generation: &Generation) -> bool {
        let mut needed = self.needed.iter();
        needed.any(|(role, number)| generation.tasks.of_role(role).count() < *number)
    }
}

impl ResolveArgs {
    pub(super) fn question(&self) -> Result<Question> {
        if self.run.is_none() && self.jobs.is_empty() {
            return Err(Error::usage(
                "no pods are selected: specify a run, or a selector for each role",
            )
            .hint("as in `longshore resolve --job worker=job-name=train`"));
        }
        let format = self.format.meant();
        let task = self.task.as_deref().map(who).transpose()?;
        if task.is_none() && format.is_of_a_task() {
            let message = format!("the format {} describes a single task", format.name());
            return Err(Error::usage(message)
                .hint("specify the task: `--task worker:0`, or `--task self` in a pod"));
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
                    .hint(format!("`--job {role}=SELECTOR` selects its pods")),
            );
        }
        Ok(Question {
            run: self.run.clone(),
            mapping,
            assembly: self.assembly(port),
            format,
            task,
            needed,
            limit: Duration::from_secs(self.timeout),
            watch: self.watch,
            master: self.master.clone(),
            accelerators: self.accelerators,
            namespace: self.namespace.clone(),
            all_namespaces: self.all_namespaces || (self.tensorflow && self.namespace.is_none()),
        })
    }

    fn assembly(&self, port: Port) -> Assembly {
        let family = match self.family {
            None => Family::Primary,
            Some(FamilyName::Ipv4) => Family::V4,
            Some(FamilyName::Ipv6) => Family::V6,
        };
        if self.tensorflow {
            return Assembly {
                port,
                family,
                ..Assembly::tensorflow()
            };
        }
        Assembly {
            port,
            address: self.address(),
            family,
            order: match self.order {
                OrderName::Natural => Order::Natural,
                OrderName::Lexical => Order::Lexical,
                OrderName::CompletionIndex => Order::CompletionIndex,
            },
            policy: self.policy(),
        }
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
    // Role names contain neither character. Logs of runs use the slash.
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
    fn a_format_has_its_default_port() {
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
    fn one_option_selects_tensorflows_behaviour() {
        let question = asked(&["--job", "worker=a=b", "--tensorflow", "--port", "2222"]).unwrap();
        let port = Port::Number(2222);
        let expected = Assembly {
            port,
            ..Assembly::tensorflow()
        };
        assert_eq!(question.assembly, expected);
        assert!(question.all_namespaces);
        let in_one = asked(&["--job", "worker=a=b", "--tensorflow", "-n", "team"]).unwrap();
        assert!(!in_one.all_namespaces);
        let words = ["resolve", "--job", "worker=a=b", "--tensorflow", "--once"];
        assert!(Program::try_parse_from(words).is_err());
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
