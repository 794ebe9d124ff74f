//! The ServiceCIDR `kubernetes`.

use jiff::Timestamp;
use longshore_client::{Cluster, Error, Item, Patch, kinds::Any};
use longshore_model::{network::SERVICE_CIDR, time};
use serde::Deserialize;
use serde_json::json;

/// The name of the ServiceCIDR.
pub(super) const NAME: &str = "kubernetes";

#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Condition {
    r#type: String,
}

/// Creates the object if it does not exist, and adds the condition Ready unless the object has it.
pub(super) async fn publish(
    cluster: &Cluster,
    known: Option<&Item<Any>>,
    now: Timestamp,
) -> Result<(), Error> {
    let view = cluster
        .kind_in("networking.k8s.io/v1", "ServiceCIDR")
        .await?;
    let has_condition = match known {
        Some(item) => {
            let conditions = item.typed::<Raw>()?.status.conditions;
            conditions.iter().any(|one| one.r#type == "Ready")
        }
        None => {
            let object = json!({"metadata": {"name": NAME}, "spec": {"cidrs": [SERVICE_CIDR]}});
            match view.create(&object).await {
                Err(error) if error.code() == Some(409) => {}
                done => drop(done?),
            }
            false
        }
    };
    if has_condition {
        return Ok(());
    }
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
        "lastTransitionTime": time::seconds(now),
    });
    let patch = Patch::merge(json!({"status": {"conditions": [condition]}}));
    view.patch_status(NAME, &patch).await.map(drop)
}
