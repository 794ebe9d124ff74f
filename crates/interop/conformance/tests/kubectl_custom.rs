//! Custom kinds with all pinned kubectl versions, from creation to deletion.
#![allow(clippy::unwrap_used)]

use longshore_conformance::{Kubectl, Server};

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shoes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: shoes, kind: Shoe, shortNames: [sh], categories: [wear]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    schema:
      openAPIV3Schema:
        type: object
        description: What is worn on feet.
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, description: As printed in the shoe.}
              colour: {type: string, default: red}
              replicas: {type: integer}
          status: {type: object, properties: {replicas: {type: integer}}}
"#;

fn shoe(size: u32) -> String {
    format!(
        "apiVersion: example.com/v1\nkind: Shoe\nmetadata: {{name: a}}\nspec: {{size: {size}, replicas: 1}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_30_custom_kinds_with_kubectl() {
    let server = Server::start().await;
    for kubectl in Kubectl::all(&server.kubeconfig()) {
        session(&kubectl).await;
    }
    server.stop().await;
}

async fn session(kubectl: &Kubectl) {
    let run = async |words: &[&str]| kubectl.ok(words).await;
    kubectl.ok_with(&["apply", "-f", "-"], DEFINITION).await;
    run(&[
        "wait",
        "--for=condition=established",
        "crd/shoes.example.com",
    ])
    .await;
    assert!(run(&["get", "crd"]).await.contains("shoes.example.com"));
    let kinds = run(&["api-resources", "--api-group=example.com"]).await;
    assert!(kinds.contains("shoes") && kinds.contains("Shoe"), "{kinds}");
    let explained = run(&["explain", "shoes.spec.size"]).await;
    assert!(explained.contains("As printed in the shoe."), "{explained}");
    kubectl.ok_with(&["apply", "-f", "-"], &shoe(40)).await;
    let changed = kubectl.ok_with(&["apply", "-f", "-"], &shoe(41)).await;
    assert!(changed.contains("configured"), "{changed}");
    let same = kubectl.ok_with(&["apply", "-f", "-"], &shoe(41)).await;
    assert!(same.contains("unchanged"), "{same}");
    let server_side = [
        "apply",
        "--server-side",
        "--field-manager=other",
        "--force-conflicts",
        "-f",
        "-",
    ];
    kubectl.ok_with(&server_side, &shoe(42)).await;
    let shown = run(&["get", "sh"]).await;
    let mut words = shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(words.next().unwrap(), ["NAME", "SIZE"]);
    assert_eq!(words.next().unwrap(), ["a", "42"]);
    assert!(
        run(&["get", "wear", "-o", "name"])
            .await
            .contains("shoe.example.com/a")
    );
    run(&["scale", "shoe/a", "--replicas=5"]).await;
    let path = "-o=jsonpath={.spec.replicas} {.spec.colour}";
    assert_eq!(run(&["get", "shoe", "a", path]).await, "5 red");
    run(&[
        "patch",
        "shoe",
        "a",
        "--type=merge",
        "-p",
        r#"{"spec":{"colour":"blue"}}"#,
    ])
    .await;
    run(&["label", "shoe", "a", "x=y"]).await;
    assert_eq!(
        run(&["get", "shoes", "-l", "x=y", "-o", "name"]).await,
        "shoe.example.com/a\n"
    );
    let wrong = kubectl
        .run(&[
            "patch",
            "shoe",
            "a",
            "--type=merge",
            "-p",
            r#"{"spec":{"size":"x"}}"#,
        ])
        .await;
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong
            .stderr
            .contains("spec.size in body must be of type integer"),
        "{wrong:?}"
    );
    assert!(run(&["describe", "shoe", "a"]).await.contains("Colour:"));
    let unknown = shoe(42).replace("replicas: 1", "laces: 2");
    let refused = kubectl.run_with(&["apply", "-f", "-"], &unknown).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("laces"), "{refused:?}");
    run(&["delete", "crd", "shoes.example.com"]).await;
    let gone = kubectl.run(&["get", "shoes"]).await;
    assert_eq!(gone.code, Some(1), "{gone:?}");
}
