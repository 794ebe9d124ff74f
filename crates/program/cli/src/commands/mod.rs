//! The commands: one file per command, with its arguments and implementation.

mod apply;
mod attach;
pub(crate) mod bootstrap;
mod cancel;
mod completions;
mod controllers;
mod cp;
mod data;
mod delete;
mod describe;
mod dev;
mod diff;
mod down;
mod envtest;
mod exec;
mod forward;
mod get;
mod label;
mod logs;
mod metrics;
mod note;
mod outputs;
mod port_forward;
mod record;
mod replay;
mod resolve;
mod resume;
mod retry;
mod rm;
mod role;
pub(crate) mod run;
mod runs;
mod shell;
mod ssh;
mod ssh_proxy;
mod status;
mod sweep;
mod tag;
mod top;
mod ui;
mod up;
mod wait;
mod watch;
mod why;
mod zenml;

use std::process::ExitCode;

use clap::Subcommand;

use crate::error::Result;

/// A command and its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<run::RunArgs>),
    /// Run a folder of code, and restart it with each change
    ///
    /// As `longshore run`, but the pods stay: a change in the folder is sent to all tasks of
    /// all roles, and their commands are restarted. Only changed files are sent, those that
    /// `longshore run` would pack. A command that fails waits for the next change.
    ///
    /// Keys: r restarts without a change, q ends the run and removes its pods, d leaves and
    /// keeps them. Ctrl-C works like q; with --keep, it works like d.
    ///
    /// --run attaches to a run that was left, or whose `longshore dev` was killed: the tasks
    /// get the files that have changed since then. If none has, the command continues. A
    /// `longshore dev` that is still attached to the run ends.
    #[command(mut_args = dev::adapted, after_help = "Examples:
  longshore dev -- python train.py
  longshore dev examples/digits --role worker=2
  longshore dev --grace 10s --keep -- python serve.py
  longshore dev --run last
  longshore dev --run digits-x7k2p --restart-now")]
    Dev(Box<dev::DevArgs>),
    Shell(shell::ShellArgs),
    Ssh(Box<ssh::SshArgs>),
    Forward(forward::ForwardArgs),
    Runs(runs::RunsArgs),
    Logs(logs::LogsArgs),
    Attach(attach::AttachArgs),
    Outputs(outputs::OutputsArgs),
    Data(data::DataArgs),
    Sweep(sweep::SweepArgs),
    Retry(retry::RetryArgs),
    Why(why::WhyArgs),
    Top(top::TopArgs),
    Metrics(metrics::MetricsArgs),
    Diff(diff::DiffArgs),
    Tag(tag::TagArgs),
    Note(note::NoteArgs),
    Ui(ui::UiArgs),
    Cancel(cancel::CancelArgs),
    Resume(resume::ResumeArgs),
    Rm(rm::RmArgs),
    Get(get::GetArgs),
    Describe(describe::DescribeArgs),
    Watch(watch::WatchArgs),
    Create(apply::CreateArgs),
    Apply(apply::ApplyArgs),
    Label(label::LabelArgs),
    Wait(wait::WaitArgs),
    Delete(delete::DeleteArgs),
    Exec(exec::ExecArgs),
    Cp(cp::CpArgs),
    PortForward(port_forward::PortForwardArgs),
    Resolve(resolve::ResolveArgs),
    Role(role::RoleArgs),
    Zenml(zenml::ZenmlArgs),
    Up(up::UpArgs),
    Down(down::DownArgs),
    Status(status::StatusArgs),
    Envtest(envtest::EnvtestArgs),
    Controllers(controllers::ControllersArgs),
    Record(record::RecordArgs),
    Replay(replay::ReplayArgs),
    Completions(completions::CompletionsArgs),
    /// Print the version
    #[command(hide = true)]
    Version,
    #[command(name = "ssh-proxy", hide = true)]
    SshProxy(ssh_proxy::SshProxyArgs),
}

impl Command {
    /// Returns true if the command runs a server in this process.
    pub(crate) fn is_server(&self) -> bool {
        match self {
            Self::Up(args) => args.is_foreground(),
            Self::Envtest(args) => args.is_server(),
            Self::Controllers(_) | Self::Record(_) | Self::Replay(_) => true,
            _ => false,
        }
    }

    /// Returns true if the command serves requests, and so uses several threads.
    pub(crate) fn serves(&self) -> bool {
        self.is_server() || matches!(self, Self::Ui(_))
    }

    /// The data folder whose log this process writes, if it is the background process of a
    /// cluster.
    pub(crate) fn log_folder(&self) -> Option<longshore_embedded::Layout> {
        match self {
            Self::Up(args) => args.log_folder(),
            _ => None,
        }
    }
}

/// Executes a command.
pub(crate) async fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(*args).await,
        Command::Dev(args) => dev::dev(*args).await,
        Command::Shell(args) => shell::shell(args).await,
        Command::Ssh(args) => ssh::ssh(*args).await,
        Command::SshProxy(args) => ssh_proxy::ssh_proxy(args).await,
        Command::Forward(args) => forward::forward(args).await,
        Command::Runs(args) => runs::runs(args).await,
        Command::Logs(args) => logs::logs(args).await,
        Command::Outputs(args) => outputs::outputs(args).await,
        Command::Data(args) => data::data(args).await,
        Command::Sweep(args) => sweep::sweep(args).await,
        Command::Retry(args) => retry::retry(args).await,
        Command::Why(args) => why::why(args).await,
        Command::Metrics(args) => metrics::metrics(args).await,
        Command::Top(args) => top::top(args).await,
        Command::Diff(args) => diff::diff(args).await,
        Command::Tag(args) => tag::tag(args).await,
        Command::Note(args) => note::note(args).await,
        Command::Ui(args) => ui::ui(args).await,
        Command::Cancel(args) => cancel::cancel(args).await,
        Command::Resume(args) => resume::resume(args).await,
        Command::Rm(args) => rm::rm(args).await,
        Command::Get(args) => get::get(args).await,
        Command::Describe(args) => describe::describe(args).await,
        Command::Watch(args) => watch::watch(args).await,
        Command::Create(args) => apply::create(args).await,
        Command::Apply(args) => apply::apply(args).await,
        Command::Label(args) => label::label(args).await,
        Command::Wait(args) => wait::wait(args).await,
        Command::Delete(args) => delete::delete(args).await,
        Command::Exec(args) => exec::exec(args).await,
        Command::Attach(args) => attach::attach(args).await,
        Command::Cp(args) => cp::cp(args).await,
        Command::PortForward(args) => port_forward::port_forward(args).await,
        Command::Resolve(args) => resolve::resolve(args).await,
        Command::Role(args) => role::role(args).await,
        Command::Zenml(args) => zenml::zenml(args).await,
        Command::Up(args) => up::up(args).await,
        Command::Down(args) => down::down(args).await,
        Command::Status(args) => status::status(args).await,
        Command::Envtest(args) => envtest::envtest(args).await,
        Command::Controllers(args) => controllers::controllers(args).await,
        Command::Record(args) => record::record(args).await,
        Command::Replay(args) => replay::replay(args).await,
        Command::Completions(args) => completions::completions(&args),
        Command::Version => {
            crate::ui::line(format!("longshore {}", env!("CARGO_PKG_VERSION")));
            Ok(ExitCode::SUCCESS)
        }
    }
}
