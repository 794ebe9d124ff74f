//! Resolves the cluster spec of many pods with 16 selectors, compared with TensorFlow's
//! own resolver on the same server.

use std::{
    collections::BTreeMap,
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use longshore::{
    Cluster,
    client::Patch,
    resolver::{Assembly, Resolver},
};
use serde_json::{Value, json};

use crate::{
    report::{Failure, Report, median_async, millis, ratio},
    server::{self, Peer},
};

/// The variable with the folder in which `cargo xtask test --frameworks` installs frameworks.
const FRAMEWORKS: &str = "LONGSHORE_TEST_FRAMEWORKS";
/// The script that calls TensorFlow's resolver.
const SCRIPT: &str = "../../program/cli/tests/frameworks/readers/resolve.py";
/// The number of roles. Each has one selector.
const ROLES: usize = 16;
/// The number of concurrent requests.
const CONCURRENCY: usize = 64;

/// Measures with 1,000 and with `count` pods.
pub(crate) async fn run(report: &mut Report, runs: usize, count: usize) -> Result<(), Failure> {
    for pods in [1_000, count] {
        of(report, runs, pods).await?;
    }
    Ok(())
}

async fn of(report: &mut Report, runs: usize, count: usize) -> Result<(), Failure> {
    let server = server::with_pods(Peer::ours(), count).await?;
    let kubeconfig = server.kubeconfig();
    let cluster = Cluster::from_kubeconfig(Some(&kubeconfig), None).await?;
    start_pods(&cluster, count).await?;
    let selectors = (0..ROLES).map(|shard| (format!("shard{shard}"), format!("shard={shard}")));
    let selectors: BTreeMap<String, String> = selectors.collect();
    let mut mapping = Vec::new();
    for (role, selector) in &selectors {
        mapping.push((role.clone(), vec![selector.parse()?]));
    }
    let resolver = Resolver::new(cluster)
        .with_mapping(mapping)
        .with_assembly(Assembly::tensorflow());
    let mut spec = Value::Null;
    let ours = median_async(runs, async || {
        spec = resolver.cluster_spec().await?.as_dict();
        Ok(())
    })
    .await?;
    let what = format!("cluster spec of {count} pods over {ROLES} selectors");
    report.figure(&format!("{what}: ours"), millis(ours), "10 times faster");
    let python =
        env::var_os(FRAMEWORKS).map(|folder| PathBuf::from(folder).join("tensorflow/bin/python3"));
    match python.filter(|python| python.exists()) {
        None => {
            let hint = "not installed: use `cargo xtask test --frameworks`";
            report.figure(&format!("{what}: TensorFlow"), hint, "");
        }
        Some(python) => {
            let (theirs, theirs_spec) = tensorflow(&python, &kubeconfig, &selectors, runs)?;
            if theirs_spec != spec {
                return Err("TensorFlow's spec differs".into());
            }
            let figure = format!("{}, ours {} faster", millis(theirs), ratio(theirs, ours));
            report.figure(&format!("{what}: TensorFlow"), figure, "");
        }
    }
    server.stop().await;
    Ok(())
}

async fn start_pods(cluster: &Cluster, count: usize) -> Result<(), Failure> {
    let pods = cluster.pods().in_namespace("default")?;
    let patched = (0..count).map(async |index| {
        let status = json!({"phase": "Running", "podIP": format!("10.0.{}.{}", index / 250, index % 250), "hostIP": "192.168.0.1"});
        let name = format!("worker-{index:05}");
        pods.patch_status(&name, &Patch::merge(json!({"status": status})))
            .await
            .map(drop)
    });
    let all = stream::iter(patched).buffer_unordered(CONCURRENCY);
    Ok(all.try_collect::<()>().await?)
}

/// The median duration of TensorFlow's resolver, and its spec.
fn tensorflow(
    python: &Path,
    kubeconfig: &Path,
    selectors: &BTreeMap<String, String>,
    runs: usize,
) -> Result<(Duration, Value), Failure> {
    let script = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(SCRIPT))?;
    let mapping: BTreeMap<_, _> = selectors
        .iter()
        .map(|(role, text)| (role, [text]))
        .collect();
    let question = json!({"kubeconfig": kubeconfig, "mapping": mapping, "times": runs});
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(question.to_string().as_bytes())?;
    }
    let answer: Value = serde_json::from_slice(&child.wait_with_output()?.stdout)?;
    let mut seconds: Vec<f64> = serde_json::from_value(answer["seconds"].clone())
        .map_err(|_| format!("TensorFlow returned {answer}"))?;
    seconds.sort_by(f64::total_cmp);
    let middle = seconds.get(seconds.len() / 2).copied().unwrap_or_default();
    Ok((Duration::from_secs_f64(middle), answer["spec"].clone()))
}
