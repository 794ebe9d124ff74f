//! The chart that `helm create` writes: nginx with probes, an Ingress, an autoscaler, and a test.

use super::{
    Chart,
    client::{Client, TIMEOUT, expect},
    programs::Programs,
};
use crate::run::Outcome;

pub(super) const CHART: Chart = Chart {
    name: "web",
    origin: "The chart that `helm create web` writes, unchanged. nginx is Debian's.",
    images: &[&[("--image-entrypoint", "nginx=nginx -g 'daemon off;'")]],
    commands: "helm create web\n\
               helm install shop ./web --wait\n\
               helm test shop --logs\n\
               helm upgrade shop ./web --set replicaCount=3 --wait",
    test,
};

const DEPLOYMENT: [&str; 2] = ["deployment", "shop-web"];

fn test(client: &Client, _: &Programs) -> Outcome {
    client.helm(&["create", "web"])?;
    client.helm(&["install", "shop", "./web", "--wait", TIMEOUT])?;
    let ready = "{{.status.readyReplicas}}";
    client.wait_for(&DEPLOYMENT, ready, "1")?;
    client.pass("`helm install --wait`: the Deployment is available, with both probes");

    let text = client.helm(&["test", "shop", "--logs", TIMEOUT])?;
    expect(&text, "200 OK")?;
    client.pass("`helm test --logs`: a pod reads the page through the Service's name");

    let values = "replicaCount=3,podAnnotations.color=blue,ingress.enabled=true";
    let upgrade = ["upgrade", "shop", "./web", "--wait", TIMEOUT, "--set"];
    client.helm(&[&upgrade[..], &[values]].concat())?;
    client.wait_for(&DEPLOYMENT, ready, "3")?;
    let color = "{{.spec.template.metadata.annotations.color}}";
    client.wait_for(&DEPLOYMENT, color, "blue")?;
    let host = "{{(index .spec.rules 0).host}}";
    client.wait_for(&["ingress", "shop-web"], host, "chart-example.local")?;
    client.pass("`helm upgrade --wait`: three replicas, changed pods, and a new Ingress");

    // The targets of the autoscaler are a share of the requests. As in Kubernetes, the autoscaler
    // counts the test's pod, which has no requests, because the chart gives it the labels of the
    // Deployment's pods.
    client.kubectl(&["delete", "pod", "shop-web-test-connection", TIMEOUT])?;
    let values = "autoscaling.enabled=true,autoscaling.minReplicas=2,resources.requests.cpu=100m";
    client.helm(&[&upgrade[..], &[values]].concat())?;
    let active =
        "{{range .status.conditions}}{{if eq .type \"ScalingActive\"}}{{.status}}{{end}}{{end}}";
    client.wait_for(&["hpa", "shop-web"], active, "True")?;
    client.wait_for(&DEPLOYMENT, ready, "2")?;
    client.pass("`helm upgrade` with `autoscaling.enabled`: the autoscaler sets the replicas");

    // The autoscaler owns the replicas, which the first revision sets. Without this option, helm
    // reports a conflict.
    let rollback = ["rollback", "shop", "1", "--force-conflicts"];
    client.helm(&[&rollback[..], &["--wait", TIMEOUT]].concat())?;
    client.wait_for(&DEPLOYMENT, ready, "1")?;
    client.poll("the autoscaler and the Ingress are deleted", || {
        client
            .kubectl(&["get", "hpa,ingress", "--output=name"])
            .is_ok_and(|names| names.is_empty())
    })?;
    client.pass("`helm rollback --wait`: one replica, without the autoscaler and the Ingress");

    let history = client.helm(&["history", "shop"])?;
    for part in ["Install complete", "Upgrade complete", "Rollback to 1"] {
        expect(&history, part)?;
    }
    client.pass("`helm history`: the revisions");

    client.helm(&["uninstall", "shop", "--wait", TIMEOUT])?;
    let left = "deployment,replicaset,service,pod,serviceaccount";
    client.poll("the objects are deleted", || {
        let selector = "--selector=app.kubernetes.io/instance=shop";
        let found = client.kubectl(&["get", left, selector, "--output=name"]);
        found.is_ok_and(|names| names.is_empty())
    })?;
    client.pass("`helm uninstall --wait`: the objects and their pods are deleted");
    Ok(())
}
