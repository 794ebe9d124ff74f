//! `cargo xtask charts`: installs charts on the embedded cluster with helm, tests what they run,
//! upgrades and uninstalls them, and writes docs/charts.md. Requires Go.

mod cert_manager;
mod client;
mod page;
mod programs;
mod redis;
mod trust_manager;
mod web;

use std::{fs, path::PathBuf};

use client::Client;
use programs::Programs;

use crate::{
    embedded::{self, Embedded},
    kubernetes, packages,
    run::{Outcome, root},
    tools,
};

/// The charts to test.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Test only charts whose name contains this text, and write no page.
    filter: Option<String>,
    /// The program `longshore` to test; default: a release build, which is made first.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Options of `longshore up` with their values.
type Images = &'static [(&'static str, &'static str)];

/// A chart, and how it is tested.
struct Chart {
    name: &'static str,
    /// The origin of the chart and its programs.
    origin: &'static str,
    /// The options of `longshore up` for the chart's images; `TARGET` stands for the folder of
    /// built programs.
    images: &'static [Images],
    /// The commands with which a user does the same.
    commands: &'static str,
    test: fn(&Client, &Programs) -> Outcome,
}

const CHARTS: [Chart; 4] = [
    web::CHART,
    redis::CHART,
    cert_manager::CHART,
    trust_manager::CHART,
];

impl Chart {
    /// The options of its images.
    fn images(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.images.iter().flat_map(|images| images.iter().copied())
    }
}

/// The checks that the tests of a chart passed, in their order.
struct Results {
    chart: &'static Chart,
    passed: Vec<String>,
}

/// Tests the charts; a complete run writes docs/charts.md. The first failure is the error.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    packages::require_go()?;
    packages::install(&[
        ("nginx", "nginx-light"),
        ("redis-server", "redis-server"),
        ("redis-cli", "redis-tools"),
        ("wget", "wget"),
        ("openssl", "openssl"),
    ])?;
    kubernetes::build_tools()?;
    let kubectls = tools::fetch().kubectls?;
    let kubectl = std::env::split_paths(&kubectls)
        .last()
        .ok_or("no kubectl was downloaded")?;
    let program = match &arguments.program {
        Some(path) => path.clone(),
        None => embedded::build()?,
    };
    let mut all = Vec::new();
    for chart in &CHARTS {
        let filter = arguments.filter.as_ref();
        if filter.is_some_and(|text| !chart.name.contains(text.as_str())) {
            continue;
        }
        let programs = Programs::build(chart)?;
        let cluster = Embedded::start(&program, &programs.options(chart))?;
        let client = Client::new(kubectl.clone(), &cluster.kubeconfig())?;
        (chart.test)(&client, &programs).map_err(|problem| {
            let state = client.describe_state();
            format!("{}: {problem}\n{state}", chart.name)
        })?;
        let passed = client.passed();
        println!("{}: {} checks passed", chart.name, passed.len());
        all.push(Results { chart, passed });
    }
    if arguments.filter.is_none() {
        let path = root().join("docs/charts.md");
        fs::write(&path, page::render(&all))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}
