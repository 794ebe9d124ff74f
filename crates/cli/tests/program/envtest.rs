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
