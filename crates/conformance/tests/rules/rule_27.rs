//! Rule 27: exec, attach and port-forward. What clients do with them is played
//! in `tests/clients/streams`.

use longshore_conformance::{Answer, ApiTest};
use serde_json::{Value, json};

use crate::common::{pod, with};

const SUBRESOURCES: [(&str, &str); 3] = [
    ("attach", "PodAttachOptions"),
    ("exec", "PodExecOptions"),
    ("portforward", "PodPortForwardOptions"),
];

/// Asks for a websocket.
async fn ask(test: &ApiTest, method: &str, path: &str) -> Answer {
    let call = test.call(method, path).header("connection", "Upgrade");
    let call = call.header("upgrade", "websocket");
    let call = call.header("sec-websocket-version", "13");
    let call = call.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    call.header("sec-websocket-protocol", "v4.channel.k8s.io")
        .send()
        .await
}

#[tokio::test]
async fn rule_27_discovery_has_what_can_be_connected_to() {
    let test = ApiTest::start().await;
    let resources = test.get("/api/v1").await.ok();
    for (subresource, kind) in SUBRESOURCES {
        let name = format!("pods/{subresource}");
        let named = |resource: &&Value| resource["name"] == name.as_str();
        let resources = resources["resources"].as_array().unwrap();
        let found = resources.iter().find(named).unwrap();
        assert_eq!(found["kind"], kind);
        assert_eq!(found["verbs"], json!(["create", "get"]));
    }
}

#[tokio::test]
async fn rule_27_a_container_must_be_chosen_before_the_upgrade() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let two = json!([{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]);
    let several = with(pod("several"), &[("/spec/containers", two)]);
    test.create(&pods, &several).await;
    test.create(&pods, &pod("one")).await;
    for method in ["GET", "POST"] {
        for what in ["exec", "attach"] {
            for (path, message) in [
                (
                    format!("several/{what}"),
                    "a container name must be specified for pod several, choose one of: [a b]",
                ),
                (
                    format!("several/{what}?container=none"),
                    "container none is not valid for pod several",
                ),
                (
                    format!("one/{what}"),
                    "pod one does not have a host assigned",
                ),
            ] {
                let sign = if path.contains('?') { '&' } else { '?' };
                let path = format!("{pods}/{path}{sign}stdout=true&command=true");
                let refused = ask(&test, method, &path).await;
                let status = refused.refused(400, "BadRequest");
                assert_eq!(status["message"], message, "{method} {path}");
            }
        }
        let refused = ask(&test, method, &format!("{pods}/one/portforward")).await;
        let status = refused.refused(400, "BadRequest");
        assert_eq!(status["message"], "pod one does not have a host assigned");
    }
    for (what, _) in SUBRESOURCES {
        let path = format!("{pods}/none/{what}?stdout=true&command=true");
        ask(&test, "GET", &path).await.refused(404, "NotFound");
        let path = format!("{pods}/one/{what}");
        let refused = test.call("DELETE", &path).send().await;
        refused.refused(405, "MethodNotAllowed");
    }
}

#[tokio::test]
async fn rule_27_what_a_running_container_is_asked_for() {
    let test = ApiTest::with_node().await;
    if test.is_without("a node that runs pods") {
        return;
    }
    let pods = test.path("v1", "pods");
    let sleeps = json!([{"name": "main", "image": "x", "command": ["sleep", "1000"]}]);
    let grace = ("/spec/terminationGracePeriodSeconds", json!(1));
    let sleeps = with(pod("p"), &[("/spec/containers", sleeps), grace.clone()]);
    let ended = json!([{"name": "main", "image": "x", "command": ["true"]}]);
    let ended = with(
        pod("done"),
        &[
            ("/spec/containers", ended),
            ("/spec/restartPolicy", json!("Never")),
            grace,
        ],
    );
    for (object, phase) in [(sleeps, "Running"), (ended, "Succeeded")] {
        let name = object["metadata"]["name"].as_str().unwrap();
        test.create(&pods, &object).await;
        let mut rounds = 0;
        while test.get(&format!("{pods}/{name}")).await.ok()["status"]["phase"] != phase {
            rounds += 1;
            assert!(rounds < 600, "{name} does not get {phase}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    let refused = async |path: &str, code, reason| {
        let answer = ask(&test, "GET", &format!("{pods}/{path}")).await;
        answer.refused(code, reason)["message"].clone()
    };
    assert_eq!(
        refused("p/exec?command=true", 400, "BadRequest").await,
        "you must specify at least 1 of stdin, stdout, stderr"
    );
    assert_eq!(
        refused("p/exec?stdout=true", 400, "BadRequest").await,
        "you must specify at least one command for the container"
    );
    assert_eq!(
        refused("done/exec?stdout=true&command=true", 500, "InternalError").await,
        "container not found (\"main\")"
    );
    let plain = test
        .get(&format!("{pods}/p/exec?stdout=true&command=true"))
        .await;
    let status = plain.refused(400, "BadRequest");
    assert_eq!(status["message"], "Upgrade request required");
}
