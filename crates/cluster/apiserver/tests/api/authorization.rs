//! Authorization by roles. The tests impersonate users; the administrator may
//! impersonate everyone.

use longshore_apiserver::AuthorizationMode;
use serde_json::{Value, json};

use crate::{
    common::{CONFIG_MAPS, PODS, Server},
    users::{As, MERGE},
};

const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const CLUSTER_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const APPLY: &str = "application/apply-patch+yaml";

const ANA: &[(&str, &str)] = &[("impersonate-user", "ana")];

fn rule(resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [""], "resources": resources, "verbs": verbs})
}

fn role(name: &str, rules: &[Value]) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, kind: &str, role: &str, subject: Value) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [subject],
    })
}

fn user(name: &str) -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name})
}

impl Server {
    /// Gives a user a role with these rules in the namespace default.
    async fn grant(&self, name: &str, subject: Value, rules: &[Value]) {
        self.made(ROLES, role(name, rules)).await;
        self.made(BINDINGS, binding(name, "Role", name, subject))
            .await;
    }
}

#[tokio::test]
async fn users_without_roles_get_the_messages_of_kubernetes() {
    let server = Server::with_default_policy().await;
    let ana = As::new(&server, ANA);
    for (method, path, message) in [
        (
            "GET",
            PODS,
            r#"pods is forbidden: User "ana" cannot list resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            "GET",
            "/api/v1/namespaces/default/pods/p/log",
            r#"pods "p" is forbidden: User "ana" cannot get resource "pods/log" in API group "" in the namespace "default""#,
        ),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/default/deployments",
            r#"deployments.apps is forbidden: User "ana" cannot deletecollection resource "deployments" in API group "apps" in the namespace "default""#,
        ),
        (
            "GET",
            "/api/v1/nodes?watch=1",
            r#"nodes is forbidden: User "ana" cannot watch resource "nodes" in API group "" at the cluster scope"#,
        ),
        (
            "GET",
            "/metrics",
            r#"forbidden: User "ana" cannot get path "/metrics""#,
        ),
        // The resource need not exist.
        (
            "GET",
            "/apis/example.com/v1/things/t",
            r#"things.example.com "t" is forbidden: User "ana" cannot get resource "things" in API group "example.com" at the cluster scope"#,
        ),
    ] {
        assert_eq!(ana.refused(method, path, &Value::Null).await, message);
    }
    let answer = ana
        .call("GET", "/api/v1/namespaces/default/pods/p", &Value::Null)
        .await;
    let details = json!({"name": "p", "kind": "pods"});
    assert_eq!(answer.json()["details"], details);
    // All users may use discovery and see who they are.
    for path in ["/api", "/apis/apps/v1", "/openapi/v3", "/version", "/livez"] {
        assert_eq!(ana.get(path).await, 200, "{path}");
    }
    let anonymous = As::new(&server, &[("impersonate-user", "system:anonymous")]);
    for (path, code) in [
        ("/version", 200),
        ("/livez", 200),
        ("/api", 403),
        ("/metrics", 403),
    ] {
        assert_eq!(anonymous.get(path).await, code, "{path}");
    }
}

#[tokio::test]
async fn roles_grant_verbs_resources_and_names() {
    let server = Server::with_default_policy().await;
    server.pod("p", &["c"]).await;
    let rules = [
        rule(&["pods"], &["get", "list"]),
        rule(&["pods/log"], &["get"]),
        json!({"apiGroups": ["apps"], "resources": ["*/scale"], "verbs": ["*"]}),
        json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"],
               "resourceNames": ["mine"]}),
    ];
    server.grant("reader", user("ana"), &rules).await;
    server.config_map("mine").await;
    server.config_map("other").await;
    let ana = As::new(&server, ANA);
    for (path, code) in [
        (PODS, 200),
        ("/api/v1/namespaces/default/pods/p", 200),
        ("/api/v1/namespaces/default/pods/p/status", 403),
        ("/api/v1/namespaces/default/pods?watch=1", 403),
        ("/api/v1/pods", 403),
        ("/api/v1/namespaces/kube-system/pods", 403),
        ("/apis/apps/v1/namespaces/default/deployments/d/scale", 404),
        ("/apis/apps/v1/namespaces/default/deployments/d", 403),
        ("/api/v1/namespaces/default/configmaps/mine", 200),
        ("/api/v1/namespaces/default/configmaps/other", 403),
        (CONFIG_MAPS, 403),
    ] {
        assert_eq!(ana.get(path).await, code, "{path}");
    }
    // A list of one name needs only the permission for that name.
    let selected = format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dmine");
    assert_eq!(ana.get(&selected).await, 200);
    // Changes of roles apply at once.
    let narrowed = json!({"rules": [rule(&["services"], &["list"])]});
    let path = format!("{ROLES}/reader");
    let answer = server.patch(&path, MERGE, &narrowed.to_string()).await;
    assert_eq!(answer.code, 200);
    assert_eq!(ana.get(PODS).await, 403);
    assert_eq!(ana.get("/api/v1/namespaces/default/services").await, 200);
    let answer = server.call("DELETE", &path, &[], "").await;
    assert_eq!(answer.code, 200);
    let message = ana.refused("GET", PODS, &Value::Null).await;
    let reason = r#": RBAC: role.rbac.authorization.k8s.io "reader" not found"#;
    assert!(message.ends_with(reason), "{message}");
}

#[tokio::test]
async fn groups_and_service_accounts_have_roles() {
    let server = Server::with_default_policy().await;
    let rules = [rule(&["pods"], &["list"])];
    let account = json!({"kind": "ServiceAccount", "name": "s"});
    server.grant("account", account, &rules).await;
    let accounts = |namespace: &str| {
        let name = format!("system:serviceaccounts:{namespace}");
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name})
    };
    let all = binding("all", "ClusterRole", "view", accounts("kube-system"));
    server.made(CLUSTER_BINDINGS, all).await;
    let code = async |user: &str, path: &str| {
        As::new(&server, &[("impersonate-user", user)])
            .get(path)
            .await
    };
    let own = "system:serviceaccount:default:s";
    assert_eq!(code(own, PODS).await, 200);
    assert_eq!(code(own, "/api/v1/pods").await, 403);
    assert_eq!(code("system:serviceaccount:default:t", PODS).await, 403);
    assert_eq!(
        code("system:serviceaccount:kube-system:x", "/api/v1/pods").await,
        200
    );
    assert_eq!(
        code("system:serviceaccount:kube-system:x", "/api/v1/secrets").await,
        403
    );
}

#[tokio::test]
async fn the_roles_of_users_come_with_the_cluster() {
    let server = Server::with_default_policy().await;
    for (name, list_secrets, create_pods, create_roles) in [
        ("view", false, false, false),
        ("edit", true, true, false),
        ("admin", true, true, true),
        ("cluster-admin", true, true, true),
    ] {
        let bound = binding(name, "ClusterRole", name, user(name));
        server.made(BINDINGS, bound).await;
        let headers = [("impersonate-user", name)];
        let user = As::new(&server, &headers);
        let code = |allowed: bool| if allowed { 200 } else { 403 };
        assert_eq!(user.get(PODS).await, 200, "{name}");
        let secrets = "/api/v1/namespaces/default/secrets";
        assert_eq!(user.get(secrets).await, code(list_secrets), "{name}");
        // The pod is invalid: a user who may create it gets this error.
        let answer = user
            .call("POST", PODS, &json!({"metadata": {"name": "p"}}))
            .await;
        assert_eq!(answer.code, if create_pods { 422 } else { 403 }, "{name}");
        let own = role(&format!("of-{name}"), &[rule(&["pods"], &["get"])]);
        let answer = user.call("POST", ROLES, &own).await;
        assert_eq!(answer.code, if create_roles { 201 } else { 403 }, "{name}");
        assert_eq!(user.get("/api/v1/nodes").await, 403, "{name}");
    }
}

#[tokio::test]
async fn users_grant_only_permissions_that_they_have() {
    let server = Server::with_default_policy().await;
    let rbac = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": resources, "verbs": verbs});
    let rules = [
        rule(&["pods"], &["get", "list"]),
        rbac(
            &["roles", "rolebindings"],
            &["create", "get", "update", "patch"],
        ),
    ];
    server.grant("ana", user("ana"), &rules).await;
    let ana = As::new(&server, ANA);

    let message = ana
        .refused(
            "POST",
            ROLES,
            &role("more", &[rule(&["pods"], &["get", "delete"])]),
        )
        .await;
    let expected = "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"ana\" \
        (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not \
        currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}";
    assert_eq!(message, expected);
    let own = role("own", &[rule(&["pods"], &["get"])]);
    assert_eq!(ana.call("POST", ROLES, &own).await.code, 201);

    // The same for every way to change a role.
    let path = format!("{ROLES}/own");
    let more = role("own", &[rule(&["secrets"], &["get"])]);
    ana.refused("PUT", &path, &more).await;
    let applied = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "own"}, "rules": more["rules"],
    });
    let operations = json!([{"op": "add", "path": "/rules/0/verbs/-", "value": "watch"}]);
    let forced = format!("{path}?fieldManager=ana&force=true");
    for (path, media_type, body) in [
        (&path, MERGE, &more),
        (&path, "application/strategic-merge-patch+json", &more),
        (&path, "application/json-patch+json", &operations),
        (&forced, APPLY, &applied),
    ] {
        let answer = ana.send("PATCH", path, media_type, body).await;
        assert_eq!(answer.code, 403, "{media_type}: {}", answer.text());
        assert!(
            answer.message().contains("not currently held"),
            "{}",
            answer.message()
        );
    }
    let less = json!([{"op": "replace", "path": "/rules/0/verbs/0", "value": "list"}]);
    let answer = ana
        .send("PATCH", &path, "application/json-patch+json", &less)
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(answer.json()["rules"][0]["verbs"], json!(["list"]));
    let mut label = applied.clone();
    label["rules"] = json!([rule(&["pods"], &["list"])]);
    let answer = ana.send("PATCH", &forced, APPLY, &label).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    // The garbage collector's fields can be changed in a role with more permissions.
    server
        .made(ROLES, role("strong", &[rule(&["*"], &["*"])]))
        .await;
    let strong = format!("{ROLES}/strong");
    let finalizer = json!({"metadata": {"finalizers": ["example.com/f"]}});
    assert_eq!(
        ana.send("PATCH", &strong, MERGE, &finalizer).await.code,
        200
    );
    let labeled = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(ana.send("PATCH", &strong, MERGE, &labeled).await.code, 403);

    // With the verb escalate, any permission can be granted.
    server
        .grant(
            "strong-ana",
            user("ana"),
            &[rbac(&["roles"], &["escalate"])],
        )
        .await;
    assert_eq!(ana.call("PUT", &path, &more).await.code, 200);
}

#[tokio::test]
async fn updates_that_create_need_the_permission_to_create() {
    let server = Server::with_default_policy().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let rules = [
        json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
               "verbs": ["update", "patch"]}),
        rule(&["endpoints"], &["update"]),
    ];
    server.grant("ana", user("ana"), &rules).await;
    let ana = As::new(&server, ANA);
    let endpoints = "/api/v1/namespaces/default/endpoints/e";
    let made = json!({"metadata": {"name": "e"}});
    let message = ana.refused("PUT", endpoints, &made).await;
    let expected = r#"endpoints "e" is forbidden: User "ana" cannot create resource "endpoints" in API group "" in the namespace "default""#;
    assert_eq!(message, expected);
    assert_eq!(server.put(endpoints, &made).await.code, 201);
    assert_eq!(ana.call("PUT", endpoints, &made).await.code, 200);

    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
    });
    let path = format!("{leases}/l?fieldManager=ana");
    let answer = ana.send("PATCH", &path, APPLY, &lease).await;
    assert_eq!(answer.code, 403, "{}", answer.text());
    assert_eq!(server.post(leases, &lease).await.code, 201);
    let answer = ana.send("PATCH", &path, APPLY, &lease).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
}

#[tokio::test]
async fn sessions_need_the_permission_to_create() {
    let server = Server::with_default_policy().await;
    server.pod("p", &["c"]).await;
    let rules = [rule(&["pods/exec", "pods/portforward"], &["get"])];
    server.grant("ana", user("ana"), &rules).await;
    let ana = As::new(&server, ANA);
    let pod = "/api/v1/namespaces/default/pods/p";
    let message = ana
        .refused("GET", &format!("{pod}/exec?command=id"), &Value::Null)
        .await;
    let expected = r#"pods "p" is forbidden: "#;
    assert_eq!(message, expected);
    ana.refused("GET", &format!("{pod}/portforward"), &Value::Null)
        .await;
    server
        .grant("more", user("ana"), &[rule(&["pods/exec"], &["create"])])
        .await;
    // The pod has no node yet.
    let answer = ana
        .call("GET", &format!("{pod}/exec?command=id"), &Value::Null)
        .await;
    assert_eq!(answer.code, 400, "{}", answer.text());
}

#[tokio::test]
async fn users_bind_only_roles_whose_permissions_they_have() {
    let server = Server::with_default_policy().await;
    let rbac = |resources: &[&str], verbs: &[&str], names: &[&str]| {
        json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": resources,
               "verbs": verbs, "resourceNames": names})
    };
    let rules = [
        rule(&["pods"], &["get"]),
        rbac(&["rolebindings"], &["create"], &[]),
        rbac(&["clusterroles"], &["bind"], &["edit"]),
    ];
    server.grant("ana", user("ana"), &rules).await;
    server
        .made(ROLES, role("weak", &[rule(&["pods"], &["get"])]))
        .await;
    let ana = As::new(&server, ANA);
    let bind = async |name: &str, kind: &str, role: &str| {
        ana.call("POST", BINDINGS, &binding(name, kind, role, user("bob")))
            .await
    };
    assert_eq!(bind("a", "Role", "weak").await.code, 201);
    assert_eq!(bind("b", "ClusterRole", "edit").await.code, 201);
    let refused = bind("c", "ClusterRole", "system:node-proxier").await;
    assert_eq!(refused.code, 403);
    let message = refused.message();
    let begin = "rolebindings.rbac.authorization.k8s.io \"c\" is forbidden: user \"ana\" (groups=[";
    assert!(message.starts_with(begin), "{message}");
    let missing = bind("d", "Role", "missing").await;
    let text = r#"roles.rbac.authorization.k8s.io "missing" not found"#;
    assert_eq!((missing.code, missing.message().as_str()), (404, text));
    let bob = As::new(&server, &[("impersonate-user", "bob")]);
    assert_eq!(bob.get("/api/v1/namespaces/default/secrets").await, 200);
}

#[tokio::test]
async fn only_cluster_admins_aggregate_roles() {
    let server = Server::with_default_policy().await;
    let all = json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
                     "verbs": ["create", "update"]});
    server.made(CLUSTER_ROLES, role("writer", &[all])).await;
    let bound = binding("writer", "ClusterRole", "writer", user("ana"));
    server.made(CLUSTER_BINDINGS, bound).await;
    let mut role = role("gathers", &[]);
    role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let message = As::new(&server, ANA)
        .refused("POST", CLUSTER_ROLES, &role)
        .await;
    let end = "must have cluster-admin privileges to use the aggregationRule";
    assert!(message.ends_with(end), "{message}");
    let bound = binding("admin-ana", "ClusterRole", "cluster-admin", user("ana"));
    server.made(CLUSTER_BINDINGS, bound).await;
    let answer = As::new(&server, ANA)
        .call("POST", CLUSTER_ROLES, &role)
        .await;
    assert_eq!(answer.code, 201, "{}", answer.text());
}

#[tokio::test]
async fn users_impersonate_only_whom_they_may() {
    let server = Server::with_default_policy().await;
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let headers = [
        ("impersonate-user", "bob"),
        ("impersonate-group", "team"),
        ("impersonate-group", "crew"),
        ("impersonate-uid", "7"),
        ("impersonate-extra-example.com%2fscope", "a"),
        ("impersonate-extra-example.com%2fscope", "b"),
    ];
    let answer = As::new(&server, &headers)
        .call("POST", who, &json!({}))
        .await;
    let expected = json!({
        "username": "bob", "uid": "7", "groups": ["team", "crew", "system:authenticated"],
        "extra": {"example.com/scope": ["a", "b"]},
    });
    assert_eq!(answer.json()["status"]["userInfo"], expected);
    let alone = [("impersonate-group", "team")];
    let answer = As::new(&server, &alone).call("POST", who, &json!({})).await;
    assert_eq!(answer.code, 400, "{}", answer.text());

    // A chain needs a real user: ana has a token.
    let mut running = crate::network::start().await;
    let own = Server::over(running.api.clone(), running.engine.clone());
    let path = "/api/v1/namespaces/default/serviceaccounts";
    own.made(path, json!({"metadata": {"name": "ana"}})).await;
    let token = own.post(&format!("{path}/ana/token"), &json!({})).await;
    let token = token.json()["status"]["token"].as_str().unwrap().to_owned();
    let message = async |headers: &[(&str, &str)]| {
        let answer = running.get_with("/apis", &token, headers).await;
        (
            answer.0,
            answer.1["message"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let refused = r#"users "bob" is forbidden: User "system:serviceaccount:default:ana" cannot impersonate resource "users" in API group "" at the cluster scope"#;
    let found = message(&[("impersonate-user", "bob")]).await;
    assert_eq!(found, (403, refused.to_owned()));
    let subject = json!({"kind": "ServiceAccount", "name": "ana", "namespace": "default"});
    let rules = [rule(&["users", "groups"], &["impersonate"])];
    own.made(CLUSTER_ROLES, role("impersonator", &rules)).await;
    let bound = binding("impersonator", "ClusterRole", "impersonator", subject);
    own.made(CLUSTER_BINDINGS, bound).await;
    assert_eq!(message(&[("impersonate-user", "bob")]).await.0, 200);
    let uid = [("impersonate-user", "bob"), ("impersonate-uid", "1")];
    let refused = r#"uids.authentication.k8s.io "1" is forbidden: User "system:serviceaccount:default:ana" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope"#;
    assert_eq!(message(&uid).await, (403, refused.to_owned()));
    // A user who may impersonate the group of the administrators may send all requests.
    let masters = [
        ("impersonate-user", "bob"),
        ("impersonate-group", "system:masters"),
    ];
    assert_eq!(message(&masters).await.0, 200);
    running.end().await;
}

#[tokio::test]
async fn reviews_answer_by_roles() {
    let server = Server::with_default_policy().await;
    server
        .grant("reader", user("ana"), &[rule(&["pods"], &["list"])])
        .await;
    let ana = As::new(&server, ANA);
    let group = "/apis/authorization.k8s.io/v1";
    let may = async |verb: &str, resource: &str| {
        let attributes = json!({"verb": verb, "resource": resource, "namespace": "default"});
        let review = json!({"spec": {"resourceAttributes": attributes}});
        let path = format!("{group}/selfsubjectaccessreviews");
        ana.call("POST", &path, &review).await.json()["status"].clone()
    };
    let reason = r#"RBAC: allowed by RoleBinding "reader/default" of Role "reader" to User "ana""#;
    let expected = json!({"allowed": true, "reason": reason});
    assert_eq!(may("list", "pods").await, expected);
    assert_eq!(may("get", "pods").await, json!({"allowed": false}));

    let review = json!({"spec": {"namespace": "default"}});
    let path = format!("{group}/selfsubjectrulesreviews");
    let answer = ana.call("POST", &path, &review).await.json();
    let rules = answer["status"]["resourceRules"].as_array().unwrap();
    assert!(rules.contains(&rule(&["pods"], &["list"])), "{answer}");
    let paths = answer["status"]["nonResourceRules"].to_string();
    assert!(paths.contains("/openapi"), "{paths}");
    // Reviews of other users require the permission to create them.
    let spec = json!({"user": "ana", "resourceAttributes": {"verb": "list", "resource": "pods"}});
    let path = format!("{group}/subjectaccessreviews");
    ana.refused("POST", &path, &json!({"spec": spec})).await;
    let answer = server.post(&path, &json!({"spec": spec})).await;
    assert_eq!(answer.json()["status"], json!({"allowed": false}));
    let attributes = json!({"verb": "list", "resource": "pods", "fieldSelector": {}});
    let review = json!({"spec": {"resourceAttributes": attributes}});
    let path = format!("{group}/selfsubjectaccessreviews");
    assert_eq!(ana.call("POST", &path, &review).await.code, 422);
}

#[tokio::test]
async fn nodes_have_only_the_permissions_of_roles() {
    let server = Server::with_default_policy().await;
    let headers = [
        ("impersonate-user", "system:node:n1"),
        ("impersonate-group", "system:nodes"),
    ];
    let node = As::new(&server, &headers);
    let nodes = "/api/v1/nodes";
    let own = json!({"metadata": {"name": "n1"}});
    let message = node.refused("POST", nodes, &own).await;
    assert!(message.ends_with("at the cluster scope"), "{message}");
    let group =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"});
    let bound = binding("nodes", "ClusterRole", "system:node", group);
    server.made(CLUSTER_BINDINGS, bound).await;
    for name in ["n1", "n2"] {
        let object = json!({"metadata": {"name": name}});
        assert_eq!(node.call("POST", nodes, &object).await.code, 201, "{name}");
    }
}

#[tokio::test]
async fn the_default_policy_is_kept_up_to_date() {
    let server = Server::with_default_policy().await;
    let list = server.get(CLUSTER_ROLES).await.json();
    let roles = list["items"].as_array().unwrap();
    assert_eq!(roles.len(), 73);
    let admin = roles
        .iter()
        .find(|role| role["metadata"]["name"] == "admin")
        .unwrap();
    let annotations = json!({"rbac.authorization.kubernetes.io/autoupdate": "true"});
    assert_eq!(admin["metadata"]["annotations"], annotations);
    assert!(admin["rules"].as_array().unwrap().len() > 20);

    // The check does not write objects if all of them exist.
    let before = server.engine.revision();
    server.api.ensure_default_policy().await.unwrap();
    assert_eq!(server.engine.revision(), before);

    let discovery = format!("{CLUSTER_ROLES}/system:discovery");
    let none = json!({"rules": []}).to_string();
    assert_eq!(server.patch(&discovery, MERGE, &none).await.code, 200);
    let basic = format!("{CLUSTER_ROLES}/system:basic-user");
    let protected = json!({
        "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}},
        "rules": [],
    });
    let answer = server.patch(&basic, MERGE, &protected.to_string()).await;
    assert_eq!(answer.code, 200);
    let view = format!("{CLUSTER_ROLES}/view");
    assert_eq!(server.call("DELETE", &view, &[], "").await.code, 200);
    server.api.ensure_default_policy().await.unwrap();
    let rules = async |path: &str| server.get(path).await.json()["rules"].clone();
    assert!(rules(&discovery).await.to_string().contains("/openapi"));
    assert!(rules(&basic).await.as_array().is_none_or(Vec::is_empty));
    assert_ne!(rules(&view).await, Value::Null);
}

#[tokio::test]
async fn with_always_allow_every_user_may_do_everything() {
    let server = Server::authorized_by(AuthorizationMode::AlwaysAllow);
    server.api.ensure_default_policy().await.unwrap();
    let roles = server.get(CLUSTER_ROLES).await.json();
    assert_eq!(roles["items"], json!([]));
    let ana = As::new(&server, ANA);
    assert_eq!(ana.get(PODS).await, 200);
    assert_eq!(ana.get("/metrics").await, 200);
    let strong = role("strong", &[rule(&["*"], &["*"])]);
    assert_eq!(ana.call("POST", ROLES, &strong).await.code, 201);
    let discovery = ana.call("GET", GROUP, &Value::Null).await;
    assert_eq!(discovery.code, 200);
}
