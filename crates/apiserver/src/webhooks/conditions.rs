//! Match conditions of webhooks: CEL expressions that decide whether a webhook
//! is called. This is the one place where they are evaluated.

use super::configuration::Webhook;

/// Whether the conditions of a webhook match a request.
///
/// # Errors
/// The conditions cannot be evaluated. The webhook's failure policy decides
/// what follows: the request is refused, or the webhook is not called.
pub(super) fn matches(webhook: &Webhook) -> Result<bool, String> {
    if webhook.conditions.is_empty() {
        return Ok(true);
    }
    Err(format!(
        "match conditions are not evaluated yet: remove the matchConditions of webhook {:?} ({})",
        webhook.name,
        webhook.conditions.join(", "),
    ))
}
