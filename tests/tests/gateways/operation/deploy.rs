//! What is in deploy/ and in the first pages of docs/: settings are parsed, the unit is one that systemd takes.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use picket_tests::picketd;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("it is there").flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path(), ending));
        } else if entry.path().extension().is_some_and(|is| is == ending) {
            found.push(entry.path());
        }
    }
    found
}

/// What `picketd --check` says of a text, but for secrets and programs that are not on this machine.
async fn faults(text: &str) -> Vec<String> {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("picket.toml");
    std::fs::write(&path, text).expect("written");
    let said = picketd(&path, &["--check"], &[]).await.expect("it runs");
    let absent =
        ["cannot be read", "No such file", "has no variable", "CREDENTIALS_DIRECTORY", "does not exist"];
    let told = said.err.lines().skip(1).filter(|line| absent.iter().all(|words| !line.contains(words)));
    told.map(str::to_owned).collect()
}

#[tokio::test]
async fn every_settings_file_of_deploy_is_right() {
    let files = files(&top().join("deploy"), "toml");
    assert!(files.len() >= 3, "{files:?}");
    // What a page has made for its settings.
    let home = tempfile::tempdir().expect("a directory");
    let password = home.path().join("bmc.password");
    std::fs::write(&password, "secret12").expect("written");
    std::fs::set_permissions(&password, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    let made = format!("{}/", home.path().display());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("read").replace("/tmp/rehearse/", &made);
        // The settings of a simulated fleet are those of another program.
        if file.ends_with("rehearse.toml") {
            picket_fleet::Settings::parse(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            continue;
        }
        assert_eq!(faults(&text).await, Vec::<String>::new(), "{}", file.display());
    }
}

/// The table that begins so in the example, where it is only shown, as who takes it out of its comment has it.
fn shown(table: &str) -> String {
    let text = std::fs::read_to_string(top().join("deploy/picket.example.toml")).expect("read");
    let lines = text.lines().skip_while(|line| *line != format!("#{table}"));
    let lines: Vec<&str> =
        lines.map_while(|line| line.strip_prefix('#').or(line.starts_with("   ").then_some(line))).collect();
    assert!(lines.len() > 3, "{table} is not shown");
    lines.join("\n")
}

#[tokio::test]
async fn what_the_example_shows_of_clouds_is_right() {
    for (table, id, more) in [
        ("[templates.servers.devices.nova]", "openstack:///5a1bd2c8-0b4e-4a3e-9d5c-6f1c3a7e2b10", ""),
        ("[templates.instances.devices.ec2]", "aws:///eu-central-1a/i-0123456789abcdef0", ""),
        (
            "[templates.vms.devices.gce]",
            "gce://my-project/europe-west1-b/db-1",
            "[nodes.n1.devices.gce]\nid = \"4567890123456789012\"\n",
        ),
    ] {
        let template = table.split('.').nth(1).expect("its name");
        let node = format!("[nodes.n1]\ntemplate = {template:?}\nprovider_id = {id:?}\n{more}");
        let text =
            format!("[store]\nkind = \"memory\"\n[listen]\nunix = \"/run/x.sock\"\n{}\n{node}", shown(table));
        let mut told = faults(&text).await;
        // What is shown as it comes when it is not set, of something that wants another setting.
        told.retain(|fault| !fault.contains("has a meaning only with"));
        assert_eq!(told, Vec::<String>::new(), "{text}");
    }
}

/// As `picket init r1n01` writes it.
const INIT: &str = "\
[nodes.r1n01.devices.bmc]
driver = \"ipmi\"
host = \"r1n01-bmc.example.org\"
username = \"picket\"
password_file = \"/etc/picket/bmc.password\"
";

/// The settings that these pages show, one after the other, below `text`: one file, as a reader builds it up.
fn built_up(mut text: String, pages: &[&str]) -> String {
    for page in pages {
        let shown = std::fs::read_to_string(top().join("docs").join(page)).expect("read");
        let mut blocks: Vec<String> = Vec::new();
        let mut inside: Option<String> = None;
        for line in shown.lines() {
            match (line.trim(), &mut inside) {
                ("```toml", None) => inside = Some(String::new()),
                ("```", Some(_)) => blocks.extend(inside.take()),
                (_, Some(block)) => *block += &format!("{line}\n"),
                _ => {}
            }
        }
        assert!(!blocks.is_empty(), "{page} shows no settings");
        for block in blocks {
            let stands = |line: &&str| text.lines().any(|old| old.trim() == line.trim());
            let twice = block.lines().filter(|line| line.trim().starts_with('[')).find(stands);
            assert!(twice.is_none(), "{page}: {twice:?} stands twice");
            text += &format!("\n{block}");
        }
    }
    text
}

#[tokio::test]
async fn the_settings_in_the_pages_are_right() {
    let by_hand = built_up(INIT.to_owned(), &["bare-metal.md", "releases.md", "recovered.md"]);
    for text in [by_hand, built_up(String::new(), &["kubernetes-tutorial.md"])] {
        assert_eq!(faults(&text).await, Vec::<String>::new(), "{text}");
    }
}

/// systemd counts what a service may do, from 0 to 10: below 1.5, which is told in tenths as a whole number.
fn assert_exposure(unit: &Path) {
    let arguments = ["security", "--offline=true", "--no-pager", "--threshold=14"];
    let said = Command::new("systemd-analyze").args(arguments).arg(unit).output().expect("it ran before");
    let words = String::from_utf8_lossy(&said.stdout).into_owned();
    // Before 250 there is no such option, and nothing is counted.
    assert!(said.status.success() || words.is_empty(), "{words}");
}

#[test]
fn the_unit_is_walled_in_and_systemd_takes_it() {
    let unit = top().join("deploy/systemd/picketd.service");
    let text = std::fs::read_to_string(&unit).expect("read");
    for line in [
        "Type=notify",
        "ExecReload=/usr/local/bin/picketd reload",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "StateDirectory=picket",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
        "SystemCallFilter=@system-service",
        "KillMode=mixed",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
    assert!(text.contains("LoadCredential=") && text.contains("WatchdogSec="));
    // The binary is not installed where the tests run: another one stands in, of which nothing is run.
    let home = tempfile::tempdir().expect("a directory");
    let here = home.path().join("picketd.service");
    let text = text.replace("/usr/local/bin/picketd", "/bin/true").replace("User=picket\nGroup=picket\n", "");
    std::fs::write(&here, text).expect("written");
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&here).output() {
        Ok(said) => {
            let words = String::from_utf8_lossy(&said.stderr).into_owned();
            let ours: Vec<&str> = words.lines().filter(|line| line.contains("picketd.service")).collect();
            assert!(ours.is_empty(), "{ours:#?}");
            assert_exposure(&unit);
        }
        // Where there is no systemd, what is said above is all that can be.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
    }
}
