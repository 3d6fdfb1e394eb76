//! Settings of the doors that are wrong: where, what, and what would be right; exit code 78.

use std::path::Path;

use picket_tests::{Result, picketd};
use tempfile::TempDir;

use crate::doors::authority::{Authority, secret};
use crate::doors::scene::{FLEET, tls};

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let authority = Authority::new();
        authority.write(&dir.path().join("ca.pem"));
        authority.server(dir.path(), "server", "127.0.0.1");
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// What `picketd` says of settings with these lines, without the directory's name.
    async fn says(&self, lines: &str) -> Result<(i32, String)> {
        let settings = self.path().join("picket.toml");
        let store = format!("[store]\npath = {:?}\n", self.path().join("picket.redb"));
        secret(&settings, &(store + FLEET + lines), 0o644);
        let checked = picketd(&settings, &["--check"], &[]).await?;
        Ok((checked.code, checked.err.replace(&format!("{}/", self.path().display()), "")))
    }

    /// All that `picketd --check` says of these settings, in which `{home}` is the directory.
    async fn tells(&self, settings: &str) -> Result<String> {
        let file = self.path().join("picket.toml");
        let home = self.path().display().to_string();
        let store = format!("[store]\npath = {:?}\n", self.path().join("picket.redb"));
        secret(&file, &(store + &settings.replace("{home}", &home)), 0o644);
        let checked = picketd(&file, &["--check"], &[]).await?;
        Ok(checked.out + &checked.err)
    }

    async fn fault(&self, lines: &str, words: &[&str]) -> Result<()> {
        let (code, text) = self.says(lines).await?;
        assert_eq!((code, text.lines().count()), (78, 2), "{lines}\n{text}");
        assert!(words.iter().all(|word| text.contains(word)), "{lines}\n{words:?} in\n{text}");
        Ok(())
    }
}

const ROLE: &str = "[roles.a]\nrole = \"viewer\"\ncallers = [\"a\"]\n";

#[tokio::test]
async fn what_is_right_is_right_and_tls_without_roles_is_not() -> Result<()> {
    let home = Home::new();
    assert_eq!(home.says(&(tls(home.path()) + ROLE)).await?, (0, String::new()));
    home.fault(
        &tls(home.path()),
        &["roles: ", "with [listen.tls] nobody may do anything until a role says so"],
    )
    .await
}

#[tokio::test]
async fn an_unknown_role_and_a_role_for_nobody() -> Result<()> {
    let home = Home::new();
    let role = "[roles.a]\nrole = \"opperator\"\ncallers = [\"a\"]\n";
    home.fault(role, &["roles.a.role: ", "did you mean \"operator\"?"]).await?;
    home.fault("[roles.a]\nrole = \"viewer\"\n", &["roles.a.callers: ", "nobody has this role"]).await?;
    home.fault("[roles.a]\ncallers = [\"a\"]\n", &["roles.a.role: ", "is missing: viewer or controller"])
        .await?;
    home.fault("[roles.a]\nrole = \"viewer\"\ncallers = [\"*a*\"]\n", &["roles.a.callers", "at most one *"])
        .await
}

#[tokio::test]
async fn a_group_that_no_node_is_in() -> Result<()> {
    let home = Home::new();
    let with = |line: &str| format!("{ROLE}{line}\n");
    home.fault(
        &with("nodes = { rack = \"r9\" }"),
        &["roles.a.nodes.rack: ", "no node has the label rack = \"r9\""],
    )
    .await?;
    home.fault(&with("hosts = \"n[4-5]\""), &["roles.a.hosts: ", "there is no node n5"]).await?;
    home.fault(&with("hosts = \"n[4-\""), &["roles.a.hosts: ", "host list, column"]).await?;
    home.fault(&with("uids = [-1]"), &["roles.a.uids: ", "expected a list of numbers"]).await?;
    home.fault(&with("holders = [\"x\"]"), &["roles.a.holders: ", "acts for nobody"]).await
}

#[tokio::test]
async fn files_of_tls_that_are_of_no_use() -> Result<()> {
    let home = Home::new();
    let lines = tls(home.path()) + ROLE;
    let key = home.path().join("server.key");
    let good = std::fs::read_to_string(&key).expect("read");
    secret(&key, &good, 0o644);
    home.fault(
        &lines,
        &["listen.tls.key_file: ", "everybody may read it (mode 644): run chmod 600 server.key"],
    )
    .await?;
    Authority::new().server(home.path(), "other", "127.0.0.1");
    let other = std::fs::read_to_string(home.path().join("other.key")).expect("read");
    secret(&key, &other, 0o600);
    home.fault(&lines, &["listen.tls.key_file: ", "does not go with the certificate in cert_file"]).await?;
    secret(&key, &good, 0o600);
    home.fault(&lines.replace("ca.pem", "no.pem"), &["listen.tls.client_ca_file: ", "no.pem cannot be read"])
        .await?;
    let without = lines.replace(&format!("client_ca_file = \"{}/ca.pem\"\n", home.path().display()), "");
    home.fault(&without, &["listen.tls.client_ca_file: ", "is missing"]).await?;
    secret(&home.path().join("server.pem"), "nothing", 0o644);
    home.fault(&lines, &["listen.tls.cert_file: ", "has no certificate in PEM form"]).await
}

#[tokio::test]
async fn without_tls_nothing_but_the_loopback() -> Result<()> {
    let home = Home::new();
    let open = "[listen]\ntcp = \"0.0.0.0:7070\"\n";
    home.fault(open, &["listen.tcp: ", "or add [listen.tls]"]).await?;
    let limits = "[limits]\nrate = 0\n";
    home.fault(limits, &["limits.rate: ", "0 is out of range: 1 to 100000"]).await
}

/// Whoever may write what the gateway reads, or runs, could make himself an admin of it.
#[tokio::test]
async fn what_everybody_may_write_is_neither_read_nor_run() -> Result<()> {
    let home = Home::new();
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("set");
    };
    let more = home.path().join("conf.d");
    std::fs::create_dir(&more).expect("made");
    secret(&more.join("more.toml"), ROLE, 0o644);
    mode(&more, 0o777);
    let (code, text) = home.says("").await?;
    assert!(code == 78 && text.contains("conf.d") && text.contains("mode 777"), "{text}");
    mode(&more, 0o755);
    assert_eq!(home.says("").await?, (0, String::new()));

    let probe = home.path().join("probe");
    let lines = format!(
        "[groups.all]\nhosts = \"n[1-4]\"\n[groups.all.liveness]\nkind = \"command\"\nprogram = {probe:?}\n"
    );
    secret(&probe, "#!/bin/sh\nexit 1\n", 0o777);
    let (code, text) = home.says(&lines).await?;
    assert!(code == 78 && text.contains("probe") && text.contains("mode 777"), "{text}");
    mode(&probe, 0o755);
    assert_eq!(home.says(&lines).await?, (0, String::new()));
    Ok(())
}

/// A board, for what is asked of no simulated one.
const BOARD: &str = "[nodes.n1.devices.bmc]\ndriver = \"redfish\"\nhost = \"127.0.0.1\"\nusername = \"u\"\npassword_file = \"{home}/password\"\n";

/// Each kind of file from which a caller, a device or a cluster is believed: who may change it, or knows a secret of it, is believed in its place.
#[tokio::test]
async fn nor_is_any_other_file_that_others_may_change_nor_a_secret_that_they_may_read() -> Result<()> {
    let home = Home::new();
    let files = [("password", "a secret\n"), ("token", "a token\n"), ("kubeconfig", "nothing")];
    for (name, text) in files {
        secret(&home.path().join(name), text, 0o600);
    }
    std::fs::create_dir(home.path().join("run")).expect("made");
    let tls = tls(home.path()) + ROLE;
    let simulated = |lines: &str| format!("{FLEET}{lines}");
    let of_board = |lines: &str| format!("{BOARD}{lines}");
    let source = |kind: &str, more: &str| {
        format!("[groups.all]\nhosts = \"n1\"\n[groups.all.liveness]\nkind = {kind:?}\n{more}")
    };
    let probe = source("http", "url = \"http://127.0.0.1:9/{node}\"\ntoken_file = \"{home}/token\"\n");
    let cluster = source(
        "kubernetes",
        "cluster_uid = \"3f0c6d4e-8a57-4a53-9f0e-0d6a3e9f2a11\"\nkubeconfig = \"{home}/kubeconfig\"\n",
    );
    let webhook = of_board("")
        .replace("[nodes.n1.devices", "[nodes.n1]\nreleases = [\"detach\"]\n[nodes.n1.devices")
        + "[releases.detach]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\ntoken_file = \"{home}/token\"\n";
    for (settings, file, mode, words) in [
        (simulated(&tls), "server.key", 0o604, "listen.tls.key_file: "),
        (simulated(&tls), "server.pem", 0o666, "listen.tls.cert_file: "),
        (simulated(&tls), "ca.pem", 0o666, "listen.tls.client_ca_file: "),
        (of_board(""), "password", 0o644, "nodes.n1.devices.bmc.password_file: "),
        (of_board("ca_file = \"{home}/ca.pem\"\n"), "ca.pem", 0o666, "nodes.n1.devices.bmc.ca_file: "),
        (webhook, "token", 0o604, "releases.detach.token_file: "),
        (of_board(&probe), "token", 0o644, "groups.all.liveness.token_file: "),
        (of_board(&cluster), "kubeconfig", 0o666, "groups.all.liveness.kubeconfig: "),
        (
            simulated("[receipts]\nkey_file = \"{home}/receipts.pem\"\n"),
            "receipts.pem",
            0o640,
            "receipts.key_file: ",
        ),
        (simulated("[listen]\nunix = \"{home}/run/picket.sock\"\n"), "run", 0o777, "listen.unix: "),
    ] {
        let path = home.path().join(file);
        if file == "receipts.pem" {
            secret(&path, "a key", mode);
        }
        let before = std::fs::metadata(&path).expect("it is there").permissions();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("set");
        let told = home.tells(&settings).await?;
        let line = told.lines().find(|line| line.contains(words));
        let told_so = line.is_some_and(|line| line.contains(&format!("mode {mode:o}")));
        assert!(told_so, "{file}: no line with {words:?} and the mode in\n{told}\nof\n{settings}");
        std::fs::set_permissions(&path, before).expect("set");
        if file != "receipts.pem" && file != "kubeconfig" {
            let told = home.tells(&settings).await?;
            assert!(!told.contains("mode "), "{file}: {told}");
        }
    }
    Ok(())
}
