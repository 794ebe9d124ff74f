//! `longshore port-forward`: a pod's ports on this machine.

use std::{net::IpAddr, process::ExitCode};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::client::{Cluster, PortForward};
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    complete, config,
    error::{Error, Kind, Result},
    owners::Access,
    place::Container,
    target::{self, ClusterArgs},
    ui,
};

/// Forward local ports to a task or pod, until Ctrl-C
///
/// TASK is RUN/ROLE/INDEX, RUN if it has one task, or POD, as for `longshore exec`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore port-forward last 6006
  longshore port-forward digits-x7k2p/worker/0 8080:80 8443:443
  longshore port-forward pod/web :80           # any free local port")]
pub(crate) struct PortForwardArgs {
    /// Task, run or pod: RUN/ROLE/INDEX, RUN if it has one task, or POD
    #[arg(value_name = "TASK", add = ArgValueCompleter::new(complete::tasks))]
    place: String,
    /// PORT, LOCAL:PORT, or :PORT for any free local port
    #[arg(required = true, value_parser = parse)]
    ports: Vec<Ports>,
    /// Local address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    address: IpAddr,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A local port, 0 for any, and a port of the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ports {
    here: u16,
    there: u16,
}

fn parse(text: &str) -> Result<Ports, String> {
    let wrong = || format!("{text:?} is not a port: write 8080, 8080:80 or :80");
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let (here, there) = match text.split_once(':') {
        Some(("", there)) => (0, number(there).ok_or_else(wrong)?),
        Some((here, there)) => (
            number(here).ok_or_else(wrong)?,
            number(there).ok_or_else(wrong)?,
        ),
        None => {
            let port = number(text).ok_or_else(wrong)?;
            (port, port)
        }
    };
    Ok(Ports { here, there })
}

pub(crate) async fn port_forward(args: PortForwardArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = tokio::select! {
        result = forward(target.cluster(), &args) => result,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn forward(cluster: &Cluster, args: &PortForwardArgs) -> Result<()> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let pods = cluster.pods().in_namespace(namespace)?;
    // Report an unknown pod now, not at the first connection.
    let pod = Container::find(cluster, namespace, &args.place, None, Access::Read)
        .await?
        .pod;
    let mut all = JoinSet::new();
    for ports in &args.ports {
        let (listener, address) = listen(args.address, ports.here).await?;
        ui::line(format!("{address} -> {pod}:{}", ports.there));
        let forward: PortForward = pods.port_forward(&pod, ports.there)?;
        all.spawn(async move { forward.serve(listener, ui::warning).await });
    }
    ui::flush();
    match all.join_next().await {
        Some(Ok(Err(error))) => Err(Error::from_source(Kind::Failed, &error)),
        _ => Ok(()),
    }
}

async fn listen(address: IpAddr, port: u16) -> Result<(TcpListener, std::net::SocketAddr)> {
    let failed = |error: std::io::Error| {
        Error::new(
            Kind::Failed,
            format!("cannot listen on {address}:{port}: {error}"),
        )
        .hint("choose another local port, as in 18080:80, or :80 for any free one")
    };
    let listener = TcpListener::bind((address, port)).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_parsed() {
        let ports = |here, there| Ok(Ports { here, there });
        assert_eq!(parse("80"), ports(80, 80));
        assert_eq!(parse("8080:80"), ports(8080, 80));
        assert_eq!(parse(":80"), ports(0, 80));
        for wrong in ["", "0", "80:", "a:80", "80:0", "70000", "1:2:3"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
