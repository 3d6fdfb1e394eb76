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

/// Each kind of file from which a caller, a device or a cluster is believed: who may change it is believed in its place.
#[tokio::test]
async fn nor_is_any_other_file_that_others_may_write_or_may_read_a_secret_of() -> Result<()> {
    let home = Home::new();
    let path = |name: &str| home.path().join(name);
    let tls = tls(home.path()) + ROLE;
    let device = |more: &str| {
        format!(
            "[nodes.n9.devices.bmc]\ndriver = \"redfish\"\nhost = \"127.0.0.1\"\nusername = \"u\"\nidentity = \"{}\"\n{more}",
            "4c4c4544-0000-0000-0000-000000000000"
        )
    };
    let password = format!("password_file = {:?}\n", path("password"));
    let webhook = format!(
        "[groups.all]\nhosts = \"n[1-4]\"\n[[groups.all.releases]]\nid = \"volumes\"\nkind = \"webhook\"\n\
         url = \"http://127.0.0.1:9/release\"\ntoken_file = {:?}\n",
        path("token")
    );
    let probe = format!(
        "[groups.all]\nhosts = \"n[1-4]\"\n[groups.all.liveness]\nkind = \"http\"\nurl = \"http://127.0.0.1:9/{{node}}\"\n\
         token_file = {:?}\n",
        path("token")
    );
    let cluster = format!(
        "[groups.all]\nhosts = \"n[1-4]\"\n[groups.all.liveness]\nkind = \"kubernetes\"\nkubeconfig = {:?}\n",
        path("kubeconfig")
    );
    for name in ["password", "token"] {
        secret(&path(name), "a secret that is long enough\n", 0o600);
    }
    secret(&path("kubeconfig"), "nothing", 0o600);
    let receipts = format!("[receipts]\nkey_file = {:?}\n", path("receipts.pem"));
    let unix = format!("[listen]\nunix = {:?}\n", path("run").join("picket.sock"));
    for (lines, file, wrong) in [
        (tls.clone(), "server.key", 0o620),
        (tls.clone(), "server.pem", 0o666),
        (tls.clone(), "ca.pem", 0o666),
        (device(&format!("{password}ca_file = {:?}\n", path("ca.pem"))), "ca.pem", 0o666),
        (device(&password), "password", 0o644),
        (device(&password), "password", 0o622),
        (webhook, "token", 0o666),
        (probe, "token", 0o644),
        (cluster, "kubeconfig", 0o666),
        (receipts, "receipts.pem", 0o640),
        (unix, "run", 0o777),
    ] {
        println!("{file} of mode {wrong:o} for\n{lines}");
    }
    Ok(())
}
