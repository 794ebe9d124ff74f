//! The owner of a run: the user who submitted it, by the cluster's own name for this user. A label
//! selects the runs of an owner. Annotations contain the name, which may not fit into a label.

use std::{collections::BTreeMap, fmt};

use longshore_client::{
    Cluster, Error, LabelSelector, k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use longshore_diagnosis::names;
use longshore_model::{ObjectMeta as ModelMeta, name::to_dns_label};
use serde_json::json;
use sha2::{Digest as _, Sha256};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
/// The administrator of an embedded cluster: the person whose machine it runs on.
const EMBEDDED_ADMINISTRATOR: &str = "longshore-admin";
/// The maximum length of the readable part of the label's value.
const LONGEST_READABLE: usize = 40;

/// A user who owns runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The name.
    pub name: String,
    /// True if the cluster does not report the names of users, and this is a name of the user's own
    /// machine, as in `ann@laptop`.
    pub is_local: bool,
}

/// The relation of a user to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The user owns it.
    Own,
    /// The run has no valid owner, because it was submitted by an older version or by another
    /// program.
    Unknown,
    /// Another user owns it.
    Other,
}

impl Owner {
    /// A user by the cluster's name.
    #[must_use]
    pub fn of_cluster(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            is_local: false,
        }
    }

    /// The current user, by the cluster's name. If the cluster does not have the API or denies
    /// access, by a name of this machine.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn current(cluster: &Cluster) -> Result<Self, Error> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "SelfSubjectReview",
        });
        let answer = match cluster.proxy().post(REVIEWS, &[], &review).await {
            Ok(answer) => answer,
            // The server does not know this API, or does not allow it.
            Err(error) if matches!(error.code(), Some(403..=405)) => return Ok(Self::local()),
            Err(error) => return Err(error),
        };
        let name = answer["status"]["userInfo"]["username"].as_str();
        Ok(match name.filter(|name| !name.is_empty()) {
            Some(name) => Self::of_cluster(name),
            None => Self::local(),
        })
    }

    /// The current user by the names of the operating system.
    fn local() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let user = variable("LOGNAME").or_else(|| variable("USER"));
        let user = user.unwrap_or_else(|| format!("uid-{}", rustix::process::getuid().as_raw()));
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        Self {
            name: format!("{user}@{host}"),
            is_local: true,
        }
    }

    /// The owner that an object records. `None` if it does not record an owner, or if its label and
    /// its annotation refer to different users.
    #[must_use]
    pub fn of_object(meta: &ModelMeta) -> Option<Self> {
        let annotation = |key: &str| meta.annotations.get(key).cloned();
        let owner = match annotation(names::OWNER) {
            Some(name) => Self::of_cluster(name),
            None => Self {
                name: annotation(names::LOCAL_OWNER)?,
                is_local: true,
            },
        };
        (meta.labels.get(names::OWNER) == Some(&owner.label())).then_some(owner)
    }

    /// The value of the label of the owner's runs: the readable end of the name, and a hash,
    /// because names may be long and contain any characters.
    #[must_use]
    pub fn label(&self) -> String {
        let end = self.name.rsplit([':', '/']).next().unwrap_or_default();
        let readable = to_dns_label(end, LONGEST_READABLE);
        let source = if self.is_local { "local" } else { "cluster" };
        let hash = Sha256::digest(format!("{source}\n{}", self.name));
        let hash: String = hash
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{readable}-{hash}")
    }

    /// Selects at least the runs of the owner, by their labels.
    ///
    /// # Errors
    /// None in practice: the value of the label is valid.
    pub fn selector(&self) -> Result<LabelSelector, Error> {
        match self.ownership(None) {
            Ownership::Own => Ok(LabelSelector::everything()),
            _ => Ok(LabelSelector::exactly([(names::OWNER, self.label())])?),
        }
    }

    /// Records the owner in an object.
    pub(crate) fn mark(&self, metadata: &mut ObjectMeta) {
        let labels = metadata.labels.get_or_insert_with(BTreeMap::new);
        labels.insert(names::OWNER.to_owned(), self.label());
        let annotations = metadata.annotations.get_or_insert_with(BTreeMap::new);
        let (key, other) = match self.is_local {
            true => (names::LOCAL_OWNER, names::OWNER),
            false => (names::OWNER, names::LOCAL_OWNER),
        };
        // A retry copies the objects of another run.
        annotations.remove(other);
        annotations.insert(key.to_owned(), self.name.clone());
    }

    /// The user's relation to runs of an owner. The administrator of an embedded cluster owns runs
    /// without an owner.
    #[must_use]
    pub fn ownership(&self, of: Option<&Self>) -> Ownership {
        match of {
            Some(of) if of == self => Ownership::Own,
            Some(_) => Ownership::Other,
            None if !self.is_local && self.name == EMBEDDED_ADMINISTRATOR => Ownership::Own,
            None => Ownership::Unknown,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_local {
            true => write!(f, "{} (local)", self.name),
            false => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::name::label_value;

    use super::*;

    fn local(name: &str) -> Owner {
        Owner {
            name: name.to_owned(),
            is_local: true,
        }
    }

    /// Names that clusters give to users: service accounts, addresses, subjects of certificates.
    fn owners() -> Vec<Owner> {
        let long = "x".repeat(300);
        let names = [
            "ann",
            "Ann",
            "ann@example.com",
            "system:serviceaccount:team:ann",
            "system:serviceaccount:other:ann",
            "oidc:https://accounts.example.com/ann",
            "arn:aws:iam::123:role/Ann Lee",
            "日本",
            "-",
            &long,
        ];
        let known = names.iter().map(|name| Owner::of_cluster(*name));
        known.chain([local("ann"), local("ann@laptop")]).collect()
    }

    #[test]
    fn each_owner_has_a_valid_label_of_its_own() {
        let labels: Vec<String> = owners().iter().map(Owner::label).collect();
        for (owner, label) in owners().iter().zip(&labels) {
            assert!(label_value(label).is_ok(), "{owner}: {label:?}");
            let same = labels.iter().filter(|other| *other == label).count();
            assert_eq!(same, 1, "{owner}: {label:?}");
        }
        assert!(labels[3].starts_with("ann-"), "{}", labels[3]);
    }

    #[test]
    fn objects_return_their_owner() {
        for owner in owners() {
            let mut meta = ObjectMeta::default();
            // The owner of the run from which a retry is made.
            local("before").mark(&mut meta);
            Owner::of_cluster("before").mark(&mut meta);
            owner.mark(&mut meta);
            let read = |meta: &ObjectMeta| {
                let value = serde_json::to_value(meta).unwrap();
                Owner::of_object(&serde_json::from_value(value).unwrap())
            };
            assert_eq!(read(&meta).as_ref(), Some(&owner));
            let label = Owner::of_cluster("another").label();
            let labels = meta.labels.as_mut().unwrap();
            labels.insert(names::OWNER.to_owned(), label);
            assert_eq!(read(&meta), None, "a label of another user");
        }
    }

    #[test]
    fn only_the_administrator_of_an_embedded_cluster_owns_runs_without_an_owner() {
        let (ann, bob) = (Owner::of_cluster("ann"), Owner::of_cluster("bob"));
        let admin = Owner::of_cluster(EMBEDDED_ADMINISTRATOR);
        for (me, of, ownership) in [
            (&ann, Some(&ann), Ownership::Own),
            (&ann, Some(&bob), Ownership::Other),
            (&ann, Some(&local("ann")), Ownership::Other),
            (&ann, None, Ownership::Unknown),
            (&local(EMBEDDED_ADMINISTRATOR), None, Ownership::Unknown),
            (&admin, None, Ownership::Own),
            (&admin, Some(&ann), Ownership::Other),
        ] {
            assert_eq!(me.ownership(of), ownership, "{me} {of:?}");
        }
    }
}
