//! Registries of images within the cluster's network: one for everybody, and one that
//! wants a password. Pods pull from them as from any other.

use serde_json::json;

use super::{
    Places,
    ctr::ctr,
    make_folder,
    network::{NODE, enter},
    process, until, write,
};
use crate::{
    image,
    run::{Outcome, output},
};

/// The ports, by the name of the process: one needs no password, the other does.
const PORTS: [(&str, u16); 2] = [("registry", 5000), ("private-registry", 5001)];
/// Who may use the private one, and the password.
pub(crate) const USER: &str = "puller";
pub(crate) const PASSWORD: &str = "pulled";
/// The password's hash (bcrypt).
const HASH: &str = "$2b$10$I5JkhFzhaaTOkOXAdy227.mTIMIknrq0QuH8pAgspN3wk/ICoDT6C";
/// The image in each of them.
const IMAGE: &str = "longshore:1";

/// The images in the two registries, by the names that pods give them.
pub(crate) fn images() -> [String; 2] {
    PORTS.map(|(_, port)| format!("{NODE}:{port}/{IMAGE}"))
}

/// Starts both, and has the container runtime know them.
pub(super) fn start(places: &Places) -> Outcome {
    for (name, port) in PORTS {
        let host = format!("{NODE}:{port}");
        let mut settings = json!({
            "version": 0.1,
            "log": {"level": "warn", "accesslog": {"disabled": true}},
            "storage": {"filesystem": {"rootdirectory": places.state(name)}},
            "http": {"addr": host, "secret": "of this machine"},
        });
        if name == "private-registry" {
            let users = places.state("htpasswd");
            write(&users, &format!("{USER}:{HASH}\n"))?;
            settings["auth"] = json!({"htpasswd": {"realm": "images", "path": users}});
        }
        let file = places.state(&format!("{name}.json"));
        write(&file, &settings.to_string())?;
        let mut command = enter(places.program("registry"));
        command.arg("serve").arg(&file);
        process::start(places, name, command)?;
        // Without TLS.
        let folder = places.state("registries").join(&host);
        make_folder(&folder)?;
        write(
            &folder.join("hosts.toml"),
            &format!("server = \"http://{host}\"\n"),
        )?;
    }
    Ok(())
}

/// Puts images into them, where `cargo xtask image` has made any.
pub(super) fn fill(places: &Places) -> Outcome {
    let known = ctr(places, &["images", "list", "--quiet"])?;
    let user = format!("{USER}:{PASSWORD}");
    for ((name, port), image) in PORTS.into_iter().zip([image::LONGSHORE, image::PRIVATE]) {
        if !known.lines().any(|line| line == image) {
            continue;
        }
        let to = format!("{NODE}:{port}/{IMAGE}");
        ctr(places, &["images", "tag", image, &to])?;
        until(&format!("{name} answers"), || {
            let mut ask = enter("bash");
            ask.args(["-c", &format!("exec 3<>/dev/tcp/{NODE}/{port}")]);
            output(&mut ask).is_ok()
        })?;
        ctr(
            places,
            &["images", "push", "--plain-http", "--user", &user, &to],
        )?;
        // Pods pull it.
        ctr(places, &["images", "remove", &to])?;
    }
    if known.lines().any(|line| line == image::PRIVATE) {
        ctr(places, &["images", "remove", image::PRIVATE])?;
    }
    Ok(())
}
