//! The declarations of the variables `request` and `namespaceObject`.

use std::sync::Arc;

use crate::decl::Decl;

/// An `AdmissionRequest` without the objects.
pub(super) fn request() -> Arc<Decl> {
    let text = Decl::string;
    let kind = Decl::object(&[("group", text()), ("version", text()), ("kind", text())]);
    let resource = Decl::object(&[("group", text()), ("version", text()), ("resource", text())]);
    let user = Decl::object(&[
        ("username", text()),
        ("uid", text()),
        ("groups", Decl::list(text())),
        ("extra", Decl::map(Decl::list(text()))),
    ]);
    Decl::object(&[
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("subResource", text()),
        ("requestKind", kind),
        ("requestResource", resource),
        ("requestSubResource", text()),
        ("name", text()),
        ("namespace", text()),
        ("operation", text()),
        ("userInfo", user),
        ("dryRun", Decl::bool()),
        ("options", Decl::any()),
    ])
}

/// A Namespace, without some of its metadata.
pub(super) fn namespace() -> Arc<Decl> {
    let text = Decl::string;
    let (int, time) = (Decl::int, Decl::time);
    let texts = || Decl::map(text());
    let metadata = Decl::object(&[
        ("name", text()),
        ("generateName", text()),
        ("namespace", text()),
        ("labels", texts()),
        ("annotations", texts()),
        ("UID", text()),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", int()),
        ("deletionTimestamp", time()),
        ("generation", int()),
        ("resourceVersion", text()),
        ("finalizers", Decl::list(text())),
    ]);
    let condition = Decl::object(&[
        ("status", text()),
        ("type", text()),
        ("lastTransitionTime", time()),
        ("message", text()),
        ("reason", text()),
    ]);
    let status = [("conditions", Decl::list(condition)), ("phase", text())];
    Decl::object(&[
        ("metadata", metadata),
        ("spec", Decl::object(&[("finalizers", Decl::list(text()))])),
        ("status", Decl::object(&status)),
    ])
}
