//! Runs the controller against an API server in the same process. The tests set the
//! clock of both, and act as the Job controller.
#![allow(clippy::unwrap_used)]

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use longshore_apiserver::{ApiServer, NoLogs, NoStreams};
use longshore_client::{Cluster, DeleteOptions, Item, Patch, Propagation, kinds};
use longshore_engine::{Clock, Engine};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{Pace, run};
use crate::{caches::Caches, events};

const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone)]
struct ManualClock(Arc<Mutex<Timestamp>>);

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock()
    }
}

struct Fixture {
    cluster: Cluster,
    clock: ManualClock,
    tasks: JoinSet<()>,
}

impl Fixture {
    /// Starts at 10:00:30 on 2 January 2026.
    async fn start() -> Self {
        let clock = ManualClock(Arc::new(Mutex::new(
            "2026-01-02T10:00:30Z".parse().unwrap(),
        )));
        let engine = Engine::open(longshore_engine::Options {
            clock: Arc::new(clock.clone()),
            ..Default::default()
        });
        let server = ApiServer::new(longshore_apiserver::Options {
            engine: engine.unwrap(),
            token: None,
            authorization: longshore_apiserver::AuthorizationMode::Rbac,
            token_key: None,
            node_logs: Arc::new(NoLogs),
            node_streams: Arc::new(NoStreams),
            faults: false,
            warn_unhandled_kinds: false,
        });
        let cluster = Cluster::from_service(server.service(), "default");
        let mut fixture = Self {
            cluster,
            clock,
            tasks: JoinSet::new(),
        };
        fixture.start_controller().await;
        fixture
    }

    async fn start_controller(&mut self) {
        let caches = Arc::new(
            Caches::open(&self.cluster, longshore_clock::Clock::system())
                .await
                .unwrap(),
        );
        let (events, writer) =
            events::channel(self.cluster.clone(), longshore_clock::Clock::system());
        let clock = self.clock.clone();
        let pace = Pace {
            now: Arc::new(move || clock.now()),
            max_wait: Duration::from_millis(10),
        };
        self.tasks.spawn(writer.run());
        self.tasks
            .spawn(run(self.cluster.clone(), caches, events, pace));
    }

    /// Sets the time: `12:00:30`.
    fn set(&self, time: &str) {
        *self.clock.0.lock() = format!("2026-01-02T{time}Z").parse().unwrap();
    }

    /// Creates the CronJob `c` with a schedule for each minute.
    async fn cron(&self, spec: Value) {
        let container = json!({"name": "m", "image": "i"});
        let pod = json!({"restartPolicy": "Never", "containers": [container]});
        let job = json!({"spec": {"template": {"spec": pod}}, "metadata": {"labels": {"l": "1"}}});
        let mut all = json!({"schedule": "* * * * *", "jobTemplate": job});
        all.as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let crons = self.cluster.cronjobs().in_namespace("default").unwrap();
        let cron = json!({"metadata": {"name": "c"}, "spec": all});
        crons.create(&cron).await.unwrap();
    }

    async fn patch(&self, patch: Value) {
        let crons = self.cluster.cronjobs().in_namespace("default").unwrap();
        crons.patch("c", &Patch::merge(patch)).await.unwrap();
    }

    async fn status(&self) -> Value {
        let crons = self.cluster.cronjobs().in_namespace("default").unwrap();
        crons.fetch("c").await.unwrap().raw().unwrap()["status"].clone()
    }

    async fn jobs(&self) -> Vec<Item<kinds::Job>> {
        let jobs = self.cluster.jobs().in_namespace("default").unwrap();
        jobs.list().await.unwrap().items
    }

    /// Returns the scheduled minutes after 10:00 of all Jobs.
    async fn minutes(&self) -> Vec<i64> {
        let ten: Timestamp = "2026-01-02T10:00:00Z".parse().unwrap();
        let minute = |job: &Item<kinds::Job>| {
            let number: i64 = job.name().strip_prefix("c-").unwrap().parse().unwrap();
            number - ten.as_second() / 60
        };
        self.jobs().await.iter().map(minute).collect()
    }

    async fn wait_until_minutes(&self, minutes: &[i64]) {
        wait_until(&format!("{minutes:?}"), async || {
            self.minutes().await == minutes
        })
        .await;
    }

    async fn wait_until_active(&self, count: usize) {
        wait_until(&format!("{count} active"), async || {
            self.status().await["active"].as_array().map_or(0, Vec::len) == count
        })
        .await;
    }

    /// Waits until the status contains a scheduled time. It is written after the
    /// Job is created.
    async fn wait_until_scheduled(&self, time: &str) {
        let time = format!("2026-01-02T{time}Z");
        wait_until(&time, async || {
            self.status().await["lastScheduleTime"] == *time
        })
        .await;
    }

    /// Finishes the running Jobs.
    async fn finish_jobs(&self, condition: &str) {
        let now = self.clock.now();
        for job in self.jobs().await {
            if !job.raw().unwrap()["status"]["conditions"].is_null() {
                continue;
            }
            let before = if condition == "Complete" {
                "SuccessCriteriaMet"
            } else {
                "FailureTarget"
            };
            let condition =
                |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
            let mut status = json!({"startTime": now, "conditions": [condition(before)]});
            job.patch_status(&Patch::merge(json!({"status": status})))
                .await
                .unwrap();
            status["conditions"] = json!([condition(before), condition(condition_name(before))]);
            if before == "SuccessCriteriaMet" {
                status["completionTime"] = json!(now);
            }
            job.patch_status(&Patch::merge(json!({"status": status})))
                .await
                .unwrap();
        }
    }

    /// Returns the reasons and messages of the CronJob's events.
    async fn events(&self) -> Vec<(String, String)> {
        let events = self.cluster.events().in_namespace("default").unwrap();
        let events = events.list().await.unwrap().items;
        let raw = events.iter().map(|event| event.raw().unwrap());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        raw.filter(|event| event["involvedObject"]["kind"] == "CronJob")
            .map(|event| (text(&event["reason"]), text(&event["message"])))
            .collect()
    }

    async fn until_event(&self, reason: &str) -> String {
        let mut message = String::new();
        wait_until(reason, async || {
            let found = self
                .events()
                .await
                .into_iter()
                .find(|(message, _)| message == reason);
            message = found.map(|(_, message)| message).unwrap_or_default();
            !message.is_empty()
        })
        .await;
        message
    }
}

fn condition_name(before: &str) -> &str {
    if before == "SuccessCriteriaMet" {
        "Complete"
    } else {
        "Failed"
    }
}

async fn wait_until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while !holds().await {
        assert!(
            tokio::time::Instant::now() < deadline,
            "timed out waiting for: {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits long enough for the controller to reconcile several times.
async fn wait_for_reconciliations() {
    tokio::time::sleep(Duration::from_millis(150)).await;
}

#[tokio::test]
async fn a_job_is_created_each_minute_and_the_oldest_are_deleted() {
    let fixture = Fixture::start().await;
    fixture.cron(json!({"successfulJobsHistoryLimit": 2})).await;
    wait_for_reconciliations().await;
    fixture.wait_until_minutes(&[]).await;
    for minute in 1..=4 {
        fixture.set(&format!("10:0{minute}:00"));
        fixture.wait_until_active(1).await;
        fixture.finish_jobs("Complete").await;
        fixture.wait_until_active(0).await;
    }
    fixture.wait_until_minutes(&[3, 4]).await;
    let status = fixture.status().await;
    assert_eq!(status["lastScheduleTime"], "2026-01-02T10:04:00Z");
    assert_eq!(status["lastSuccessfulTime"], "2026-01-02T10:04:00Z");
    let job = &fixture.jobs().await[0];
    let annotations = &job.meta().annotations;
    let scheduled = annotations.get("batch.kubernetes.io/cronjob-scheduled-timestamp");
    assert_eq!(scheduled.map(|text| &**text), Some("2026-01-02T10:03:00Z"));
    assert_eq!(job.meta().labels.get("l").map(|text| &**text), Some("1"));
    let owner = job.meta().controller().unwrap();
    assert_eq!((&*owner.kind, &*owner.name), ("CronJob", "c"));
    let name = job.name();
    wait_until("events", async || {
        let events = fixture.events().await;
        let count = |reason| events.iter().filter(|(other, _)| other == reason).count();
        let counts = ["SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"].map(count);
        let completed = format!("Saw completed job: {name}, condition: Complete");
        counts == [4, 4, 2]
            && events.contains(&("SuccessfulCreate".into(), format!("Created job {name}")))
            && events.contains(&("SawCompletedJob".into(), completed))
    })
    .await;
    assert!(
        !fixture
            .events()
            .await
            .iter()
            .any(|(reason, _)| reason == "UnexpectedJob")
    );
}

#[tokio::test]
async fn a_running_job_blocks_the_next_one_or_is_replaced() {
    let fixture = Fixture::start().await;
    fixture.cron(json!({"concurrencyPolicy": "Forbid"})).await;
    fixture.set("10:01:00");
    fixture.wait_until_active(1).await;
    fixture.set("10:03:10");
    let message = fixture.until_event("JobAlreadyActive").await;
    assert!(
        message.ends_with("concurrency policy is Forbid"),
        "{message}"
    );
    fixture.wait_until_minutes(&[1]).await;
    // Of the missed times, only the latest is due.
    fixture.finish_jobs("Failed").await;
    fixture.wait_until_minutes(&[1, 3]).await;
    fixture.wait_until_scheduled("10:03:00").await;
    fixture.wait_until_active(1).await;

    fixture
        .patch(json!({"spec": {"concurrencyPolicy": "Replace"}}))
        .await;
    fixture.set("10:04:00");
    fixture.wait_until_minutes(&[1, 4]).await;
    fixture.wait_until_scheduled("10:04:00").await;
    fixture.wait_until_active(1).await;
    fixture
        .patch(json!({"spec": {"concurrencyPolicy": "Allow"}}))
        .await;
    // The controller must know the change before the next Job is due.
    wait_for_reconciliations().await;
    fixture.set("10:05:00");
    fixture.wait_until_minutes(&[1, 4, 5]).await;
    fixture.wait_until_active(2).await;
}

#[tokio::test]
async fn suspended_cron_jobs_create_no_jobs_and_deadlines_apply() {
    let fixture = Fixture::start().await;
    fixture
        .cron(json!({"suspend": true, "startingDeadlineSeconds": 20}))
        .await;
    fixture.set("10:05:30");
    wait_for_reconciliations().await;
    fixture.wait_until_minutes(&[]).await;
    fixture.patch(json!({"spec": {"suspend": false}})).await;
    let message = fixture.until_event("MissSchedule").await;
    assert_eq!(
        message,
        "Missed scheduled time to start a job: Fri, 02 Jan 2026 10:05:00 +0000"
    );
    fixture.wait_until_minutes(&[]).await;
    fixture.set("10:06:05");
    fixture.wait_until_minutes(&[6]).await;
}

#[tokio::test]
async fn restarts_and_clock_changes_create_no_duplicate_jobs() {
    let mut fixture = Fixture::start().await;
    fixture.cron(json!({})).await;
    fixture.set("10:01:00");
    fixture.wait_until_active(1).await;
    fixture.tasks.shutdown().await;
    // The status is lost, as if the controller stopped before it wrote the status.
    let crons = fixture.cluster.cronjobs().in_namespace("default").unwrap();
    let lost = json!({"status": {"active": null, "lastScheduleTime": null}});
    crons.patch_status("c", &Patch::merge(lost)).await.unwrap();
    fixture.start_controller().await;
    fixture.wait_until_active(1).await;
    assert_eq!(
        fixture.status().await["lastScheduleTime"],
        "2026-01-02T10:01:00Z"
    );
    // The clock goes back. Past times are not repeated.
    fixture.set("09:30:00");
    wait_for_reconciliations().await;
    fixture.set("10:01:50");
    wait_for_reconciliations().await;
    fixture.wait_until_minutes(&[1]).await;
    // The clock goes forward while the controller is stopped. Only the latest time
    // is due.
    fixture.tasks.shutdown().await;
    fixture.set("20:00:10");
    fixture.start_controller().await;
    fixture.wait_until_minutes(&[1, 600]).await;
    let message = fixture.until_event("TooManyMissedTimes").await;
    assert!(
        message.starts_with("too many missed start times. Set or decrease"),
        "{message}"
    );
}

#[tokio::test]
async fn a_new_schedule_has_no_missed_times() {
    let fixture = Fixture::start().await;
    fixture.cron(json!({"schedule": "0 12 * * *"})).await;
    fixture.set("10:30:30");
    wait_for_reconciliations().await;
    fixture
        .patch(json!({"spec": {"schedule": "*/10 * * * *"}}))
        .await;
    wait_for_reconciliations().await;
    fixture.wait_until_minutes(&[]).await;
    fixture.set("10:40:00");
    fixture.wait_until_minutes(&[40]).await;
}

#[tokio::test]
async fn jobs_of_other_owners_are_reported_and_not_changed() {
    let fixture = Fixture::start().await;
    fixture.cron(json!({})).await;
    let crons = fixture.cluster.cronjobs().in_namespace("default").unwrap();
    let uid = crons.fetch("c").await.unwrap().uid().to_owned();
    let jobs = fixture.cluster.jobs().in_namespace("default").unwrap();
    let job = |name: String, owners: Value| {
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]});
        let spec = json!({"template": {"spec": pod}});
        json!({"metadata": {"name": name, "ownerReferences": owners}, "spec": spec})
    };
    // This Job has the name of the next scheduled Job.
    let ten: Timestamp = "2026-01-02T10:00:00Z".parse().unwrap();
    let taken = super::jobs::name("c", ten + SignedDuration::from_mins(1));
    jobs.create(&job(taken, json!([]))).await.unwrap();
    fixture.set("10:01:00");
    wait_for_reconciliations().await;
    assert!(fixture.status().await["lastScheduleTime"].is_null());
    // Another client created this Job with the CronJob as its owner.
    let owner = json!([{
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": uid, "controller": true,
    }]);
    jobs.create(&job("c-1".into(), owner)).await.unwrap();
    let message = fixture.until_event("UnexpectedJob").await;
    assert_eq!(
        message,
        "Saw a job that the controller did not create or forgot: c-1"
    );
    fixture.finish_jobs("Complete").await;
    wait_until("the last success", async || {
        fixture.status().await["lastSuccessfulTime"] == "2026-01-02T10:01:00Z"
    })
    .await;
    // Another client deletes a Job.
    fixture.set("10:02:00");
    fixture.wait_until_active(1).await;
    let made = super::jobs::name("c", ten + SignedDuration::from_mins(2));
    let background = DeleteOptions {
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    jobs.delete(&made, &background).await.unwrap();
    fixture.wait_until_active(0).await;
    assert_eq!(
        fixture.until_event("MissingJob").await,
        format!("Active job went missing: {made}")
    );
}
