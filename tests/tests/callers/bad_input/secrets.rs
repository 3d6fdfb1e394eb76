//! No secret is in anything that the gateway says, stores or hands on (S18), at the loudest level of its log.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use picket_tests::peers::{IpmiSim, OPERATOR, PASSWORD, eventually, fresh_address};
use picket_tests::{Answer, Fleet, Gateway, Result, Webhook};

/// A password that no BMC here takes.
const WRONG: &str = "n0t-this-0ne";
/// What the webhook is told.
const TOKEN: &str = "t0ken-0f-the-receiver";
/// What the liveness source is told.
const PROBE: &str = "t0ken-0f-the-pr0be";
/// Stands in the daemon's environment, and in nobody else's.
const VARIABLE: &str = "PICKET_TEST_WRONG_PASSWORD";

/// Every way in which a secret may be written.
fn forms(secret: &str) -> Vec<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let bytes = format!("{:?}", secret.as_bytes());
    let inner = bytes.trim_matches(['[', ']']).to_owned();
    vec![secret.to_owned(), STANDARD.encode(secret), hex.to_uppercase(), hex, inner]
}

fn search(place: &str, bytes: &[u8]) {
    for secret in [PASSWORD, WRONG, TOKEN, PROBE] {
        for form in forms(secret) {
            let found = bytes.windows(form.len()).any(|window| window == form.as_bytes());
            assert!(!found, "{place} says {secret:?}, as {form:?}");
        }
    }
}

/// The command lines of everything that has to do with this gateway.
fn search_command_lines(gateway: &Gateway) {
    let directory = gateway.directory().display().to_string();
    let mut searched = 0;
    for entry in std::fs::read_dir("/proc").expect("it is mounted").flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&command).contains(&directory) {
            search(&entry.path().display().to_string(), &command);
            searched += 1;
        }
    }
    assert!(searched > 0, "the daemon runs");
}

/// One node that is fenced and brought back, one whose password is wrong; releases and liveness sources of both kinds.
fn fleet(sims: &[IpmiSim], webhook: &Webhook, home: &Path) -> Fleet {
    let device = |index: usize, password: &str| {
        let address = sims[index].address();
        format!(
            "[nodes.n{index}]\nreleases = [\"hook\", \"program\"]\n[nodes.n{index}.devices.bmc]\ndriver = \"ipmi\"\n\
             host = \"{}\"\nport = {}\nusername = \"{OPERATOR}\"\ncipher_suites = [3]\n{password}\n",
            address.ip(),
            address.port()
        )
    };
    let script = home.join("release.sh");
    std::fs::write(
        &script,
        format!(
            "#!/bin/sh\n{{ env; tr '\\0' ' ' </proc/$$/cmdline; cat; }} >>{:?}\necho '{{\"status\":\"complete\"}}'\n",
            home.join("handed")
        ),
    )
    .expect("it can be written");
    let alive = home.join("alive.sh");
    std::fs::write(
        &alive,
        format!(
            "#!/bin/sh\n{{ env; tr '\\0' ' ' </proc/$$/cmdline; cat; }} >>{:?}\nexit 1\n",
            home.join("asked")
        ),
    )
    .expect("it can be written");
    let probe = webhook.url().replace("/release", "/healthz/{node}");
    Fleet::new()
        .with(&format!(
            "[groups.zero]\nhosts = \"n0\"\n[groups.zero.liveness]\nkind = \"http\"\nurl = {probe:?}\ntoken_file = {:?}\n\
             [groups.one]\nhosts = \"n1\"\n[groups.one.liveness]\nkind = \"command\"\nprogram = \"/bin/sh\"\nargs = [{alive:?}]",
            home.join("probe")
        ))
        // Of a program's fence it is asked whether the node recovered.
        .with("[roles.programs]\nrole = \"controller\"\ncallers = [\"uid:*\"]")
        .with("[rules]\nsilent_share = \"1s\"\n[log]\nlevel = \"trace\"")
        .with(&device(0, &format!("password_file = {:?}", home.join("password"))))
        .with(&device(1, &format!("password_env = {VARIABLE:?}")))
        .webhook(
            "hook",
            &webhook.url(),
            &format!("settle = \"0s\"\ntoken_file = {:?}\n", home.join("token")),
        )
        .with(&format!(
            "[releases.program]\nkind = \"command\"\nprogram = \"/bin/sh\"\nargs = [{script:?}]\nsettle = \"0s\""
        ))
}

#[tokio::test]
async fn no_secret_is_said_stored_or_handed_on() -> Result<()> {
    let (sims, webhook) = (IpmiSim::farm(2).await?, Webhook::start().await?);
    let home = tempfile::tempdir().expect("a directory");
    for (name, secret) in [("password", PASSWORD), ("token", TOKEN), ("probe", PROBE)] {
        secret_file(&home.path().join(name), secret);
    }
    webhook.answer_status(Answer::Status(503));
    let told = fresh_address();
    let fleet = fleet(&sims, &webhook, home.path()).with(&format!("[metrics]\nlisten = \"{told}\""));
    let mut gateway = Gateway::new(&fleet)?;
    gateway.begin(&[(VARIABLE, WRONG), ("RUST_LOG", "error")]).await?;
    gateway.checked().await?;
    search_command_lines(&gateway);
    // A password that was replaced, and settings that are refused.
    for wrong in ["", "\n[rules]\nreadings = 0\n"] {
        secret_file(&home.path().join("password"), PASSWORD);
        gateway.settings(&fleet.clone().with(wrong))?;
        let before = gateway.log().len();
        gateway.process()?.signal(rustix::process::Signal::HUP);
        let ends = ["the new settings hold", "refused as a whole"];
        let told = || gateway.log().get(before..).is_some_and(|log| ends.iter().any(|end| log.contains(end)));
        eventually("a reload is told", std::time::Duration::from_secs(60), told).await?;
    }
    for arguments in [
        &["fence", "n0", "--yes", "--reason", "a test"][..],
        &["fence", "n1", "--yes", "--reason", "a test"],
        &["status", "n[0-1]"],
        &["-o", "json", "status", "n[0-1]"],
        &["history"],
        &["-o", "json", "history"],
        &["unfence", "n0", "--yes", "--reason", "a test"],
        &["nodes"],
    ] {
        let said = gateway.picket(arguments).await?;
        assert!([0, 4].contains(&said.code), "{arguments:?}: {said:?}");
        search(&format!("picket {arguments:?}"), format!("{}{}", said.out, said.err).as_bytes());
    }
    let bearer = format!("Bearer {TOKEN}");
    assert!(
        webhook.releases().iter().all(|hook| hook.headers["authorization"] == bearer),
        "the token was used"
    );
    let probes: Vec<_> = webhook.hooks().into_iter().filter(|hook| hook.path == "/healthz/n0").collect();
    let bearer = format!("Bearer {PROBE}");
    assert!(!probes.is_empty() && probes.iter().all(|hook| hook.headers["authorization"] == bearer));
    let asked = std::fs::read(home.path().join("asked")).expect("the liveness source was asked");
    assert!(asked.windows(4).any(|window| window == b"\"n1\""), "it got the question");
    search("what the liveness source got", &asked);
    let handed = std::fs::read(home.path().join("handed")).expect("the program ran");
    assert!(handed.windows(4).any(|window| window == b"\"n0\""), "it got the request");
    search("what the release's program got", &handed);
    let metrics = metrics(told).await;
    assert!(metrics.contains("picket_device_calls_total"), "{metrics}");
    search("the metrics", metrics.as_bytes());
    search_environments_of_children(&mut gateway);
    let log = gateway.log();
    assert!(log.contains("TRACE") && log.contains("n0"), "the log is as loud as the settings say");
    search("the log", log.as_bytes());
    // Whoever runs the tests may have it ignore other signals.
    gateway.process()?.signal(rustix::process::Signal::KILL);
    let _ended = gateway.process()?.wait(std::time::Duration::from_secs(30)).await?;
    search("the log at the end", gateway.log().as_bytes());
    search_files(gateway.directory());
    let audit = gateway.store_file().with_extension("audit");
    let audited = std::fs::read_dir(audit).expect("there is one").flatten().any(|entry| {
        std::fs::read_to_string(entry.path()).is_ok_and(|text| text.contains("\"what\":\"exchange\""))
    });
    assert!(audited, "the audit was searched, and has exchanges in it");
    Ok(())
}

/// What `/metrics` says.
async fn metrics(address: std::net::SocketAddr) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("somebody listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    answer
}

/// The environments of the daemon's children, if any lives; its own holds what it was given.
fn search_environments_of_children(gateway: &mut Gateway) {
    let own = gateway.process().expect("it runs").id().to_string();
    for entry in std::fs::read_dir("/proc").expect("it is mounted").flatten() {
        let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        if status.lines().any(|line| line == format!("PPid:\t{own}")) {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            search(&entry.path().display().to_string(), &environment);
        }
    }
}

/// Everything in this directory and those in it: settings, store, audit, logs.
fn search_files(directory: &Path) {
    for entry in std::fs::read_dir(directory).expect("it is there").flatten() {
        if entry.path().is_dir() {
            search_files(&entry.path());
        } else if let Ok(bytes) = std::fs::read(entry.path()) {
            search(&entry.path().display().to_string(), &bytes);
        }
    }
}

fn secret_file(path: &Path, secret: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, secret).expect("it can be written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
}
