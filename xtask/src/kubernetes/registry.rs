//! Image registries in the network of the cluster: a public one, and a private one that
//! requires a password. The kubelet pulls images from them.

use serde_json::json;

use super::{
    Paths, create_folder,
    ctr::ctr,
    network::{NODE_ADDRESS, enter},
    process, wait_until, write,
};
use crate::{
    image,
    run::{Outcome, output},
};

/// The processes and their ports: the public registry, then the private one.
const PORTS: [(&str, u16); 2] = [("registry", 5000), ("private-registry", 5001)];
/// The user name and password for the private registry.
pub(crate) const USER: &str = "puller";
pub(crate) const PASSWORD: &str = "pulled";
/// The bcrypt hash of the password.
const PASSWORD_HASH: &str = "$2b$10$I5JkhFzhaaTOkOXAdy227.mTIMIknrq0QuH8pAgspN3wk/ICoDT6C";
/// The name and tag of the image in each registry.
const IMAGE: &str = "longshore:1";

/// The full names of the images in the two registries.
pub(crate) fn images() -> [String; 2] {
    PORTS.map(|(_, port)| format!("{NODE_ADDRESS}:{port}/{IMAGE}"))
}

/// Starts both registries and configures containerd to use them.
pub(super) fn start(paths: &Paths) -> Outcome {
    for (name, port) in PORTS {
        let host = format!("{NODE_ADDRESS}:{port}");
        let mut settings = json!({
            "version": 0.1,
            "log": {"level": "warn", "accesslog": {"disabled": true}},
            "storage": {"filesystem": {"rootdirectory": paths.state(name)}},
            "http": {"addr": host, "secret": "http-secret"},
        });
        if name == "private-registry" {
            let users = paths.state("htpasswd");
            write(&users, &format!("{USER}:{PASSWORD_HASH}\n"))?;
            settings["auth"] = json!({"htpasswd": {"realm": "images", "path": users}});
        }
        let file = paths.state(&format!("{name}.json"));
        write(&file, &settings.to_string())?;
        let mut command = enter(paths.program("registry"));
        command.arg("serve").arg(&file);
        process::start(paths, name, command)?;
        // The registries serve HTTP without TLS.
        let folder = paths.state("registries").join(&host);
        create_folder(&folder)?;
        write(
            &folder.join("hosts.toml"),
            &format!("server = \"http://{host}\"\n"),
        )?;
    }
    Ok(())
}

/// Pushes the images that `cargo xtask image` built, if any.
pub(super) fn push_images(paths: &Paths) -> Outcome {
    let known = ctr(paths, &["images", "list", "--quiet"])?;
    let user = format!("{USER}:{PASSWORD}");
    for ((name, port), image) in PORTS.into_iter().zip([image::LONGSHORE, image::PRIVATE]) {
        if !known.lines().any(|line| line == image) {
            continue;
        }
        let to = format!("{NODE_ADDRESS}:{port}/{IMAGE}");
        ctr(paths, &["images", "tag", image, &to])?;
        wait_until(&format!("{name} accepts connections"), || {
            let mut connect = enter("bash");
            connect.args(["-c", &format!("exec 3<>/dev/tcp/{NODE_ADDRESS}/{port}")]);
            output(&mut connect).is_ok()
        })?;
        ctr(
            paths,
            &["images", "push", "--plain-http", "--user", &user, &to],
        )?;
        // Removed locally, so that the kubelet pulls it from the registry.
        ctr(paths, &["images", "remove", &to])?;
    }
    if known.lines().any(|line| line == image::PRIVATE) {
        ctr(paths, &["images", "remove", image::PRIVATE])?;
    }
    Ok(())
}
