//! A chart in the manner of public ones: a StatefulSet with a claim, a ConfigMap, and a Secret.

use super::{
    Chart,
    client::{Client, TIMEOUT, expect},
    programs::Programs,
};
use crate::run::{Outcome, root};

pub(super) const CHART: Chart = Chart {
    name: "redis",
    origin: "A chart of this repository: a StatefulSet with a claim, a headless Service, a ConfigMap\n\
             with redis.conf, and a Secret with a random password. Redis is Debian's.",
    images: &[&[
        ("--image-entrypoint", "redis=redis-server"),
        ("--image-user", "redis=999:999"),
    ]],
    commands: "helm install cache xtask/charts/redis --wait\n\
               helm test cache --logs",
    test,
};

fn test(client: &Client, _: &Programs) -> Outcome {
    let chart = root().join("xtask/charts/redis").display().to_string();
    client.helm(&["install", "cache", &chart, "--wait", TIMEOUT])?;
    client.wait_for(&["pvc", "data-cache-0"], "{{.status.phase}}", "Bound")?;
    client.pass("`helm install --wait`: startup, liveness and readiness probes, a bound claim");

    let redis = |arguments: &[&str]| {
        let command = ["exec", "cache-0", "--", "redis-cli"];
        client.kubectl(&[&command[..], arguments].concat())
    };
    let user = client.kubectl(&["exec", "cache-0", "--", "id", "-u"])?;
    expect(&user, "999")?;
    client.pass("the user of the image, with `runAsNonRoot` and a read-only root file system");
    redis(&["set", "color", "blue"])?;
    let count = |expected: &str| {
        let text = client.helm(&["test", "cache", "--logs", TIMEOUT])?;
        expect(&text, &format!("\n{expected}\n"))
    };
    count("1")?;
    client.pass("`helm test`: another pod writes through the Service's name, with the password");
    let open = [
        "exec",
        "cache-0",
        "--",
        "env",
        "REDISCLI_AUTH=",
        "redis-cli",
    ];
    expect(
        &client.kubectl(&[&open[..], &["get", "color"]].concat())?,
        "NOAUTH",
    )?;
    client.pass("clients without the password are refused");

    let uid = "{{.metadata.uid}}";
    let first = client.field(&["pod", "cache-0"], uid)?;
    client.kubectl(&["delete", "pod", "cache-0", TIMEOUT])?;
    client.kubectl(&["rollout", "status", "statefulset/cache", TIMEOUT])?;
    if client.field(&["pod", "cache-0"], uid)? == first {
        return Err("the pod was not replaced".to_owned());
    }
    expect(&redis(&["get", "color"])?, "blue")?;
    count("2")?;
    client.pass("a new pod of the StatefulSet has the data");

    let password = "{{.data.password}}";
    let before = client.field(&["secret", "cache"], password)?;
    let upgrade = ["upgrade", "cache", &chart, "--wait", TIMEOUT];
    client.helm(&[&upgrade[..], &["--set", "maxmemory=32mb"]].concat())?;
    client.kubectl(&["rollout", "status", "statefulset/cache", TIMEOUT])?;
    expect(&redis(&["config", "get", "maxmemory"])?, "33554432")?;
    expect(&redis(&["get", "color"])?, "blue")?;
    if client.field(&["secret", "cache"], password)? != before {
        return Err("the upgrade changed the password, which it looks up".to_owned());
    }
    client.pass(
        "`helm upgrade`: a checksum of the ConfigMap replaces the pod; `lookup` keeps the password",
    );

    client.helm(&["uninstall", "cache", "--wait", TIMEOUT])?;
    client.wait_for(&["pvc", "data-cache-0"], "{{.status.phase}}", "Bound")?;
    client.helm(&["install", "cache", &chart, "--wait", TIMEOUT])?;
    expect(&redis(&["get", "color"])?, "blue")?;
    client.pass("`helm uninstall` keeps the claim; a new release has the data");
    Ok(())
}
