//! Outputs on clusters that do not keep outputs: the embedded cluster, used by its kubeconfig like
//! any other cluster, and an S3 server to which tasks upload their files.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    machine::{Answer, Machine, Running, eventually},
    outputs::{FILLS_DISK, SmallDisk},
    s3::{BUCKET, Fault, S3, SECRET},
};

/// Writes two files; with an argument, waits until it is terminated, and writes a third one. With
/// `TOGETHER`, a folder, neither of two tasks fails before both have written their files: the failure
/// of a task terminates the other.
const TRAIN: &str = "mkdir -p out; echo weights > out/model.bin; echo $LONGSHORE_INDEX > m.json\n\
     if test -n \"$TOGETHER\"; then trap '' TERM; touch \"$TOGETHER/$LONGSHORE_INDEX\"\n\
     until test -e \"$TOGETHER/0\" -a -e \"$TOGETHER/1\"; do sleep 0.05; done; fi\n\
     test -z \"$1\" && exit ${FAIL:-0}\n\
     trap 'echo last > out/last; exit 1' TERM; echo ready\n\
     while true; do sleep 0.05; done\n";

pub(crate) struct Elsewhere {
    pub(crate) machine: Machine,
    pub(crate) server: S3,
}

impl Elsewhere {
    pub(crate) fn new() -> Self {
        Self::with(&["up"])
    }

    /// With a cluster that this command starts.
    pub(crate) fn with(up: &[&str]) -> Self {
        Self::on(Machine::new(), up)
    }

    fn on(machine: Machine, up: &[&str]) -> Self {
        machine.write("train.sh", TRAIN);
        machine.write(
            "longshore.toml",
            &format!(
                "name = 'train'\nstore = 's3://{BUCKET}/team'\noutputs = ['out/**', '*.json']\n"
            ),
        );
        machine.longshore(up).expect(0);
        Self {
            machine,
            server: S3::start(),
        }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.machine.command(arguments);
        let kubeconfig = self.machine.data().join("kubeconfig");
        command
            .envs(self.server.settings())
            .env("LONGSHORE_KUBECONFIG", kubeconfig);
        command
    }

    pub(crate) fn longshore(&self, arguments: &[&str]) -> Answer {
        Answer::new(&self.command(arguments).output().unwrap())
    }

    /// Runs two tasks that fail when both have written their files, and fetches these.
    fn two_fail(&self) -> Answer {
        let together = format!("TOGETHER={}", self.machine.home().display());
        let run = ["run", "--env", "FAIL=3", "--env", &together];
        let two = ["--fetch=got", "--role", "main=2", "--", "sh", "train.sh"];
        self.longshore(&[&run[..], &two].concat()).expect(3)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.machine.code().join(path)).unwrap()
    }

    /// Starts a run whose task waits to be terminated.
    pub(crate) fn waiting(&self, more: &[&str]) -> String {
        let arguments = [&["run", "-d"], more, &["--", "sh", "train.sh", "wait"]].concat();
        let run = self.longshore(&arguments).expect(0).out.trim().to_owned();
        eventually("the task is ready", || {
            self.longshore(&["logs", &run]).out.contains("ready")
        });
        run
    }
}

#[test]
fn outputs_of_a_failed_run_are_uploaded_without_credentials_and_fetched() {
    let there = Elsewhere::new();
    let answer = there.two_fail();
    assert!(
        answer.err.contains("outputs 4 files, 20 B, to got"),
        "{}",
        answer.err
    );
    assert_eq!(there.read("got/main-1/m.json"), "1\n");
    assert_eq!(there.read("got/main-0/out/model.bin"), "weights\n");

    let again = there
        .longshore(&["outputs", "last", "--to", "got"])
        .expect(0);
    assert!(again.err.contains("4 files already there"), "{}", again.err);
    there.machine.write("got/main-0/m.json", "changed");
    let refused = there
        .longshore(&["outputs", "last", "--to", "got"])
        .expect(1);
    assert!(refused.err.contains("use --force"), "{}", refused.err);
    there
        .longshore(&["outputs", "last", "--to", "got", "--force"])
        .expect(0);
    assert_eq!(there.read("got/main-0/m.json"), "0\n");
    let one = there
        .longshore(&["outputs", "last", "main/1", "--list"])
        .expect(0);
    assert_eq!(one.out.matches("main/1").count(), 2, "{}", one.out);

    // Files of a task that has ended are copied from its outputs.
    there
        .longshore(&["cp", "last/main/1:out/model.bin", "weights"])
        .expect(0);
    assert_eq!(there.read("weights"), "weights\n");
    let missing = there.longshore(&["cp", "last/main/1:/etc/hosts", "x"]);
    assert!(
        missing.expect(1).err.contains("has ended"),
        "only outputs are left"
    );

    // Signatures and keys are only in the Secrets of the run.
    let mut shown = format!("{}{}", answer.out, answer.err);
    for kind in ["pods", "jobs", "events"] {
        shown += &there.longshore(&["get", kind, "-o", "yaml"]).expect(0).out;
    }
    for secret in ["X-Amz-Signature", SECRET] {
        assert!(!shown.contains(secret), "{secret} is printed");
    }

    let removed = there.longshore(&["rm", "last"]).expect(0);
    assert!(removed.err.contains("of outputs"), "{}", removed.err);
    let left = there.server.file("team/outputs");
    let left = Command::new("find").arg(left).args(["-type", "f"]).output();
    assert_eq!(String::from_utf8(left.unwrap().stdout).unwrap(), "");
}

#[test]
fn a_running_task_uploads_on_request_and_a_cancelled_one_within_its_grace_period() {
    let there = Elsewhere::new();
    let run = there.waiting(&[]);
    let now = there.longshore(&["outputs", &run, "--to", "now"]).expect(0);
    assert!(now.err.contains("main/0 is still running"), "{}", now.err);
    assert_eq!(there.read("now/out/model.bin"), "weights\n");
    there.longshore(&["cancel", &run]).expect(0);
    eventually("the last files are uploaded", || {
        let list = there.longshore(&["outputs", &run, "--list"]);
        list.out.contains("out/last")
    });
}

#[test]
fn a_running_task_uploads_at_intervals_and_the_files_survive_its_kill() {
    let there = Elsewhere::new();
    let run = there.waiting(&["--outputs-every", "10s"]);
    eventually("the current files are uploaded", || {
        let seen = there.server.seen();
        seen.iter()
            .any(|line| line.starts_with("PUT ") && line.contains("main.0.running"))
    });
    // The node agent dies with all its processes.
    there.machine.longshore(&["down", "--force"]).expect(0);
    there.machine.longshore(&["up"]).expect(0);
    eventually("the files are there", || {
        let list = there.longshore(&["outputs", &run, "--list"]);
        list.out.contains("out/model.bin")
    });
    let often = there.longshore(&["run", "--outputs-every", "1s", "--", "true"]);
    assert!(often.expect(2).err.contains("use at least 10s"));
}

#[test]
fn a_store_that_fails_is_tried_again_and_a_refusal_is_in_the_log() {
    let there = Elsewhere::new();
    there
        .server
        .fail("main.0.ended", &[Fault::Answer(503), Fault::Answer(500)]);
    there
        .longshore(&["run", "--fetch=got", "--", "sh", "train.sh"])
        .expect(0);
    assert_eq!(there.read("got/m.json"), "0\n");
    there.server.fail("main.0.ended", &[Fault::Answer(403)]);
    let refused = there.longshore(&["run", "--fetch=none", "--", "sh", "train.sh"]);
    let output = format!("{}{}", refused.out, refused.err);
    assert!(
        output.contains("the outputs were not uploaded: the store denies the upload"),
        "{output}"
    );
    assert!(
        output.contains("no outputs of main/0: they were not uploaded"),
        "{output}"
    );
    assert_eq!(refused.code, 1);
}

#[test]
fn an_interrupted_fetch_continues_and_damage_is_reported() {
    let there = Elsewhere::new();
    there.longshore(&["run", "--", "sh", "train.sh"]).expect(0);
    let fetch = ["outputs", "last", "--to", "got"];
    there.server.fail("main.0.ended", &[Fault::Silence]);
    let killed = Running::start(there.command(&fetch));
    eventually("the request is pending", || there.server.faults() == 0);
    killed.signal("KILL");
    killed.end();
    there.longshore(&fetch).expect(0);
    assert_eq!(there.read("got/m.json"), "0\n");

    let list = there.longshore(&["runs", "--output", "name"]).expect(0);
    let object = format!("team/outputs/default/{}/main.0.ended", list.out.trim());
    let object = there.server.file(&object);
    let mut bytes = fs::read(&object).unwrap();
    bytes[0] ^= 1;
    fs::write(&object, bytes).unwrap();
    let damaged = there
        .longshore(&["outputs", "last", "--to", "damaged"])
        .expect(1);
    assert!(
        damaged.err.contains("is damaged: its sha256 is"),
        "{}",
        damaged.err
    );
}

#[test]
fn a_sweep_has_the_metrics_of_its_files() {
    let there = Elsewhere::new();
    let script = "echo \"{\\\"score\\\": 4$LONGSHORE_PARAM_N}\" >> $LONGSHORE_METRICS\n\
                  echo x > m.json; test $LONGSHORE_PARAM_N = 3 || test -e ../fixed.$LONGSHORE_RUN\n";
    let script = script.replace(
        "../fixed.$LONGSHORE_RUN",
        &there.machine.home().join("fixed").display().to_string(),
    );
    there
        .longshore(&["run", "--sweep", "n=3,5", "--", "sh", "-c", &script])
        .expect(1);
    let scores = || {
        let table = there.longshore(&["sweep", "last", "--output", "csv"]);
        table.expect(0).out
    };
    let header = scores().lines().next().unwrap().to_owned();
    assert!(header.contains("score"), "{header}");
    assert!(scores().contains(",43") && scores().contains(",45"));
    // The run of failed combinations has its own URLs.
    fs::write(there.machine.home().join("fixed"), "").unwrap();
    there.longshore(&["retry", "last"]).expect(0);
    assert!(scores().contains(",45"), "{}", scores());
    let kept = there.longshore(&["outputs", "last", "--list"]).expect(0);
    assert!(kept.out.contains("m.json"), "{}", kept.out);
}

#[test]
fn without_a_store_the_run_is_refused_with_the_remedy() {
    let there = Elsewhere::new();
    let long = ["run", "--timeout", "8d", "--", "sh", "train.sh"];
    let long = there.longshore(&long).expect(0);
    assert!(long.err.contains("longer than 7 days"), "{}", long.err);
    there
        .machine
        .write("longshore.toml", "outputs = ['*.json']\n");
    let refused = there.longshore(&["run", "--", "true"]).expect(4);
    assert!(refused.err.contains("set `store`"), "{}", refused.err);
    let cron = ["run", "--cron", "0 3 * * *", "--", "true"];
    let refused = there.longshore(&cron).expect(4);
    assert!(
        refused.err.contains("runs of a schedule"),
        "{}",
        refused.err
    );
}

/// A claim on the cluster, for outputs instead of a store.
fn with_claim() -> Elsewhere {
    let there = Elsewhere::new();
    there.machine.write(
        "claim.yaml",
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: results, namespace: default}\n\
         spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}\n",
    );
    there.longshore(&["create", "-f", "claim.yaml"]).expect(0);
    there.machine.write(
        "longshore.toml",
        "name = 'train'\noutputs_claim = 'results'\noutputs = ['out/**', '*.json']\n",
    );
    there
}

/// The files in the folders of the cluster's claims.
fn in_claims(there: &Elsewhere) -> String {
    let folder = there.machine.data().join("volumes");
    let found = Command::new("find")
        .arg(folder)
        .args(["-type", "f"])
        .output();
    String::from_utf8(found.unwrap().stdout).unwrap()
}

#[test]
fn outputs_in_a_claim_are_fetched_through_a_pod_that_is_deleted() {
    let there = with_claim();
    let answer = there.two_fail();
    assert!(
        answer.err.contains("outputs 4 files, 20 B, to got"),
        "{}",
        answer.err
    );
    assert_eq!(there.read("got/main-1/m.json"), "1\n");
    assert_eq!(there.server.seen(), [""; 0]);
    there
        .longshore(&["cp", "last/main/1:out", "copied"])
        .expect(0);
    assert_eq!(there.read("copied/model.bin"), "weights\n");
    eventually("the pods that read the claim are deleted", || {
        let pods = there.longshore(&["get", "pods", "--output", "name"]);
        !pods.out.contains("-outputs-")
    });
    assert_eq!(in_claims(&there).lines().count(), 2);
    let removed = there.longshore(&["rm", "last"]).expect(0);
    assert!(removed.err.contains("of outputs"), "{}", removed.err);
    assert_eq!(in_claims(&there), "");

    there
        .machine
        .longshore(&["delete", "pvc", "results"])
        .expect(0);
    let refused = there.longshore(&["run", "--", "sh", "train.sh"]).expect(4);
    assert!(refused.err.contains("results"), "{}", refused.err);
}

#[test]
fn a_running_task_writes_its_files_to_the_claim_on_request_and_at_intervals() {
    let there = with_claim();
    let run = there.waiting(&["--outputs-every", "10s"]);
    eventually("the current files are written", || {
        in_claims(&there).contains("main.0.running")
    });
    let list = there.longshore(&["outputs", &run, "--list"]).expect(0);
    assert!(list.out.contains("out/model.bin"), "{}", list.out);
    assert!(list.err.contains("is still running"), "{}", list.err);
    there.longshore(&["cancel", &run]).expect(0);
    eventually("the last files are written", || {
        let list = there.longshore(&["outputs", &run, "--list"]);
        list.out.contains("out/last")
    });
}

#[test]
fn a_store_that_denies_access_does_not_count_as_empty() {
    let there = Elsewhere::new();
    there.longshore(&["run", "--", "sh", "train.sh"]).expect(0);
    there.server.fail("list-type", &[Fault::Answer(403)]);
    there
        .server
        .fail("main.0.", &[Fault::Answer(403), Fault::Answer(403)]);
    let list = ["outputs", "last", "--list"];
    let denied = there.longshore(&list).expect(1);
    assert!(denied.err.contains("denies the listing"), "{}", denied.err);
    assert!(denied.err.contains("AWS_ACCESS_KEY_ID"), "{}", denied.err);
    assert!(!denied.err.contains("X-Amz-"), "{}", denied.err);
    there.longshore(&list).expect(0);
}

#[test]
fn a_task_whose_upload_was_refused_is_reported_and_the_others_are_fetched() {
    let there = Elsewhere::new();
    there.server.fail("main.1.ended", &[Fault::Answer(403)]);
    let run = ["run", "--role", "main=2", "--", "sh", "train.sh"];
    there.longshore(&run).expect(0);
    let fetch = ["outputs", "last", "--to", "got"];
    let answer = there.longshore(&fetch).expect(1);
    assert!(
        answer
            .err
            .contains("no outputs of main/1: they were not uploaded: the store denies"),
        "{}",
        answer.err
    );
    assert_eq!(there.read("got/main-0/m.json"), "0\n");
    let one = ["outputs", "last", "main/0", "--to", "got"];
    there.longshore(&one).expect(0);
}

#[test]
fn incomplete_files_of_killed_tasks_do_not_stay_in_the_claim() {
    let there = with_claim();
    let run = there.waiting(&["--outputs-every", "10s"]);
    eventually("the folder is there", || {
        in_claims(&there).contains("main.0.running")
    });
    let file = in_claims(&there);
    let folder = file.lines().next().unwrap().rsplit_once('/').unwrap().0;
    let left = format!("{folder}/.part-main.0.ended-dead");
    fs::write(&left, "half").unwrap();
    fs::write(format!("{folder}/.part-other"), "half").unwrap();
    fs::write(format!("{folder}/-x"), "").unwrap();
    there.longshore(&["cancel", &run]).expect(0);
    eventually("the last files are written", || {
        let list = there.longshore(&["outputs", &run, "--list"]);
        list.out.contains("out/last")
    });
    assert!(!std::path::Path::new(&left).exists());
    there.longshore(&["rm", &run]).expect(0);
    assert_eq!(in_claims(&there), "");
}

#[test]
fn a_store_that_asks_to_wait_gets_the_time_and_the_user_sees_why() {
    let there = Elsewhere::new();
    let server = &there.server;
    server.fail("bundles/", &[Fault::Wait(503, 1)]);
    server.fail("main.0.ended", &[Fault::Wait(503, 2), Fault::Wait(429, 1)]);
    server.fail("list-type", &[Fault::Wait(429, 2)]);
    let begin = Instant::now();
    let answer = there
        .longshore(&["run", "--fetch=got", "--", "sh", "train.sh"])
        .expect(0);
    assert!(begin.elapsed() >= Duration::from_secs(6), "{begin:?}");
    assert_eq!(server.faults(), 0);
    let shown = format!("{}{}", answer.out, answer.err);
    for expected in [
        "warning: the store at 127.0.0.1 asks to wait (503); trying again in 1 s",
        "503, SlowDown: Please reduce your request rate (after 1 attempts)",
        "the store asks to wait; trying again in 2 s",
        "asks to wait (429); trying again in 2 s",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert_eq!(there.read("got/m.json"), "0\n");
}

#[test]
fn a_full_store_and_an_expired_url_are_named_in_the_log_and_by_outputs() {
    let there = Elsewhere::new();
    let quota = "Storage backend has reached its minimum free drive threshold";
    let full = Fault::Refuse(507, "XMinioStorageFull", quota);
    let expired = Fault::Refuse(403, "AccessDenied", "Request has expired");
    for (fault, reason) in [
        (full, "the store is full: it does not take http://"),
        (expired, "the signed URL has expired, after at most 7 days"),
    ] {
        there.server.fail("main.1.ended", &[fault]);
        let run = ["run", "--role", "main=2", "--", "sh", "train.sh"];
        let run = there.longshore(&run).expect(0);
        let log = format!("{}{}", run.out, run.err);
        let lost = "longshore: the outputs were not uploaded: ";
        assert!(log.contains(lost) && log.contains(reason), "{log}");
        let answer = there.longshore(&["outputs", "last", "--list"]).expect(1);
        let missing = "no outputs of main/1: they were not uploaded: ";
        assert!(answer.err.contains(missing), "{}", answer.err);
        assert!(answer.err.contains(reason), "{}", answer.err);
        let one = there.longshore(&["outputs", "last", "main/1"]).expect(1);
        assert!(one.err.contains(missing), "{}", one.err);
        assert!(!one.err.contains("X-Amz-Signature"), "{}", one.err);
    }
    // The failed upload does not replace the reason for the task's own end.
    there.server.fail(
        "main.0.ended",
        &[Fault::Refuse(403, "QuotaExceeded", "no space")],
    );
    let run = ["run", "--", "sh", "-c", "echo gone >&2; exit 127"];
    there.longshore(&run).expect(127);
    let why = there.longshore(&["why", "last"]);
    assert!(!why.out.contains("not uploaded"), "{}", why.out);
    // The client's own uploads.
    there.server.fail(
        "bundles/",
        &[
            Fault::Answer(404),
            Fault::Refuse(403, "QuotaExceeded", "no space"),
        ],
    );
    there.machine.write("new", "new");
    let refused = there.longshore(&["run", "--", "true"]).expect(4);
    assert!(refused.err.contains("/team is full"), "{}", refused.err);
}

#[test]
fn connections_that_end_or_stall_in_the_middle_of_an_object_leave_complete_files() {
    let there = Elsewhere::new();
    let server = &there.server;
    let ends = [Fault::HalfRequest, Fault::HalfRequest];
    server.fail("main.0.ended", &ends);
    let big = "head -c 3000000 /dev/urandom > out.json; cp out.json \"$COPY\"";
    let copy = there.machine.home().join("copy");
    let copies = format!("COPY={}", copy.display());
    let run = ["run", "--env", &copies, "--", "sh", "-c", big];
    there.longshore(&run).expect(0);
    assert_eq!(server.faults(), 0);
    for (folder, fault) in [("ends", Fault::Half), ("stalls", Fault::Stall)] {
        server.fail("list-type", std::slice::from_ref(&fault));
        server.fail(
            "main.0.ended",
            &[fault.clone(), Fault::Pass, fault.clone(), fault],
        );
        let mut fetch = there.command(&["outputs", "last", "--to", folder]);
        fetch.env("AWS_TIMEOUT", "2 seconds");
        Answer::new(&fetch.output().unwrap()).expect(0);
        assert_eq!(server.faults(), 0);
        let fetched = fs::read(there.machine.code().join(folder).join("out.json"));
        assert!(fetched.unwrap() == fs::read(&copy).unwrap(), "{folder}");
    }
}

#[test]
fn logs_at_trace_level_have_no_credentials_tokens_and_signatures() {
    let there = Elsewhere::new();
    let session = "session-token-of-tests";
    let kubeconfig = fs::read_to_string(there.machine.data().join("kubeconfig")).unwrap();
    let token = kubeconfig
        .lines()
        .find_map(|line| line.trim().strip_prefix("token: "));
    let token = token.unwrap().trim_matches('"');
    let run = ["run", "--fetch=got", "--", "sh", "train.sh"];
    let commands: [&[&str]; 7] = [
        &run,
        &["outputs", "last", "--to", "again"],
        &["cp", "last/main/0:m.json", "copied"],
        &["metrics", "last"],
        &["why", "last"],
        &["runs"],
        &["rm", "last"],
    ];
    there.server.fail("main.0.ended", &[Fault::Answer(500)]);
    for words in commands {
        let mut command = there.command(words);
        command
            .env("LONGSHORE_LOG", "trace")
            .env("AWS_SESSION_TOKEN", session);
        let answer = Answer::new(&command.output().unwrap());
        assert!(answer.err.contains("TRACE"), "{words:?}: {}", answer.err);
        let shown = format!("{}{}", answer.out, answer.err);
        for secret in [
            SECRET,
            session,
            token,
            "X-Amz-Signature",
            "Signature=",
            "Bearer ",
        ] {
            let line = shown.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{words:?} prints {secret}");
        }
    }
}

#[test]
fn files_of_an_earlier_attempt_are_reported_with_the_reason() {
    let there = Elsewhere::new();
    let denied = Fault::Refuse(403, "AccessDenied", "Request has expired");
    there.server.fail("main.0.ended", &[Fault::Pass, denied]);
    let script = "echo $LONGSHORE_ATTEMPT > m.json; test $LONGSHORE_ATTEMPT = 2";
    let run = [
        "run",
        "--retries",
        "1",
        "--fetch=got",
        "--",
        "sh",
        "-c",
        script,
    ];
    let answer = there.longshore(&run).expect(0);
    assert_eq!(there.server.faults(), 0);
    assert_eq!(there.read("got/m.json"), "1\n");
    for expected in [
        "the outputs of main/0 are those of an earlier attempt, which ended at ",
        "those of the last attempt were not uploaded: the store denies the upload",
    ] {
        assert!(answer.err.contains(expected), "{}", answer.err);
    }
}

#[test]
fn outputs_are_uploaded_although_the_task_has_filled_the_disk() {
    let machine = Machine::new();
    let Some(disk) = SmallDisk::mount(&machine) else {
        return;
    };
    let there = Elsewhere::on(machine, &["up"]);
    there.machine.write("fill.sh", FILLS_DISK);
    let run = there.longshore(&["run", "--fetch=got", "--", "sh", "fill.sh"]);
    let run = run.expect(0);
    assert!(run.err.contains("outputs 2 files"), "{}", run.err);
    let mut sum = there.machine.shell("sha256sum < got/out/b");
    let sum = Answer::new(&sum.output().unwrap());
    assert!(run.out.contains(sum.out.trim()), "{} {}", run.out, sum.out);
    there.machine.longshore(&["down", "--force"]).expect(0);
    drop(disk);
}
