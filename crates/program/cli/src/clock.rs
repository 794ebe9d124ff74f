//! The option `--clock`.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use longshore_embedded::Clock;

/// The clock of an embedded cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ClockChoice {
    #[default]
    System,
    /// A manual clock that shows the time at the start of the cluster.
    Manual,
    /// A manual clock that shows this time.
    From(Timestamp),
}

impl ClockChoice {
    pub(crate) fn is_manual(self) -> bool {
        self != Self::System
    }

    pub(crate) fn clock(self) -> Clock {
        match self {
            Self::System => Clock::system(),
            Self::Manual => Clock::manual(Timestamp::now()),
            Self::From(time) => Clock::manual(time),
        }
    }
}

impl FromStr for ClockChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "system" => Ok(Self::System),
            "manual" => Ok(Self::Manual),
            time => time.parse().map(Self::From).map_err(|_| {
                "expected system, manual or a time such as 2026-01-01T00:00:00Z".to_owned()
            }),
        }
    }
}

impl fmt::Display for ClockChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Manual => f.write_str("manual"),
            Self::From(time) => time.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_written_as_it_is_read() {
        for text in ["system", "manual", "2026-01-01T00:00:00Z"] {
            let choice: ClockChoice = text.parse().unwrap_or_default();
            assert_eq!(choice.to_string(), text);
            assert_eq!(choice.clock().is_manual(), text != "system");
        }
        assert!("tomorrow".parse::<ClockChoice>().is_err());
    }
}
