//! The loop: watches Secrets and service accounts.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use futures::future;
use k8s_openapi::ByteString;
use longshore_client::{Cache, Change, Cluster, DeleteOptions, Error, Patch, kinds::Any};
use parking_lot::Mutex;
use serde_json::json;

use super::{
    TokenSigner, TokenSubject,
    decide::{ACCOUNT, ACCOUNT_UID, CA, NAMESPACE, SecretFacts},
};
use crate::{
    caches::Caches,
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "serviceaccount-token";
/// The number of workers.
const WORKERS: usize = 2;

struct Controller {
    cluster: Cluster,
    caches: Arc<Caches>,
    secrets: Cache<Any>,
    signer: TokenSigner,
    /// The CA certificate of the API server, in PEM.
    certificate: Option<String>,
    queue: Queue<Key>,
    /// The Secrets of each service account.
    by_account: Mutex<HashMap<Key, BTreeSet<Key>>>,
}

/// Runs the controller until its cluster is closed. `certificate` is the API server's CA
/// certificate in PEM.
pub(crate) async fn run(
    cluster: Cluster,
    caches: Arc<Caches>,
    signer: TokenSigner,
    certificate: Option<String>,
) {
    let Some((_, secrets)) = caches.of("", "Secret") else {
        return;
    };
    let controller = Controller {
        cluster,
        secrets: secrets.clone(),
        caches: caches.clone(),
        signer,
        certificate,
        queue: Queue::new(&caches.clock),
        by_account: Mutex::default(),
    };
    let secrets = feed(NAME, secrets, |key, change| {
        controller.put_secret(key, change);
    });
    let accounts = feed(NAME, &caches.service_accounts, |key, _| {
        let by_account = controller.by_account.lock();
        let secrets = by_account.get(&key).into_iter().flatten();
        secrets.for_each(|secret| controller.queue.add(secret.clone()));
    });
    let feeds = future::join(secrets, accounts);
    let reconcile = async |key: Key| controller.reconcile(&key).await;
    reconcile::run(NAME, WORKERS, &controller.queue, feeds, reconcile).await;
}

impl Controller {
    fn put_secret(&self, key: Key, change: &Change<Any>) {
        let item = change.item();
        // Few Secrets contain tokens.
        let Some(account) = item.meta().annotations.get(ACCOUNT) else {
            return;
        };
        let account = Key::new(&key.namespace, account);
        let mut by_account = self.by_account.lock();
        match change {
            Change::Upsert(_) => {
                by_account.entry(account).or_default().insert(key.clone());
                self.queue.add(key);
            }
            Change::Gone(_) => {
                if let Some(secrets) = by_account.get_mut(&account) {
                    secrets.remove(&key);
                    if secrets.is_empty() {
                        by_account.remove(&account);
                    }
                }
            }
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(item) = self.secrets.get(Some(&key.namespace), &key.name) else {
            return Ok(Next::Done);
        };
        let secret = item.typed::<SecretFacts>()?;
        let Some(name) = secret.account().filter(|_| !secret.is_terminating()) else {
            return Ok(Next::Done);
        };
        let Some(uid) = self.account_uid(&key.namespace, name, &secret).await? else {
            let options = DeleteOptions {
                uid: Some(item.uid().to_owned()),
                ..DeleteOptions::default()
            };
            let view = self.cluster.secrets().in_namespace(&key.namespace)?;
            return done(view.delete(&key.name, &options).await.map(drop));
        };
        let missing = secret.missing(self.certificate.as_deref());
        if missing.is_empty() {
            return Ok(Next::Done);
        }
        let mut data = BTreeMap::new();
        for part in missing {
            let value = match part {
                CA => self.certificate.clone().unwrap_or_default(),
                NAMESPACE => key.namespace.clone(),
                _ => {
                    let subject = TokenSubject {
                        namespace: &key.namespace,
                        account: name,
                        account_uid: &uid,
                        secret: &key.name,
                    };
                    match self.signer.0.sign(&subject) {
                        Ok(token) => token,
                        Err(problem) => {
                            tracing::warn!(?key, problem, "cannot sign a token");
                            return Ok(Next::Done);
                        }
                    }
                }
            };
            data.insert(part, ByteString(value.into_bytes()));
        }
        let patch = Patch::merge(json!({
            "metadata": {
                "resourceVersion": item.version(),
                "annotations": {ACCOUNT: name, ACCOUNT_UID: uid},
            },
            "data": data,
        }));
        let view = self.cluster.secrets().in_namespace(&key.namespace)?;
        done(view.patch(&key.name, &patch).await.map(drop))
    }

    /// Returns the UID of a Secret's service account if the account exists. The cache may not
    /// contain a new account yet.
    async fn account_uid(
        &self,
        namespace: &str,
        name: &str,
        secret: &SecretFacts,
    ) -> Result<Option<String>, Error> {
        let known = self.caches.service_accounts.get(Some(namespace), name);
        let known = known.filter(|item| secret.is_for(item.uid()));
        let account = match known {
            Some(item) => Some(item),
            None => {
                let view = self.cluster.serviceaccounts().in_namespace(namespace)?;
                view.find(name).await?
            }
        };
        let account = account.filter(|item| secret.is_for(item.uid()));
        Ok(account.map(|item| item.uid().to_owned()))
    }
}

/// Another client changed or deleted the object. The cache will report it.
fn done(result: Result<(), Error>) -> Result<Next, Error> {
    match result {
        Err(error) if !error.is_conflict() && !error.is_not_found() => Err(error),
        _ => Ok(Next::Done),
    }
}
