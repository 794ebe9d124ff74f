//! Applies variables such as `CUDA_VISIBLE_DEVICES` to the devices. Pure.

use super::Device;

/// Returns the devices that a list names by index or UUID prefix, in the list's
/// order. As in the vendors' runtimes, the first invalid or repeated entry ends
/// the list. Without a list, returns all devices.
pub(super) fn select(devices: &[Device], list: Option<&str>) -> Vec<Device> {
    let Some(list) = list else {
        return devices.to_vec();
    };
    let mut found: Vec<Device> = Vec::new();
    for word in list.split(',').map(str::trim) {
        let device = match word.parse::<usize>() {
            Ok(index) => devices.get(index),
            Err(_) => by_uuid(devices, word),
        };
        match device {
            Some(device) if !found.contains(device) => found.push(device.clone()),
            _ => break,
        }
    }
    found
}

/// Returns the device whose UUID has this prefix, if it is unique.
fn by_uuid<'a>(devices: &'a [Device], begin: &str) -> Option<&'a Device> {
    if !begin.starts_with("GPU-") {
        return None;
    }
    let begins = |device: &&Device| {
        let uuid = device.uuid.as_deref();
        uuid.is_some_and(|uuid| uuid.starts_with(begin))
    };
    let mut found = devices.iter().filter(begins);
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_devices_by_index_and_uuid() {
        let devices: Vec<Device> = ["GPU-aa11", "GPU-ab22", "GPU-cc33"]
            .iter()
            .enumerate()
            .map(|(index, uuid)| Device {
                index,
                uuid: Some((*uuid).to_owned()),
            })
            .collect();
        let select = |list: Option<&str>| -> Vec<usize> {
            let found = super::select(&devices, list).into_iter();
            found.map(|device| device.index).collect()
        };
        assert_eq!(select(None), [0, 1, 2]);
        assert_eq!(select(Some("")), [0; 0]);
        assert_eq!(select(Some("-1")), [0; 0]);
        assert_eq!(select(Some("NoDevFiles")), [0; 0]);
        assert_eq!(select(Some("2, 0")), [2, 0]);
        assert_eq!(select(Some("1,7,0")), [1]);
        assert_eq!(select(Some("1,1,0")), [1]);
        assert_eq!(select(Some("GPU-ab,GPU-cc33")), [1, 2]);
        // The prefix is ambiguous.
        assert_eq!(select(Some("GPU-a")), [0; 0]);
    }
}
