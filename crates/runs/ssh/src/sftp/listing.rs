//! The lines of a listing, in the format of `ls -l`.

use jiff::{Timestamp, tz::TimeZone};

use super::attributes::Attributes;

/// Files older than this many seconds show the year instead of the time.
const RECENT: i64 = 182 * 24 * 3600;

/// The line of a file. Owners are numbers, and times are in UTC.
pub(super) fn line(name: &[u8], attributes: &Attributes, links: u64, now: Timestamp) -> Vec<u8> {
    let (user, group) = attributes.owner.unwrap_or_default();
    let size = attributes.size.unwrap_or_default();
    let seconds = i64::from(attributes.times.unwrap_or_default().1);
    let time = Timestamp::from_second(seconds).unwrap_or_default();
    let age = now.as_second().saturating_sub(seconds);
    let format = match (0..RECENT).contains(&age) {
        true => "%b %e %H:%M",
        false => "%b %e  %Y",
    };
    let time = time.to_zoned(TimeZone::UTC).strftime(format);
    let mode = mode(attributes.mode.unwrap_or_default());
    let mut line = format!("{mode} {links:>4} {user:<8} {group:<8} {size:>8} {time} ").into_bytes();
    line.extend_from_slice(name);
    line
}

/// The mode as in `drwxr-xr-x`.
fn mode(mode: u32) -> String {
    let kind = match mode & 0o170_000 {
        0o040_000 => 'd',
        0o120_000 => 'l',
        0o020_000 => 'c',
        0o060_000 => 'b',
        0o010_000 => 'p',
        0o140_000 => 's',
        _ => '-',
    };
    let mut text = String::from(kind);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, false) => 'x',
            (false, false) => '-',
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_that_of_ls() {
        let attributes = Attributes {
            size: Some(1234),
            owner: Some((1000, 100)),
            mode: Some(0o100_644),
            times: Some((0, 1_700_000_000)),
        };
        let text = |now: i64| {
            let now = Timestamp::from_second(now).unwrap_or_default();
            String::from_utf8_lossy(&line(b"data", &attributes, 1, now)).into_owned()
        };
        assert_eq!(
            text(1_700_000_100),
            "-rw-r--r--    1 1000     100          1234 Nov 14 22:13 data"
        );
        assert_eq!(
            text(1_800_000_000),
            "-rw-r--r--    1 1000     100          1234 Nov 14  2023 data"
        );
    }

    #[test]
    fn modes_have_the_type_and_the_special_bits() {
        assert_eq!(mode(0o041_777), "drwxrwxrwt");
        assert_eq!(mode(0o104_755), "-rwsr-xr-x");
        assert_eq!(mode(0o102_640), "-rw-r-S---");
        assert_eq!(mode(0o120_777), "lrwxrwxrwx");
    }
}
