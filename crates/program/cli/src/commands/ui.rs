//! `longshore ui`: a page for runs.

use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _, process::ExitCode, sync::Arc};

use clap::Args;
use futures::future::BoxFuture;
use longshore::launcher::RunSummary;
use longshore_ui::{Links, Options, RemoveRuns, Server};
use tokio::sync::mpsc;

use super::rm;
use crate::{
    config,
    error::{Error, Kind, Result},
    hints,
    interrupt::Interrupt,
    target::{self, ClusterArgs, Target},
    ui,
};

/// Show runs in a browser, until Ctrl-C
///
/// Serves a page on 127.0.0.1: the runs live, their tasks, timeline, merged logs,
/// explanations, usage, outputs and objects, the combinations of sweeps, and all objects of
/// the embedded cluster. Prints a link that is valid once, for five minutes;
/// Enter prints a new link. Other users of this machine cannot use the page. See docs/ui.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore ui
  longshore ui --open
  longshore ui --context production --namespace team
  longshore ui --port 8400                     # for `ssh -L 8400:127.0.0.1:8400 HOST`")]
pub(crate) struct UiArgs {
    /// Port of 127.0.0.1; 0 for any free port
    #[arg(long, default_value_t = 0, value_name = "N")]
    port: u16,
    /// Open the page in the default browser
    #[arg(long)]
    open: bool,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    /// All namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn ui(args: UiArgs) -> Result<ExitCode> {
    let mut interrupt = Interrupt::listen()?;
    let target = Arc::new(args.cluster.open(&config::here()?).await?);
    let result = serve(&target, &args, &mut interrupt).await;
    // The server, which had the other references, was dropped.
    if let Some(target) = Arc::into_inner(target) {
        target.close().await?;
    }
    result.map(|()| ExitCode::SUCCESS)
}

async fn serve(target: &Arc<Target>, args: &UiArgs, interrupt: &mut Interrupt) -> Result<()> {
    let cluster = target.cluster().clone();
    let namespace = target::namespace(args.namespace.as_deref(), &cluster).to_owned();
    let options = Options {
        port: args.port,
        namespace: (!args.all_namespaces).then_some(namespace),
        cluster: target.name().to_owned(),
        browse: target.outputs().is_some(),
        outputs: target.outputs(),
        complete: Some(hints::in_explanation),
    };
    let removal = Arc::new(Removal(Arc::clone(target)));
    let server = Server::bind(cluster, options, removal).await;
    let server = server.map_err(|error| Error::from_source(Kind::Failed, &error))?;
    let links = server.links();
    ui::line(links.create());
    ui::flush();
    // The file contains a link, which is removed when the program ends.
    let page = match args.open {
        true => Some(open(&links)?),
        false => None,
    };
    ui::note(
        "The link is valid once, for five minutes. Press Enter for another link, Ctrl-C to stop.",
    );
    let mut serving = server.serve();
    let mut gone_reported = false;
    let mut enters = ui::is_interactive().then(enters);
    loop {
        tokio::select! {
            () = &mut serving => break,
            _ = interrupt.next() => break,
            enter = next_enter(&mut enters) => match enter {
                Some(()) => {
                    ui::line(links.create());
                    ui::flush();
                }
                // The terminal was closed.
                None => enters = None,
            },
            gone = target.gone(&mut gone_reported) => {
                if let target::Gone::Stopped(sentence) = gone {
                    drop(page);
                    return Err(Error::new(Kind::Cluster, sentence));
                }
                ui::warning("the process of the embedded cluster has died");
            }
        }
    }
    Ok(())
}

/// Reads lines of the terminal. After Ctrl-C, the thread stays blocked in its read; the program
/// exits without it.
fn enters() -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if line.is_err() || sender.blocking_send(()).is_err() {
                return;
            }
        }
    });
    receiver
}

async fn next_enter(enters: &mut Option<mpsc::Receiver<()>>) -> Option<()> {
    match enters {
        Some(enters) => enters.recv().await,
        None => std::future::pending().await,
    }
}

/// Opens the page in a browser. The arguments of a process are visible to all users of the
/// machine, so the browser gets the path of a private file that leads to the link.
fn open(links: &Links) -> Result<tempfile::TempDir> {
    let failed = |error: std::io::Error| Error::from_source(Kind::Failed, &error);
    let folder = tempfile::Builder::new().prefix("longshore-ui-").tempdir();
    let folder = folder.map_err(failed)?;
    let path = folder.path().join("open.html");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(failed)?;
    let link = links.create();
    let page = format!(
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0; url={link}\">\
         <title>Longshore</title><a href=\"{link}\">Continue</a>\n"
    );
    file.write_all(page.as_bytes()).map_err(failed)?;
    let mut opener = tokio::process::Command::new("xdg-open");
    opener.arg(&path);
    opener.stdin(std::process::Stdio::null());
    opener.stdout(std::process::Stdio::null());
    opener.stderr(std::process::Stdio::null());
    // Ctrl-C ends this command and not the browser.
    opener.process_group(0);
    if let Err(error) = opener.spawn() {
        ui::warning(format!(
            "cannot open a browser with xdg-open: {error}; open the link above"
        ));
    }
    Ok(folder)
}

/// Removes runs as `longshore rm` does.
struct Removal(Arc<Target>);

impl RemoveRuns for Removal {
    fn remove<'a>(
        &'a self,
        all: &'a [RunSummary],
        run: &'a RunSummary,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let removed = rm::remove_chosen(&self.0, all, vec![run], false).await;
            removed.map_err(|error| error.message().to_owned())
        })
    }
}
