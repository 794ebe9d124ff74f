//! The cluster spec of a run's tasks.

use base64::Engine as _;
use longshore::{
    client::Cluster,
    launcher::{names, pod, runs},
    resolver::render::Job,
};

use crate::error::{Error, Kind, Result};

pub(super) async fn job(cluster: &Cluster, namespace: &str, name: &str) -> Result<Job> {
    let run = runs::find_made(cluster, namespace, name).await?.run;
    let secrets = cluster
        .secrets()
        .in_namespace(&run.namespace)?
        .filter(&format!("{}={}", names::RUN, run.label()))?;
    for secret in secrets.list().await? {
        let Some(text) = secret.field::<String>(&["data", pod::FILE])? else {
            continue;
        };
        let config = base64::engine::general_purpose::STANDARD
            .decode(text)
            .ok()
            .and_then(|text| serde_json::from_slice::<pod::PodConfig>(&text).ok());
        if let Some(config) = config {
            let mut config = match run.execution() {
                Some(execution) => config.of_execution(execution),
                None => config,
            };
            for role in &run.roles {
                config = config.scaled(&role.name, role.count);
            }
            return Ok(config.job());
        }
    }
    let run = run.name.as_str();
    Err(Error::new(
        Kind::Failed,
        format!("the run {run} has lost the record of its tasks"),
    ))
}
