//! Parts of times and durations.

use jiff::{Timestamp, Zoned, tz::TimeZone};
use longshore_model::schedule::time_zone;

use crate::{error::EvalError, meter::Meter, value::Value};

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    _: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    match args {
        [Value::Duration(nanos)] => of_duration(name, *nanos).map(|part| Ok(Value::Int(part))),
        [Value::Timestamp(time)] => of_time(name, &time.to_zoned(TimeZone::UTC)).map(Ok),
        [Value::Timestamp(time), Value::String(zone)] => {
            let zoned = match zoned(*time, zone) {
                Ok(zoned) => zoned,
                Err(error) => return Some(Err(error)),
            };
            of_time(name, &zoned).map(Ok)
        }
        _ => None,
    }
}

fn of_duration(name: &str, nanos: i64) -> Option<i64> {
    Some(match name {
        "getHours" => nanos / 3_600_000_000_000,
        "getMinutes" => nanos / 60_000_000_000,
        "getSeconds" => nanos / 1_000_000_000,
        "getMilliseconds" => nanos / 1_000_000 % 1000,
        _ => return None,
    })
}

fn of_time<'a>(name: &str, time: &Zoned) -> Option<Value<'a>> {
    let part = match name {
        "getFullYear" => i64::from(time.year()),
        "getMonth" => i64::from(time.month()) - 1,
        "getDate" => i64::from(time.day()),
        "getDayOfMonth" => i64::from(time.day()) - 1,
        "getDayOfYear" => i64::from(time.day_of_year()) - 1,
        "getDayOfWeek" => i64::from(time.weekday().to_sunday_zero_offset()),
        "getHours" => i64::from(time.hour()),
        "getMinutes" => i64::from(time.minute()),
        "getSeconds" => i64::from(time.second()),
        "getMilliseconds" => i64::from(time.millisecond()),
        _ => return None,
    };
    Some(Value::Int(part))
}

/// The time in a zone: a name, or an offset as in `-08:00`.
fn zoned(time: Timestamp, zone: &str) -> Result<Zoned, EvalError> {
    let unknown = || EvalError::new(format!("unknown time zone {zone}"));
    if zone.is_empty() || zone == "UTC" {
        return Ok(time.to_zoned(TimeZone::UTC));
    }
    if let Some((hours, minutes)) = zone.split_once(':') {
        let number = |text: &str| text.parse::<i32>().ok();
        let (h, m) = number(hours).zip(number(minutes)).ok_or_else(unknown)?;
        if h.abs() > 23 || !(0..60).contains(&m) {
            return Err(unknown());
        }
        let minutes = if hours.starts_with('-') { -m } else { m };
        let offset = jiff::tz::Offset::from_seconds(h * 3600 + minutes * 60);
        let offset = offset.map_err(|_| unknown())?;
        return Ok(time.to_zoned(offset.to_time_zone()));
    }
    Ok(time.to_zoned(time_zone(zone).ok_or_else(unknown)?))
}
