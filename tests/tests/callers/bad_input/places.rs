//! What the daemon wants for itself, and somebody else has, or has spoilt.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use picket_tests::peers::IpmiSim;
use picket_tests::{Bmc, Fleet, Gateway, Result, picketd};

use crate::bad_input::home::{GOOD, Home};

/// What `picketd` says over these settings; 75: it may work later.
async fn refused(home: &Home, words: &[&str]) {
    let said = home.says(&[]).await;
    assert_eq!((said.code, said.out.as_str()), (75, ""), "{said:?}");
    for word in words {
        assert!(said.err.contains(word), "no {word:?} in {said:?}");
    }
}

#[tokio::test]
async fn a_port_that_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it has one");
    let home = Home::with(&GOOD.replace("unix = ", &format!("tcp = \"{address}\"\nunix = ")));
    refused(&home, &[&format!("{address} is taken"), "choose another port or stop it"]).await;
}

#[tokio::test]
async fn a_socket_that_is_taken() {
    let home = Home::with(GOOD);
    let _taken = UnixListener::bind(home.path("picket.sock")).expect("a socket");
    refused(&home, &["picket.sock is taken", "choose another path or stop it"]).await;
    assert!(home.path("picket.sock").exists(), "it is somebody's");
}

#[tokio::test]
async fn a_file_where_the_socket_ought_to_be_stays() {
    let home = Home::with(GOOD);
    home.write("picket.sock", "precious");
    refused(&home, &["picket.sock is there and is no socket", "left alone"]).await;
    assert_eq!(std::fs::read_to_string(home.path("picket.sock")).expect("it is there"), "precious");
}

#[tokio::test]
async fn a_store_that_another_gateway_has_open() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let mut gateway = Gateway::start(&Fleet::new().node("n1", &Bmc::at(bmc.address()), &[])).await?;
    let home = Home::with(&GOOD.replace("{home}/picket.redb", &gateway.store_file().display().to_string()));
    let said = picketd(&home.settings(), &[], &[]).await?;
    assert_eq!(said.code, 75, "{said:?}");
    let holder = format!("another picketd (pid {}) holds the store", gateway.process()?.id());
    for word in ["picket.redb", "stop it, or give this one a store of its own", &holder] {
        assert!(said.err.contains(word), "no {word:?} in {said:?}");
    }
    assert_eq!(gateway.picket(&["nodes"]).await?.code, 0, "the first one goes on");
    Ok(())
}

#[tokio::test]
async fn a_store_that_is_damaged_is_named_and_left_as_it_is() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let mut gateway = Gateway::start(&Fleet::new().node("n1", &Bmc::at(bmc.address()), &[])).await?;
    assert!(gateway.stop().await?.success());
    let file = gateway.store_file();
    let backup = file.with_extension("backup");
    std::fs::copy(&file, &backup).expect("it can be copied");
    let whole = std::fs::read(&file).expect("it is there");
    // Not half of it: where it was closed while it was long, all that matters stands in its beginning, and nothing is damaged.
    let half = whole.get(..16 << 10).expect("it is longer").to_vec();
    for damaged in [half, vec![0xA5; 4096], b"not a store".to_vec(), Vec::new()] {
        std::fs::write(&file, &damaged).expect("it can be written");
        let said = gateway.refuses().await?;
        assert_eq!(said.code, 70, "{said:?}");
        for word in ["picket.redb", "damaged", "What to do", "backup"] {
            assert!(said.err.contains(word), "no {word:?} in {said:?}");
        }
        let left = std::fs::read(&file).expect("it is there").len();
        assert_eq!(left, damaged.len(), "never a silent empty store");
    }
    std::fs::remove_file(&file).expect("it can be removed");
    let said = gateway.refuses().await?;
    assert!(said.code == 75 && said.err.contains("is gone"), "{said:?}");
    std::fs::copy(&backup, &file).expect("it can be copied");
    gateway.begin(&[]).await
}

#[tokio::test]
async fn what_is_said_of_a_damaged_store_leads_to_a_gateway_that_starts() -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let mut gateway = Gateway::start(&Fleet::new().node("n1", &Bmc::at(bmc.address()), &[])).await?;
    assert!(gateway.stop().await?.success());
    let file = gateway.store_file();
    let lock = PathBuf::from(format!("{}.lock", file.display()));
    std::fs::write(&file, b"not a store").expect("it can be written");
    let said = gateway.refuses().await?;
    let advice = format!("move it away, and {} with it", lock.display());
    assert!(said.code == 70 && said.err.contains(&advice), "{said:?}");
    for moved in [&file, &lock] {
        std::fs::rename(moved, moved.with_extension("moved")).expect("it can be moved");
    }
    gateway.begin(&[]).await
}

#[tokio::test]
async fn directories_that_are_not_there_are_told_with_the_command_that_makes_them() {
    for (key, kept, missing) in [
        ("picket.redb", "{home}/picket.redb", "{home}/var/picket.redb"),
        ("picket.sock", "{home}/picket.sock", "{home}/run/picket.sock"),
    ] {
        let home = Home::with(&GOOD.replace(kept, missing));
        let said = home.says(&[]).await;
        assert_eq!(said.code, 75, "{key}: {said:?}");
        let (_, command) = said.err.split_once("install -d -m ").expect("the command is told");
        let (begins, ends) =
            if key == "picket.redb" { ("700 -o ", " var\n") } else { ("750 -o ", " run)\n") };
        assert!(
            command.starts_with(begins) && command.contains(" -g ") && command.ends_with(ends),
            "{said:?}"
        );
    }
}
