//! Submission: all or nothing, and reuse of existing bundles.

use super::fake::{Answer, Fake, ReceivedRequest, status};
use bytes::Bytes;
use longshore_launcher::{
    BundleInfo, Flags, Plan, RunName, RunOptions, Settings, config,
    plan::plan,
    store::Delivery,
    submit::{SubmitError, submit},
};
use serde_json::{Value, json};

fn two_roles() -> Plan {
    two_roles_with(RunOptions::default())
}

fn two_roles_with(run: RunOptions) -> Plan {
    let flags = Flags {
        roles: vec!["chief=1".into(), "worker=2".into()],
        command: vec!["true".into()],
        run,
        ..Flags::default()
    };
    let spec = config::resolve(&Settings::default(), &flags, "demo").unwrap();
    let bundle = BundleInfo {
        sha256: "ab".repeat(32),
        size: 3,
        delivery: Delivery::Secret(Bytes::from_static(b"tgz")),
    };
    plan(
        &spec,
        &RunName::new("demo", "ab2cd"),
        "default",
        Some(&bundle),
    )
    .unwrap()
}

/// The object as the server returns it.
fn created(asked: &ReceivedRequest) -> Answer {
    let mut object = asked.body.clone();
    let name = object["metadata"]["name"]
        .as_str()
        .unwrap_or("patched")
        .to_owned();
    object["metadata"]["name"] = json!(name);
    object["metadata"]["uid"] = json!(format!("uid-{name}"));
    object["metadata"]["namespace"] = json!("default");
    object["metadata"]["resourceVersion"] = json!("1");
    Answer::Json(if asked.method == "POST" { 201 } else { 200 }, object)
}

fn name(asked: &ReceivedRequest) -> &str {
    asked.body["metadata"]["name"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn the_first_job_owns_all_objects() {
    let fake = Fake::new(created);
    let run = submit(&fake.cluster(), &two_roles()).await.unwrap();
    let roles: Vec<_> = run
        .roles
        .iter()
        .map(|role| (role.name.as_str(), role.count))
        .collect();
    assert_eq!(roles, [("chief", 1), ("worker", 2)]);
    let asked = fake.requests.lock().unwrap();
    let last_secret = asked
        .iter()
        .rposition(|asked| asked.method == "POST" && asked.path.ends_with("/secrets"));
    let first_job = asked
        .iter()
        .position(|asked| asked.method == "POST" && asked.path.ends_with("/jobs"));
    assert!(
        last_secret < first_job,
        "objects that pods need are created before the Jobs"
    );
    let owned: Vec<(&str, &Value)> = asked
        .iter()
        .filter(|asked| asked.method == "PATCH")
        .map(|asked| {
            let owner = &asked.body["metadata"]["ownerReferences"][0]["uid"];
            (asked.path.rsplit('/').next().unwrap(), owner)
        })
        .collect();
    let owner = json!("uid-demo-ab2cd-chief");
    let mut names: Vec<&str> = owned.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "demo-ab2cd",
            "demo-ab2cd",
            "demo-ab2cd-worker",
            "longshore-bundle-abababababababababab"
        ]
    );
    assert!(owned.iter().all(|(_, uid)| **uid == owner));
}

/// A plan of a run that calls a webhook.
fn notifying() -> Plan {
    two_roles_with(RunOptions {
        webhook: Some("http://hooks.example/".into()),
        ..RunOptions::default()
    })
}

#[tokio::test]
async fn the_notifier_is_complete_before_the_first_job_exists() {
    let fake = Fake::new(created);
    submit(&fake.cluster(), &notifying()).await.unwrap();
    let asked = fake.requests.lock().unwrap();
    let is_notifier =
        |asked: &ReceivedRequest| format!("{} {}", asked.path, name(asked)).contains("notify-demo");
    let first_job = asked
        .iter()
        .position(|asked| asked.path.ends_with("/jobs") && !is_notifier(asked));
    let (before, after) = asked.split_at(first_job.unwrap());
    let before: Vec<&ReceivedRequest> = before.iter().filter(|asked| is_notifier(asked)).collect();
    let [job, needed @ .., resume] = &before[..] else {
        panic!("{before:?}")
    };
    assert_eq!(job.body["spec"]["suspend"], true);
    let mut kinds: Vec<&str> = Vec::new();
    for object in needed {
        let owner = &object.body["metadata"]["ownerReferences"][0];
        assert_eq!(
            (&owner["kind"], &owner["uid"]),
            (&json!("Job"), &json!("uid-notify-demo-ab2cd"))
        );
        kinds.push(object.path.rsplit('/').next().unwrap());
    }
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        ["rolebindings", "roles", "secrets", "serviceaccounts"]
    );
    assert_eq!(
        (&*resume.method, &resume.body["spec"]["suspend"]),
        ("PATCH", &json!(false))
    );
    let owners: Vec<&Value> = after
        .iter()
        .filter(|asked| is_notifier(asked))
        .map(|asked| &asked.body["metadata"]["ownerReferences"][0]["uid"])
        .collect();
    assert_eq!(owners, ["uid-demo-ab2cd-chief"]);
}

#[tokio::test]
async fn a_notifier_of_a_refused_run_is_removed() {
    for refused in ["demo-ab2cd-worker", "notify-demo-ab2cd"] {
        let fake = Fake::new(move |asked| match (asked.method.as_str(), name(asked)) {
            // Either the Job of a role, or the role of the notifier.
            ("POST", name) if name == refused => {
                let is_chosen = asked.path.ends_with("/roles") || name.ends_with("worker");
                match is_chosen {
                    true => status(403, "Forbidden", "exceeded quota: small"),
                    false => created(asked),
                }
            }
            ("GET", _) => status(404, "NotFound", "not found"),
            ("DELETE", _) => Answer::Json(
                200,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
            ),
            _ => created(asked),
        });
        let error = submit(&fake.cluster(), &notifying()).await.unwrap_err();
        assert!(error.to_string().contains("exceeded quota"), "{error}");
        let deleted = "DELETE /apis/batch/v1/namespaces/default/jobs/notify-demo-ab2cd";
        let writes = fake.writes();
        assert!(writes.iter().any(|write| write == deleted), "{writes:?}");
        let has_run = writes
            .iter()
            .filter(|write| *write == "POST /apis/batch/v1/namespaces/default/jobs")
            .count();
        let notifier_alone = refused.starts_with("notify");
        assert_eq!(has_run == 1, notifier_alone, "{writes:?}");
    }
}

#[tokio::test]
async fn a_rejected_job_leaves_nothing_behind() {
    let fake = Fake::new(|asked| match (asked.method.as_str(), name(asked)) {
        ("POST", "demo-ab2cd-worker") => status(403, "Forbidden", "exceeded quota: small"),
        ("GET", _) => {
            let name = asked.path.rsplit('/').next().unwrap();
            let metadata = json!({"name": name, "namespace": "default", "uid": "u"});
            Answer::Json(
                200,
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}),
            )
        }
        ("DELETE", _) => Answer::Json(
            200,
            json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
        ),
        _ => created(asked),
    });
    let error = submit(&fake.cluster(), &two_roles())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot create Job demo-ab2cd-worker: ")
            && error.contains("exceeded quota"),
        "{error}"
    );
    let mut deleted: Vec<String> = fake
        .writes()
        .into_iter()
        .filter(|write| write.starts_with("DELETE"))
        .collect();
    deleted.sort_unstable();
    assert_eq!(
        deleted,
        [
            "DELETE /api/v1/namespaces/default/secrets/demo-ab2cd",
            "DELETE /api/v1/namespaces/default/secrets/longshore-bundle-abababababababababab",
            "DELETE /api/v1/namespaces/default/services/demo-ab2cd",
            "DELETE /apis/batch/v1/namespaces/default/jobs/demo-ab2cd-chief",
        ]
    );
}

#[tokio::test]
async fn an_existing_bundle_is_reused_if_it_is_the_same() {
    let with_sha = |sha256: String| {
        Fake::new(move |asked| match (asked.method.as_str(), name(asked)) {
            ("POST", name) if name.starts_with("longshore-bundle") => {
                status(409, "AlreadyExists", "it already exists")
            }
            ("GET", _) => {
                let metadata = json!({
                    "name": "longshore-bundle-abababababababababab", "namespace": "default", "uid": "u",
                    "annotations": {"longshore.dev/bundle-sha256": sha256},
                    "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "old", "uid": "o"}],
                });
                Answer::Json(
                    200,
                    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}),
                )
            }
            ("DELETE", _) => Answer::Json(
                200,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
            ),
            _ => created(asked),
        })
    };
    submit(&with_sha("ab".repeat(32)).cluster(), &two_roles())
        .await
        .unwrap();
    let other = with_sha("cd".repeat(32));
    let error = submit(&other.cluster(), &two_roles()).await.unwrap_err();
    assert!(matches!(error, SubmitError::OtherBundle { .. }));
    assert!(
        other
            .writes()
            .iter()
            .all(|write| !write.contains("DELETE") || !write.contains("bundle"))
    );
}
