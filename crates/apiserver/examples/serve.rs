//! Serves an empty, ephemeral API on a loopback port and writes a kubeconfig
//! for it: to try clients by hand. Nothing runs pods here.
//!
//! `cargo run --release -p longshore-apiserver --example serve -- PORT KUBECONFIG`

#![allow(clippy::print_stdout)]

use std::sync::Arc;

use longshore_apiserver::{ApiServer, Authority, NoLogs, Options};
use longshore_engine::Engine;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(port), Some(kubeconfig)) = (arguments.next(), arguments.next()) else {
        return Err("usage: serve PORT KUBECONFIG".into());
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.parse::<u16>()?)).await?;
    let token = format!("{:032x}", rand::random::<u128>());
    let authority = Authority::ephemeral()?;
    let url = format!("https://{}", listener.local_addr()?);
    std::fs::write(&kubeconfig, config(&url, &authority.ca_pem(), &token))?;
    let engine = Engine::open(longshore_engine::Options::default())?;
    let server = ApiServer::new(Options {
        engine,
        token: Some(token),
        node_logs: Arc::new(NoLogs),
    });
    println!("{url}, kubeconfig {kubeconfig}; Ctrl-C ends it");
    let end = async {
        // Without signals, it runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    Ok(server
        .serve(listener, authority.server::<&str>(&[])?, end)
        .await?)
}

fn config(url: &str, ca: &str, token: &str) -> String {
    let file = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "longshore", "cluster": {
            "server": url,
            "certificate-authority-data": base64(ca.as_bytes()),
        }}],
        "users": [{"name": "longshore", "user": {"token": token}}],
        "contexts": [{"name": "longshore", "context": {"cluster": "longshore", "user": "longshore"}}],
        "current-context": "longshore",
    });
    file.to_string()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
