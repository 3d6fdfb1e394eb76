//! `picket init` before a `picketd` that a test plays: what is asked, what is written, and what is not.

use std::os::unix::fs::PermissionsExt;

use crate::common::package::Package;
use crate::common::run;
use crate::common::terminal::Terminal;

/// Answers as a BMC would that lets its user in; notes what it was asked with.
pub const FINE: &str = r#"cat "$2" >>$PACKAGE/asked
case "$*" in *probe*) ;; *) exit 9 ;; esac
file=$(sed -n 's/^password_file = "\(.*\)"$/\1/p' "$2")
cat "$file" >$PACKAGE/password
echo '{"devices": [{"node": "n1", "device": "bmc", "endpoint": "ipmi 127.0.0.9:623", "power": "on",
"identity": {"uuid": "27946b599e444fa78e91f3527a1ef094"}, "hold": {"restore_policy": "previous"}, "notes": [],
"obstacles": [], "fault": null}]}'
"#;

/// Answers that it does not get in.
const REFUSED: &str = r#"echo '{"devices": [{"node": "n1", "device": "bmc", "endpoint": "ipmi 127.0.0.9:623", "power": null,
"identity": null, "hold": null, "notes": [], "obstacles": [], "fault": {"kind": "authentication", "detail": "the BMC has another password"}}]}'
exit 69
"#;

fn secret(package: &Package, mode: u32) -> String {
    let path = package.at("secret");
    std::fs::write(&path, "secret12\n").expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    path.display().to_string()
}

/// `picket init n1` with what a first node needs.
fn init(package: &Package, secret: &str, more: &[&str]) -> tokio::process::Command {
    let dir = package.at("etc").display().to_string();
    let words =
        ["init", "n1", "--address", "127.0.0.9", "--user", "admin", "--password-file", secret, "--dir", &dir];
    package.picket(&[&words[..], more].concat())
}

#[tokio::test]
async fn settings_are_written_that_were_tried_and_the_secret_stands_in_its_file_alone() {
    let package = Package::new().with("picketd", FINE);
    let secret = secret(&package, 0o600);
    let ran = run(init(&package, &secret, &[])).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let file = package.at("etc/picket.toml");
    let text = std::fs::read_to_string(&file).expect("written");
    let mode = file.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o640);
    for part in [
        "driver = \"ipmi\"",
        "host = \"127.0.0.9\"",
        "username = \"admin\"",
        &format!("password_file = \"{secret}\""),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let asked = std::fs::read_to_string(package.at("asked")).expect("it was asked");
    assert!(asked.contains("driver = \"ipmi\"") && asked.contains("driver = \"redfish\""), "{asked}");
    let handed = std::fs::read_to_string(package.at("password")).expect("it was handed over");
    assert_eq!(handed, "secret12\n");
    for told in [&text, &asked, &ran.out, &ran.err] {
        assert!(!told.contains("secret12"), "a secret is told: {told}");
    }
    assert!(ran.out.contains("the machine is on") && ran.out.contains("picketd --config"), "{}", ran.out);

    let again = run(init(&package, &secret, &["--user", "other"])).await;
    assert_eq!(again.code, 2, "{again:?}");
    let again = run(init(&package, &secret, &["--driver", "ipmi"])).await;
    assert!(again.code == 2 && again.err.contains("--force"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&file).expect("read"), text);
    let forced = run(init(&package, &secret, &["--driver", "redfish", "--port", "8443", "--force"])).await;
    assert_eq!(forced.code, 0, "{forced:?}");
    let text = std::fs::read_to_string(&file).expect("read");
    assert!(text.contains("driver = \"redfish\"") && text.contains("port = 8443"), "{text}");
}

#[tokio::test]
async fn a_dry_run_prints_and_writes_nothing() {
    let package = Package::new().with("picketd", FINE);
    let secret = secret(&package, 0o600);
    let ran = run(init(&package, &secret, &["--dry-run"])).await;
    assert!(ran.code == 0 && ran.out.contains("[nodes.\"n1\".devices.bmc]"), "{ran:?}");
    assert!(!package.at("etc").exists());
    let ran = run(init(&package, &secret, &["--dry-run", "-o", "json"])).await;
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("one document");
    assert_eq!((document["written"].as_bool(), document["driver"].as_str()), (Some(false), Some("ipmi")));
    assert_eq!(document["tried"][0]["answer"]["power"], "on");
}

#[tokio::test]
async fn a_bmc_that_does_not_let_us_in_is_told_by_its_own_words_and_nothing_is_written() {
    let package = Package::new().with("picketd", REFUSED);
    let secret = secret(&package, 0o600);
    let ran = run(init(&package, &secret, &["--driver", "ipmi"])).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    for part in ["the BMC has another password", &format!("the password in {secret}"), "nothing was written"]
    {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    // The whole command, to be typed again; never the password.
    let again = format!(
        "The same command: picket init n1 --address 127.0.0.9 --user admin --password-file {secret} --driver ipmi --dir {}",
        package.at("etc").display()
    );
    assert!(ran.err.contains(&again) && !ran.err.contains("secret12"), "{}", ran.err);
    assert!(!package.at("etc").exists());
}

#[tokio::test]
async fn what_a_bmc_wants_besides_stands_in_the_command_that_is_told() {
    let only_3 = REFUSED.replace("authentication", "unsupported").replace(
        "the BMC has another password",
        "the BMC takes none of the cipher suites that the settings allow, 17; it does not say which it offers",
    );
    let package = Package::new().with("picketd", &only_3);
    let secret = secret(&package, 0o600);
    let ran = run(init(&package, &secret, &["--driver", "ipmi", "--dry-run"])).await;
    assert!(ran.err.trim_end().ends_with("--dry-run --allow-suite-3"), "{}", ran.err);
    assert!(ran.err.contains("With that: picket init n1 --address 127.0.0.9 --user admin"), "{}", ran.err);
}

#[tokio::test]
async fn what_cannot_be_right_is_told_before_the_bmc_is_asked() {
    let package = Package::new().with("picketd", FINE);
    let open = secret(&package, 0o644);
    let ran = run(init(&package, &open, &[])).await;
    assert!(ran.code == 2 && ran.err.contains(&format!("chmod 600 {open}")), "{ran:?}");
    let ran = run(init(&package, "/nowhere/secret", &[])).await;
    assert!(ran.code == 2 && ran.err.contains("it is not there"), "{ran:?}");
    let secret = secret(&package, 0o600);
    let named = |node: &str| {
        package.picket(&["init", node, "--address", "a", "--user", "u", "--password-file", &secret])
    };
    let ran = run(named("r1n[01-40]")).await;
    assert!(ran.code == 2 && ran.err.contains("is no name of a node"), "{ran:?}");
    let ran = run(package.picket(&["init", "n1"])).await;
    assert!(ran.code == 2 && ran.err.contains("--address, --user are missing"), "{ran:?}");
    assert!(!package.at("asked").exists(), "the BMC was asked");

    let package = Package::new()
        .with("picketd", "echo \"picketd: the settings are wrong: username is too long\" >&2\nexit 78\n");
    let ran = run(init(&package, &secret, &[])).await;
    assert!(
        ran.code == 2 && ran.err.contains("username is too long") && ran.err.contains("asked nothing"),
        "{ran:?}"
    );
    let ran = run(init(&Package::new(), &secret, &[])).await;
    assert!(ran.code == 2 && ran.err.contains("picketd was not found"), "{ran:?}");
}

#[tokio::test]
async fn on_a_terminal_it_asks_and_a_password_that_is_typed_is_not_shown() {
    let package = Package::new().with("picketd", FINE);
    let dir = package.at("etc").display().to_string();
    let mut terminal = Terminal::of(package.picket(&["init", "--dir", &dir]), 80, 50);
    for (question, answer) in [
        ("Name of the node", "n1\n"),
        ("Name or address of its BMC", "127.0.0.9\n"),
        ("User at the BMC", "admin\n"),
        ("File with that user's password", "\n"),
    ] {
        terminal.until(question).await;
        assert!(terminal.echoes());
        terminal.types(answer);
    }
    terminal.until("(not shown)").await;
    while terminal.echoes() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    terminal.types("secret12\n");
    let keyboard = terminal.keyboard();
    let (code, shown) = terminal.written().await;
    assert!(code == 0 && !shown.contains("secret12"), "{shown}");
    assert!(keyboard.echoes(), "the terminal is as it was");
    let file = package.at("etc/bmc.password");
    assert_eq!(std::fs::read_to_string(&file).expect("made"), "secret12");
    assert_eq!(file.metadata().expect("there").permissions().mode() & 0o777, 0o600);
    assert!(package.at("etc/picket.toml").exists());
    assert_eq!(std::fs::read_to_string(package.at("password")).expect("it was handed over"), "secret12");
    // The settings that were tried are gone with their folder.
    let all = std::fs::read_dir(package.path()).expect("read").map(|entry| entry.expect("read").file_name());
    assert!(!all.into_iter().any(|name| name.to_string_lossy().starts_with("picket-init-")));
}

/// Those files of a folder, at any depth, that hold a text.
fn with_text(folder: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("read").flatten() {
        let path = entry.path();
        match entry.file_type().expect("it is there") {
            kind if kind.is_dir() => found.extend(with_text(&path, text)),
            kind if kind.is_file() && path.file_name().is_some_and(|name| name != "picket") => {
                let bytes = std::fs::read(&path).expect("read");
                if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                    found.push(path);
                }
            }
            _ => {}
        }
    }
    found
}

/// Killed while the BMC is asked, it leaves no file with the password, and no program.
#[tokio::test]
async fn a_kill_leaves_no_password_and_no_program() {
    let package = Package::new().with("picketd", "echo $$ >$PACKAGE/started\nexec sleep 600\n");
    let dir = package.at("etc").display().to_string();
    let words = ["init", "n1", "--address", "127.0.0.9", "--user", "admin", "--dir", &dir];
    let mut terminal = Terminal::of(package.picket(&words), 80, 50);
    terminal.until("File with that user's password").await;
    terminal.types("\n");
    terminal.until("(not shown)").await;
    while terminal.echoes() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    terminal.types("secret12\n");
    let pid = crate::common::number(&package.at("started")).await;
    terminal.signals(rustix::process::Signal::KILL);
    crate::common::ended(pid).await;
    assert_eq!(with_text(package.path(), "secret12"), Vec::<std::path::PathBuf>::new());
}
