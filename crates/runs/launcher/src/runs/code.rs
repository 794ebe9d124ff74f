//! The location of a run's code outside the cluster's objects.

use std::path::PathBuf;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_client::{Cluster, Error};
use serde_json::Value;

use super::Run;
use crate::{
    pod::{self, PodConfig},
    queries,
};

/// The location of a run's bundle outside a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodePlace {
    /// A folder that is used as store.
    Folder(PathBuf),
    /// This location in an object store.
    Store(String),
}

/// The location of the run's bundle, if it is not deleted with its objects.
///
/// # Errors
/// The cluster returns an error or does not answer.
pub async fn code_place(cluster: &Cluster, run: &Run) -> Result<Option<CodePlace>, Error> {
    let secret = queries::secret(cluster, &run.namespace, run.label()).await?;
    let config: Option<PodConfig> = match secret {
        Some(secret) => {
            let data: Option<String> = secret.field(&["data", pod::FILE])?;
            let text = data.and_then(|data| STANDARD.decode(data).ok());
            text.and_then(|text| serde_json::from_slice(&text).ok())
        }
        None => None,
    };
    let bundle = config.and_then(|config| config.bundle);
    if let Some(download) = bundle.and_then(|bundle| bundle.download) {
        return Ok(Some(CodePlace::Store(download.url.place())));
    }
    let mut volumes: Vec<Value> = Vec::new();
    for job in run.found_jobs(cluster).await? {
        volumes.extend(job.spec.template.spec.volumes);
    }
    for schedule in super::stop::schedules(cluster, run).await? {
        let path = ["spec", "jobTemplate", "spec", "template", "spec", "volumes"];
        volumes.extend(schedule.field::<Vec<Value>>(&path)?.unwrap_or_default());
    }
    let of_bundle = volumes.iter().find(|volume| volume["name"] == "bundle");
    let folder = of_bundle.and_then(|volume| volume["hostPath"]["path"].as_str());
    Ok(folder.map(|folder| CodePlace::Folder(folder.into())))
}
