//! `longshore port-forward`: a pod's ports on this machine.

use std::{net::IpAddr, process::ExitCode};

use clap::Args;
use longshore::client::{Cluster, PortForward};
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    config,
    error::{Error, Kind, Result},
    target::ClusterArgs,
    ui,
};

/// Forward ports of this machine to ports of a pod
///
/// Goes on until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore port-forward web 8080
  longshore port-forward web 8080:80 8443:443
  longshore port-forward web :80            # any free port here")]
pub(crate) struct PortForwardArgs {
    /// The pod's name, or the host name of a Job's task
    pod: String,
    /// PORT, or HERE:PORT
    #[arg(required = true, value_parser = parse)]
    ports: Vec<Ports>,
    /// Where to listen on this machine
    #[arg(long, default_value = "127.0.0.1")]
    address: IpAddr,
    /// The namespace; the context's own without it
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A port here, 0 for any, and one of the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ports {
    here: u16,
    there: u16,
}

fn parse(text: &str) -> Result<Ports, String> {
    let wrong = || format!("{text:?} is no port: write 8080, 8080:80, or :80");
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
    let namespace = args.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| cluster.default_namespace());
    let pods = cluster.pods().in_namespace(namespace)?;
    let pod = crate::pods::find(&pods, &args.pod).await?;
    // That there is no such pod is told now, not at the first connection.
    pods.fetch(&pod).await?;
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
        .hint("choose another port here, as in 18080:80, or :80 for any free one")
    };
    let listener = TcpListener::bind((address, port)).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read() {
        let ports = |here, there| Ok(Ports { here, there });
        assert_eq!(parse("80"), ports(80, 80));
        assert_eq!(parse("8080:80"), ports(8080, 80));
        assert_eq!(parse(":80"), ports(0, 80));
        for wrong in ["", "0", "80:", "a:80", "80:0", "70000", "1:2:3"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
