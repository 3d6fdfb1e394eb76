//! `picket pki init`, from nothing to the first fence over TLS.

use picket_tests::{Fleet, Gateway, Result, pasted, picket};

use crate::doors::scene::FLEET;

#[tokio::test]
async fn what_it_says_to_put_into_the_settings_works() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let pki = dir.path().join("pki").display().to_string();
    let init = [
        "pki",
        "init",
        &pki,
        "--server",
        "127.0.0.1",
        "--client",
        "alice@example.org",
        "--client",
        "spiffe://lab/db",
    ];
    let said = picket(&init).await?;
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let again = picket(&init).await?;
    assert!(again.code == 2 && again.err.contains("nothing is overwritten"), "{again:?}");

    let mut gateway = Gateway::new(
        &Fleet::new().with(FLEET).with("[roles.socket]\nrole = \"viewer\"\ncallers = [\"uid:*\"]"),
    )?;
    let more = gateway.directory().join("conf.d");
    std::fs::create_dir(&more).expect("made");
    std::fs::write(more.join("tls.toml"), pasted(&said).replace("0.0.0.0:7070", "127.0.0.1:0"))
        .expect("written");
    gateway.begin(&[]).await?;
    let log = gateway.log();
    let port = log
        .split("address=127.0.0.1:")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .expect("a port");

    let (_, contexts) = said.out.split_once("config.toml):\n").expect("the contexts");
    let contexts = contexts.replace(":7070", &format!(":{port}"));
    let file = dir.path().join("config.toml");
    std::fs::write(&file, contexts).expect("written");
    let file = file.display().to_string();
    let said = picket(&["--config", &file, "fence", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!(said.code, 0, "{said:?}\n{}", gateway.log());
    // Its second client is in the role as well.
    let (certificate, key) = (format!("{pki}/lab-db.pem"), format!("{pki}/lab-db.key"));
    let other = ["--config", &file, "--cert-file", &certificate, "--key-file", &key, "status", "n1"];
    assert_eq!(picket(&other).await?.code, 0);
    Ok(())
}
