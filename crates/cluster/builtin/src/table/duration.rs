//! Formats ages like kubectl: two units for short durations, one for long ones.

use jiff::Timestamp;

/// Formats a duration: `45s`, `5m10s`, `3h`, `2d4h`, `1y30d`.
pub(crate) fn human(seconds: i64) -> String {
    let two = |big: i64, big_unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{big}{big_unit}")
        } else {
            format!("{big}{big_unit}{small}{small_unit}")
        }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..-1 => "<invalid>".into(),
        -1..0 => "0s".into(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if days < 365 * 2 => format!("{days}d"),
        _ if days < 365 * 8 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

/// Formats the age since a time; `<unknown>` without one.
#[must_use]
pub fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    since.map_or_else(|| "<unknown>".into(), |since| human(span(since, now)))
}

/// Returns the whole seconds between two times.
pub(crate) fn span(from: Timestamp, to: Timestamp) -> i64 {
    (to.as_millisecond() - from.as_millisecond()).div_euclid(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_durations_omit_small_units() {
        const H: i64 = 3600;
        const D: i64 = 24 * H;
        for (seconds, expected) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (310, "5m10s"),
            (600, "10m"),
            (179 * 60, "179m"),
            (3 * H, "3h"),
            (3 * H + 60, "3h1m"),
            (47 * H, "47h"),
            (50 * H, "2d2h"),
            (8 * D, "8d"),
            (729 * D, "729d"),
            (760 * D, "2y30d"),
            (3000 * D, "8y"),
        ] {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }
}
