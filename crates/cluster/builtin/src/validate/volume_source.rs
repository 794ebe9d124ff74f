//! Validation of volume sources that pods and PersistentVolumes share: a table
//! of field rules, and the few rules that involve several fields.

use super::{
    field_value::{Causes, FieldValue},
    storage,
};

enum Rule {
    /// The field is required.
    Required,
    /// If set, an absolute path.
    Absolute,
    /// If set, a number between these limits.
    Between(i64, i64),
    /// If set, an element of this list.
    OneOf(&'static [&'static str]),
    /// The name of a CSI driver.
    Driver,
    /// If set, a DNS label.
    Label,
}
use Rule::{Absolute, Between, Driver, Label, OneOf, Required};

const TABLE: &[(&str, &str, Rule)] = &[
    ("awsElasticBlockStore", "volumeID", Required),
    ("awsElasticBlockStore", "partition", Between(0, 255)),
    ("azureDisk", "diskName", Required),
    ("azureDisk", "diskURI", Required),
    (
        "azureDisk",
        "cachingMode",
        OneOf(&["None", "ReadOnly", "ReadWrite"]),
    ),
    (
        "azureDisk",
        "kind",
        OneOf(&["Dedicated", "Managed", "Shared"]),
    ),
    ("azureFile", "secretName", Required),
    ("azureFile", "shareName", Required),
    ("cephfs", "monitors", Required),
    ("cinder", "volumeID", Required),
    ("configMap", "name", Required),
    ("csi", "driver", Driver),
    ("fc", "lun", Between(0, 255)),
    ("flexVolume", "driver", Required),
    ("gcePersistentDisk", "pdName", Required),
    ("gcePersistentDisk", "partition", Between(0, 255)),
    ("gitRepo", "repository", Required),
    ("glusterfs", "endpoints", Required),
    ("glusterfs", "path", Required),
    ("iscsi", "targetPortal", Required),
    ("iscsi", "iqn", Required),
    ("iscsi", "lun", Between(0, 255)),
    ("nfs", "server", Required),
    ("nfs", "path", Required),
    ("nfs", "path", Absolute),
    ("persistentVolumeClaim", "claimName", Required),
    ("photonPersistentDisk", "pdID", Required),
    ("portworxVolume", "volumeID", Required),
    ("quobyte", "registry", Required),
    ("quobyte", "volume", Required),
    ("rbd", "monitors", Required),
    ("rbd", "image", Required),
    ("scaleIO", "gateway", Required),
    ("scaleIO", "system", Required),
    ("scaleIO", "volumeName", Required),
    ("secret", "secretName", Required),
    ("storageos", "volumeName", Required),
    ("storageos", "volumeName", Label),
    ("storageos", "volumeNamespace", Label),
    ("vsphereVolume", "volumePath", Required),
];

const DEDICATED: &str =
    "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
const MANAGED: &str = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";

fn is_missing(at: &FieldValue<'_>) -> bool {
    at.text().is_empty() && at.len() == 0
}

/// Validates the sources of a volume; `source` looks up a source by name.
pub(super) fn check<'a>(source: impl Fn(&str) -> FieldValue<'a>, causes: &mut Causes<'_>) {
    for (name, field, rule) in TABLE {
        let source = source(name);
        if !source.is_set() {
            continue;
        }
        let at = source.get(field);
        match rule {
            Required if is_missing(&at) => causes.required(&at, ""),
            Absolute if !is_missing(&at) && !at.text().starts_with('/') => {
                causes.invalid(&at, "must be an absolute path");
            }
            Between(least, most) => between(&at, *least, *most, causes),
            OneOf(words) => causes.one_of_if_set(&at, words),
            Driver => storage::driver_name(&at, causes),
            Label if !is_missing(&at) => causes.label(&at),
            Required | Absolute | Label => {}
        }
    }
    for name in ["cinder", "storageos"] {
        let secret = source(name).get("secretRef");
        if secret.is_set() && secret.get("name").text().is_empty() {
            causes.required(&secret.get("name"), "");
        }
    }
    disk(&source("azureDisk"), causes);
    fibre_channel(&source("fc"), causes);
    let registry = source("quobyte").get("registry");
    let pairs = || {
        registry
            .text()
            .split(',')
            .all(|pair| pair.matches(':').count() == 1)
    };
    if !is_missing(&registry) && !pairs() {
        let detail = "must be a host:port pair or multiple pairs separated by commas";
        causes.invalid(&registry, detail);
    }
}

fn between(at: &FieldValue<'_>, least: i64, most: i64, causes: &mut Causes<'_>) {
    if at
        .number()
        .is_some_and(|number| !(least..=most).contains(&number))
    {
        causes.invalid(
            at,
            &format!("must be between {least} and {most}, inclusive"),
        );
    }
}

/// Managed Azure disks and disks in storage accounts use different forms of URIs.
fn disk(disk: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let (kind, address) = (disk.get("kind"), disk.get("diskURI"));
    if !disk.is_set() {
        return;
    }
    if kind.text() == "Managed" {
        if !address.text().starts_with("/subscriptions") {
            causes.not_supported(&address, &[MANAGED]);
        }
    } else if kind.is_set() && !address.text().starts_with("https://") {
        causes.not_supported(&address, &[DEDICATED]);
    }
}

fn fibre_channel(channel: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if !channel.is_set() {
        return;
    }
    let (names, ids) = (channel.get("targetWWNs"), channel.get("wwids"));
    if (names.len() == 0) == (ids.len() == 0) {
        let detail = "must specify either targetWWNs or wwids, but not both";
        causes.required(&names, detail);
    }
    if names.len() > 0 && !channel.get("lun").is_set() {
        let detail = "lun is required if targetWWNs is specified";
        causes.required(&channel.get("lun"), detail);
    }
}

/// Returns true if an iSCSI name has one of the three valid forms.
pub(super) fn is_iscsi(name: &str) -> bool {
    let hex = |text: &str, lengths: &[usize]| {
        lengths.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let qualified = |rest: &str| {
        let date = rest.get(..7).unwrap_or_default();
        let dated = date.bytes().enumerate().all(|(at, b)| match at {
            4 => b == b'-',
            _ => b.is_ascii_digit(),
        });
        let naming = rest.get(7..).and_then(|rest| rest.strip_prefix('.'));
        let first = naming.and_then(|naming| naming.bytes().next());
        date.len() == 7 && dated && first.is_some_and(|b| b.is_ascii_alphanumeric())
    };
    if let Some(rest) = name.strip_prefix("iqn.") {
        return qualified(rest);
    }
    match (name.strip_prefix("eui."), name.strip_prefix("naa.")) {
        (Some(rest), _) => hex(rest, &[16]),
        (_, Some(rest)) => hex(rest, &[16, 32]),
        _ => false,
    }
}
