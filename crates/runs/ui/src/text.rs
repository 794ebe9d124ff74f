//! Numbers and times as text. Pure.

use jiff::Timestamp;

/// A duration in one or two units: `<1s`, `4s`, `3m12s`, `2h5m`, `3d4h`. Kubernetes' times are
/// whole seconds.
pub(crate) fn span(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0 => "<1s".to_owned(),
        _ if days > 0 => format!("{days}d{}h", hours % 24),
        _ if hours > 0 => format!("{hours}h{}m", minutes % 60),
        _ if minutes > 0 => format!("{minutes}m{}s", seconds % 60),
        _ => format!("{seconds}s"),
    }
}

/// The milliseconds between two times; 0 if the first is later.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> i64 {
    to.as_millisecond()
        .saturating_sub(from.as_millisecond())
        .max(0)
}

/// A size in powers of 1024.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1000.0 {
            let digits = usize::from(unit != "B" && value < 10.0);
            return format!("{value:.digits$} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// A time to the second, in UTC.
pub(crate) fn time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A command as in a shell.
pub(crate) fn command(words: &[String]) -> String {
    let plain = |word: &str| {
        let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
        !word.is_empty() && word.chars().all(is_plain)
    };
    let words = words.iter().map(|word| match plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        let spans = [-5, 850, 4_200, 59_000, 192_000, 7_500_000, 90_000_000].map(span);
        let wanted = ["<1s", "<1s", "4s", "59s", "3m12s", "2h5m", "1d1h"];
        assert_eq!(spans, wanted);
    }

    #[test]
    fn commands_can_be_copied() {
        let words = ["sh", "-c", "echo 'a'", ""].map(str::to_owned);
        assert_eq!(command(&words), r"sh -c 'echo '\''a'\''' ''");
    }
}
