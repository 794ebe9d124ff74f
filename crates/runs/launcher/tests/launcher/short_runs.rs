//! Runs that end immediately. The lists and watches of a follower show their pods and Jobs at
//! different times, but their logs must be read.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use super::{
    fake::{
        Answer, End, ReceivedRequest, list,
        run::{ended, event, follow, job, pod, run},
    },
    follow::{cluster, whole_log},
};
use futures::{StreamExt, stream};
use longshore_launcher::follow::Ending;
use serde_json::json;
use tokio::sync::Notify;

/// A pod that is created between the lists of pods and of logs is not deleted.
#[tokio::test]
async fn the_log_of_a_pod_that_was_just_created_is_not_taken_for_complete() {
    let mut job = job("main");
    job["metadata"]["uid"] = json!("job-main");
    let running = pod("main", "8", json!({"running": {}}), "Running");
    let log = json!({
        "metadata": running["metadata"],
        "owner": {"kind": "Job", "name": "demo-ab2cd-main", "uid": "job-main"},
        "containers": [{"name": "main", "instances": [{"restart": 0, "isCut": false}]}],
    });
    let (is_listed, has_ended) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let (read, ended_seen) = (Arc::new(Notify::new()), has_ended.clone());
    let asked_for_log = read.clone();
    let logs = move |asked: &ReceivedRequest| {
        asked_for_log.notify_one();
        let is_whole = ended_seen.load(Relaxed) == 1;
        // Without `follow`, the log of a running pod contains only the lines so far.
        if is_whole || asked.query.contains("follow=true") {
            return whole_log();
        }
        Answer::Stream(vec![], End::Ends)
    };
    let fake = cluster(vec![job], vec![], vec![], logs).with({
        move |asked| match asked.path.as_str() {
            path if path.ends_with("/pods/*/log") => {
                is_listed.store(1, Relaxed);
                let document = json!({"kind": "PodLogsList", "items": [log]});
                Some(Answer::Json(200, document))
            }
            path if path.ends_with("/pods")
                && is_listed.load(Relaxed) == 1
                && !asked.query.contains("watch=") =>
            {
                Some(list("Pod", "v1", vec![running.clone()]))
            }
            path if path.ends_with("/pods") && asked.query.contains("watch=") => {
                let added = stream::iter([Ok(event("ADDED", running.clone()))]);
                let (read, has_ended) = (read.clone(), has_ended.clone());
                let ends = async move {
                    read.notified().await;
                    has_ended.store(1, Relaxed);
                    Ok(event("MODIFIED", ended("main", 0)))
                };
                let events = added.chain(stream::once(ends)).chain(stream::pending());
                Some(Answer::Live(events.boxed()))
            }
            _ => None,
        }
    });
    let (lines, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    assert_eq!(lines, ["main/0 | one"]);
    assert_eq!((outcome.ending, outcome.gaps), (Ending::Succeeded, 0));
}

/// The watch of the Jobs is ahead of the watch of the pods. A list of pods that is read before the
/// list of Jobs is as old as the watch.
#[tokio::test]
async fn the_log_of_a_pod_is_read_though_its_job_is_seen_to_end_first() {
    let mut complete = job("main");
    complete["metadata"]["resourceVersion"] = json!("7");
    complete["status"] = json!({
        "completedIndexes": "0", "succeeded": 1,
        "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z"}],
    });
    let waiting = pod("main", "6", json!({"waiting": {}}), "Pending");
    let recorded = {
        let mut recorded = complete.clone();
        let end = json!({"ending": "Succeeded", "exitCode": 0}).to_string();
        recorded["metadata"]["annotations"] = json!({"longshore.dev/ended": end});
        recorded
    };
    for ended_job in [complete, recorded] {
        let lists = AtomicUsize::new(0);
        let fake = cluster(vec![], vec![], vec![], |_| whole_log()).with({
            let (job_before, waiting) = (job("main"), waiting.clone());
            move |asked| match (asked.path.as_str(), asked.query.contains("watch=")) {
                (path, true) if path.ends_with("/jobs") => Some(Answer::Stream(
                    vec![event("MODIFIED", ended_job.clone())],
                    End::StaysOpen,
                )),
                (path, false) if path.ends_with("/jobs") => {
                    let job = match lists.fetch_add(1, Relaxed) {
                        0 => job_before.clone(),
                        _ => ended_job.clone(),
                    };
                    Some(list("Job", "batch/v1", vec![job]))
                }
                (path, false) if path.ends_with("/pods") => {
                    let pod = match lists.load(Relaxed) {
                        0 | 1 => waiting.clone(),
                        _ => ended("main", 0),
                    };
                    Some(list("Pod", "v1", vec![pod]))
                }
                _ => None,
            }
        });
        let (lines, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
        assert_eq!(lines, ["main/0 | one"]);
        assert_eq!((outcome.ending, outcome.gaps), (Ending::Succeeded, 0));
    }
}

/// A pause of a log that has an end only means that the machine is slow.
#[tokio::test]
async fn a_slow_log_of_an_ended_pod_is_read_to_its_end_though_the_outcome_does_not_need_it() {
    let jobs = vec![job("main"), job("ps")];
    let pods = vec![ended("main", 0), ended("ps", 0)];
    let fake = cluster(jobs, pods, vec![], |asked| {
        if asked.path.contains("main") {
            return Answer::Stream(vec![], End::Ends);
        }
        let late = async {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            Ok("2026-01-01T00:00:01Z late\n".to_owned())
        };
        Answer::Live(stream::once(late).boxed())
    });
    let two = run(&[("main", 1, false), ("ps", 1, true)]);
    let (lines, outcome) = follow(&fake, &two).await;
    assert_eq!(lines, ["ps/0 | late"]);
    assert_eq!((outcome.ending, outcome.gaps), (Ending::Succeeded, 0));
}
