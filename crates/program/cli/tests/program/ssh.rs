//! SSH access to tasks, with OpenSSH's client. Without it, the tests do nothing.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
    time::Duration,
};

use crate::{
    machine::{Answer, Machine, Running, eventually, unique_word},
    pseudoterminal::Terminal,
};

/// A machine with a running task and `ssh.conf`, the configuration of its user's SSH client.
/// `None`, with a message, if an SSH client is not installed.
#[expect(clippy::print_stderr, reason = "says that the test was left out")]
fn with_task(arguments: &[&str]) -> Option<Machine> {
    if Command::new("ssh").arg("-V").output().is_err() {
        eprintln!("skipped: OpenSSH's client is not installed (Debian: openssh-client)");
        return None;
    }
    let machine = Machine::new();
    let run = ["run", "--detach", "--name", "job"];
    machine.longshore(&[&run[..], arguments].concat()).expect(0);
    eventually("the task runs", || {
        machine.longshore(&["exec", "last", "--", "true"]).code == 0
    });
    let config = machine.longshore(&["ssh", "--config"]).expect(0).out;
    machine.write("ssh.conf", &config);
    Some(machine)
}

/// Runs a script, in which `on` is an SSH client with the task.
fn script(machine: &Machine, text: &str) -> Answer {
    let text = format!("on() {{ ssh -F ssh.conf \"$@\"; }}\n{text}");
    Answer::new(&machine.shell(&text).output().unwrap())
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn commands_have_the_environment_of_the_task_and_exact_streams() {
    let command = ["-e", "GREETING=hello", "--", "sleep", "600"];
    let Some(machine) = with_task(&command) else {
        return;
    };
    machine.write("in-the-code", "");
    let answer = script(
        &machine,
        "on last.longshore 'echo $GREETING from $LONGSHORE_ROLE/$LONGSHORE_INDEX; echo bad >&2; exit 7'",
    )
    .expect(7);
    assert_eq!(answer.out, "hello from main/0\n");
    assert_eq!(answer.err, "bad\n");

    // Bytes in both directions at once, with both ciphers and new keys in between.
    let answer = script(
        &machine,
        "head -c 10485760 /dev/urandom > data
        on last.longshore cat < data | cmp - data
        on -o RekeyLimit=1M last.longshore cat < data | cmp - data
        on -o Ciphers=aes256-gcm@openssh.com -o RekeyLimit=3M last.longshore cat < data | cmp - data
        on last.longshore 'cat > received; wc -c < received; cmp received -' < data | tail -1
        printf 12345 | on last.main.0.longshore 'wc -c'
        on last.longshore 'head -c 3' < data | wc -c
        on -n last.longshore 'head -c 10485760 /dev/zero' | wc -c",
    )
    .expect(0);
    let lines: Vec<&str> = answer.out.lines().map(str::trim).collect();
    assert_eq!(lines, ["10485760", "5", "3", "10485760"], "{}", answer.err);

    // Variables of the client, which are not in the arguments of any process, and words of a
    // command.
    let answer = script(
        &machine,
        "on -o SetEnv='A=secret-of-ssh' last.longshore 'echo $A; tr \"\\0\" \" \" < /proc/$$/cmdline'",
    )
    .expect(0);
    assert_eq!(
        answer.out.matches("secret-of-ssh").count(),
        1,
        "{}",
        answer.out
    );
    let words = [
        "ssh", "last", "--", "printf", "%s|", "a b", "$HOME", "'", "",
    ];
    let answer = machine.longshore(&words).expect(0);
    assert_eq!(answer.out, "a b|$HOME|'||");
    let answer = machine.longshore(&["ssh", "last", "--", "echo $((6 * 7)); false"]);
    assert_eq!(answer.expect(1).out, "42\n");

    // Several sessions of one connection.
    let answer = script(
        &machine,
        "on -M -S control -o ControlPersist=yes last.longshore true
        for i in 1 2 3 4 5 6; do on -S control last.longshore \"cat | wc -c; echo $i >> done\" < data & done
        wait
        on -S control last.longshore 'wc -l < done'
        on -S control -O exit last.longshore 2> /dev/null",
    )
    .expect(0);
    let lines: Vec<&str> = answer.out.lines().map(str::trim).collect();
    assert_eq!(lines, [&["10485760"; 6][..], &["6"]].concat());
}

#[test]
fn files_are_copied_with_their_names_and_permissions() {
    let Some(machine) = with_task(&["--", "sleep", "600"]) else {
        return;
    };
    let code = machine.code();
    fs::create_dir_all(code.join("folder/sub")).unwrap();
    fs::write(code.join("folder/sub/run.sh"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(
        code.join("folder/sub/run.sh"),
        fs::Permissions::from_mode(0o750),
    )
    .unwrap();
    fs::write(code.join("folder/a name with blanks é"), "1").unwrap();
    let answer = script(
        &machine,
        "head -c 30000000 /dev/urandom > large
        scp -q -F ssh.conf large last.longshore:copied
        scp -q -F ssh.conf last.longshore:copied back
        cmp large back
        test \"$(sha256sum < large)\" = \"$(on last.longshore 'sha256sum < copied')\"
        scp -q -p -r -F ssh.conf folder last.longshore:there
        on last.longshore there/sub/run.sh
        scp -q -p -r -F ssh.conf last.longshore:there returned
        diff -r folder returned
        stat -c %a returned/sub/run.sh",
    )
    .expect(0);
    assert_eq!(answer.out, "ran\n750\n");

    let batch = "mkdir new
put large new/one
rename new/one new/two
chmod 600 new/two
symlink two new/link
ls -l new
get new/link from-link
rm new/link
-rmdir new
rm new/two
rmdir new
df
-get missing
";
    machine.write("batch", batch);
    let answer = script(
        &machine,
        "sftp -F ssh.conf -b batch last.longshore && cmp large from-link",
    )
    .expect(0);
    for expected in ["-rw-------", "30000000", "two", "Size"] {
        assert!(answer.out.contains(expected), "{expected}: {}", answer.out);
    }
    assert!(answer.err.contains("missing"), "{}", answer.err);
}

#[test]
fn ports_of_the_task_are_forwarded_and_no_others() {
    let server = "from http.server import *; HTTPServer(('127.0.0.1', 8123), SimpleHTTPRequestHandler).serve_forever()";
    let Some(machine) = with_task(&["--", "python3", "-c", server]) else {
        return;
    };
    machine.write("page", "");
    let (own, other) = (free_port(), free_port());
    let forwards = [
        format!("{own}:localhost:8123"),
        format!("{other}:192.0.2.1:80"),
    ];
    let arguments = ["ssh", "last", "-N", "-L", &forwards[0], "-L", &forwards[1]];
    let remote = format!("RemoteForward={} localhost:1", free_port());
    let arguments = [&arguments[..], &["-o", &remote]].concat();
    let mut forwarding = Running::start(machine.command(&arguments));
    forwarding.wait_for_error("ssh -R and RemoteForward are not supported");
    let get = |port: u16| {
        let mut answer = Vec::new();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
        let _ = stream.read_to_end(&mut answer);
        Some(String::from_utf8_lossy(&answer).into_owned())
    };
    eventually("the server answers", || {
        get(own).is_some_and(|answer| answer.starts_with("HTTP/1.0 200"))
    });
    assert_eq!(get(other).as_deref(), Some(""));
    forwarding.wait_for_error("Longshore forwards ports of the task itself");
    // The connection still forwards.
    assert!(get(own).unwrap().contains("200"));
    forwarding.signal("TERM");
    forwarding.end();
}

#[test]
fn other_keys_are_refused_and_nothing_is_asked() {
    let Some(machine) = with_task(&["--", "sleep", "600"]) else {
        return;
    };
    let data = machine.data();
    let mode = |name: &str| {
        let metadata = fs::metadata(data.join("ssh").join(name)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!([mode("client_key"), mode("host_key")], [0o600, 0o600]);
    let answer = script(
        &machine,
        "ssh-keygen -q -t ed25519 -N '' -f wrong
        sed 's|IdentityFile .*|IdentityFile wrong|' ssh.conf > wrong.conf
        ssh -F wrong.conf last.longshore true",
    )
    .expect(255);
    assert!(answer.err.contains("Permission denied"), "{}", answer.err);
    let answer = script(
        &machine,
        "echo \"longshore $(cut -d' ' -f1,2 wrong.pub)\" > hosts
        sed 's|UserKnownHostsFile .*|UserKnownHostsFile hosts|' ssh.conf > wrong.conf
        ssh -F wrong.conf last.longshore true",
    )
    .expect(255);
    assert!(
        answer.err.contains("Host key verification failed"),
        "{}",
        answer.err
    );
    let answer = script(&machine, "on -o Ciphers=aes128-ctr last.longshore true").expect(255);
    assert!(
        answer.err.contains("no matching cipher found"),
        "{}",
        answer.err
    );
    // A client other than an SSH client.
    let mut other = machine.command(&["ssh-proxy", "last"]);
    let mut child = other
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let answer = Answer::new(&child.wait_with_output().unwrap()).expect(1);
    assert!(answer.err.contains("not an SSH client"), "{}", answer.err);
}

#[test]
fn a_task_that_ends_and_names_that_do_not_exist_are_reported() {
    let wait = "until test -e stop; do sleep 0.05; done; exit 3";
    let Some(machine) = with_task(&["--", "sh", "-c", wait]) else {
        return;
    };
    for (host, expected) in [
        ("none.longshore", "no run or pod \"none\""),
        ("last.worker.0.longshore", "worker"),
        ("last.main.7.longshore", "7"),
        ("a.b.c.d.longshore", "names no task of a run"),
    ] {
        let answer = script(&machine, &format!("on {host} true")).expect(255);
        assert!(answer.err.contains(expected), "{host}: {}", answer.err);
    }
    let idle = Running::start(machine.command(&["ssh", "last", "-N"]));
    let mut busy = Running::start(machine.command(&["ssh", "last", "--", "echo up; sleep 600"]));
    busy.wait_for_output("up");
    script(&machine, "on last.longshore 'touch stop'").expect(0);
    let answer = idle.end().expect(255);
    let ended = answer.err.contains("has ended (exit code 3)");
    assert!(ended, "{}", answer.err);
    assert_ne!(busy.end().code, 0);
    let answer = machine.longshore(&["ssh", "last"]).expect(255);
    assert!(answer.err.contains("has ended"), "{}", answer.err);
}

#[test]
fn a_terminal_has_its_size_and_its_processes_end_with_the_client() {
    let Some(machine) = with_task(&["--", "sleep", "600"]) else {
        return;
    };
    let word = unique_word();
    let mut terminal = Terminal::start(&machine.command(&["ssh", "last"]));
    terminal.resize(101, 37);
    terminal.write("echo $TERM $((40 + 2)) $(tty)\n");
    terminal.wait_for("xterm 42 /dev/pts/");
    terminal.write("echo size $(stty size)\n");
    terminal.wait_for("size 37 101");
    terminal.resize(90, 20);
    terminal.write("sleep 0.5; echo now $(stty size)\n");
    terminal.wait_for("now 20 90");
    // Ctrl-C ends the command, and the shell continues.
    terminal.write("echo started; sleep 600\n");
    terminal.wait_for("\rstarted");
    std::thread::sleep(Duration::from_millis(300));
    terminal.write("\u{3}");
    terminal.write("exit 9\n");
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(9), "{text}");

    // A client that is killed: its commands get SIGHUP.
    let line = format!("exec -a {word} sleep 600");
    let command = machine.command(&["ssh", "last", "--", "bash", "-c", &line]);
    let mut client = Running::start(command);
    let sleeps = || {
        let found = crate::machine::processes_with(&word);
        found.iter().any(|arguments| arguments.starts_with(&word))
    };
    eventually("the command runs", sleeps);
    client.signal("KILL");
    let _ = client.output();
    drop(client);
    eventually("the command has ended", || !sleeps());
}

#[test]
fn the_hosts_are_added_to_the_configuration_of_the_user() {
    let Some(machine) = with_task(&["--", "sleep", "600"]) else {
        return;
    };
    let config = machine.home().join(".ssh/config");
    fs::create_dir(machine.home().join(".ssh")).unwrap();
    fs::write(&config, "Host other\n    User me\n").unwrap();
    let first = machine.longshore(&["ssh", "--install"]).expect(0);
    assert!(first.err.contains("now includes"), "{}", first.err);
    let second = machine.longshore(&["ssh", "--install", "--suffix", "lab"]);
    assert!(!second.expect(0).err.contains("now"), "included twice");
    let text = fs::read_to_string(&config).unwrap();
    assert!(text.starts_with("Include \"/") && text.ends_with("Host other\n    User me\n"));
    // In another folder, without the environment of this folder's commands.
    let answer = script(
        &machine,
        "cd /; unset LONGSHORE_DATA_DIR
        for host in last.longshore last.main.0.lab; do
            ssh -F \"$HOME/.ssh/config\" $host 'echo $LONGSHORE_ROLE'
        done
        ssh -G -F \"$HOME/.ssh/config\" other | grep '^user '",
    )
    .expect(0);
    assert_eq!(answer.out, "main\nmain\nuser me\n", "{}", answer.err);
}
