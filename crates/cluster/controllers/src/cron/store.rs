//! The observed CronJobs and their Jobs. Pure.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::CronJob;

use super::{facts::JobFacts, plan::Notice};
use crate::key::Key;

/// CronJobs and Jobs.
#[derive(Debug, Default)]
pub(crate) struct Store {
    crons: HashMap<Key, Entry>,
    /// The Jobs of each CronJob by name. A CronJob can be observed after its Jobs.
    jobs: HashMap<Key, BTreeMap<String, JobFacts>>,
    /// The CronJob of each Job.
    owners: HashMap<Key, Key>,
}

#[derive(Debug)]
struct Entry {
    cron: Arc<CronJob>,
    changed: Option<Timestamp>,
    reported: HashSet<Notice>,
}

/// The observed state of a CronJob.
pub(crate) struct Snapshot {
    pub(crate) cron: Arc<CronJob>,
    pub(crate) jobs: Vec<JobFacts>,
    /// The time at which the controller observed a change of the schedule.
    pub(crate) changed: Option<Timestamp>,
}

fn version(cron: &CronJob) -> Option<u64> {
    cron.metadata.resource_version.as_ref()?.parse().ok()
}

fn timing(cron: &CronJob) -> (&str, Option<&str>) {
    (&cron.spec.schedule, cron.spec.time_zone.as_deref())
}

impl Store {
    /// Stores a CronJob. An older version is ignored.
    pub(crate) fn put(&mut self, key: &Key, cron: CronJob, now: Timestamp) {
        let Some(known) = self
            .crons
            .get_mut(key)
            .filter(|known| known.cron.metadata.uid == cron.metadata.uid)
        else {
            let entry = Entry {
                cron: Arc::new(cron),
                changed: None,
                reported: HashSet::new(),
            };
            self.crons.insert(key.clone(), entry);
            return;
        };
        let versions = version(&cron).zip(version(&known.cron));
        if versions.is_some_and(|(new, old)| new < old) {
            return;
        }
        if timing(&cron) != timing(&known.cron) {
            known.changed = Some(now);
        }
        known.cron = Arc::new(cron);
    }

    /// Stores a CronJob from a response. It is ignored if the CronJob has been
    /// deleted in the meantime.
    pub(crate) fn put_response(&mut self, key: &Key, cron: CronJob, now: Timestamp) {
        let known = self.crons.get(key);
        if known.is_some_and(|known| known.cron.metadata.uid == cron.metadata.uid) {
            self.put(key, cron, now);
        }
    }

    /// Removes a CronJob.
    pub(crate) fn remove(&mut self, key: &Key, uid: Option<&str>) {
        let known = self.crons.get(key);
        if known.is_some_and(|known| known.cron.metadata.uid.as_deref() == uid) {
            self.crons.remove(key);
        }
    }

    /// Stores a Job. If it no longer belongs to its previous CronJob, returns the key of that
    /// CronJob.
    pub(crate) fn put_job(&mut self, job: &Key, owner: Option<(Key, JobFacts)>) -> Option<Key> {
        let (cron, facts) = owner.unzip();
        let old = match &cron {
            Some(cron) => self.owners.insert(job.clone(), cron.clone()),
            None => self.owners.remove(job),
        };
        let former_owner = old.filter(|old| cron.as_ref() != Some(old));
        if let Some(former_owner) = &former_owner
            && let Some(jobs) = self.jobs.get_mut(former_owner)
        {
            jobs.remove(&job.name);
            if jobs.is_empty() {
                self.jobs.remove(former_owner);
            }
        }
        if let Some((cron, mut facts)) = cron.zip(facts) {
            let jobs = self.jobs.entry(cron).or_default();
            if let Some(known) = jobs.get(&job.name)
                && known.uid == facts.uid
            {
                // The deletion was requested, but the watch has not reported it
                // yet.
                facts.deleting |= known.deleting;
            }
            jobs.insert(job.name.clone(), facts);
        }
        former_owner
    }

    /// Marks a Job whose deletion the server has accepted.
    pub(crate) fn mark_deleting(&mut self, cron: &Key, name: &str, uid: &str) {
        let job = self.jobs.get_mut(cron).and_then(|jobs| jobs.get_mut(name));
        if let Some(job) = job.filter(|job| job.uid == uid) {
            job.deleting = true;
        }
    }

    /// Returns the observed state of a CronJob.
    pub(crate) fn snapshot(&self, key: &Key) -> Option<Snapshot> {
        let Entry { cron, changed, .. } = self.crons.get(key)?;
        let jobs = self.jobs.get(key).into_iter().flat_map(BTreeMap::values);
        // Jobs of an earlier CronJob with the same name do not belong to this one.
        let own = jobs.filter(|job| cron.metadata.uid.as_ref() == Some(&job.owner));
        Some(Snapshot {
            jobs: own.cloned().collect(),
            cron: cron.clone(),
            changed: *changed,
        })
    }

    /// Returns the notices that the previous decision did not contain, so that a
    /// persisting cause is recorded once.
    pub(crate) fn new_notices(&mut self, key: &Key, notices: Vec<Notice>) -> Vec<Notice> {
        let Some(entry) = self.crons.get_mut(key) else {
            return Vec::new();
        };
        let before = std::mem::replace(&mut entry.reported, notices.iter().cloned().collect());
        let is_new = |notice: &Notice| !before.contains(notice);
        notices.into_iter().filter(is_new).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn cron(uid: &str, version: u32, schedule: &str) -> CronJob {
        serde_json::from_value(json!({
            "metadata": {"name": "c", "namespace": "a", "uid": uid, "resourceVersion": version.to_string()},
            "spec": {"schedule": schedule, "jobTemplate": {}},
        }))
        .unwrap()
    }

    fn job(name: &str, owner: &str) -> JobFacts {
        JobFacts {
            name: name.into(),
            uid: name.into(),
            owner: owner.into(),
            end: None,
            started: None,
            completed: None,
            deleting: false,
        }
    }

    fn names(store: &Store, key: &Key) -> Vec<String> {
        let jobs = store.snapshot(key).unwrap().jobs;
        jobs.into_iter().map(|job| job.name).collect()
    }

    #[test]
    fn an_older_version_is_ignored_and_a_schedule_change_is_recorded() {
        let (mut store, key, now) = (Store::default(), Key::new("a", "c"), Timestamp::UNIX_EPOCH);
        store.put(&key, cron("u", 5, "@daily"), now);
        store.put(&key, cron("u", 4, "@hourly"), now);
        assert_eq!(store.snapshot(&key).unwrap().changed, None);
        store.put(&key, cron("u", 6, "@hourly"), now);
        assert_eq!(store.snapshot(&key).unwrap().changed, Some(now));
        // A new CronJob with the same name has no history. A response about the old CronJob does
        // not restore it.
        store.put(&key, cron("v", 7, "@daily"), now);
        store.put_response(&key, cron("u", 8, "@hourly"), now);
        let found = store.snapshot(&key).unwrap();
        assert_eq!(
            (found.cron.metadata.uid.as_deref(), found.changed),
            (Some("v"), None)
        );
        store.remove(&key, Some("u"));
        assert!(store.snapshot(&key).is_some());
        store.remove(&key, Some("v"));
        assert!(store.snapshot(&key).is_none());
    }

    #[test]
    fn jobs_are_added_change_owners_and_are_removed() {
        let (mut store, key, now) = (Store::default(), Key::new("a", "c"), Timestamp::UNIX_EPOCH);
        let job_key = Key::new("a", "j");
        assert_eq!(
            store.put_job(&job_key, Some((key.clone(), job("j", "u")))),
            None
        );
        store.put_job(
            &Key::new("a", "k"),
            Some((key.clone(), job("k", "an earlier"))),
        );
        store.put(&key, cron("u", 1, "@daily"), now);
        assert_eq!(names(&store, &key), ["j"]);
        store.mark_deleting(&key, "j", "j");
        store.put_job(&job_key, Some((key.clone(), job("j", "u"))));
        assert!(store.snapshot(&key).unwrap().jobs[0].deleting);
        assert_eq!(store.put_job(&job_key, None), Some(key.clone()));
        assert_eq!(store.put_job(&job_key, None), None);
        assert!(names(&store, &key).is_empty());
    }

    #[test]
    fn a_persisting_notice_is_reported_once() {
        let (mut store, key, now) = (Store::default(), Key::new("a", "c"), Timestamp::UNIX_EPOCH);
        store.put(&key, cron("u", 1, "@daily"), now);
        let notice = |about| Notice {
            severity: crate::events::Severity::Normal,
            reason: "R",
            message: "m".into(),
            about,
        };
        assert_eq!(store.new_notices(&key, vec![notice(None)]).len(), 1);
        assert_eq!(
            store
                .new_notices(&key, vec![notice(None), notice(Some(now))])
                .len(),
            1
        );
        assert!(store.new_notices(&key, vec![notice(Some(now))]).is_empty());
        assert_eq!(store.new_notices(&key, vec![notice(None)]).len(), 1);
    }
}
