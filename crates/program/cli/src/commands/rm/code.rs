//! Handles the code of removed runs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use longshore::{
    client::Cluster,
    launcher::{
        RunSummary,
        kept::{Kept, Released},
        runs::{self, CodePlace},
    },
};

use crate::{target::Target, ui};

/// The bundles of runs that will be removed.
pub(super) struct Code {
    /// The embedded cluster's bundles.
    kept: Option<Kept>,
    /// The bundles in the embedded cluster, with the submission time of the last run that uses
    /// each.
    own: BTreeMap<String, Timestamp>,
    /// The locations of other bundles in stores.
    elsewhere: BTreeSet<String>,
}

impl Code {
    /// Finds the bundles, as far as they are visible.
    pub(super) async fn of(target: &Target, chosen: &[&RunSummary]) -> Self {
        let mut code = Self {
            kept: target.kept(),
            own: BTreeMap::new(),
            elsewhere: BTreeSet::new(),
        };
        let root = code.kept.as_ref().map(|kept| kept.root().to_owned());
        let mut places = BTreeMap::new();
        for run in chosen {
            let Some(sha256) = &run.bundle else {
                continue;
            };
            if !places.contains_key(sha256) {
                let place = runs::code_place(target.cluster(), &run.run).await;
                places.insert(sha256.clone(), place.ok().flatten());
            }
            match places.get(sha256).and_then(Option::as_ref) {
                Some(CodePlace::Folder(folder)) if Some(folder) == root.as_ref() => {
                    let submitted = run.submitted.or(run.created).unwrap_or_default();
                    let last = code.own.entry(sha256.clone()).or_insert(submitted);
                    *last = submitted.max(*last);
                }
                Some(CodePlace::Folder(folder)) => {
                    code.elsewhere.insert(folder.display().to_string());
                }
                Some(CodePlace::Store(place)) => {
                    code.elsewhere.insert(place.clone());
                }
                None => {}
            }
        }
        code
    }

    /// Removes the bundles that only the removed runs used, and reports the others.
    pub(super) async fn release(self, cluster: &Cluster) {
        let (mut freed, mut later): (u64, u64) = (0, 0);
        for (sha256, submitted) in &self.own {
            let Some(kept) = &self.kept else {
                break;
            };
            match kept.release(cluster, sha256, *submitted).await {
                Ok(Released::Freed(bytes)) => freed = freed.saturating_add(bytes),
                Ok(Released::Later(bytes)) => later = later.saturating_add(bytes),
                Ok(Released::Stays) => {}
                Err(error) => ui::warning(format!(
                    "the code of the runs was not removed from {}: {error}; \
                     the cluster removes it after a day without use",
                    kept.root().display()
                )),
            }
        }
        if freed > 0 {
            ui::note(format!("Freed {} of code.", ui::size(freed)));
        }
        if later > 0 {
            ui::note(format!(
                "{} of code will be freed when the pods have ended.",
                ui::size(later)
            ));
        }
        if !self.elsewhere.is_empty() {
            let places: Vec<&str> = self.elsewhere.iter().map(String::as_str).collect();
            ui::note(format!(
                "Code in stores was not removed, since other runs may use it: {}",
                places.join(", ")
            ));
        }
    }
}
