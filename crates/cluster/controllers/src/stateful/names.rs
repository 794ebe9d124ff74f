//! The names of pods.

/// Splits the name of a pod into the name of the set and the ordinal.
pub(crate) fn split(pod: &str) -> Option<(&str, u32)> {
    let (parent, digits) = pod.rsplit_once('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let ordinal = digits.parse::<i32>().ok().filter(|_| is_number)?;
    Some((parent, u32::try_from(ordinal).ok()?))
}
