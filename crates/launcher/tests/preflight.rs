//! Preflight's questions: what is asked, and what comes of answers that fail.
#![allow(clippy::unwrap_used)]

mod fake;

use fake::{Answer, Asked, Fake, list, status};
use longshore_launcher::{
    Flags, Plan, RunName, Settings, config,
    plan::plan,
    preflight::{Purpose, check},
};
use serde_json::{Value, json};

fn simple() -> Plan {
    let flags = Flags {
        command: vec!["true".into()],
        ..Flags::default()
    };
    let spec = config::resolve(&Settings::default(), &flags, "demo").unwrap();
    plan(&spec, &RunName::new("demo", "ab2cd"), "team", None).unwrap()
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "uid": "u"}})
}

/// A cluster where all is well, but for what the test says.
fn cluster(special: impl Fn(&Asked) -> Option<Answer> + Send + Sync + 'static) -> Fake {
    Fake::new(move |asked| {
        if let Some(answer) = special(asked) {
            return answer;
        }
        match asked.path.as_str() {
            "/api/v1/namespaces/team" => Answer::Json(200, namespace()),
            path if path.ends_with("reviews") => Answer::Json(
                201,
                json!({"kind": "SelfSubjectAccessReview", "status": {"allowed": true}}),
            ),
            path if path.ends_with("resourcequotas") => list("ResourceQuota", "v1", vec![]),
            path if path.ends_with("limitranges") => list("LimitRange", "v1", vec![]),
            "/api/v1/nodes" => list("Node", "v1", vec![]),
            path => panic!("asked for {path}"),
        }
    })
}

#[tokio::test]
async fn five_questions_where_all_is_well() {
    let fake = cluster(|_| None);
    let report = check(&fake.cluster(), &simple(), Purpose::Follow).await;
    assert_eq!(report.unwrap(), Default::default());
    assert_eq!(fake.asked.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn who_may_see_nothing_is_refused_nothing_for_it() {
    let fake = Fake::new(|_| status(403, "Forbidden", "no"));
    let report = check(&fake.cluster(), &simple(), Purpose::Follow).await;
    assert_eq!(report.unwrap(), Default::default());
    // A server without reviews does not tell rights.
    let fake = cluster(|asked| {
        let review = asked.path.ends_with("reviews");
        review.then(|| {
            status(
                404,
                "NotFound",
                "the server could not find the requested resource",
            )
        })
    });
    let report = check(&fake.cluster(), &simple(), Purpose::Follow).await;
    assert_eq!(report.unwrap(), Default::default());
}

#[tokio::test]
async fn rights_are_asked_one_by_one_of_who_may_not_do_everything() {
    let fake = cluster(|asked| {
        if !asked.path.ends_with("reviews") {
            return None;
        }
        let wanted = &asked.body["spec"]["resourceAttributes"];
        assert_eq!(wanted["namespace"], "team");
        let all = wanted["verb"] == "*";
        let jobs = wanted["verb"] == "create" && wanted["resource"] == "jobs";
        let allowed = !all && !jobs;
        Some(Answer::Json(
            201,
            json!({"kind": "SelfSubjectAccessReview", "status": {"allowed": allowed}}),
        ))
    });
    let report = check(&fake.cluster(), &simple(), Purpose::Follow)
        .await
        .unwrap();
    let told: Vec<String> = report.refusals.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"you may not create jobs.batch in the namespace "team"; have an administrator run `kubectl create role longshore --namespace team --verb=create --resource=jobs.batch`, and bind it to you, with `kubectl create rolebinding`"#);
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_is_no_refusal_but_an_error() {
    let fake = Fake::new(|_| status(401, "Unauthorized", "who are you?"));
    let error = check(&fake.cluster(), &simple(), Purpose::Detach).await;
    assert!(error.unwrap_err().is_unauthorized());
    let fake = cluster(|asked| {
        let is_namespace = asked.path == "/api/v1/namespaces/team";
        is_namespace.then(|| status(404, "NotFound", "namespaces \"team\" not found"))
    });
    let report = check(&fake.cluster(), &simple(), Purpose::Follow)
        .await
        .unwrap();
    let told: Vec<String> = report.refusals.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"the cluster has no namespace "team"; create it with `kubectl create namespace team`, or choose another"#);
}
