//! Generates docs/charts.md.

use std::fmt::Write as _;

use super::Results;

/// The page.
pub(super) fn render(all: &[Results]) -> String {
    let mut text = String::from(
        "# Helm charts\n\n\
         Helm installs charts on the embedded cluster as on any cluster: `--wait`, hooks, tests,\n\
         `lookup`, upgrades and rollbacks work. `cargo xtask charts` builds helm 4.3.1, installs the\n\
         charts of this page, tests them, and generates this file.\n\n\
         ## Images\n\n\
         The cluster does not pull images. Two options of `longshore up` tell it what an image\n\
         contains, for containers that leave it to the image:\n\n\
         - `--image-entrypoint IMAGE=COMMAND` is the program of this machine that runs in place of\n  \
         the image's entrypoint. The container's `args` follow it;\n\
         - `--image-user IMAGE=UID[:GID]` is the user of the image. Most charts set `runAsNonRoot`\n  \
         and leave the user to the image: without this option, such a container waits with the\n  \
         message `container has runAsNonRoot and image will run as root` if root started the\n  \
         cluster.\n\n\
         The programs must be readable for this user. `helm template CHART | grep image:` lists the\n\
         images of a chart. See also [node.md](node.md).\n\n\
         Below, `TARGET` stands for a folder with programs that all users can read, and `CHART` for the\n\
         folder of the chart in its Go module, which `go mod download -json MODULE@VERSION` names.\n\n\
         ## Differences\n\n\
         - A container whose `command` is a path in its image, such as `/manager`, needs this file on\n  \
         the machine, or another command by the chart's values.\n\
         - `helm test` pods run the machine's programs: `busybox` with `command: [wget]` runs the\n  \
         `wget` in the `PATH`.\n\
         - Nothing serves Ingresses, and limits of resources are not enforced.\n\n\
         These are as in Kubernetes:\n\n\
         - An autoscaler counts the pod of `helm test` if it has the labels of the Deployment's pods, as\n  \
         that of `helm create` does, and reports its missing requests: delete this pod.\n\
         - An autoscaler that has changed the replicas owns them: `helm rollback` then needs\n  \
         `--force-conflicts`.\n\
         - `helm uninstall` deletes the roles of a controller before its pods, so that these cannot\n  \
         release their Lease: a new release waits until it expires, 60 s for cert-manager.\n",
    );
    for results in all {
        let chart = results.chart;
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n## {}\n\n{}\n\n```sh\nlongshore up",
            chart.name, chart.origin
        );
        for (option, value) in chart.images() {
            let _ = write!(text, " \\\n  {option} \"{value}\"");
        }
        let _ = write!(text, "\n{}\n```\n\nTested:\n\n", chart.commands);
        for (number, what) in results.passed.iter().enumerate() {
            let end = match number + 1 == results.passed.len() {
                true => '.',
                false => ';',
            };
            let _ = writeln!(text, "- {what}{end}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_described_with_its_commands_and_checks() {
        let all = [Results {
            chart: &super::super::redis::CHART,
            passed: vec!["it runs".to_owned(), "it ends".to_owned()],
        }];
        let text = render(&all);
        assert!(
            text.contains("\n## redis\n\nA chart of this repository: "),
            "{text}"
        );
        assert!(
            text.contains("longshore up \\\n  --image-entrypoint \"redis=redis-server\" \\\n  --image-user \"redis=999:999\"\nhelm install cache"),
            "{text}"
        );
        assert!(
            text.ends_with("\nTested:\n\n- it runs;\n- it ends.\n"),
            "{text}"
        );
    }
}
