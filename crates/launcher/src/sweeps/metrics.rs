//! The metrics files of tasks: of ended ones from the kept outputs, of running ones from the
//! folders of their pods.

use super::objects::Found;
use crate::{
    outputs::{OutputsError, tail_of_running},
    run_outputs::LocalOutputs,
    sweep::{LARGEST_METRICS, METRICS_FILE},
};

/// Reads the metrics files of all tasks. Returns what could not be read.
pub(super) async fn read(local: &LocalOutputs, found: &mut Found) -> Vec<String> {
    let (namespace, run) = (found.run.namespace.clone(), found.run.name.to_string());
    let (local, running) = (local.clone(), found.running.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let mut texts: Vec<(u32, Vec<u8>)> = Vec::new();
        let mut problems = Vec::new();
        for manifest in local.outputs.of_run(&namespace, &run)? {
            let mut files = manifest.files.iter();
            let file = files.find(|file| file.path == METRICS_FILE);
            match file.map(|file| local.outputs.tail(file, LARGEST_METRICS)) {
                Some(Ok(text)) => texts.push((manifest.index, text)),
                Some(Err(error)) => {
                    problems.push(format!("the metrics file of {}: {error}", manifest.task()))
                }
                None => {}
            }
        }
        for (index, uid) in running {
            // The task may just end, with its folder.
            let text = local
                .volume(&uid)
                .map(|volume| tail_of_running(&volume, METRICS_FILE, LARGEST_METRICS));
            if let Some(Ok(Some(text))) = text {
                texts.push((index, text));
            }
        }
        Ok::<_, OutputsError>((texts, problems))
    });
    let (texts, problems) = match reading.await {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => return vec![format!("the metrics files: {error}")],
        Err(error) => return vec![format!("the metrics files: {error}")],
    };
    for (index, text) in texts {
        let metrics = found.rows.metrics.entry(index).or_default();
        metrics.read_json_lines(&String::from_utf8_lossy(&text));
    }
    problems
}
