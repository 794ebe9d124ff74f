//! Which pod a word means.

use longshore::{
    LabelSelector, View,
    client::{Item, kinds::Pod},
    launcher::names::COMPLETION_INDEX,
};

use crate::error::{Error, Kind, Result};

/// Label of the pods of a Job.
const JOB: &str = "batch.kubernetes.io/job-name";

/// The name of the pod of that name or, where there is none, of the task of that
/// host name: `train-worker-0` of the Job `train-worker`, with what follows a dot left
/// out, as hostfiles have it.
pub(crate) async fn find(pods: &View<Pod>, word: &str) -> Result<String> {
    let Some((job, index)) = task(word) else {
        return Ok(word.to_owned());
    };
    if !word.contains('.') && pods.find(word).await?.is_some() {
        return Ok(word.to_owned());
    }
    let labels = LabelSelector::exactly([(JOB, job), (COMPLETION_INDEX, index)]);
    let labels = labels.map_err(longshore::Error::from)?;
    let mut found = pods.clone().labels(labels).list().await?.items;
    // What was started again comes in place of what has ended.
    found.sort_by_key(|pod: &Item<Pod>| (going_on(pod), pod.meta().creation_timestamp));
    match found.last() {
        Some(pod) => Ok(pod.name().to_owned()),
        None => Err(Error::new(
            Kind::Failed,
            format!("there is no pod {word:?}, and no task {index} of a Job {job:?}"),
        )
        .hint("`longshore get pods` lists the pods")),
    }
}

fn going_on(pod: &Item<Pod>) -> bool {
    pod.phase().is_ok_and(|phase| !phase.is_final())
}

/// Job and index in the host name of a task.
fn task(word: &str) -> Option<(&str, &str)> {
    let host = word.split('.').next()?;
    let (job, index) = host.rsplit_once('-')?;
    let number = index.parse::<u32>().ok()?;
    (!job.is_empty() && number.to_string() == index).then_some((job, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_of_tasks() {
        assert_eq!(task("train-worker-0"), Some(("train-worker", "0")));
        assert_eq!(task("train-12.train"), Some(("train", "12")));
        for word in ["web", "web-7d4b9", "web-01", "-1", "web-", "", "train.x-0"] {
            assert_eq!(task(word), None, "{word}");
        }
    }
}
