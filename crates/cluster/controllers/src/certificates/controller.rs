//! The controller's loop and its requests.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use longshore_client::{Cluster, Error, Item, kinds::Any};
use longshore_clock::Clock;
use longshore_model::time;
use serde_json::{Value, json};

use super::{
    GROUP, age, approve,
    facts::Request,
    rules,
    sign::{self, validity},
    signer::{CertificateFacts, Signer},
};
use crate::{
    caches::Caches,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "certificates";
/// The number of workers.
const WORKERS: usize = 2;
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, signer: Signer) {
    let Some((_, requests)) = caches.of(GROUP, "CertificateSigningRequest") else {
        return;
    };
    let queue: Queue<String> = Queue::new(&caches.clock);
    let feeds = feed(NAME, requests, |key, _| queue.add(key.name));
    let controller = Controller {
        cluster,
        signer,
        clock: caches.clock.clone(),
    };
    let reconcile = async |name: String| match requests.get(None, &name) {
        Some(item) => controller.reconcile(&item).await,
        None => Ok(Next::Done),
    };
    reconcile::run(NAME, WORKERS, &queue, feeds, reconcile).await;
}

struct Controller {
    cluster: Cluster,
    signer: Signer,
    clock: Clock,
}

impl Controller {
    async fn reconcile(&self, item: &Item<Any>) -> Result<Next, Error> {
        let Some(request) = Request::of(item)? else {
            return Ok(Next::Done);
        };
        let now = self.clock.now();
        let end = age::end(&request);
        if end.is_some_and(|end| end <= now) {
            return self.delete(item).await;
        }
        if approve::is_pending(&request) && request.signer == rules::KUBELET_CLIENT {
            self.approve(item, &request).await?;
        } else if sign::is_due(&request) {
            self.sign(item, &request, now).await?;
        }
        let wait = end.and_then(|end| Duration::try_from(end.duration_since(now)).ok());
        Ok(wait.map_or(Next::Done, Next::After))
    }

    /// Reads the request in PEM. A malformed request is kept until it expires.
    fn read(&self, item: &Item<Any>, request: &Request) -> Option<CertificateFacts> {
        let read = self.signer.0.read(&request.pem);
        read.inspect_err(|error| {
            tracing::warn!(
                request = item.name(),
                error,
                "cannot read a certificate request"
            );
        })
        .ok()
    }

    async fn approve(&self, item: &Item<Any>, request: &Request) -> Result<(), Error> {
        let Some(facts) = self.read(item, request) else {
            return Ok(());
        };
        for approval in approve::approvals(request, &facts) {
            let spec = &item.raw()?["spec"];
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    "user": spec["username"], "uid": spec["uid"], "groups": spec["groups"],
                    "extra": spec["extra"],
                    "resourceAttributes": {
                        "group": GROUP, "resource": "certificatesigningrequests",
                        "verb": "create", "subresource": approval.subresource, "version": "*",
                    },
                },
            });
            let review = self.cluster.proxy().post(REVIEWS, &[], &review).await?;
            if review["status"]["allowed"] == true {
                let approved = json!({
                    "type": "Approved", "status": "True", "reason": "AutoApproved",
                    "message": approval.message,
                });
                let add = |status: &mut Value| push_condition(status, approved);
                return self.write(item, "approval", add).await;
            }
        }
        Ok(())
    }

    async fn sign(&self, item: &Item<Any>, request: &Request, now: Timestamp) -> Result<(), Error> {
        let Some(facts) = self.read(item, request) else {
            return Ok(());
        };
        if let Err(problem) = rules::check(request, &facts) {
            let failed = json!({
                "type": "Failed", "status": "True", "reason": "SignerValidationFailure",
                "message": problem, "lastUpdateTime": time::seconds(now),
            });
            let add = |status: &mut Value| push_condition(status, failed);
            return self.write(item, "status", add).await;
        }
        // Certificates are checked with the system's clock.
        let valid = validity(request.expiration_seconds, Timestamp::now());
        let signed = self.signer.0.sign(&request.pem, &request.usages, valid);
        let certificate = signed
            .map_err(|problem| Error::Invalid(format!("cannot sign {}: {problem}", item.name())))?;
        let certificate = serde_json::to_value(k8s_openapi::ByteString(certificate.into()));
        let certificate = certificate.map_err(|error| Error::Invalid(error.to_string()))?;
        let set = |status: &mut Value| status["certificate"] = certificate;
        self.write(item, "status", set).await
    }

    /// Writes a subresource. A conflict is ignored, because the changed request is reconciled
    /// again.
    async fn write(
        &self,
        item: &Item<Any>,
        subresource: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), Error> {
        let mut object = item.raw()?;
        if !object["status"].is_object() {
            object["status"] = json!({});
        }
        change(&mut object["status"]);
        let path = format!("{}/{subresource}", path(item.name()));
        match self.cluster.proxy().put(path, &[], &object).await {
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(()),
            written => written.map(drop),
        }
    }

    async fn delete(&self, item: &Item<Any>) -> Result<Next, Error> {
        let uid = item.meta().uid.clone();
        let options = json!({"preconditions": {"uid": uid}});
        let deleted = self
            .cluster
            .proxy()
            .delete(path(item.name()), &[], Some(&options))
            .await;
        match deleted {
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Next::Done),
            deleted => deleted.map(|_| Next::Done),
        }
    }
}

fn path(name: &str) -> String {
    format!("/apis/{GROUP}/v1/certificatesigningrequests/{name}")
}

fn push_condition(status: &mut Value, condition: Value) {
    match status.get_mut("conditions").and_then(Value::as_array_mut) {
        Some(conditions) => conditions.push(condition),
        None => status["conditions"] = json!([condition]),
    }
}
