//! `kube-apiserver`: the embedded API server with the certificates that envtest passes.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use longshore_apiserver::{
    ApiServer, AuditLog, Authority, AuthorizationMode, FaultRule, NoLogs, NoStreams, ServerTls,
    TokenKey,
};
use longshore_client::Cluster;
use longshore_controllers::{Controllers, TokenSigner};
use longshore_engine::Engine;
use tokio::{net::TcpListener, task::JoinSet};

use super::{API_SERVER, EnvtestError, flags::Flags};
use crate::{AuditOptions, descriptors, engine, namespaces, publish, settings, signer::KeySigner};

/// The help. envtest searches it for flags.
pub(super) const HELP: &str = "\
kube-apiserver for envtest, by Longshore: a Kubernetes API server that keeps its
objects in memory. It ends with the process that started it.

Flags:
      --bind-address ip                           Loopback address to listen on (default 127.0.0.1)
      --secure-port int                           Port to listen on (default 6443)
      --cert-dir string                           Folder of apiserver.crt and apiserver.key
      --tls-cert-file string                      Server certificate
      --tls-private-key-file string               Key of the server certificate
      --client-ca-file string                     CA certificates that sign client certificates
      --service-account-signing-key-file string   P-256 key that signs service account tokens
      --audit-log-path string                     File of the audit log, or - for standard output
      --audit-policy-file string                  Policy of the audit log (default: metadata of all requests)

All other flags of kube-apiserver are accepted and have no effect.
";

const DEFAULT_PORT: u16 = 6443;

/// The behavior that files in the program's folder request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Behavior {
    pub(super) controllers: bool,
    /// The delay of each request.
    pub(super) latency: Option<Duration>,
}

/// The settings that the flags specify.
#[derive(Debug)]
pub(super) struct Settings {
    address: SocketAddr,
    /// Certificate and key of the server.
    identity: Option<(PathBuf, PathBuf)>,
    client_ca: Option<PathBuf>,
    token_key: Option<PathBuf>,
    audit: Option<AuditOptions>,
}

impl Settings {
    /// Takes the settings from the flags.
    pub(super) fn read(flags: &mut Flags) -> Result<Self, EnvtestError> {
        let mut ip = flags.parse::<IpAddr>("bind-address")?;
        if ip.is_some_and(|ip| ip.is_unspecified()) {
            ip = None;
        }
        let ip = ip.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        if !ip.is_loopback() {
            return Err(EnvtestError::Flag {
                name: "bind-address",
                value: ip.to_string(),
                problem: "not a loopback address: use 127.0.0.1".to_owned(),
            });
        }
        let port = flags.parse("secure-port")?.unwrap_or(DEFAULT_PORT);
        let file = |flags: &mut Flags, name: &str| flags.take(name).map(PathBuf::from);
        let certificate = file(flags, "tls-cert-file");
        let key = file(flags, "tls-private-key-file");
        let folder = file(flags, "cert-dir");
        let in_folder =
            folder.map(|folder| (folder.join("apiserver.crt"), folder.join("apiserver.key")));
        // Without the files, kube-apiserver also creates a certificate.
        let in_folder = in_folder.filter(|(certificate, key)| certificate.exists() && key.exists());
        let policy = file(flags, "audit-policy-file");
        let audit = file(flags, "audit-log-path").map(|log| AuditOptions { log, policy });
        Ok(Self {
            audit,
            address: SocketAddr::new(ip, port),
            identity: certificate.zip(key).or(in_folder),
            client_ca: file(flags, "client-ca-file"),
            token_key: file(flags, "service-account-signing-key-file"),
        })
    }
}

/// Serves until `end`.
pub(super) async fn serve(
    settings: Settings,
    behavior: Behavior,
    end: impl Future<Output = ()> + Send + 'static,
) -> Result<(), EnvtestError> {
    let Settings {
        address,
        identity,
        client_ca,
        token_key,
        audit,
    } = settings;
    let audit = audit.as_ref().map(start_audit).transpose()?;
    descriptors::raise_limit();
    let token_key = match token_key {
        Some(path) => TokenKey::load(&path),
        None => TokenKey::ephemeral(),
    };
    let token_key = token_key?;
    let authority = Authority::ephemeral()?;
    let names = [address.ip().to_string()];
    let tls = match (&identity, &client_ca) {
        (Some((certificate, key)), _) => ServerTls::load(certificate, key, client_ca.as_deref())?,
        (None, Some(client_ca)) => authority.server_for_clients_of(&names, client_ca)?,
        (None, None) => authority.server(&names)?,
    };
    let engine = Engine::open(longshore_engine::Options {
        // In Kubernetes, a controller creates the accounts; envtest disables the admission plugin
        // that requires them.
        default_accounts: behavior.controllers,
        ..longshore_engine::Options::default()
    });
    let engine = engine.map_err(start)?;
    let server = ApiServer::new(longshore_apiserver::Options {
        engine: engine.clone(),
        token_key: Some(token_key.clone()),
        // Clients do not know the token: they have certificates or tokens of service accounts.
        token: Some(settings::random_token().map_err(start)?),
        node_logs: Arc::new(NoLogs),
        node_streams: Arc::new(NoStreams),
        faults: behavior.latency.is_some(),
        authorization: AuthorizationMode::Rbac,
        warn_unhandled_kinds: behavior.controllers,
    });
    if let Some(log) = &audit {
        server.record_to(log.clone());
    }
    if let Some(latency) = behavior.latency {
        let delay = server.faults().add(FaultRule::delay(latency));
        delay.map_err(start)?;
    }
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| EnvtestError::Listen { address, source })?;
    let cluster = Cluster::from_service(server.sheltered_service(), "default");
    let keeper = cluster.clone().with_user_agent(API_SERVER);
    let client_ca = client_ca.as_deref().map(std::fs::read_to_string);
    let client_ca = client_ca.transpose().map_err(start)?;
    let request_headers = server.request_headers()?;
    publish::publish_authentication(&keeper, request_headers, client_ca)
        .await
        .map_err(start)?;
    let mut tasks = JoinSet::new();
    tasks.spawn(namespaces::keep(keeper));
    tasks.spawn(server.aggregate());
    tasks.spawn(engine::end_definitions(engine));
    let mut controllers = None;
    if behavior.controllers {
        let mut options = longshore_controllers::Options::default();
        options.token_signer = Some(TokenSigner(Arc::new(KeySigner(token_key))));
        let cluster = cluster.with_user_agent("longshore-controllers");
        let started = Controllers::start_with(cluster, options).await;
        controllers = Some(started.map_err(start)?);
    }
    server.ensure_default_policy().await.map_err(start)?;
    let served = server.serve(listener, tls, end).await;
    if let Some(controllers) = controllers {
        controllers.stop().await;
    }
    if let Some(log) = audit {
        log.flush().await;
    }
    served.map_err(EnvtestError::Serve)
}

fn start_audit(options: &AuditOptions) -> Result<AuditLog, EnvtestError> {
    if options.log.as_os_str() != "-" {
        return Ok(options.start()?);
    }
    AuditLog::start(options.policy()?, std::io::stdout()).map_err(start)
}

fn start(error: impl std::fmt::Display) -> EnvtestError {
    EnvtestError::Start(error.to_string())
}
