//! Clients that are killed with SIGKILL at each of their requests. The next command can remove or
//! complete what they have created.

use std::{collections::BTreeSet, fs, process::Command, time::Duration};

use longshore::Cluster;
use serde_json::{Value, json};

use crate::{
    machine::{Answer, Running, eventually},
    s3::{BUCKET, Fault},
    stored_outputs::Elsewhere,
    webhook::Server,
};

/// The path of the fault rules.
const FAULTS: &str = "/longshore.dev/v1/faults";

/// The labels of the run's objects, and of the objects for its notifications.
const RUN: &str = "longshore.dev/run";
const NOTIFIES: &str = "longshore.dev/notifies";

/// Stops requests to the API server.
struct Faults {
    runtime: tokio::runtime::Runtime,
    cluster: Cluster,
}

impl Faults {
    fn of(there: &Elsewhere) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let kubeconfig = there.machine.data().join("kubeconfig");
        let cluster = Cluster::from_kubeconfig(Some(&kubeconfig), None);
        let cluster = runtime.block_on(cluster).unwrap();
        Self { runtime, cluster }
    }

    /// Runs a command, and kills it when it has sent a request with one of these verbs, after
    /// `skip` others, which is not handled. Returns true if it has sent that many.
    fn kill_at(&self, skip: usize, verbs: &[&str], command: Command) -> bool {
        let rule = json!({
            "match": {"verbs": verbs},
            "effect": {"delay": {"milliseconds": 600_000}},
            "skip": skip,
            "times": 1,
        });
        let proxy = self.cluster.proxy();
        let rule = self
            .runtime
            .block_on(proxy.post(FAULTS, &[], &rule))
            .unwrap();
        let path = format!("{FAULTS}/{}", rule["id"].as_str().unwrap());
        let mut running = Running::start(command);
        let mut is_stopped = false;
        eventually("the command is stopped, or has ended", || {
            let state: Value = self.runtime.block_on(proxy.get(&path, &[])).unwrap();
            is_stopped = state["fired"] == 1;
            is_stopped || running.has_ended()
        });
        if is_stopped {
            running.signal("KILL");
        }
        running.end();
        let removed = proxy.delete(FAULTS, &[], None);
        self.runtime.block_on(removed).unwrap();
        is_stopped
    }
}

impl Elsewhere {
    /// A run with the outputs of two tasks.
    fn ended_run(&self) -> String {
        let run = ["run", "--role", "main=2", "--", "sh", "train.sh"];
        self.longshore(&run).expect(0);
        self.newest()
    }

    fn newest(&self) -> String {
        let list = self.longshore(&["runs", "-o", "name"]).expect(0).out;
        list.lines().next().unwrap().to_owned()
    }

    /// Kinds and names of the run's objects, including the objects for its notifications. Without a
    /// name, of all runs.
    fn objects(&self, run: &str) -> BTreeSet<String> {
        let of_run = ["jobs", "services", "secrets"].map(|kind| (kind, RUN));
        let of_notifier = ["jobs", "cronjobs", "secrets", "serviceaccounts", "roles"];
        let of_notifier = of_notifier.map(|kind| (kind, NOTIFIES));
        let mut found = BTreeSet::new();
        for (kind, label) in of_run.into_iter().chain(of_notifier) {
            let label = match run {
                "" => label.to_owned(),
                run => format!("{label}={run}"),
            };
            let list = ["get", kind, "-l", &label, "-o", "name"];
            let list = self.longshore(&list).expect(0).out;
            found.extend(list.lines().map(str::to_owned));
        }
        found
    }

    /// The names of runs that have an object.
    fn named(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for kind in ["jobs", "cronjobs", "services", "secrets"] {
            let list = self.longshore(&["get", kind, "-o", "json"]).expect(0);
            let list = list.json();
            let items = list["items"].as_array().or_else(|| list.as_array());
            for item in items.unwrap() {
                let labels = &item["metadata"]["labels"];
                let name = [RUN, NOTIFIES]
                    .into_iter()
                    .find_map(|key| labels[key].as_str());
                found.extend(name.map(str::to_owned));
            }
        }
        found
    }

    /// Waits until all objects and files of a run are removed.
    #[track_caller]
    fn is_removed(&self, run: &str, when: &str) {
        eventually(&format!("{run} is removed ({when})"), || {
            self.objects(run).is_empty()
        });
        let folder = self.server.file(&format!("team/outputs/default/{run}"));
        let left = fs::read_dir(folder).into_iter().flatten().count();
        assert_eq!(left, 0, "outputs of {run} are left ({when})");
    }

    /// Removes what a killed removal has left.
    #[track_caller]
    fn remove_again(&self, run: &str, when: &str) {
        let listed = self.longshore(&["runs", "-o", "name"]).expect(0).out;
        if listed.lines().any(|name| name == run) {
            self.longshore(&["rm", run]).expect(0);
        }
        self.is_removed(run, when);
    }
}

#[test]
fn a_removal_that_is_killed_at_any_request_is_completed_by_the_next() {
    let there = Elsewhere::with(&["up", "--faults"]);
    let faults = Faults::of(&there);
    let writes = ["create", "update", "patch", "delete"];
    for skip in 0.. {
        let run = there.ended_run();
        let is_killed = faults.kill_at(skip, &writes, there.command(&["rm", &run]));
        there.remove_again(&run, &format!("killed at write {skip}"));
        if !is_killed {
            // The Job; the cluster may delete the rest before the client does.
            assert!(skip >= 1, "{skip}");
            break;
        }
    }
    for skip in 0.. {
        let run = there.ended_run();
        let mut steps = vec![Fault::Pass; skip];
        steps.push(Fault::Silence);
        there.server.fail(BUCKET, &steps);
        let mut rm = Running::start(there.command(&["rm", &run]));
        let mut is_stopped = false;
        eventually("rm is stopped, or has ended", || {
            is_stopped = there.server.faults() == 0;
            is_stopped || rm.has_ended()
        });
        if is_stopped {
            rm.signal("KILL");
        }
        rm.end();
        there.server.forget_faults();
        there.remove_again(&run, &format!("killed at request {skip} to the store"));
        if !is_stopped {
            // A list, and the deletion.
            assert!(skip >= 2, "{skip}");
            break;
        }
    }
}

#[test]
fn a_removal_is_refused_while_the_store_does_not_answer_and_an_active_run_uploads_before() {
    let there = Elsewhere::new();
    let run = there.ended_run();
    let busy = [(); 40].map(|()| Fault::Answer(500));
    there.server.fail("list-type", &busy);
    let refused = there.longshore(&["rm", &run]).expect(1);
    assert!(refused.err.contains("the run is kept"), "{}", refused.err);
    there.server.forget_faults();
    assert!(
        there
            .longshore(&["rm", &run])
            .expect(0)
            .err
            .contains("of outputs")
    );
    there.is_removed(&run, "after a refusal");

    there
        .server
        .fail("list-type", &[(); 40].map(|()| Fault::Answer(500)));
    let run = there.ended_run();
    let forced = there.longshore(&["rm", &run, "--force"]).expect(0);
    assert!(
        forced.err.contains("were not removed from"),
        "{}",
        forced.err
    );
    there.server.forget_faults();

    // The run writes a file when it is terminated.
    let run = there.waiting(&[]);
    there.longshore(&["rm", &run, "--force"]).expect(0);
    there.is_removed(&run, "while it was active");
    std::thread::sleep(Duration::from_secs(1));
    there.is_removed(&run, "and a second later");
}

#[test]
fn what_a_killed_submission_leaves_is_removed_by_its_name() {
    let there = Elsewhere::with(&["up", "--faults"]);
    let faults = Faults::of(&there);
    let submit = ["create", "update", "patch"];
    let sweep = ["run", "--sweep", "n=1,2", "--", "sh", "-c", "exit 1"];
    there.longshore(&sweep).expect(1);
    let sweep = there.newest();
    let run = ["run", "-d", "--role", "main=2", "--", "true"];
    // No server listens at this URL.
    let hook = ["--webhook", "http://127.0.0.1:9/", "--", "true"];
    let notifying = [&["run", "-d"][..], &hook].concat();
    let scheduled = [&["run", "--cron", "0 0 1 1 *"][..], &hook].concat();
    let commands: [&[&str]; 4] = [&["retry", &sweep, "-d"], &run, &notifying, &scheduled];
    // Runs of a schedule cannot use signed URLs of a store.
    let without_store = there.machine.home().join("train");
    fs::create_dir(&without_store).unwrap();
    fs::write(without_store.join("train.sh"), "true").unwrap();
    for command in commands {
        for skip in 0.. {
            let before = there.named();
            let mut started = there.command(command);
            if command.contains(&"--cron") {
                started.current_dir(&without_store);
            }
            let is_killed = faults.kill_at(skip, &submit, started);
            // Requests that were sent at the same time may still be handled.
            std::thread::sleep(Duration::from_millis(100));
            for name in there.named().difference(&before) {
                there.longshore(&["rm", name, "--force"]).expect(0);
                there.is_removed(name, &format!("{command:?} killed at write {skip}"));
            }
            if !is_killed {
                assert!(skip >= 2, "{skip}");
                break;
            }
        }
    }
    there.longshore(&["retry", &sweep, "-d"]).expect(0);
}

#[test]
fn a_run_whose_client_is_killed_calls_its_webhook() {
    let there = Elsewhere::with(&["up", "--faults"]);
    let faults = Faults::of(&there);
    let server = Server::start(&[]);
    let submit = ["create", "update", "patch"];
    let two = ["run", "-d", "--role", "main=2", "--webhook", &server.url];
    let run = [&two[..], &["--", "true"]].concat();
    let mut counts = (0, 0);
    for skip in 0.. {
        let before = there.named();
        let is_killed = faults.kill_at(skip, &submit, there.command(&run));
        std::thread::sleep(Duration::from_millis(100));
        let named = there.named();
        let name = named.difference(&before).next();
        let jobs = name.map(|name| {
            let label = format!("{RUN}={name}");
            let jobs = ["get", "jobs", "-l", &label, "-o", "name"];
            there.longshore(&jobs).expect(0).out
        });
        match (name, jobs.is_some_and(|jobs| !jobs.is_empty())) {
            (Some(name), true) => {
                let body = server.accepted();
                assert_eq!(
                    (&body["run"], &body["state"]),
                    (&json!(name), &json!("succeeded")),
                    "killed at write {skip}"
                );
                counts.0 += usize::from(is_killed);
            }
            _ => counts.1 += 1,
        }
        if !is_killed {
            break;
        }
    }
    // Killed after the Job was created, and before.
    assert!(counts.0 >= 2 && counts.1 >= 4, "{counts:?}");
}

/// Checks files, and returns how many there are.
fn check(folder: &std::path::Path, complete: &std::path::Path) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with(".longshore-") {
            continue;
        }
        let expected = fs::read(complete.join(&name)).unwrap();
        assert!(
            fs::read(&path).unwrap() == expected,
            "{name} is not complete"
        );
        count += 1;
    }
    count
}

#[test]
fn a_fetch_that_is_killed_at_any_moment_is_completed_by_the_next() {
    let there = Elsewhere::new();
    let complete = there.machine.home().join("complete");
    fs::create_dir(&complete).unwrap();
    let script = format!(
        "mkdir out; for n in $(seq 40); do head -c 200000 /dev/urandom > out/$n; done; cp out/* {}",
        complete.display()
    );
    // The client is killed while it reads the contents.
    let steps = [Fault::Pass, Fault::Pass, Fault::Silence];
    there.server.fail("main.0.ended", &steps);
    let run = ["run", "--fetch=got", "--", "sh", "-c", &script];
    let killed = Running::start(there.command(&run));
    eventually("the contents are requested", || there.server.faults() == 0);
    killed.signal("KILL");
    killed.end();
    let got = there.machine.code().join("got/out");
    check(&got, &complete);
    let fetch = ["outputs", "last", "--to", "got"];
    there.longshore(&fetch).expect(0);
    assert_eq!(check(&got, &complete), 40);

    let mut counts = BTreeSet::new();
    for round in 0_u64.. {
        fs::remove_dir_all(there.machine.code().join("got")).unwrap();
        let mut fetching = Running::start(there.command(&fetch));
        // Each round gets a little further.
        std::thread::sleep(Duration::from_millis(15 * round));
        let has_ended = fetching.has_ended();
        if !has_ended {
            fetching.signal("KILL");
        }
        fetching.end();
        counts.insert(check(&got, &complete));
        let answer: Answer = there.longshore(&fetch);
        answer.expect(0);
        assert_eq!(check(&got, &complete), 40, "round {round}");
        let parts = fs::read_dir(&got).unwrap();
        let parts = parts.filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with(".longshore-")
        });
        assert_eq!(parts.count(), 0);
        if has_ended {
            break;
        }
    }
    assert!(counts.contains(&40) && counts.contains(&0), "{counts:?}");
}
