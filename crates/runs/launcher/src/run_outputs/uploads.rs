//! Adds the settings to a plan with which its tasks upload their outputs, or write them to a claim.

use longshore_client::k8s_openapi::ByteString;
use longshore_diagnosis::names;

use crate::{
    outputs::{
        OutputRequest, OutputsError,
        uploads::{LARGEST_UPLOADS, RoleUploads, UPLOADS_FILE, Uploads, folder},
    },
    plan::Plan,
    store::{LONGEST_VALIDITY, Store, StoreError},
};

/// The note for the user if the URLs for metrics files do not fit.
const METRICS_LEFT_OUT: &str = "the metrics files (LONGSHORE_METRICS) of the tasks are not kept: the run has too many tasks for the URLs of their uploads; print the metrics and name them with --metric instead";

/// Adds the requests of roles whose tasks write to a claim to the run's Secret. Sends no requests.
pub(crate) fn add_claims(plan: &mut Plan) -> Result<(), OutputsError> {
    let mut uploads = of_plan(plan)?;
    // Uploads to a store need signed URLs.
    uploads.roles.retain(|_, role| role.request.claim.is_some());
    add(plan, &uploads)
}

/// Signs the URLs with which the tasks of a plan upload their outputs, and adds them to the run's
/// Secret. `settings` override the environment's settings.
pub(crate) async fn add_uploads(
    plan: &mut Plan,
    settings: &[(String, String)],
) -> Result<(), OutputsError> {
    let mut uploads = of_plan(plan)?;
    let folder = folder(&plan.namespace, plan.run.as_str());
    for (name, role) in &mut uploads.roles {
        let (None, Some(store)) = (&role.request.claim, &role.request.store) else {
            continue;
        };
        let Store::Remote(remote) = Store::parse(store)? else {
            return Err(OutputsError::NotKept);
        };
        let planned = plan.roles.iter().find(|planned| planned.role.name == *name);
        let count = planned.map_or(0, |planned| planned.role.count);
        let names = Uploads::names(name, count, &role.request);
        let keys: Vec<String> = names
            .iter()
            .map(|name| format!("{folder}/{name}"))
            .collect();
        let objects = remote.objects(settings)?;
        let urls = objects.sign_uploads(&keys, LONGEST_VALIDITY).await?;
        *role = RoleUploads::of(role.request.clone(), &urls);
    }
    add(plan, &uploads)
}

/// The roles of a plan whose tasks upload or write their outputs, without URLs.
fn of_plan(plan: &Plan) -> Result<Uploads, OutputsError> {
    let mut uploads = Uploads::default();
    for planned in &plan.roles {
        let annotations = planned.job.metadata.annotations.as_ref();
        let text = annotations.and_then(|annotations| annotations.get(names::OUTPUTS));
        let Some(request) = text.map(|text| OutputRequest::parse(text)).transpose()? else {
            continue;
        };
        if request.store.is_some() || request.claim.is_some() {
            let role = RoleUploads::of(request, &[]);
            uploads.roles.insert(planned.role.name.clone(), role);
        }
    }
    Ok(uploads)
}

/// Adds the file to the run's Secret.
fn add(plan: &mut Plan, uploads: &Uploads) -> Result<(), OutputsError> {
    let data = plan.config.data.get_or_insert_default();
    data.remove(UPLOADS_FILE);
    if uploads.roles.is_empty() {
        return Ok(());
    }
    let others: usize = data.values().map(|value| value.0.len()).sum();
    let limit = LARGEST_UPLOADS.saturating_sub(others);
    let mut bytes = uploads.to_bytes().map_err(StoreError::Read)?;
    if bytes.len() > limit {
        // The user did not request the metrics files, so they are left out if they do not fit.
        let mut requested = uploads.clone();
        requested
            .roles
            .retain(|_, role| !role.request.is_only_metrics());
        let left_out = uploads.roles.len() > requested.roles.len();
        if left_out {
            plan.notes.push(METRICS_LEFT_OUT.to_owned());
            if requested.roles.is_empty() {
                return Ok(());
            }
            bytes = requested.to_bytes().map_err(StoreError::Read)?;
        }
    }
    let size = bytes.len();
    if size > limit {
        let roles = uploads.roles.values();
        return Err(OutputsError::TooManyTasks {
            tasks: roles.map(|role| role.tasks.len() as u64).sum(),
            size,
            limit,
        });
    }
    data.insert(UPLOADS_FILE.to_owned(), ByteString(bytes));
    Ok(())
}
