//! A login by a program, as the kubeconfigs of EKS, GKE and AKS have one.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use picket_tests::{Daemon, Gateway, Result};

use crate::cluster::fenced::{fence, is_told, login, recorded, settings, start, unfence, until_clean};
use crate::cluster::scene::{cluster, for_everybody, lend};

fn put(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

/// The whole way of a fence by the token that it prints, which nothing repeats. Without the setting the kubeconfig is a fault, in words that name it.
#[tokio::test]
async fn a_release_logs_in_by_the_program_that_its_settings_name() -> Result<()> {
    let (cluster, lent) = (cluster().await?, lend(1).await?);
    let machine = lent.one();
    let directory = cluster.directory().join("program");
    std::fs::create_dir_all(&directory).expect("a directory");
    let [kubeconfig, program, runs] = ["login", "get-token", "runs"].map(|name| directory.join(name));
    let real = std::fs::read_to_string(login(cluster).await?).expect("a kubeconfig");
    let token = real.split("token: ").nth(1).and_then(|rest| rest.split('}').next()).expect("a token");
    let exec =
        "exec: {apiVersion: client.authentication.k8s.io/v1, command: get-token, interactiveMode: Never}";
    put(&kubeconfig, &real.replace(&format!("token: {token}"), exec), 0o600);
    let printed = format!(
        "{{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1\", \"status\": {{\"token\": \"{token}\"}}}}"
    );
    put(&program, &format!("#!/bin/sh\necho run >> {}\necho '{printed}'\n", runs.display()), 0o755);
    let of = |more: &str| {
        let (kubeconfig, more) = (kubeconfig.clone(), more.to_owned());
        move |uid: &str, _: &str| {
            format!(
                "[releases.programmed]\nkind = \"kubernetes\"\nsettle = \"0s\"\ncluster_uid = {uid:?}\nkubeconfig = {kubeconfig:?}\n{more}"
            )
        }
    };
    let nodes = [(machine.name(), machine, "programmed")];
    let fleet = settings(cluster, &login(cluster).await?, &nodes, &of("")).await?;
    let unset = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    let place = unset.settings_file();
    let password = [(picket_tests::PASSWORD_VARIABLE, "any")];
    let checked = picket_tests::picketd(&place, &["--check"], &password).await?;
    let told = format!("{}{}", checked.out, checked.err);
    assert!(checked.code != 0 && told.contains("releases.programmed.kubeconfig: "), "{checked:?}");
    assert!(told.contains("set login_program to its absolute path"), "{checked:?}");

    let gateway = start(cluster, &nodes, &of(&format!("login_program = {program:?}\n"))).await?;
    fence(&gateway, machine.name(), "confirmed").await?;
    is_told(&gateway, machine.name(), "released").await?;
    let ran = std::fs::read_to_string(&runs).unwrap_or_default();
    assert!(!ran.is_empty(), "it ran: {}", gateway.log());
    let all = recorded(&gateway, machine.name()).await? + &gateway.log();
    assert!(!all.contains(token), "nothing repeats the token");
    unfence(&gateway, machine.name()).await?;
    cluster.until_ready(machine, true).await?;
    until_clean(cluster, machine).await?;
    lent.leave().await?;
    Ok(())
}

/// What `picket kubeconfig` makes of an address, a CA and a token, kubectl believes.
#[tokio::test]
async fn a_kubeconfig_that_picket_makes_leads_to_the_cluster() -> Result<()> {
    let cluster = cluster().await?;
    let real = std::fs::read_to_string(login(cluster).await?).expect("a kubeconfig");
    let token = real.split("token: ").nth(1).and_then(|rest| rest.split('}').next()).expect("a token");
    let server = real.split("server: '").nth(1).and_then(|rest| rest.split('\'').next()).expect("a server");
    let directory = cluster.directory().join("made");
    std::fs::create_dir_all(&directory).expect("a directory");
    let [token_file, out] = ["token", "kubeconfig"].map(|name| directory.join(name).display().to_string());
    put(Path::new(&token_file), token, 0o600);
    let ca = cluster.directory().join("pki/ca.crt").display().to_string();
    let words =
        ["kubeconfig", "--role", "release", "--server", server, "--ca", &ca, "--token-file", &token_file];
    let made = picket_tests::picket(&[&words[..], &["--out", &out]].concat()).await?;
    assert!(made.code == 0 && !made.out.contains(token), "{made:?}");
    let nodes = cluster.kubectl_as(Path::new(&out), &["get", "nodes", "-o", "name"]).await?;
    // Other tests delete and make Nodes meanwhile: the one that is lent to nobody is always there.
    let everybody_s = format!("node/{}", for_everybody(cluster).name());
    assert!(nodes.lines().any(|node| node == everybody_s), "{nodes}");
    Ok(())
}
