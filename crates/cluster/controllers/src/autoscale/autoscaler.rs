//! The fields of a HorizontalPodAutoscaler that the controller reads.

use k8s_openapi::api::autoscaling::v2::{
    CrossVersionObjectReference, HPAScalingRules, HorizontalPodAutoscaler,
    HorizontalPodAutoscalerStatus, MetricSpec,
};
use longshore_client::{Error, Item, kinds::Any};
use longshore_model::Quantity;

use crate::key::Key;

/// The relative deviation of a metric that causes no change of the replicas.
const DEFAULT_TOLERANCE: f64 = 0.1;

/// The relative deviations of a metric that cause no change of the replicas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tolerances {
    pub(super) down: f64,
    pub(super) up: f64,
}

impl Tolerances {
    /// Returns true if the ratio of a metric to its target causes no change.
    pub(super) fn include(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

/// The rules for both directions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Behavior {
    pub(super) up: HPAScalingRules,
    pub(super) down: HPAScalingRules,
}

/// The fields of an autoscaler that the controller reads.
#[derive(Debug, Clone)]
pub(super) struct Autoscaler {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) generation: i64,
    pub(super) target: CrossVersionObjectReference,
    pub(super) min: i32,
    pub(super) max: i32,
    pub(super) metrics: Vec<MetricSpec>,
    pub(super) behavior: Option<Behavior>,
    /// The stored status.
    pub(super) status: HorizontalPodAutoscalerStatus,
}

impl Autoscaler {
    /// Reads an autoscaler.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(super) fn of(item: &Item<Any>) -> Result<Self, Error> {
        let object: HorizontalPodAutoscaler = item.typed()?;
        let generation = item.meta().generation.unwrap_or(0);
        Ok(Self::read(
            Key::of(item),
            item.uid().to_owned(),
            generation,
            object,
        ))
    }

    /// Reads the spec and the status.
    pub(super) fn read(
        key: Key,
        uid: String,
        generation: i64,
        object: HorizontalPodAutoscaler,
    ) -> Self {
        let spec = object.spec;
        let behavior = spec.behavior.map(|behavior| Behavior {
            up: behavior.scale_up.unwrap_or_default(),
            down: behavior.scale_down.unwrap_or_default(),
        });
        Self {
            key,
            uid,
            generation,
            target: spec.scale_target_ref,
            min: spec.min_replicas.unwrap_or(1),
            max: spec.max_replicas,
            metrics: spec.metrics.unwrap_or_default(),
            behavior,
            status: object.status.unwrap_or_default(),
        }
    }

    /// Returns the tolerances of the scaling rules.
    pub(super) fn tolerances(&self) -> Tolerances {
        let of = |rules: fn(&Behavior) -> &HPAScalingRules| {
            let rules = self.behavior.as_ref().map(rules);
            let given = rules.and_then(|rules| rules.tolerance.as_ref());
            let given = given.and_then(|text| text.0.parse::<Quantity>().ok());
            given.map_or(DEFAULT_TOLERANCE, |quantity| quantity.value())
        };
        Tolerances {
            down: of(|behavior| &behavior.down),
            up: of(|behavior| &behavior.up),
        }
    }

    /// Returns true if a metric does not depend on pods.
    pub(super) fn has_external_metrics(&self) -> bool {
        let mut metrics = self.metrics.iter();
        metrics.any(|metric| matches!(&*metric.type_, "Object" | "External"))
    }

    /// Returns true if a metric measures the resource usage of pods.
    pub(super) fn needs_usage(&self) -> bool {
        let mut metrics = self.metrics.iter();
        metrics.any(|metric| matches!(&*metric.type_, "Resource" | "ContainerResource"))
    }

    /// Returns true if the controller's last change scaled the target to zero.
    pub(super) fn has_scaled_to_zero(&self) -> bool {
        let conditions = self.status.conditions.iter().flatten();
        let mut conditions = conditions.filter(|one| one.type_ == "ScaledToZero");
        conditions.next().is_some_and(|one| one.status == "True")
    }
}
