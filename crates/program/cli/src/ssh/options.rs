//! The options of OpenSSH's client. Pure, except for the version of the client.

use std::path::Path;

use longshore_ssh::{Keys, keys::HOST_ALIAS};

use super::host_name::SUFFIX;

/// An option and its value.
pub(crate) type SshOption = (&'static str, String);

/// The first version of OpenSSH that warns about a key exchange without post-quantum cryptography.
const WARNS_SINCE: (u32, u32) = (10, 1);

/// The options for the server of `proxy`, a command line for a shell.
pub(crate) fn of(keys: &Keys, proxy: String, version: Option<(u32, u32)>) -> Vec<SshOption> {
    let mut options = vec![
        ("ProxyCommand", proxy),
        ("HostKeyAlias", HOST_ALIAS.to_owned()),
        ("UserKnownHostsFile", file(&keys.known_hosts())),
        ("GlobalKnownHostsFile", "/dev/null".to_owned()),
        ("StrictHostKeyChecking", "yes".to_owned()),
        ("UpdateHostKeys", "no".to_owned()),
        ("VerifyHostKeyDNS", "no".to_owned()),
        ("IdentityFile", file(&keys.client_key())),
        ("IdentitiesOnly", "yes".to_owned()),
        ("IdentityAgent", "none".to_owned()),
        ("PreferredAuthentications", "publickey".to_owned()),
        ("KexAlgorithms", "curve25519-sha256".to_owned()),
        (
            "Ciphers",
            "chacha20-poly1305@openssh.com,aes256-gcm@openssh.com".to_owned(),
        ),
        ("HostKeyAlgorithms", "ssh-ed25519".to_owned()),
        ("Compression", "no".to_owned()),
        ("ForwardAgent", "no".to_owned()),
        ("ForwardX11", "no".to_owned()),
    ];
    // The keys are exchanged with a process of this machine, over a pipe.
    if version.is_some_and(|version| version >= WARNS_SINCE) {
        options.push(("WarnWeakCrypto", "no-pq-kex".to_owned()));
    }
    options
}

/// A block of a configuration file, for the hosts with a suffix.
pub(crate) fn block(options: &[SshOption], suffix: &str) -> String {
    let mut text = format!("Host *.{suffix}\n");
    for (name, value) in options {
        text.push_str(&format!("    {name} {value}\n"));
    }
    text
}

/// The command line of the proxy: the program with the options that select a cluster. OpenSSH
/// replaces `host` if it is `%h`.
pub(crate) fn proxy(program: &Path, cluster: &[String], suffix: &str, host: &str) -> String {
    let mut words = vec![program.display().to_string(), "ssh-proxy".to_owned()];
    words.extend(cluster.iter().cloned());
    if suffix != SUFFIX {
        words.extend(["--suffix".to_owned(), suffix.to_owned()]);
    }
    words.push("--".to_owned());
    let words = words.iter().map(|word| quoted(word).replace('%', "%%"));
    // Quoted: OpenSSH before 9.6 accepts host names with characters that shells interpret.
    let host = match host {
        "%h" => "'%h'".to_owned(),
        host => quoted(host),
    };
    words.chain([host]).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell, if necessary.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@=+,".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A file in an option.
pub(crate) fn file(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('%', "%%"))
}

/// Parses the text of `ssh -V`.
pub(crate) fn version(text: &str) -> Option<(u32, u32)> {
    let rest = text.split("OpenSSH_").nth(1)?;
    let rest = rest.strip_prefix("for_Windows_").unwrap_or(rest);
    let mut numbers = rest.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found() {
        let text = "OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19 27 Jan 2026";
        assert_eq!(version(text), Some((9, 2)));
        assert_eq!(version("OpenSSH_10.1p1, LibreSSL 3.3.6"), Some((10, 1)));
        assert_eq!(version("OpenSSH_for_Windows_8.6p1"), Some((8, 6)));
        assert_eq!(version("dropbear"), None);
    }

    #[test]
    fn the_command_line_is_quoted_for_a_shell_and_for_openssh() {
        let cluster = ["--context".to_owned(), "it's 100%".to_owned()];
        assert_eq!(
            proxy(Path::new("/my apps/longshore"), &cluster, "gpu", "%h"),
            r"'/my apps/longshore' ssh-proxy --context 'it'\''s 100%%' --suffix gpu -- '%h'"
        );
        assert_eq!(
            proxy(Path::new("/longshore"), &[], SUFFIX, "last"),
            "/longshore ssh-proxy -- last"
        );
    }
}
