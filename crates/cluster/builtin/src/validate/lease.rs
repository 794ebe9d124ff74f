//! Validation of Leases.

use longshore_model::CauseList;

use crate::{
    cause::Cause,
    json::{self, Object},
};

pub(crate) fn object(lease: &Object, causes: &mut CauseList) {
    for field in ["spec.leaseDurationSeconds", "spec.leaseTransitions"] {
        let least = i64::from(field == "spec.leaseDurationSeconds");
        if let Some(number) = json::number(lease, field).filter(|number| *number < least) {
            let rule = if least == 1 {
                "must be greater than 0"
            } else {
                "must be greater than or equal to 0"
            };
            causes.push(Cause::invalid(field, number, rule));
        }
    }
}
