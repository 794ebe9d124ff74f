//! Installs JobSet and Kueue on the cluster from their own manifests.
//!
//! Their Go modules contain the manifests: custom resource definitions, RBAC, webhooks and a
//! Deployment. A patch changes only the Deployment: it uses an image that is built here,
//! requests no resources of the small node, and tolerates all taints, as tests taint the node.

use std::{path::PathBuf, process::Command};

use serde_json::{Value, json};

use super::{Paths, create_folder, ctr::ctr, modules, sources, wait_until, write};
use crate::{
    image,
    run::{Outcome, output},
};

struct Addon {
    /// The folder of the module in `xtask/kubernetes`, the name of the program, and the prefix
    /// of its namespace.
    name: &'static str,
    /// The Go module with the manifests.
    module: &'static str,
    /// Returns an object that its webhooks admit; it is only sent as a dry run.
    probe: fn() -> Value,
}

const ADDONS: [Addon; 2] = [
    Addon {
        name: "jobset",
        module: "sigs.k8s.io/jobset",
        probe: jobset,
    },
    // Kueue is last, because its webhooks receive every pod.
    Addon {
        name: "kueue",
        module: "sigs.k8s.io/kueue",
        probe: flavor,
    },
];

/// Builds and installs both, and waits until their webhooks respond.
pub(super) fn install(paths: &Paths) -> Outcome {
    modules::build_addons(paths)?;
    ADDONS.iter().try_for_each(|addon| addon.install(paths))
}

impl Addon {
    fn install(&self, paths: &Paths) -> Outcome {
        let Self { name, .. } = self;
        let image = format!("localhost/longshore/{name}:dev");
        let folder = paths.state(name);
        create_folder(&folder)?;
        let archive = image::build_from_program(&folder, &image, &paths.program(name))?;
        ctr(paths, &["images", "import", &archive.display().to_string()])?;

        let manifests = self.manifests()?.join("config/default");
        let overlay = json!({
            // kustomize rejects absolute paths.
            "resources": [format!("../../..{}", manifests.display())],
            "patches": [{
                "target": {"kind": "Deployment"},
                "patch": deployment(&image).to_string(),
            }],
        });
        write(&folder.join("kustomization.yaml"), &overlay.to_string())?;
        let mut kustomize = Command::new(paths.program("kustomize"));
        let objects = output(kustomize.arg("build").arg(&folder))?;
        self.apply(paths, "objects.yaml", &objects, &[])?;

        let namespace = format!("{name}-system");
        let wait = ["wait", "deployments", "--all", "--for=condition=Available"];
        // Kueue waits until the kubelet has refreshed the volume with its certificate.
        let within = ["--namespace", &namespace, "--timeout=300s"];
        paths
            .kubectl(&[&wait[..], &within].concat())
            .map_err(|error| {
                let pods = paths.kubectl(&["describe", "pods", "--namespace", &namespace]);
                let pods = pods.unwrap_or_else(|error| error.to_string());
                format!("{error}\n{pods}")
            })?;
        let probe = (self.probe)().to_string();
        wait_until(&format!("the webhooks of {name} respond"), || {
            self.apply(paths, "probe.json", &probe, &["--dry-run=server"])
                .is_ok()
        })
    }

    fn apply(&self, paths: &Paths, file: &str, objects: &str, args: &[&str]) -> Outcome {
        let file = paths.state(self.name).join(file);
        write(&file, objects)?;
        let file = file.display().to_string();
        let apply = ["apply", "--server-side", "--filename", &file];
        paths.kubectl(&[&apply[..], args].concat()).map(drop)
    }

    /// The folder of the Go module.
    fn manifests(&self) -> Outcome<PathBuf> {
        let mut go = Command::new("go");
        go.current_dir(sources().join(self.name))
            .args(["mod", "download", "-json", self.module])
            .env("GOFLAGS", "");
        let found: Value = serde_json::from_str(&output(&mut go)?)
            .map_err(|error| format!("`go mod download` of {}: {error}", self.module))?;
        let folder = found["Dir"].as_str();
        folder.map(PathBuf::from).ok_or_else(|| {
            format!(
                "`go mod download` of {} returned no folder: {found}",
                self.module
            )
        })
    }
}

/// The JSON patch of the Deployment.
fn deployment(image: &str) -> Value {
    let pod = "/spec/template/spec";
    let container = format!("{pod}/containers/0");
    let change = |path: String, value: Value| json!({"op": "add", "path": path, "value": value});
    json!([
        change(format!("{container}/image"), image.into()),
        change(format!("{container}/imagePullPolicy"), "Never".into()),
        change(format!("{container}/resources"), json!({})),
        change(format!("{pod}/securityContext/runAsUser"), 65532.into()),
        change(
            format!("{pod}/tolerations"),
            json!([{"operator": "Exists"}])
        ),
    ])
}

fn jobset() -> Value {
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": {"replicatedJobs": [{
            "name": "main",
            "template": {"spec": {"template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "none"}],
            }}}},
        }]},
    })
}

fn flavor() -> Value {
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "probe"},
    })
}
