//! `longshore run --cron`: a run that is made again and again.

use longshore::client::{Cluster, Patch};
use serde_json::{Value, json};

use crate::desk::{Desk, eventually};

const TWO_ROLES: &str = r#"
name = "nightly"
cron = "0 0 1 1 *"
time_zone = "Europe/Berlin"
command = 'cat data.txt; echo "$LONGSHORE_RUN $LONGSHORE_ROLE/$LONGSHORE_INDEX of $LONGSHORE_COUNT"; echo "$LONGSHORE_CLUSTER"'
[roles.chief]
[roles.worker]
count = 2
"#;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.longshore(&["up"]).expect(0);
    desk.write("longshore.toml", TWO_ROLES);
    desk.write("data.txt", "from the folder\n");
    desk
}

/// Makes the schedule due: as if the cluster had slept since long ago.
fn make_due(desk: &Desk) {
    let path = desk.data().join("kubeconfig");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let cluster = Cluster::from_kubeconfig(Some(&path), None).await.unwrap();
        let view = cluster.cronjobs().in_namespace("default").unwrap();
        let status = json!({"status": {"lastScheduleTime": "2020-12-31T23:30:00Z"}});
        let deadline = json!({"spec": {"schedule": "0 0 * * *"}});
        for one in view.list().await.unwrap().items {
            one.patch_status(&Patch::merge(status.clone()))
                .await
                .unwrap();
            one.patch(&Patch::merge(deadline.clone())).await.unwrap();
        }
    });
}

fn runs(desk: &Desk) -> Vec<Value> {
    let all = desk.longshore(&["runs", "--output", "json"]).expect(0);
    all.json().as_array().unwrap().clone()
}

fn made_by(desk: &Desk, schedule: &str) -> Vec<Value> {
    let mut all = runs(desk);
    all.retain(|run| run["madeBy"] == schedule);
    all
}

#[test]
fn a_schedule_makes_runs_whose_tasks_meet() {
    let desk = desk();
    let told = desk.longshore(&["run"]).expect(0);
    let schedule = told.out.trim();
    assert!(schedule.starts_with("nightly-"), "{}", told.out);
    assert!(told.err.contains("first due at 20"), "{}", told.err);

    let all = runs(&desk);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(
        (&all[0]["state"], &all[0]["schedule"]["cron"]),
        (&json!("scheduled"), &json!("0 0 1 1 *"))
    );
    assert_eq!(all[0]["schedule"]["timeZone"], "Europe/Berlin");
    let early = desk.longshore(&["logs", schedule]).expect(1);
    assert!(
        early.err.contains("has made no run") && early.err.contains("due at"),
        "{}",
        early.err
    );

    make_due(&desk);
    eventually("a run is made", || !made_by(&desk, schedule).is_empty());
    // Of the schedule, the last run that it has made.
    desk.longshore(&["attach", schedule]).expect(0);
    let made = made_by(&desk, schedule);
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(made[0]["state"], "succeeded");
    assert_eq!(
        (&made[0]["tasks"], &made[0]["exitCode"]),
        (&json!(3), &json!(0))
    );
    let run = made[0]["name"].as_str().unwrap();
    let minute = run.strip_prefix(&format!("{schedule}-")).unwrap();

    let logs = desk.longshore(&["logs", run]).expect(0).out;
    assert!(logs.contains("from the folder"), "{logs}");
    for task in ["chief/0 of 1", "worker/0 of 2", "worker/1 of 2"] {
        assert!(logs.contains(&format!("{run} {task}")), "{logs}");
    }
    let host = format!("{schedule}-worker-{minute}-1.{schedule}:");
    assert!(logs.contains(&host), "{logs}");
    assert!(!logs.contains("EXECUTION"), "{logs}");
    let spec = desk.longshore(&["resolve", run]).expect(0).json();
    assert!(
        spec["worker"][1].as_str().unwrap().starts_with(&host),
        "{spec}"
    );
    let why = desk.longshore(&["why", run]).expect(0).out;
    assert!(why.contains("succeeded"), "{why}");

    // Without one of its runs the schedule is as it was.
    desk.longshore(&["rm", run]).expect(0);
    eventually("the run is gone", || made_by(&desk, schedule).is_empty());
    assert_eq!(runs(&desk)[0]["state"], "scheduled");
    desk.longshore(&["cancel", schedule]).expect(0);
    assert_eq!(runs(&desk)[0]["state"], "paused");
    assert_eq!(runs(&desk)[0]["schedule"]["next"], Value::Null);
    desk.longshore(&["rm", schedule]).expect(0);
    for kind in ["cronjobs", "jobs", "pods", "secrets"] {
        let left = || {
            desk.longshore(&["get", kind, "--output", "name"])
                .expect(0)
                .out
        };
        eventually(kind, || left().is_empty());
    }
}

#[test]
fn what_a_schedule_cannot_do_is_refused() {
    let desk = Desk::new();
    let table = [
        (
            "cron = \"99 * * * *\"\n",
            "longshore.toml:1:8: invalid cron \"99 * * * *\": end of range (99) above maximum (59): 99",
        ),
        (
            "cron = \"0 3 * * *\"\ntime_zone = \"Mars\"\n",
            "longshore.toml:2:13: invalid time_zone \"Mars\"",
        ),
        (
            "cron = \"0 3 * * *\"\nconcurrency_policy = \"forbid\"\n",
            "use one of Forbid, Allow, Replace",
        ),
        (
            "cron = \"0 3 * * *\"\njobset = true\n",
            "leave out one of `cron` and `jobset`",
        ),
        (
            "cron = \"0 3 * * *\"\nstore = \"s3://bucket\"\n",
            "a schedule goes on for longer",
        ),
        ("time_zone = \"UTC\"\n", "set `cron`, too"),
        (
            "cron = \"@every 5m\"\n[roles.a]\n[roles.b]\n",
            "the roles would not meet",
        ),
        (
            "cron = \"0 3 * * *\"\n[roles.ps]\n[roles.worker]\n",
            "nobody follows a scheduled one",
        ),
    ];
    for (settings, told) in table {
        desk.write("longshore.toml", settings);
        let refused = desk.longshore(&["run", "--", "true"]).expect(2);
        assert!(refused.err.contains(told), "{settings}\n{}", refused.err);
    }
}
