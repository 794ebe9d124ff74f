//! Fields that are an absolute number or a percentage.

use serde_json::Value;

/// Resolves an absolute number or a percentage of `of`.
pub(crate) fn scaled(value: &Value, of: i64, up: bool) -> i64 {
    if let Some(number) = value.as_i64() {
        return number;
    }
    let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
    let percent: i64 = percent.and_then(|text| text.parse().ok()).unwrap_or(0);
    let product = percent.saturating_mul(of);
    if up {
        product.saturating_add(99).div_euclid(100)
    } else {
        product.div_euclid(100)
    }
}
