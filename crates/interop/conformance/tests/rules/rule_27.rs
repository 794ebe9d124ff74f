//! Rule 27: exec, attach, and port-forward. `tests/clients/streams` tests them with
//! clients.

use longshore_conformance::{ApiTest, Response};
use serde_json::{Value, json};

use crate::common::{pod, with};

const SUBRESOURCES: [(&str, &str); 3] = [
    ("attach", "PodAttachOptions"),
    ("exec", "PodExecOptions"),
    ("portforward", "PodPortForwardOptions"),
];

/// Requests an upgrade to a websocket.
async fn upgrade(test: &ApiTest, method: &str, path: &str) -> Response {
    let request = test.request(method, path).header("connection", "Upgrade");
    let request = request.header("upgrade", "websocket");
    let request = request.header("sec-websocket-version", "13");
    let request = request.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    request
        .header("sec-websocket-protocol", "v4.channel.k8s.io")
        .send()
        .await
}

#[tokio::test]
async fn rule_27_discovery_lists_the_connect_subresources() {
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
async fn rule_27_the_container_is_validated_before_the_upgrade() {
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
                let separator = if path.contains('?') { '&' } else { '?' };
                let path = format!("{pods}/{path}{separator}stdout=true&command=true");
                let refused = upgrade(&test, method, &path).await;
                let status = refused.refused(400, "BadRequest");
                assert_eq!(status["message"], message, "{method} {path}");
            }
        }
        let refused = upgrade(&test, method, &format!("{pods}/one/portforward")).await;
        let status = refused.refused(400, "BadRequest");
        assert_eq!(status["message"], "pod one does not have a host assigned");
    }
    for (what, _) in SUBRESOURCES {
        let path = format!("{pods}/none/{what}?stdout=true&command=true");
        upgrade(&test, "GET", &path).await.refused(404, "NotFound");
        let path = format!("{pods}/one/{what}");
        let refused = test.request("DELETE", &path).send().await;
        refused.refused(405, "MethodNotAllowed");
    }
}

#[tokio::test]
async fn rule_27_exec_requests_are_validated() {
    let test = ApiTest::with_node().await;
    if test.skip_on_real("a node that runs pods") {
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
            assert!(rounds < 600, "{name} does not reach the phase {phase}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    let refused = async |path: &str, code, reason| {
        let response = upgrade(&test, "GET", &format!("{pods}/{path}")).await;
        response.refused(code, reason)["message"].clone()
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
