use std::os::unix::fs::PermissionsExt;

use super::*;

const MANIFESTS: [(&str, &str); 5] = [
    ("release", include_str!("../../../../../deploy/kubernetes/release.yaml")),
    ("machines", include_str!("../../../../../deploy/kubernetes/machines.yaml")),
    ("networkfences", include_str!("../../../../../deploy/kubernetes/networkfences.yaml")),
    ("controller", include_str!("../../../../../deploy/kubernetes/controller.yaml")),
    ("remediation", include_str!("../../../../../deploy/kubernetes/remediation.yaml")),
];

/// Each role that is shipped is bound, by its manifest or by a command that stands at its head, to the account that gets the token.
#[test]
fn the_names_are_those_of_the_shipped_roles() {
    for role in Role::value_variants() {
        let commands = commands(&[*role], role.account());
        assert!(commands.iter().any(|line| line.contains(&format!("--role {} ", word(*role)))));
        for manifest in role.manifests() {
            let (_, text) = MANIFESTS.iter().find(|(name, _)| name == manifest).expect("it is shipped");
            assert!(commands.contains(&format!("kubectl apply -f deploy/kubernetes/{manifest}.yaml")));
            for line in bindings(manifest) {
                assert!(text.contains(&format!("# {line}\n")), "{manifest}: {line}");
            }
            let documents: Vec<Value> =
                text.split("\n---\n").map(|one| serde_saphyr::from_str(one).expect("YAML")).collect();
            let is = |one: &Value, kind: &str| one["kind"] == kind;
            for one in &documents {
                let (kind, name) = (one["kind"].as_str().unwrap_or_default(), &one["metadata"]["name"]);
                // One that bears a label is of a role of somebody else's.
                if !["ClusterRole", "Role"].contains(&kind) || !one["metadata"]["labels"].is_null() {
                    continue;
                }
                let space = &one["metadata"]["namespace"];
                let bound = documents.iter().any(|other| {
                    is(other, &format!("{kind}Binding"))
                        && other["roleRef"]["name"] == *name
                        && other["metadata"]["namespace"] == *space
                        && other["subjects"][0]["name"] == role.account()
                        && other["subjects"][0]["namespace"] == NAMESPACE
                });
                let by = match space.as_str() {
                    Some(space) => {
                        format!("kubectl -n {space} create rolebinding {0} --role={0} ", text_of(name))
                    }
                    None => {
                        format!("kubectl create clusterrolebinding {0} --clusterrole={0} ", text_of(name))
                    }
                };
                let commanded = bindings(manifest).iter().any(|line| {
                    line.starts_with(&by)
                        && line.ends_with(&format!("--serviceaccount={NAMESPACE}:{}", role.account()))
                });
                assert!(bound || commanded, "{manifest}: {kind} {name} in {space}");
            }
            if *manifest == "controller" {
                let made = documents
                    .iter()
                    .any(|one| is(one, "ServiceAccount") && one["metadata"]["name"] == role.account());
                assert!(made, "nothing else makes the account");
            }
        }
    }
}

fn text_of(name: &Value) -> &str {
    name.as_str().unwrap_or_default()
}

#[test]
fn roles_of_two_accounts_have_no_kubeconfig_in_common() {
    assert_eq!(account(&[Role::Release, Role::Machines]), Ok("picket"));
    assert_eq!(account(&[Role::Controller, Role::Remediation]), Ok("picket-controller"));
    let why = account(&[Role::Release, Role::Controller]).expect_err("two");
    assert!(why.contains("picket and picket-controller"), "{why}");
}

#[test]
fn it_is_for_its_owner_alone_and_made_of_what_can_be_believed() {
    let home = tempfile::tempdir().expect("a directory");
    let [ca, token, out] = ["ca.crt", "token", "kubeconfig"].map(|name| home.path().join(name));
    let put = |path: &Path, text: &str, mode| {
        std::fs::write(path, text).expect("written");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    let pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    let server = "https://10.0.0.1:6443";
    let make = |server: &str| {
        let made = composed("picket", server, &ca, &token)?;
        written(&out, &yaml(&made).map_err(|error| error.to_string())?)
    };
    for (server, ca_text, ca_mode, token_text, token_mode, words) in [
        ("http://10.0.0.1:6443", pem, 0o644, "hunter2\n", 0o600, "--server: expected"),
        ("https://", pem, 0o644, "hunter2\n", 0o600, "--server: expected"),
        ("https://a@b", pem, 0o644, "hunter2\n", 0o600, "--server: expected"),
        (server, "hunter2", 0o644, "hunter2\n", 0o600, "BEGIN CERTIFICATE"),
        (server, pem, 0o666, "hunter2\n", 0o600, "run chmod"),
        (server, pem, 0o644, "hunter2\n", 0o644, "run chmod 600"),
        (server, pem, 0o644, "hunter2 hunter2", 0o600, "visible ASCII"),
        (server, pem, 0o644, "\n", 0o600, "visible ASCII"),
    ] {
        put(&ca, ca_text, ca_mode);
        put(&token, token_text, token_mode);
        let why = make(server).expect_err(words);
        assert!(why.contains(words) && !why.contains("hunter2"), "{why}");
        assert!(!out.exists(), "{why}");
    }
    put(&token, "hunter2\n", 0o600);
    assert_eq!(make(server), Ok(out.clone()));
    let mode = std::fs::metadata(&out).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let made: Value = serde_saphyr::from_str(&std::fs::read_to_string(&out).expect("read")).expect("YAML");
    assert_eq!(made["users"][0]["user"]["token"], "hunter2");
    assert_eq!(made["clusters"][0]["cluster"]["server"], server);
    assert_eq!(made["clusters"][0]["cluster"]["certificate-authority-data"], STANDARD.encode(pem));
    assert_eq!(made["current-context"], made["contexts"][0]["name"]);
    let why = make(server).expect_err("it is there");
    assert!(why.contains("nothing is overwritten"), "{why}");
    std::fs::remove_file(&out).expect("removed");
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    let why = make(server).expect_err("everybody may put another one there");
    assert!(why.contains("mode 777") && !out.exists(), "{why}");
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o700)).expect("it is ours");
}
