//! The utilisation and the memory of this container's GPUs: NVIDIA's from `nvidia-smi`, AMD's from
//! files of the kernel.
//!
//! A statically linked program cannot load NVIDIA's library, so the program `nvidia-smi` is started
//! instead.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use super::recorder::GpuMeasured;

/// The maximum time that `nvidia-smi` may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The number of failures after which GPUs are not measured any more.
const MOST_FAILURES: u32 = 3;
/// The maximum output of `nvidia-smi`: a line per GPU.
const LARGEST_OUTPUT: u64 = 64 * 1024;
const QUERY: &str = "--query-gpu=index,uuid,utilization.gpu,memory.used,memory.total";
const MIB: u64 = 1 << 20;

/// A measurement of a GPU.
#[derive(Debug, Clone, PartialEq)]
struct Gpu {
    index: String,
    uuid: String,
    percent: f64,
    memory: u64,
    total_memory: u64,
}

/// Measures GPUs.
#[derive(Debug)]
pub(super) struct Gpus {
    nvidia: Option<PathBuf>,
    /// The GPUs that programs of the task see, if not all GPUs of the container.
    visible: Option<String>,
    failures: u32,
}

impl Gpus {
    /// The GPUs of a task with these variables, if it has any.
    pub(super) fn of_task(
        accelerators: u64,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Option<Self> {
        let visible = variable("CUDA_VISIBLE_DEVICES");
        let visible = visible.map(|text| text.to_string_lossy().into_owned());
        let is_given = visible.as_ref().is_some_and(|text| !text.trim().is_empty());
        if accelerators == 0 && !is_given {
            return None;
        }
        let path = variable("PATH").or_else(|| env::var_os("PATH"));
        Some(Self {
            nvidia: path.and_then(|path| find("nvidia-smi", &path)),
            visible,
            failures: 0,
        })
    }

    /// Measures the GPUs. `None` if this is not possible.
    pub(super) fn measure(&mut self) -> Option<GpuMeasured> {
        if let Some(program) = self.nvidia.clone() {
            let gpus = output(&program).map(|text| parse(&text));
            let gpus = gpus.map(|gpus| visible(gpus, self.visible.as_deref()));
            let measured = gpus.and_then(|gpus| summed(&gpus));
            self.failures = match measured {
                Some(_) => 0,
                None => self.failures.saturating_add(1),
            };
            if self.failures >= MOST_FAILURES {
                self.nvidia = None;
            }
            return measured;
        }
        summed(&amd(Path::new("/sys/class/drm"), Path::new("/dev/dri")))
    }
}

/// The path of a program on a `PATH`.
fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let is_program = |file: &PathBuf| {
        fs::metadata(file)
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(is_program)
}

/// The output of `nvidia-smi`. The supervisor of the task may reap its process, so its exit
/// code is not known.
fn output(program: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .args([QUERY, "--format=csv,noheader,nounits"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let stdout = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut text = String::new();
        let read = stdout.take(LARGEST_OUTPUT).read_to_string(&mut text);
        // The receiver may have given up.
        let _ = sender.send(read.ok().map(|_| text));
        let _ = child.wait();
    });
    receiver.recv_timeout(TIMEOUT).ok()?
}

/// Parses lines `INDEX, UUID, PERCENT, MIB, MIB`. A GPU with unavailable values, as with MIG, is
/// left out.
fn parse(text: &str) -> Vec<Gpu> {
    let gpu = |line: &str| {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let [index, uuid, percent, used, total] = cells[..] else {
            return None;
        };
        let mib = |text: &str| Some(text.parse::<u64>().ok()?.saturating_mul(MIB));
        Some(Gpu {
            index: index.to_owned(),
            uuid: uuid.to_owned(),
            percent: percent.parse::<u8>().ok()?.min(100).into(),
            memory: mib(used)?,
            total_memory: mib(total)?,
        })
    };
    text.lines().filter_map(gpu).collect()
}

/// The GPUs in `CUDA_VISIBLE_DEVICES`, by index or by the begin of the UUID.
fn visible(mut gpus: Vec<Gpu>, named: Option<&str>) -> Vec<Gpu> {
    let Some(named) = named.filter(|named| !named.trim().is_empty()) else {
        return gpus;
    };
    let names: Vec<&str> = named.split(',').map(str::trim).collect();
    gpus.retain(|gpu| {
        names.iter().any(|name| {
            *name == gpu.index || (name.starts_with("GPU-") && gpu.uuid.starts_with(name))
        })
    });
    gpus
}

/// AMD's GPUs whose device files the container has.
fn amd(classes: &Path, devices: &Path) -> Vec<Gpu> {
    let Ok(entries) = fs::read_dir(classes) else {
        return Vec::new();
    };
    let gpus = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        if !name.starts_with("renderD") || !devices.join(&name).exists() {
            return None;
        }
        let number = |file: &str| {
            let text = fs::read_to_string(entry.path().join("device").join(file)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        Some(Gpu {
            percent: f64::from(u8::try_from(number("gpu_busy_percent")?.min(100)).ok()?),
            memory: number("mem_info_vram_used")?,
            total_memory: number("mem_info_vram_total")?,
            uuid: String::new(),
            index: name,
        })
    });
    gpus.collect()
}

fn summed(gpus: &[Gpu]) -> Option<GpuMeasured> {
    let count = u32::try_from(gpus.len()).ok().filter(|&count| count > 0)?;
    let sum: f64 = gpus.iter().map(|gpu| gpu.percent).sum();
    let bytes = |of: fn(&Gpu) -> u64| gpus.iter().map(of).fold(0, u64::saturating_add);
    Some(GpuMeasured {
        count,
        mean_percent: sum / f64::from(count),
        highest_percent: gpus.iter().map(|gpu| gpu.percent).fold(0.0, f64::max),
        memory: bytes(|gpu| gpu.memory),
        total_memory: bytes(|gpu| gpu.total_memory),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const OUTPUT: &str = "0, GPU-aaaa-1, 80, 1000, 8000\n1, GPU-bbbb-2, 20, 500, 8000\n\
                          2, GPU-cccc-3, [N/A], [N/A], 8000\nnot a line\n";

    #[test]
    fn the_output_of_nvidia_smi_is_parsed() {
        let gpus = parse(OUTPUT);
        assert_eq!(gpus.len(), 2);
        let all = summed(&gpus).unwrap();
        assert_eq!(
            (all.count, all.mean_percent, all.highest_percent),
            (2, 50.0, 80.0)
        );
        assert_eq!((all.memory, all.total_memory), (1500 * MIB, 16_000 * MIB));
        let percent = |named| summed(&visible(parse(OUTPUT), named)).map(|gpu| gpu.mean_percent);
        assert_eq!(percent(Some("1")), Some(20.0));
        assert_eq!(percent(Some("GPU-aaaa")), Some(80.0));
        assert_eq!(percent(Some("0, 1")), Some(50.0));
        assert_eq!(percent(Some("7")), None);
        assert_eq!(percent(Some("")), Some(50.0));
        assert_eq!(percent(None), Some(50.0));
    }

    #[test]
    fn a_task_without_gpus_is_not_measured() {
        let of = |accelerators, value: Option<&str>| {
            let value = value.map(OsString::from);
            Gpus::of_task(accelerators, |name| {
                value.clone().filter(|_| name == "CUDA_VISIBLE_DEVICES")
            })
        };
        assert!(of(0, None).is_none());
        assert!(of(0, Some("")).is_none());
        assert!(of(0, Some("0")).is_some());
        assert!(of(1, None).is_some());
    }

    #[test]
    fn nvidia_smi_is_found_on_the_path_of_the_task() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("nvidia-smi");
        fs::write(&program, format!("#!/bin/sh\nprintf '{OUTPUT}'\n")).unwrap();
        let path = |name: &str| match name {
            "PATH" => Some(folder.path().as_os_str().to_owned()),
            _ => Some("0".into()),
        };
        // The program is not executable.
        assert!(Gpus::of_task(1, path).unwrap().nvidia.is_none());
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut gpus = Gpus::of_task(1, path).unwrap();
        assert_eq!(gpus.measure().unwrap().mean_percent, 80.0);
        fs::write(&program, "#!/bin/sh\nexit 9\n").unwrap();
        for _ in 0..MOST_FAILURES {
            assert_eq!(gpus.measure(), None);
        }
        assert!(gpus.nvidia.is_none());
    }

    #[test]
    fn amd_gpus_count_if_their_device_is_there() {
        let (classes, devices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in ["renderD128", "renderD129", "card0"] {
            let device = classes.path().join(name).join("device");
            fs::create_dir_all(&device).unwrap();
            for (file, text) in [
                ("gpu_busy_percent", "40\n"),
                ("mem_info_vram_used", "1024\n"),
                ("mem_info_vram_total", "4096\n"),
            ] {
                fs::write(device.join(file), text).unwrap();
            }
        }
        fs::write(devices.path().join("renderD128"), "").unwrap();
        let found = summed(&amd(classes.path(), devices.path())).unwrap();
        assert_eq!(
            (found.count, found.mean_percent, found.memory),
            (1, 40.0, 1024)
        );
    }
}
