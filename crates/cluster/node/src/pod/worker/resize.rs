//! Resizes a running pod: allocates its resources on the node, and changes the resources of its
//! containers.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodSpec;
use longshore_model::resources::PodResources;

use super::{Retry, Worker};
use crate::{
    allocations::Allocated,
    cgroups::{Group, Limits},
    pod::resize::{self, Allocation, Change},
    pod_threads,
};

impl Worker {
    /// Returns the resources that are allocated to the pod and its containers.
    pub(super) fn resources(&self) -> PodResources {
        let spec = self.pod.spec.as_ref();
        spec.map_or_else(PodResources::default, |spec| {
            self.allocation.resources(spec)
        })
    }

    /// Allocates the resources of an admitted pod.
    pub(super) fn admit_resources(&self) {
        let allocated = Allocated::of(&self.resources());
        self.shared.allocations.admit(&self.uid, allocated);
    }

    /// Performs the steps of a resize that are due.
    pub(super) async fn resize(&mut self) {
        let generation = self.pod.metadata.generation.unwrap_or_default();
        let is_compared = self.compared == Some(generation);
        if is_compared && self.resize == Default::default() {
            return;
        }
        let Some(spec) = self.pod.spec.clone() else {
            return;
        };
        self.compared = Some(generation);
        self.allocate_resize(&spec, generation);
        let Some((generation, _)) = self.resize.in_progress else {
            return;
        };
        if !self.resize_retry.is_due() {
            return;
        }
        match self.set_resources().await {
            Ok(true) => {
                self.resize.in_progress = None;
                self.resize_retry = Retry::default();
                let text = "Pod resize completed";
                let message =
                    resize::event_message(text, &self.allocation, &spec, generation, None);
                self.note(false, "ResizeCompleted", message, None);
            }
            // Containers restart, so the resize is not complete.
            Ok(false) => {}
            Err(error) => {
                let known =
                    matches!(&self.resize.in_progress, Some((_, Some(old))) if *old == error);
                if !known {
                    let text = "Pod resize error";
                    let allocation = &self.allocation;
                    let message =
                        resize::event_message(text, allocation, &spec, generation, Some(&error));
                    self.note(true, "ResizeError", message, None);
                }
                self.resize.in_progress = Some((generation, Some(error)));
                self.resize_retry.back_off();
            }
        }
    }

    /// Allocates the resources of the spec if the node has them.
    fn allocate_resize(&mut self, spec: &PodSpec, generation: i64) {
        let desired = Allocation::of_spec(spec);
        if desired.is_same(&self.allocation) {
            // Only the notation may differ.
            self.allocation = desired;
            self.resize.pending = None;
            return;
        }
        let requested = Allocated::of(&desired.resources(spec));
        let shared = &self.shared;
        match shared
            .allocations
            .resize(&self.uid, requested, &shared.machine)
        {
            Ok(()) => {
                self.allocation = desired;
                for record in &mut self.records {
                    if record.role != super::Role::Ephemeral {
                        let resources = self.allocation.of_container(record.name());
                        record.container.resources = Some(resources);
                    }
                }
                self.resize.pending = None;
                self.resize.in_progress = Some((generation, None));
                self.resize_retry = Retry::default();
                let text = "Pod resize started";
                let message = resize::event_message(text, &self.allocation, spec, generation, None);
                self.note(false, "ResizeStarted", message, None);
            }
            Err(message) => {
                let is_known =
                    matches!(&self.resize.pending, Some((known, _)) if *known == generation);
                if !is_known {
                    let text = "Pod resize Deferred";
                    let event =
                        resize::event_message(text, &desired, spec, generation, Some(&message));
                    self.note(true, "ResizeDeferred", event, None);
                }
                self.resize.pending = Some((generation, message));
            }
        }
    }

    /// Gives the running containers their allocated resources. Returns true if all have them.
    async fn set_resources(&mut self) -> Result<bool, String> {
        let mut running: Vec<usize> = self.running.keys().copied().collect();
        running.sort_unstable();
        let mut in_place = Vec::new();
        // A container that restarts gets its resources with the next run.
        let mut is_complete = self.resizing.is_empty();
        for index in running {
            let record = &self.records[index];
            let Some(actual) = &record.actual else {
                continue;
            };
            let allocated = self.allocation.of_container(record.name());
            match resize::change(&record.container, actual, &allocated) {
                Change::None => self.records[index].actual = Some(allocated),
                Change::InPlace => in_place.push(index),
                Change::Restart => {
                    is_complete = false;
                    self.restart_for_resize(index);
                }
            }
        }
        self.set_limits(&in_place).await?;
        for index in in_place {
            let record = &mut self.records[index];
            record.actual = Some(self.allocation.of_container(record.name()));
        }
        Ok(is_complete)
    }

    fn restart_for_resize(&mut self, index: usize) {
        if self.stops.contains_key(&index) {
            return;
        }
        self.records[index].restart_after_stop(self.policy);
        self.resizing.insert(index, false);
        let name = self.records[index].name();
        let text = format!("Container {name} resize requires restart");
        self.stop_container(index, self.grace(), text);
    }

    /// Writes the limits of the pod and of containers. A group never has more than the group that
    /// contains it, so the pod's limits are raised first and lowered last.
    async fn set_limits(&mut self, containers: &[usize]) -> Result<(), String> {
        let Some(pod) = self.cgroup.clone() else {
            return Ok(());
        };
        let resources = self.resources();
        let (before, after) = (self.pod_limits, Limits::of_pod(&resources));
        let groups = containers.iter().filter_map(|index| {
            let name = self.records[*index].name().to_owned();
            let limits = Limits::of_container(&resources, &name);
            let (group, old) = self.groups.get(index)?;
            Some((*index, name, group.clone(), *old, limits))
        });
        let groups: Vec<(usize, String, Arc<Group>, Limits, Limits)> = groups.collect();
        let new: Vec<_> = groups
            .iter()
            .map(|(index, _, group, _, limits)| (*index, (group.clone(), *limits)))
            .collect();
        let set = move || {
            let text = |error: std::io::Error| error.to_string();
            for (_, name, group, old, limits) in &groups {
                check_memory(&format!("container {name:?}"), group, old, limits)?;
            }
            check_memory("pod", &pod, &before, &after)?;
            pod.set(&before.max(after)).map_err(text)?;
            for (_, _, group, _, limits) in &groups {
                group.set(limits).map_err(text)?;
            }
            pod.set(&after).map_err(text)
        };
        // Runs on a thread, because the kernel may have to reclaim memory.
        let result = pod_threads::run(set).await;
        result.map_err(|error| error.to_string())??;
        self.pod_limits = after;
        self.groups.extend(new);
        Ok(())
    }
}

/// Checks that the memory usage of a group is not above its new limit.
fn check_memory(what: &str, group: &Group, before: &Limits, after: &Limits) -> Result<(), String> {
    let Some(limit) = after.memory else {
        return Ok(());
    };
    if before.memory.is_some_and(|before| before <= limit) {
        return Ok(());
    }
    match group.memory_usage() {
        Some(usage) if usage >= limit => Err(format!(
            "cannot decrease memory limits: attempting to set {what} memory limit ({limit}) below \
             current usage ({usage})"
        )),
        _ => Ok(()),
    }
}
