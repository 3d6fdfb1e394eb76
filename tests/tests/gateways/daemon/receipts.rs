//! Receipts of the real daemon: verified by others, kept over its death, and refused where the key is of no use.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use picket_tests::peers::{HANGS, IpmiSim, test_python};
use picket_tests::{Gateway, Result, Said, Webhook};
use serde_json::Value;

use crate::daemon::one_node;

/// Receipts live as short as they may.
const SHORT: &str = "[rules]\nreceipt_life = \"20s\"\nreceipt_margin = \"1s\"\n[gateway]\nname = \"gw1\"";

struct Scene {
    bmc: IpmiSim,
    _webhook: Webhook,
    gateway: Gateway,
}

/// A gateway whose one node is fenced and released.
async fn fenced() -> Result<Scene> {
    let (bmc, webhook, fleet) = one_node().await?;
    let fleet = fleet.with(SHORT);
    let gateway = Gateway::start(&fleet).await?;
    // An identity that no check has learned yet lowers the grade.
    gateway.checked().await?;
    done(&gateway, &["fence", "n1", "--yes", "--reason", "a test"]).await?;
    Ok(Scene { bmc, _webhook: webhook, gateway })
}

async fn done(gateway: &Gateway, arguments: &[&str]) -> Result<Said> {
    let said = gateway.picket(arguments).await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", gateway.log());
    Ok(said)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Gets a receipt into a file, and says when the call began.
async fn get(gateway: &Gateway, name: &str) -> Result<(PathBuf, Instant)> {
    let (path, from) = (gateway.directory().join(name), Instant::now());
    let said =
        done(gateway, &["receipt", "get", "n1", "--audience", "storage", "--out", text(&path)]).await?;
    assert!(said.out.contains("no on is sent before") && said.out.contains("learned"), "{said:?}");
    Ok((path, from))
}

async fn keys(gateway: &Gateway) -> Result<PathBuf> {
    let path = gateway.directory().join("keys.json");
    let said = done(gateway, &["receipt", "keys", "-o", "json"]).await?;
    std::fs::write(&path, said.out).expect("written");
    Ok(path)
}

/// Changes one field of a receipt's file.
fn changed(receipt: &Path, change: impl Fn(&mut Value)) -> PathBuf {
    let mut value: Value = serde_json::from_slice(&std::fs::read(receipt).expect("read")).expect("JSON");
    change(&mut value);
    let path = receipt.with_extension("changed");
    std::fs::write(&path, value.to_string()).expect("written");
    path
}

/// The program that `docs/receipts-form.md` shows, as it stands there.
fn shown_program() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/receipts-form.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, rest) = page.split_once("```python\n").expect("a program in Python");
    rest.split_once("```").expect("its end").0.to_owned()
}

#[tokio::test]
async fn the_program_of_the_page_verifies_it_and_finds_a_forged_one() -> Result<()> {
    let Scene { bmc: _bmc, _webhook, gateway } = fenced().await?;
    let ((receipt, _), keys) = (get(&gateway, "receipt.json").await?, keys(&gateway).await?);
    let program = shown_program();
    assert!(program.lines().count() <= 12, "about ten lines:\n{program}");
    let python = test_python()?;
    let run = |receipt: &Path| {
        let output = std::process::Command::new(&python)
            .args(["-c", &program, text(receipt), text(&keys)])
            .output()
            .expect("Python runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let (verified, out, err) = run(&receipt);
    assert!(
        verified && out.starts_with("n1 was read Off at 20") && out.contains("sends it no on before 20"),
        "{out}{err}"
    );

    // Another first character: those of a signature are any.
    let other = |value: &Value| -> Value {
        let text = value.as_str().expect("text");
        let first = if text.starts_with('e') { 'f' } else { 'e' };
        format!("{first}{}", &text[1..]).into()
    };
    for field in ["body", "signature"] {
        let (verified, _, err) = run(&changed(&receipt, |value| value[field] = other(&value[field])));
        assert!(!verified && (err.contains("InvalidSignature") || err.contains("Error")), "{field}: {err}");
    }
    let (verified, _, err) = run(&changed(&receipt, |value| value["keyId"] = "00".repeat(16).into()));
    assert!(!verified && err.contains("KeyError"), "{err}");
    Ok(())
}

#[tokio::test]
async fn offline_says_true_until_and_the_gateway_whether_it_holds() -> Result<()> {
    let Scene { bmc: _bmc, _webhook, gateway } = fenced().await?;
    let ((receipt, _), keys) = (get(&gateway, "receipt.json").await?, keys(&gateway).await?);
    let verify =
        async |more: &[&str]| gateway.picket(&[&["receipt", "verify", text(&receipt)], more].concat()).await;
    let offline = ["--offline", "--keys", text(&keys)];
    let said = verify(&offline).await?;
    assert!(said.code == 0 && said.out.starts_with("true until 20"), "{said:?}");
    assert!(said.out.contains("only the gateway knows") && !said.out.contains("holds"), "{said:?}");
    let said = verify(&["--fresh"]).await?;
    assert!(said.code == 0 && said.out.starts_with("holds: no on is sent before 20"), "{said:?}");
    let other = verify(&["--node", "n2"]).await?;
    assert!(other.code == 1 && other.out.contains("it is of node n1, and not of n2"), "{other:?}");

    done(&gateway, &["receipt", "return", text(&receipt)]).await?;
    let said = verify(&["-o", "json"]).await?;
    let document: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((said.code, document["verdict"].as_str()), (8, Some("returned")), "{said:?}");
    assert_eq!((document["says"]["node"].as_str(), document["lasts_s"].is_null()), (Some("n1"), true));
    // Offline nobody can know that.
    assert!(verify(&offline).await?.out.starts_with("true until"));
    tokio::time::sleep(Duration::from_secs(21)).await;
    let said = verify(&offline).await?;
    assert!(said.code == 8 && said.out.starts_with("expired: it ended at"), "{said:?}");
    let forged = changed(&receipt, |value| value["signature"] = "AAAA".into());
    for more in [&[][..], &offline] {
        let said = gateway.picket(&[&["receipt", "verify", text(&forged)], more].concat()).await?;
        assert!(said.code == 1 && said.out.starts_with("not ours: the signature does not fit"), "{said:?}");
    }
    Ok(())
}

#[tokio::test]
async fn killed_and_started_again_it_sends_no_on_before_the_last_one_has_expired() -> Result<()> {
    let Scene { bmc, _webhook, mut gateway } = fenced().await?;
    get(&gateway, "first.json").await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (last, from) = get(&gateway, "last.json").await?;
    gateway.kill();
    gateway.begin(&[]).await?;
    let said = done(&gateway, &["receipt", "verify", text(&last)]).await?;
    assert!(said.out.starts_with("holds"), "{said:?}");
    let unfence = ["unfence", "n1", "--yes", "--reason", "a test"];
    let mut unfencing = tokio::process::Command::from(gateway.command(&unfence)?);
    let mut unfencing =
        unfencing.kill_on_drop(true).stdout(std::process::Stdio::null()).spawn().expect("picket runs");
    while !bmc.is_on()? {
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(from.elapsed() < HANGS, "{}", gateway.log());
    }
    let off = from.elapsed();
    assert!(off >= Duration::from_secs(21), "its life and the margin, from the issue at the least: {off:?}");
    assert!(unfencing.wait().await.expect("it ends").success());
    let said = gateway.picket(&["receipt", "verify", text(&last)]).await?;
    assert!(said.code == 8 && said.out.starts_with("expired"), "it had expired before the on: {said:?}");
    Ok(())
}

#[tokio::test]
async fn a_replaced_key_signs_within_seconds_and_what_the_old_one_signed_stays_verifiable() -> Result<()> {
    let Scene { bmc: _bmc, _webhook, mut gateway } = fenced().await?;
    let (old, _) = get(&gateway, "old.json").await?;
    let key = gateway.store_file().with_extension("receipt.pem");
    assert_eq!(std::fs::metadata(&key).expect("made").permissions().mode() & 0o777, 0o600);
    // RFC 8410 §10.3: anybody's key, for a test.
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    let new = key.with_extension("new");
    std::fs::write(&new, pem).expect("written");
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).expect("for its user alone");
    std::fs::rename(&new, &key).expect("renamed");
    let until = Instant::now() + HANGS;
    loop {
        let said = done(&gateway, &["receipt", "keys", "-o", "json"]).await?;
        let listed: Value = serde_json::from_str(&said.out).expect("JSON");
        let signs: Vec<bool> =
            listed["keys"].as_array().expect("keys").iter().map(|key| key["signs"] == true).collect();
        if signs == [false, true] {
            break;
        }
        assert!(Instant::now() < until, "{said:?}\n{}", gateway.log());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (new, _) = get(&gateway, "new.json").await?;
    let keys = keys(&gateway).await?;
    for receipt in [&old, &new] {
        let said =
            gateway.picket(&["receipt", "verify", text(receipt), "--offline", "--keys", text(&keys)]).await?;
        assert!(!said.out.contains("not ours"), "{said:?}");
    }
    assert!(!gateway.log().contains("MC4C"), "no key is in the log");

    // The same key, at a gateway that calls itself otherwise.
    assert!(gateway.stop().await?.success());
    let settings = std::fs::read_to_string(gateway.settings_file()).expect("settings");
    std::fs::write(gateway.settings_file(), settings.replace("gw1", "gw2")).expect("written");
    gateway.begin(&[]).await?;
    done(&gateway, &["fence", "n1", "--yes", "--reason", "proven by this one"]).await?;
    let said = gateway.picket(&["receipt", "get", "n1"]).await?;
    assert!(said.code != 0 && said.err.contains("two gateways do not share a key"), "{said:?}");
    assert!(said.err.contains("\"gw1\"") && said.err.contains("move the key file away"), "{said:?}");
    Ok(())
}

#[tokio::test]
async fn a_key_that_others_may_read_or_that_is_none_keeps_it_from_starting() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::start(&fleet).await?;
    assert!(gateway.stop().await?.success());
    let key = gateway.store_file().with_extension("receipt.pem");
    let mode = |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).expect("changed");
    mode(0o644);
    let said = gateway.refuses().await?;
    assert_eq!(said.code, 78, "{said:?}");
    assert!(said.err.contains("has mode 644") && said.err.contains("run chmod 600"), "{said:?}");
    mode(0o600);
    std::fs::write(&key, "-----BEGIN NOTHING-----\n").expect("written");
    let said = gateway.refuses().await?;
    assert!(said.code == 78 && said.err.contains("has no private key in PEM form"), "{said:?}");
    std::fs::remove_file(&key).expect("moved away");
    gateway.begin(&[]).await?;
    let said = done(&gateway, &["receipt", "keys"]).await?;
    assert_eq!(said.out.lines().count(), 3, "the old key stays listed: {said:?}");
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_had_or_read_is_told_with_what_would_be_right() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let gateway = Gateway::start(&fleet).await?;
    let said = gateway.picket(&["receipt", "get", "n1"]).await?;
    assert!(said.code == 8 && said.err.contains("it is normal: fence it first"), "{said:?}");
    let file = gateway.directory().join("odd.json");
    std::fs::write(&file, "{}").expect("written");
    let keys = keys(&gateway).await?;
    for (arguments, words) in [
        (&["receipt", "verify", text(&file)][..], "is no receipt"),
        (&["receipt", "return", text(&file)], "is no receipt"),
        (&["receipt", "return", "nothing-there"], "neither a receipt's id nor a file"),
        (&["receipt", "verify", text(&keys), "--offline", "--keys", text(&file)], "has no keys"),
        (&["receipt", "verify", text(&file), "--offline"], "--keys"),
    ] {
        let said = gateway.picket(arguments).await?;
        assert!(said.code == 2 && said.err.contains(words), "{arguments:?}: {said:?}");
    }
    let gone = gateway.picket(&["receipt", "return", "019aa53b-3f0a-7707-8707-070707070707"]).await?;
    assert!(gone.code == 6 && gone.err.contains("there is no receipt"), "{gone:?}");
    Ok(())
}
