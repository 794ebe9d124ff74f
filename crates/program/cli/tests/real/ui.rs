//! The page of `longshore ui`, on a cluster that Longshore does not provide.

use crate::{
    page::Page,
    s3::{BUCKET, S3},
    stage::Stage,
};

fn open(stage: &Stage) -> Page {
    let words = ["ui", "--context", "real", "--namespace", &stage.name];
    Page::start(stage.command(&words))
}

/// The path of a run's page.
fn path(stage: &Stage, run: &str) -> String {
    format!("runs/{}/{run}", stage.name)
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_run_is_followed_cancelled_and_removed() {
    let stage = Stage::new();
    let page = open(&stage);
    let (_, list) = page.get("");
    assert!(list.contains("No runs."), "{list}");
    let words = ["--name", "digits", "--role", "worker=2", "--"];
    let script = ["sh", "-c", "echo hello from $LONGSHORE_INDEX; sleep 1000"];
    let run = stage.detach(&[&words[..], &script].concat());
    let path = path(&stage, &run);
    // The list changes while it is shown.
    let list = page.events_until("events", r#"data-state=\"running\""#);
    assert!(list.contains(&run), "{list}");
    let (_, shown) = page.get(&path);
    for part in ["worker", "sleep 1000", "Timeline", "data-action=\"cancel\""] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let logs = page.events_until(&format!("{path}/logs"), "hello from 1");
    assert!(logs.contains("worker"), "{logs}");

    let (_, objects) = page.get(&format!("{path}/objects"));
    for kind in ["Job", "Pod", "Secret", "Service"] {
        assert!(objects.contains(&format!("kind={kind}&")), "{objects}");
    }
    let secrets = stage.kubectl(&["get", "secrets", "--output", "name"]);
    let secret = secrets.lines().next().unwrap();
    let name = secret.trim_start_matches("secret/");
    let (_, yaml) = page.get(&format!("{path}/object?kind=Secret&name={name}"));
    assert!(yaml.contains(name), "{yaml}");
    let value = "-o=jsonpath={.data}";
    let data = stage.kubectl(&["get", secret, value]);
    let data: serde_json::Value = serde_json::from_str(&data).unwrap();
    for value in data.as_object().unwrap().values() {
        assert!(!yaml.contains(value.as_str().unwrap()), "{yaml}");
    }
    // Objects of other users are not shown.
    let (head, _) = page.get("objects");
    assert!(head.contains(" 404 "), "{head}");

    page.press(&format!("{path}/cancel"));
    page.events_until(&format!("{path}/events"), r#"data-state=\"cancelled\""#);
    let (head, _) = page.send("POST", &format!("{}{path}/cancel", page.base));
    assert!(head.contains(" 409 "), "{head}");
    page.press(&format!("{path}/remove"));
    let left = "jobs,pods,secrets,services";
    stage.eventually("no object is left", || {
        stage.kubectl(&["get", left, "--output", "name"]).is_empty()
    });
    let list = page.events_until("events", "No runs.");
    assert!(!list.contains(&run), "{list}");
    page.program.signal("INT");
    page.program.end().expect(0);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn why_a_run_is_pending_or_failed_is_shown() {
    let stage = Stage::new();
    let page = open(&stage);
    let shows = |run: &str, part: &str| {
        let path = format!("{}/why", path(&stage, run));
        stage.eventually(part, || page.get(&path).1.contains(part));
        page.get(&path).1
    };
    let missing = stage.images()[0].replace("longshore:1", "none:1");
    let pending = stage.detach(&["--image", &missing, "--", "true"]);
    let why = shows(&pending, &format!("{missing}&quot; does not exist"));
    assert!(why.contains("Remedy: "), "{why}");
    let failed = stage.detach(&["--", "sh", "-c", "echo no data; exit 3"]);
    let why = shows(&failed, "exit code 3");
    let command = format!(
        "longshore logs {failed} --role main --index 0 --context real --namespace {}",
        stage.name
    );
    assert!(why.contains(&command), "{command}: {why}");
    // The list has both.
    let list = page.events_until("events", r#"data-state=\"failed\""#);
    assert!(list.contains(&pending), "{list}");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn usage_sweeps_and_outputs_are_shown() {
    let stage = Stage::new();
    let server = S3::start_at(stage.machine());
    let settings = format!("name = 'sweep'\nstore = 's3://{BUCKET}/team'\noutputs = ['*.bin']\n");
    stage.machine.write("longshore.toml", &settings);
    let script = "echo weights > w.bin; echo '{\"loss\": {n}}' >> \"$LONGSHORE_METRICS\"; sleep 4; test {n} != 2";
    let words = ["--detach", "--sweep", "n=1..3", "--", "sh", "-c", script];
    let mut command = stage.run_command(&words);
    let answer = crate::machine::Answer::new(&command.envs(server.settings()).output().unwrap());
    let run = answer.expect(0).out.trim().to_owned();
    let mut ui = stage.command(&["ui", "--context", "real", "--namespace", &stage.name]);
    ui.envs(server.settings());
    let page = Page::start(ui);
    let path = path(&stage, &run);
    page.events_until("events", r#"data-state=\"running\""#);
    page.events_until(&format!("{path}/events"), r#"data-state=\"failed\""#);

    let table = page.events_until(&format!("{path}/events?shown=sweep"), r#""id":"sweep""#);
    let (_, table) = table.rsplit_once("data: ").unwrap();
    for part in ["3 combinations", "2 succeeded, 1 failed", ">loss<", ">3<"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let usage = page.events_until(&format!("{path}/events?shown=usage"), r#""id":"usage""#);
    let (_, usage) = usage.rsplit_once("data: ").unwrap();
    for part in ["main/2", " MiB", " cores"] {
        assert!(usage.contains(part), "{part}: {usage}");
    }
    let (_, metrics) = page.get(&format!("{path}/metrics"));
    assert!(metrics.contains("loss"), "{metrics}");
    let (_, outputs) = page.get(&format!("{path}/outputs"));
    assert!(outputs.contains("w.bin"), "{outputs}");
    let file = format!("{path}/file?task=main%2F0&path=w%2Ebin");
    assert_eq!(page.get(&file).1, "weights\n");

    let retry = page.press(&format!("{path}/retry"));
    let retry = retry.strip_prefix(&page.base).unwrap_or(&retry).to_owned();
    page.events_until(&format!("{retry}/events"), r#"data-state=\"failed\""#);
    let (_, shown) = page.get(&retry);
    assert!(shown.contains("Combinations"), "{shown}");
}
