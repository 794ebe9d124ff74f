//! The status and the events of a reconciliation. Pure: the current time is an argument.

use jiff::{Timestamp, TimestampRound, Unit};
use k8s_openapi::{
    api::autoscaling::v2::{
        HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus, MetricStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::autoscaler::Autoscaler;
use crate::events::Severity;

/// The types of the conditions.
pub(super) const ABLE: &str = "AbleToScale";
pub(super) const ACTIVE: &str = "ScalingActive";
pub(super) const LIMITED: &str = "ScalingLimited";
pub(super) const TO_ZERO: &str = "ScaledToZero";

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) severity: Severity,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The new status, and the events.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) status: HorizontalPodAutoscalerStatus,
    pub(super) events: Vec<Event>,
    pub(super) now: Timestamp,
}

impl Draft {
    /// Begins with the stored status.
    pub(super) fn new(autoscaler: &Autoscaler, now: Timestamp) -> Self {
        Self {
            status: autoscaler.status.clone(),
            events: Vec::new(),
            now,
        }
    }

    fn time(&self) -> Time {
        let floor = TimestampRound::new()
            .smallest(Unit::Second)
            .mode(jiff::RoundMode::Floor);
        Time(self.now.round(floor).unwrap_or(self.now))
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, reason: &'static str, message: String) {
        self.events.push(Event {
            severity: Severity::Warning,
            reason,
            message,
        });
    }

    /// Adds a normal event.
    pub(super) fn note(&mut self, reason: &'static str, message: String) {
        self.events.push(Event {
            severity: Severity::Normal,
            reason,
            message,
        });
    }

    /// Sets a condition. The transition time changes only with the status.
    pub(super) fn set(&mut self, kind: &str, is_true: bool, reason: &str, message: &str) {
        let time = self.time();
        let conditions = self.status.conditions.get_or_insert_default();
        let at = conditions.iter().position(|one| one.type_ == kind);
        let at = at.unwrap_or_else(|| {
            conditions.push(HorizontalPodAutoscalerCondition {
                type_: kind.to_owned(),
                ..HorizontalPodAutoscalerCondition::default()
            });
            conditions.len() - 1
        });
        let Some(condition) = conditions.get_mut(at) else {
            return;
        };
        let status = if is_true { "True" } else { "False" };
        if condition.status != status {
            condition.last_transition_time = Some(time);
        }
        condition.status = status.to_owned();
        condition.reason = Some(reason.to_owned());
        condition.message = Some(message.to_owned());
    }

    /// Sets the current and desired replicas, and the metrics.
    pub(super) fn set_numbers(
        &mut self,
        autoscaler: &Autoscaler,
        current: i32,
        desired: i32,
        metrics: Vec<MetricStatus>,
    ) {
        self.status.current_replicas = Some(current).filter(|current| *current != 0);
        self.status.desired_replicas = desired;
        self.status.current_metrics = Some(metrics).filter(|metrics| !metrics.is_empty());
        self.status.observed_generation = Some(autoscaler.generation);
    }

    /// Sets the time of the last scaling to now.
    pub(super) fn set_scaled(&mut self) {
        self.status.last_scale_time = Some(self.time());
    }
}
