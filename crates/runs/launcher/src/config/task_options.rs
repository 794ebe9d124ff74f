//! The options of tasks, declared like the options of a run (see `options`).

#[cfg(feature = "clap")]
use clap::builder::TypedValueParser as _;
use serde::Deserialize;

#[cfg(feature = "clap")]
use super::values::pair;
use super::{
    Command, DataEntry, EnvFrom, Located, Scalar, Template, Text, Toleration, Variable, Volume,
    data_entry, located::entries,
};

/// Options of tasks: of all tasks, or of those of one role.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args), group(skip))]
#[serde(default)]
pub struct TaskOptions {
    /// Container image
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Pods", display_order = 0))]
    pub image: Option<Text>,
    /// The command.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub command: Option<Command>,
    /// Environment variables.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(deserialize_with = "entries")]
    pub env: Vec<(Text, Variable)>,
    /// Secrets and ConfigMaps whose keys all become variables.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub env_from: Vec<EnvFrom>,
    /// Quantities by `cpu`, `memory`, `gpu`, or full resource name.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(deserialize_with = "entries")]
    pub resources: Vec<(Text, Located<Scalar>)>,
    /// Mount a volume of kind claim, secret, config-map, host or empty, as in
    /// claim:datasets:/data:ro; on the embedded cluster, a host folder can be relative,
    /// as in host:outputs:/outputs
    #[cfg_attr(
        feature = "clap",
        arg(
            long = "volume",
            value_name = "KIND:NAME:PATH",
            help_heading = "Pods",
            display_order = 8
        )
    )]
    pub volumes: Vec<Volume>,
    /// Give tasks a folder of this machine, or a prefix of a bucket, read-only, as in
    /// cifar=./data/cifar or models=s3://bucket/prefix:/models; they find it at PATH, which may be
    /// relative to the folder of the code, and at the variable LONGSHORE_DATA_NAME; can be repeated
    #[cfg_attr(
        feature = "clap",
        arg(
            long = "data",
            value_name = "NAME=SOURCE[:PATH]",
            help_heading = "Inputs",
            display_order = 1
        )
    )]
    #[serde(deserialize_with = "data_entry::entries")]
    pub data: Vec<DataEntry>,
    /// Keep files that match this pattern when a task ends, for `longshore outputs`, as in
    /// 'checkpoints/**' or '*.json'; can be repeated
    #[cfg_attr(
        feature = "clap",
        arg(
            long = "output-files",
            value_name = "PATTERN",
            help_heading = "Outputs",
            display_order = 1
        )
    )]
    pub outputs: Vec<Text>,
    /// Maximum size of the outputs of a task [default: 10Gi]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "SIZE", help_heading = "Outputs", display_order = 2)
    )]
    pub output_size_limit: Option<Text>,
    /// Maximum number of output files of a task [default: 10000]
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "N",
            value_parser = clap::value_parser!(u32).map(Located::from),
            help_heading = "Outputs",
            display_order = 3
        )
    )]
    pub output_file_limit: Option<Located<u32>>,
    /// PersistentVolumeClaim to which tasks write their outputs, on clusters other than the
    /// embedded one; instead of the store
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAME", help_heading = "Outputs", display_order = 4)
    )]
    pub outputs_claim: Option<Text>,
    /// Keep the outputs of running tasks at this interval, too, as in 10m; on clusters other
    /// than the embedded one
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "TIME", help_heading = "Outputs", display_order = 5)
    )]
    pub outputs_every: Option<Text>,
    /// Size of /dev/shm, as in 8Gi
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "SIZE", help_heading = "Pods", display_order = 9)
    )]
    pub shared_memory: Option<Text>,
    /// Run only on nodes with this label
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "KEY=VALUE",
            value_parser = |text: &str| pair("--node-selector", text),
            help_heading = "Pods",
            display_order = 10
        )
    )]
    #[serde(deserialize_with = "entries")]
    pub node_selector: Vec<(Text, Text)>,
    /// Tolerate this taint
    #[cfg_attr(
        feature = "clap",
        arg(
            long = "toleration",
            value_name = "KEY[=VALUE][:EFFECT]",
            help_heading = "Pods",
            display_order = 11
        )
    )]
    pub tolerations: Vec<Toleration>,
    /// Affinity, as in a pod's spec.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub affinity: Option<toml::Table>,
    /// Name of a PriorityClass
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAME", help_heading = "Pods", display_order = 12)
    )]
    pub priority_class: Option<Text>,
    /// Use the network of the node (`hostNetwork`), for InfiniBand, RoCE, and MPI on the embedded
    /// cluster
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "true|false",
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "true",
            value_parser = clap::builder::BoolValueParser::new().map(Located::from),
            hide_possible_values = true,
            help_heading = "Pods",
            display_order = 12
        )
    )]
    pub host_network: Option<Located<bool>>,
    /// Grace period of a task between SIGTERM and SIGKILL.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub termination_grace: Option<Text>,
    /// YAML pod template to merge over the generated one
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "FILE",
            value_parser = clap::builder::PathBufValueParser::new().map(Template::from),
            value_hint = clap::ValueHint::AnyPath,
            help_heading = "Pods",
            display_order = 18
        )
    )]
    pub template: Option<Template>,
}
