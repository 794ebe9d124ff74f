//! Reads outputs in a claim through a short-lived pod that mounts it. The image needs a shell,
//! `tail`, `head`, `wc` and `rm`, as most do.

use std::{
    fmt,
    ops::Range,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use longshore::{
    LabelSelector, View,
    client::{Cluster, DeleteOptions, ExecOptions, Item, kinds::Pod},
    launcher::{
        Run, names,
        outputs::OutputsError,
        run_outputs::{ObjectFuture, ObjectList, ObjectStream, Objects},
    },
};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, time::Instant};

/// The timeout for the start of the pod.
const START_TIMEOUT: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The pod ends after this time, also if this process is killed.
const LIFETIME_SECONDS: u64 = 3_600;
/// The path at which the pod mounts the claim.
const FOLDER: &str = "/longshore/outputs";
/// The number of bytes to read at once.
const PIECE: usize = 128 * 1024;

/// The pods that this process has started: namespaces and names.
static STARTED: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// The settings of a run's pods that the reading pod needs, too.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodTemplate {
    /// The spec of the run's pods.
    spec: Value,
    image: Option<String>,
}

impl PodTemplate {
    /// The template of the run's first Job.
    pub(crate) async fn of(cluster: &Cluster, run: &Run) -> Result<Self, longshore::client::Error> {
        let labels = LabelSelector::exactly([(names::RUN, run.label())])?;
        let jobs = cluster.jobs().in_namespace(&run.namespace)?;
        let jobs = jobs.labels(labels).list().await?.items;
        let spec = jobs
            .first()
            .map(|job| job.field::<Value>(&["spec", "template", "spec"]));
        Ok(Self {
            spec: spec.transpose()?.flatten().unwrap_or_default(),
            image: None,
        })
    }

    /// Uses another image instead of the run's.
    pub(crate) fn with_image(self, image: &str) -> Self {
        Self {
            image: Some(image.to_owned()),
            ..self
        }
    }

    fn pod(&self, name: &str, claim: &str) -> Value {
        let containers = self.spec["containers"].as_array();
        let mut containers = containers.into_iter().flatten();
        let main = containers.find(|own| own["name"] == names::MAIN);
        let main = main.cloned().unwrap_or_default();
        let image = match &self.image {
            Some(image) => json!(image),
            None => main["image"].clone(),
        };
        let small = json!({"cpu": "100m", "memory": "64Mi"});
        let mut spec = json!({
            "restartPolicy": "Never",
            "activeDeadlineSeconds": LIFETIME_SECONDS,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "containers": [{
                "name": names::MAIN,
                "image": image,
                "command": ["sleep", LIFETIME_SECONDS.to_string()],
                "resources": {"requests": small, "limits": small},
                "volumeMounts": [{"name": "outputs", "mountPath": FOLDER}],
            }],
            "volumes": [{"name": "outputs", "persistentVolumeClaim": {"claimName": claim}}],
        });
        for key in ["imagePullPolicy", "securityContext"] {
            if !main[key].is_null() {
                spec["containers"][0][key] = main[key].clone();
            }
        }
        for key in [
            "securityContext",
            "imagePullSecrets",
            "tolerations",
            "nodeSelector",
        ] {
            if !self.spec[key].is_null() {
                spec[key] = self.spec[key].clone();
            }
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {names::MANAGED_BY: names::LONGSHORE}},
            "spec": spec,
        })
    }
}

/// Access to the files of a claim.
pub(crate) struct ClaimReader {
    pods: View<Pod>,
    pod: String,
    claim: String,
}

impl fmt::Debug for ClaimReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClaimReader({})", self.pod)
    }
}

/// Starts a pod that mounts a claim of a run, and waits until it runs.
pub(crate) async fn open(
    cluster: &Cluster,
    run: &Run,
    template: &PodTemplate,
    claim: String,
) -> Result<Box<dyn Objects>, OutputsError> {
    let failed = |problem: String| OutputsError::Claim {
        claim: claim.clone(),
        problem,
    };
    let unanswered = |error: longshore::client::Error| failed(error.to_string());
    let pods = cluster.pods().in_namespace(&run.namespace);
    let pods = pods.map_err(unanswered)?;
    let pod = format!("{}-outputs-{}", run.name, names::random_suffix());
    STARTED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((run.namespace.clone(), pod.clone()));
    let created = pods.create(&template.pod(&pod, &claim)).await;
    created.map_err(unanswered)?;
    let begin = Instant::now();
    loop {
        let found: Option<Item<Pod>> = pods.find(&pod).await.map_err(unanswered)?;
        let phase: Option<String> = match &found {
            Some(found) => found.field(&["status", "phase"]).map_err(unanswered)?,
            None => return Err(failed(format!("the pod {pod} was deleted"))),
        };
        match phase.as_deref() {
            Some("Running") => break,
            Some("Failed" | "Succeeded") => {
                return Err(failed(format!("the pod {pod} ended instead of waiting")));
            }
            _ if begin.elapsed() > START_TIMEOUT => {
                return Err(failed(format!(
                    "the pod {pod}, which mounts it, has not started within {} s",
                    START_TIMEOUT.as_secs()
                )));
            }
            _ => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }
    Ok(Box::new(ClaimReader { pods, pod, claim }))
}

/// Deletes the pods that this process has started.
pub(crate) async fn remove_all(cluster: &Cluster) {
    let started = std::mem::take(&mut *STARTED.lock().unwrap_or_else(PoisonError::into_inner));
    for (namespace, pod) in started {
        let deleted = async {
            let pods = cluster.pods().in_namespace(&namespace)?;
            pods.delete(&pod, &DeleteOptions::background()).await
        };
        match deleted.await {
            Err(error) if !error.is_not_found() => crate::ui::warning(format!(
                "the pod {pod} was not deleted: {error}; it ends within an hour"
            )),
            _ => {}
        }
    }
}

impl ClaimReader {
    fn failed(&self, problem: impl ToString) -> OutputsError {
        OutputsError::Claim {
            claim: self.claim.clone(),
            problem: problem.to_string(),
        }
    }

    /// Runs a script with arguments, and returns its output.
    async fn script(&self, script: &str, arguments: &[&str]) -> Result<String, OutputsError> {
        let shell = ["sh", "-c", script, "sh"];
        let command = shell.iter().chain(arguments);
        let command = command.map(|word| (*word).to_owned());
        let output = self
            .pods
            .output(&self.pod, command, Some(names::MAIN))
            .await;
        let output = output.map_err(|error| self.failed(error))?;
        match output.code {
            0 => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            _ => Err(self.failed(String::from_utf8_lossy(&output.stderr).trim())),
        }
    }

    async fn files(&self, folder: &str) -> Result<Vec<(String, u64)>, OutputsError> {
        // Incomplete files begin with a period. Tasks can give files any name: a leading hyphen
        // must not make it an option.
        let script = "cd \"$1\" 2>/dev/null || exit 0; for f in * .part-*; do \
                      if [ -f \"$f\" ]; then echo \"$(wc -c < \"./$f\") $f\" || exit 1; fi; done";
        let listed = self.script(script, &[&path(folder)]).await?;
        Ok(listed.lines().filter_map(listed_file).collect())
    }
}

/// Parses a line of the list. Files of other programs, which can have any name, are ignored.
fn listed_file(line: &str) -> Option<(String, u64)> {
    let (size, name) = line.trim().split_once(' ')?;
    let is_own = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let name = name.trim();
    let is_plain = name.bytes().all(is_own) && !matches!(name, "" | "." | "..");
    Some((name.to_owned(), size.parse().ok()?)).filter(|_| is_plain)
}

fn path(key: &str) -> String {
    format!("{FOLDER}/{key}")
}

impl Objects for ClaimReader {
    fn list<'a>(&'a self, folder: &'a str) -> ObjectFuture<'a, ObjectList> {
        async move { self.files(folder).await.map(Some) }.boxed()
    }

    fn size<'a>(&'a self, key: &'a str) -> ObjectFuture<'a, Option<u64>> {
        async move {
            let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
            let files = self.files(folder).await?;
            Ok(files
                .into_iter()
                .find(|(known, _)| known == name)
                .map(|(_, size)| size))
        }
        .boxed()
    }

    fn stream<'a>(&'a self, key: &'a str, range: Range<u64>) -> ObjectFuture<'a, ObjectStream> {
        async move {
            let begin = range.start.saturating_add(1).to_string();
            let count = range.end.saturating_sub(range.start).to_string();
            let script = "tail -c +\"$2\" \"$1\" | head -c \"$3\"";
            let command = ["sh", "-c", script, "sh", &path(key), &begin, &count];
            let options = ExecOptions {
                container: Some(names::MAIN.to_owned()),
                ..ExecOptions::default()
            };
            let session = self
                .pods
                .exec(&self.pod, command.map(str::to_owned), &options)
                .await;
            let mut session = session.map_err(|error| self.failed(error))?;
            let stdout = session.stdout();
            let stdout = stdout.ok_or_else(|| self.failed("the session has no output"))?;
            let claim = self.claim.clone();
            let stream = futures::stream::unfold(Some((session, stdout)), move |open| {
                let claim = claim.clone();
                async move {
                    let (session, mut stdout) = open?;
                    let mut piece = vec![0; PIECE];
                    match stdout.read(&mut piece).await {
                        Ok(0) => None,
                        Ok(count) => {
                            piece.truncate(count);
                            Some((Ok(Bytes::from(piece)), Some((session, stdout))))
                        }
                        Err(error) => {
                            let problem = error.to_string();
                            Some((Err(OutputsError::Claim { claim, problem }), None))
                        }
                    }
                }
            });
            Ok(stream.boxed())
        }
        .boxed()
    }

    fn delete<'a>(&'a self, key: &'a str) -> ObjectFuture<'a, ()> {
        async move {
            let script = "rm -f \"$1\" && { rmdir \"${1%/*}\" 2>/dev/null || true; }";
            self.script(script, &[&path(key)]).await.map(drop)
        }
        .boxed()
    }
}
