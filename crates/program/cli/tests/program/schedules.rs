//! `longshore run --cron`: a schedule that creates runs repeatedly.

use longshore::client::{Cluster, Patch};
use serde_json::{Value, json};

use crate::machine::{Machine, eventually};

const TWO_ROLES: &str = r#"
name = "nightly"
cron = "0 0 1 1 *"
time_zone = "Europe/Berlin"
command = 'cat data.txt; echo "$LONGSHORE_RUN $LONGSHORE_ROLE/$LONGSHORE_INDEX of $LONGSHORE_COUNT"; echo "$LONGSHORE_CLUSTER"'
[roles.chief]
[roles.worker]
count = 2
"#;

fn machine() -> Machine {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write("longshore.toml", TWO_ROLES);
    machine.write("data.txt", "from the folder\n");
    machine
}

/// Makes the schedule due, as if the cluster had been stopped for a long time.
pub(crate) fn make_due(machine: &Machine) {
    let path = machine.data().join("kubeconfig");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let cluster = Cluster::from_kubeconfig(Some(&path), None).await.unwrap();
        let view = cluster.cronjobs().in_namespace("default").unwrap();
        let status = json!({"status": {"lastScheduleTime": "2020-12-31T23:30:00Z"}});
        for one in view.list().await.unwrap().items {
            one.patch_status(&Patch::merge(status.clone()))
                .await
                .unwrap();
        }
    });
}

fn runs(machine: &Machine) -> Vec<Value> {
    let all = machine.longshore(&["runs", "--output", "json"]).expect(0);
    all.json().as_array().unwrap().clone()
}

fn created_by(machine: &Machine, schedule: &str) -> Vec<Value> {
    let mut all = runs(machine);
    all.retain(|run| run["madeBy"] == schedule);
    all
}

#[test]
fn a_schedule_creates_runs_whose_tasks_reach_each_other() {
    let machine = machine();
    let created = machine.longshore(&["run"]).expect(0);
    let schedule = created.out.trim();
    assert!(schedule.starts_with("nightly-"), "{}", created.out);
    assert!(created.err.contains("first due at 20"), "{}", created.err);

    let all = runs(&machine);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(
        (&all[0]["state"], &all[0]["schedule"]["cron"]),
        (&json!("scheduled"), &json!("0 0 1 1 *"))
    );
    assert_eq!(all[0]["schedule"]["timeZone"], "Europe/Berlin");
    let early = machine.longshore(&["logs", schedule]).expect(1);
    assert!(
        early.err.contains("has no runs") && early.err.contains("due at"),
        "{}",
        early.err
    );

    make_due(&machine);
    eventually("a run is created", || {
        !created_by(&machine, schedule).is_empty()
    });
    // For a schedule, `attach` follows the last run that it created.
    machine.longshore(&["attach", schedule]).expect(0);
    let made = created_by(&machine, schedule);
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(made[0]["state"], "succeeded");
    assert_eq!(
        (&made[0]["tasks"], &made[0]["exitCode"]),
        (&json!(3), &json!(0))
    );
    let run = made[0]["name"].as_str().unwrap();
    let minute = run.strip_prefix(&format!("{schedule}-")).unwrap();

    let logs = machine.longshore(&["logs", run]).expect(0).out;
    assert!(logs.contains("from the folder"), "{logs}");
    for task in ["chief/0 of 1", "worker/0 of 2", "worker/1 of 2"] {
        assert!(logs.contains(&format!("{run} {task}")), "{logs}");
    }
    let host = format!("{schedule}-worker-{minute}-1.{schedule}:");
    assert!(logs.contains(&host), "{logs}");
    assert!(!logs.contains("EXECUTION"), "{logs}");
    let spec = machine.longshore(&["resolve", run]).expect(0).json();
    assert!(
        spec["worker"][1].as_str().unwrap().starts_with(&host),
        "{spec}"
    );
    let why = machine.longshore(&["why", run]).expect(0).out;
    assert!(why.contains("succeeded"), "{why}");

    // Removing one of its runs does not change the schedule.
    machine.longshore(&["rm", run]).expect(0);
    eventually("the run is deleted", || {
        created_by(&machine, schedule).is_empty()
    });
    assert_eq!(runs(&machine)[0]["state"], "scheduled");
    machine.longshore(&["cancel", schedule]).expect(0);
    assert_eq!(runs(&machine)[0]["state"], "paused");
    assert_eq!(runs(&machine)[0]["schedule"]["next"], Value::Null);
    machine.longshore(&["rm", schedule]).expect(0);
    for kind in ["cronjobs", "jobs", "pods", "secrets"] {
        let left = || {
            machine
                .longshore(&["get", kind, "--output", "name"])
                .expect(0)
                .out
        };
        eventually(kind, || left().is_empty());
    }
}

#[test]
fn unsupported_settings_of_a_schedule_are_rejected() {
    let machine = Machine::new();
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
            "remove `cron` or `jobset`",
        ),
        (
            "cron = \"0 3 * * *\"\nstore = \"s3://bucket\"\n",
            "a schedule runs for longer",
        ),
        ("time_zone = \"UTC\"\n", "set `cron`, too"),
        (
            "cron = \"@every 5m\"\n[roles.a]\n[roles.b]\n",
            "the roles would not start together",
        ),
        (
            "cron = \"0 3 * * *\"\n[roles.ps]\n[roles.worker]\n",
            "no client follows a scheduled run",
        ),
    ];
    for (settings, expected) in table {
        machine.write("longshore.toml", settings);
        let refused = machine.longshore(&["run", "--", "true"]).expect(2);
        assert!(
            refused.err.contains(expected),
            "{settings}\n{}",
            refused.err
        );
    }
}
