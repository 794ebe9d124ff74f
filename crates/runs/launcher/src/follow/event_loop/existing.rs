//! The objects of a run that exist when a follower starts, or are listed again.

use std::collections::BTreeSet;

use jiff::Timestamp;
use longshore_client::{Change, kinds};
use longshore_diagnosis::{
    evidence::{JobEvidence, RunPod as _},
    track::Seen,
};
use longshore_model::facts::PodFacts;

use super::{EventLoop, ReceiverDropped};
use crate::{
    follow::{
        GapCause, deleted,
        recheck::{self, Answer, Listed},
    },
    task_logs::TaskLog,
};

/// The order of the attempts of a task. The creation time has whole seconds.
fn begin(change: &Change<kinds::Pod>) -> (Option<Timestamp>, u32) {
    let pod = change.item().typed::<PodFacts>().ok();
    let order = |pod: PodFacts| (pod.metadata.creation_timestamp, pod.attempts_before());
    pod.map_or((None, 0), order)
}

impl EventLoop {
    /// Passes on the pods that exist at the start, and reads the logs of pods that were deleted
    /// before, in the order of their creation.
    pub(super) async fn see_existing(
        &mut self,
        mut pods: Vec<Change<kinds::Pod>>,
        jobs: &[JobEvidence],
    ) -> Result<(), ReceiverDropped> {
        let facts = pods.iter().filter_map(|pod| pod.item().typed().ok());
        let facts: Vec<PodFacts> = facts
            .filter(|pod: &PodFacts| self.run.has(&pod.metadata))
            .collect();
        let found = self.deleted.find(&facts, jobs).await;
        if self.logs.is_whole() {
            let cut = found.logs.iter().filter(|log| log.is_cut);
            let cut = cut.map(|log| (log.task.clone(), log.attempt, GapCause::Rotated));
            let missing = found.missing.iter().filter_map(|missing| {
                let cause = deleted::gap(missing)?;
                Some((missing.task.clone(), missing.attempt.unwrap_or(1), cause))
            });
            for (task, attempt, cause) in cut.chain(missing) {
                self.report_gap((task, None), attempt, cause).await?;
            }
        }
        pods.sort_by_cached_key(begin);
        let mut deleted: Vec<TaskLog> = found.logs;
        deleted.retain(|log| log.is_deleted);
        deleted.sort_by_key(|log| (log.created, log.attempt));
        let mut deleted = deleted.into_iter().peekable();
        for change in &pods {
            let (created, before) = begin(change);
            let is_earlier = |log: &TaskLog| (log.created, log.attempt) <= (created, before);
            while let Some(log) = deleted.next_if(is_earlier) {
                self.deleted.read(log, &mut self.logs);
            }
            self.see_pod(change).await?;
        }
        for log in deleted {
            self.deleted.read(log, &mut self.logs);
        }
        Ok(())
    }

    /// Lists all objects again. If the cluster does not answer, the next tick retries.
    pub(super) async fn list_again(&mut self) -> Result<(), ReceiverDropped> {
        let answer = recheck::list(&self.cluster, &self.run).await;
        let is_away = matches!(answer, Answer::Away);
        self.liveness.record_answer(!is_away);
        if is_away {
            return Ok(());
        }
        if let Answer::Listed(listed) = answer {
            self.see_listed(listed).await?;
        }
        // Not earlier, because the changes above mix old and new objects.
        self.recheck.processed();
        let seen = self.see(Seen::Tick).await;
        self.recheck.expire();
        seen
    }

    async fn see_listed(&mut self, listed: Listed) -> Result<(), ReceiverDropped> {
        let there: BTreeSet<&str> = listed.pods.iter().map(|pod| pod.uid()).collect();
        for uid in self.track.pods_but(&there) {
            self.see(Seen::PodGone(uid)).await?;
        }
        for job in listed.jobs {
            self.see_job(&Change::Upsert(job)).await?;
        }
        for pod in listed.pods {
            self.see_pod(&Change::Upsert(pod)).await?;
        }
        Ok(())
    }
}
