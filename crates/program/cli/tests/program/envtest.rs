//! `longshore envtest` and the programs that it offers to envtest.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
};

use longshore::blocking::Cluster;
use rcgen::{CertificateParams, DnType, Issuer, KeyPair};

use crate::machine::{Machine, eventually};

/// A program of the folder; killed when dropped.
struct Server(Child);

impl Server {
    fn start(machine: &Machine, program: &str, arguments: &[String]) -> Self {
        let folder = machine
            .longshore(&["envtest", "--assets-dir", "assets"])
            .expect(0)
            .out;
        let mut command = Command::new(format!("{}/{program}", folder.trim()));
        Self(command.args(arguments).spawn().unwrap())
    }

    /// Ends it as envtest does.
    fn stop(mut self) {
        crate::machine::signal(self.0.id().try_into().unwrap(), "TERM");
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn the_command_gets_the_folder_and_returns_its_exit_code() {
    let machine = Machine::new();
    let script = "test -x \"$KUBEBUILDER_ASSETS/etcd\" && \
                  test -x \"$KUBEBUILDER_ASSETS/kube-apiserver\" && exit 7";
    let words = [
        "envtest",
        "--assets-dir",
        "assets",
        "--",
        "sh",
        "-c",
        script,
    ];
    machine.longshore(&words).expect(7);
    let answer = machine.longshore(&["envtest", "--assets-dir", "a", "--", "no-such-program"]);
    assert!(answer.expect(4).err.contains("no-such-program"));
}

#[test]
fn an_existing_cluster_runs_pods_for_the_command() {
    let machine = Machine::new();
    let program = env!("CARGO_BIN_EXE_longshore");
    let script = format!(
        "test \"$USE_EXISTING_CLUSTER\" = true && '{program}' get nodes --kubeconfig \"$KUBECONFIG\" --context longshore && exit 5"
    );
    let answer = machine.longshore(&["envtest", "--existing-cluster", "--", "sh", "-c", &script]);
    assert!(answer.expect(5).out.contains("longshore"));
}

#[test]
fn etcd_answers_health_checks() {
    let machine = Machine::new();
    let port = free_port();
    let flags = [
        format!("--listen-client-urls=http://127.0.0.1:{port}"),
        "--unsafe-no-fsync=true".to_owned(),
    ];
    let server = Server::start(&machine, "etcd", &flags);
    eventually("etcd answers", || {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
            return false;
        };
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.starts_with("HTTP/1.0 200") && answer.contains("\"health\":\"true\"")
    });
    server.stop();
}

#[test]
fn kube_apiserver_accepts_client_certificates_of_the_given_authority() {
    let machine = Machine::new();
    let folder = machine.code();
    let authority = {
        let mut params = CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        std::fs::write(folder.join("ca.crt"), &certificate).unwrap();
        (params, key)
    };
    let issuer = Issuer::from_params(&authority.0, &authority.1);
    let signed = |name: &str, describe: &dyn Fn(&mut CertificateParams)| {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        describe(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap().pem();
        std::fs::write(folder.join(format!("{name}.crt")), certificate).unwrap();
        std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    };
    signed("apiserver", &|_| {});
    signed("client", &|params| {
        params.distinguished_name.push(DnType::CommonName, "tester");
        let masters = "system:masters";
        params
            .distinguished_name
            .push(DnType::OrganizationName, masters);
    });
    let (port, folder) = (free_port(), folder.display());
    let flags = [
        format!("--secure-port={port}"),
        format!("--cert-dir={folder}"),
        format!("--client-ca-file={folder}/ca.crt"),
        format!("--service-account-signing-key-file={folder}/apiserver.key"),
        "--etcd-servers=http://127.0.0.1:1".to_owned(),
    ];
    let server = Server::start(&machine, "kube-apiserver", &flags);
    let kubeconfig = |certificate: &str| {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: '{folder}/ca.crt'}}}}]\n\
             users: [{{name: u, user: {{{certificate}}}}}]\n"
        );
        let path = machine.code().join("kubeconfig");
        std::fs::write(&path, text).unwrap();
        Cluster::from_kubeconfig(Some(&path), None).unwrap()
    };
    let client = kubeconfig(&format!(
        "client-certificate: '{folder}/client.crt', client-key: '{folder}/client.key'"
    ));
    eventually("the server answers", || client.namespaces().list().is_ok());
    let anonymous = kubeconfig("");
    // envtest sends no credentials with its health checks.
    let health = anonymous.proxy().get_bytes("healthz", &[]).unwrap();
    assert_eq!(&health[..], b"ok");
    let error = anonymous.namespaces().list().unwrap_err();
    assert!(matches!(error.code(), Some(401 | 403)), "{error}");
    server.stop();
}

/// The script with which the GitHub Action exports the variables.
fn action_script() -> String {
    let action = include_str!("../../../../../action.yml");
    let (_, script) = action.split_once("      run: |\n").unwrap();
    let lines = script.lines().map(|line| line.strip_prefix("        "));
    lines.map(|line| format!("{}\n", line.unwrap())).collect()
}

#[test]
fn the_github_action_exports_the_folder() {
    let machine = Machine::new();
    let folder = machine.home().join("github");
    std::fs::create_dir(&folder).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let run = |controllers: &str| {
        let mut command = machine.shell("exec bash -c \"$SCRIPT\"");
        for name in ["PATH", "ENV", "OUTPUT"] {
            command.env(format!("GITHUB_{name}"), folder.join(name));
        }
        command
            .env("SCRIPT", action_script())
            .env("PROGRAM", env!("CARGO_BIN_EXE_longshore"))
            .env("CONTROLLERS", controllers);
        crate::machine::Answer::new(&command.output().unwrap())
    };
    let wrong = run("yes").expect(2);
    assert!(wrong.out.contains("::error::controllers"), "{}", wrong.out);
    for controllers in ["false", "true"] {
        run(controllers).expect(0);
        let output = read("OUTPUT");
        let assets = output.lines().last().unwrap();
        let assets = assets.strip_prefix("assets=").unwrap();
        assert!(std::path::Path::new(assets).join("kube-apiserver").exists());
        let exported = format!("KUBEBUILDER_ASSETS={assets}\n");
        assert!(read("ENV").ends_with(&exported), "{}", read("ENV"));
    }
    let program = read("PATH");
    let program = std::path::Path::new(program.lines().last().unwrap()).join("longshore");
    assert!(program.exists());
    let lines: Vec<String> = read("OUTPUT").lines().map(str::to_owned).collect();
    assert_ne!(lines[0], lines[1], "the folder with controllers is another");
}
