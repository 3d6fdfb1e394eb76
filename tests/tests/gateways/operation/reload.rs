//! SIGHUP: new settings hold as a whole, or the running ones stay.

use picket_tests::peers::{IpmiSim, eventually, fresh_address};
use picket_tests::{Bmc, Fleet, Gateway, Result};

use crate::operation::{SOON, device, does, http, one_node, reload, with_metrics};

/// The names of the nodes that it tells.
async fn nodes(gateway: &Gateway) -> String {
    gateway.picket(&["-o", "json", "nodes"]).await.expect("it runs").out
}

#[tokio::test]
async fn nodes_roles_limits_and_the_log_change_without_a_restart() -> Result<()> {
    let (bmc, _webhook, fleet) = one_node().await?;
    let other = IpmiSim::builder().holds().start().await?;
    let (fleet, address) = with_metrics(fleet);
    let mut gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    does(&gateway, "fence", "n1").await;
    let budget = |at_once| {
        format!("[budget]\nat_once = {at_once}\ncool_down = \"0s\"\nbrake_least = 1000\nmin_not_fenced = 0\n")
    };
    let more = "[log]\nlevel = \"debug\"\n[limits]\nrate = 400\n[rules]\nhistory = \"80d\"\n\
                [roles.all]\nrole = \"admin\"\nuids = [0]";
    let more = &format!("{}{more}", budget(900));
    gateway.settings(&fleet.clone().node("n2", &device(&other), &["detach"]).with(more))?;
    let said = reload(&mut gateway).await;
    for words in [
        "nodes added: n2",
        "roles: all.role set to admin, all.uids set to [0]; streams",
        "limits: rate set to 400",
        "budget: at_once 1000 to 900",
        "rules: history set to 80d",
        "log.level: info to debug",
        "the new settings hold",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // The fence of before goes on being what it was, and the new node can be fenced.
    assert!(nodes(&gateway).await.contains("n2"));
    does(&gateway, "fence", "n2").await;
    assert!(!bmc.is_on()? && !other.is_on()?);
    does(&gateway, "unfence", "n2").await;
    gateway.settings(&fleet.clone().with(&more.replace("400", "500")))?;
    let said = reload(&mut gateway).await;
    assert!(said.contains("nodes removed: n2") && said.contains("limits: rate 400 to 500"), "{said}");
    assert!(!said.contains("Limits"), "no name of the code's: {said}");
    assert!(!nodes(&gateway).await.contains("n2"));
    does(&gateway, "unfence", "n1").await;
    let (_, text) = http(address, "GET", "/metrics").await;
    assert!(text.contains("picket_reloads_total{result=\"taken\"} 2"), "{text}");
    let audited = gateway.store_file().with_extension("audit");
    let audited =
        std::process::Command::new("grep").arg("-rh").arg("\"what\":\"reload\"").arg(audited).output();
    let audited = String::from_utf8(audited.expect("grep runs").stdout).expect("text");
    assert!(audited.contains("nodes added") && audited.contains("nodes removed"), "{audited}");
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_or_in_the_way_is_told_and_everything_stays() -> Result<()> {
    let (bmc, _webhook, fleet) = one_node().await?;
    let other = IpmiSim::builder().holds().start().await?;
    let (fleet, address) = with_metrics(fleet);
    let mut gateway = Gateway::start(&fleet).await?;
    does(&gateway, "fence", "n1").await;
    let whole = std::fs::read_to_string(gateway.settings_file()).expect("it is there");

    // All faults at once.
    let wrong = format!("{whole}\n[rules]\nreadings = 1\ndwel = \"1s\"\n[roles.x]\nrole = \"king\"\n");
    std::fs::write(gateway.settings_file(), wrong).expect("written");
    let said = reload(&mut gateway).await;
    assert!(said.contains("readings") && said.contains("dwel") && said.contains("king"), "{said}");

    // The fenced node would leave, or its BMC be elsewhere; the new node does not come either.
    let detach = fleet.clone().node("n2", &device(&other), &["detach"]);
    let text = |fleet: &Fleet| -> String {
        gateway.settings(fleet).expect("written");
        std::fs::read_to_string(gateway.settings_file()).expect("it is there")
    };
    let with_both = text(&detach);
    let (head, tail) = with_both.split_once("[nodes.\"n1\"]").expect("its table");
    let after = tail.split_once("[releases").expect("the next table").1;
    std::fs::write(gateway.settings_file(), format!("{head}[releases{after}")).expect("written");
    let said = reload(&mut gateway).await;
    assert!(said.contains("n1 cannot leave the settings: it is released, held by"), "{said}");
    let moved = with_both.replacen(
        &format!("port = {}\n", bmc.address().port()),
        &format!("port = {}\n", bmc.address().port().wrapping_add(1)),
        1,
    );
    std::fs::write(gateway.settings_file(), moved).expect("written");
    let said = reload(&mut gateway).await;
    assert!(said.contains("n1 cannot have its devices elsewhere") && said.contains("released"), "{said}");

    // What needs a restart is named.
    let elsewhere = whole.replace("picket.redb", "other.redb") + "\n[log]\nformat = \"json\"\n";
    std::fs::write(gateway.settings_file(), elsewhere).expect("written");
    let said = reload(&mut gateway).await;
    assert!(said.contains("[store]") && said.contains("log.format") && said.contains("restart"), "{said}");

    assert!(!nodes(&gateway).await.contains("n2"));
    let (_, metrics) = http(address, "GET", "/metrics").await;
    assert!(metrics.contains("picket_reloads_total{result=\"refused\"} 4"), "{metrics}");
    std::fs::write(gateway.settings_file(), whole).expect("written");
    assert!(reload(&mut gateway).await.contains("nothing changed"));
    does(&gateway, "unfence", "n1").await;
    assert!(bmc.is_on()?);
    Ok(())
}

/// Its address was wrong, and is mended while its fence waits for a person: that is refused, and whoever tries again is told.
#[tokio::test]
async fn a_retry_after_settings_that_were_refused_says_so() -> Result<()> {
    let bmc = IpmiSim::builder().holds().start().await?;
    let rules = "[rules]\nlevel_share = \"9s\"\nfence_deadline = \"11s\"\nlongest_cycle = \"5s\"\nsilent_share = \"3s\"";
    let wrong = Fleet::new().with(rules).node("n1", &Bmc::at(fresh_address()), &[]);
    let mut gateway = Gateway::start(&wrong).await?;
    let fence = ["fence", "n1", "--yes", "--reason", "a test"];
    let said = gateway.picket(&fence).await?;
    assert!(said.code != 0 && said.out.contains("needs operator"), "{said:?}");
    gateway.settings(&Fleet::new().with(rules).node("n1", &device(&bmc), &[]))?;
    let said = reload(&mut gateway).await;
    assert!(said.contains("n1 cannot have its devices elsewhere"), "{said}");
    assert!(said.contains("picket stand-down n1 where it runs"), "{said}");
    let status = gateway.picket(&["status", "n1"]).await?;
    assert!(status.out.contains("n1 cannot have its devices elsewhere"), "{status:?}");
    let said = gateway.picket(&["retry", "n1", "--yes", "--reason", "a test"]).await?;
    for words in ["the settings of before are in force", "n1 cannot have its devices elsewhere"] {
        assert!(said.out.contains(words), "no {words:?} in {said:?}");
    }
    Ok(())
}

/// Its password was wrong, and is mended while its fence waits for a person: whoever tries again goes by the new one.
#[tokio::test]
async fn a_retry_after_the_password_was_mended_goes_by_it() -> Result<()> {
    const WRONG: &str = "PICKET_TEST_WRONG_PASSWORD";
    let bmc = IpmiSim::builder().holds().start().await?;
    let rules = "[rules]\nlevel_share = \"9s\"\nfence_deadline = \"30s\"\nlongest_cycle = \"5s\"\nsilent_share = \"3s\"";
    let wrong = Fleet::new().with(rules).node("n1", &device(&bmc).password_in(WRONG), &[]);
    let mut gateway = Gateway::new(&wrong)?;
    gateway.begin(&[(WRONG, "not-the-password")]).await?;
    let said = gateway.picket(&["fence", "n1", "--yes", "--reason", "a test"]).await?;
    assert!(said.code != 0 && said.out.contains("password"), "{said:?}");
    gateway.settings(&Fleet::new().with(rules).node("n1", &device(&bmc), &[]))?;
    let reloaded = reload(&mut gateway).await;
    assert!(reloaded.contains("the new settings hold"), "{reloaded}");
    let retry = ["retry", "n1", "--yes", "--reason", "a test"];
    let mut said = gateway.picket(&retry).await?;
    for _ in 0..10 {
        // On a busy machine it may take longer than a level has here.
        if said.code == 4 {
            said = gateway.picket(&retry).await?;
        }
    }
    assert_eq!((said.code, bmc.is_on()?), (0, false), "{said:?}");
    Ok(())
}

#[tokio::test]
async fn of_reloads_at_once_the_last_wins() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let others = IpmiSim::farm(3).await?;
    let mut gateway = Gateway::start(&fleet).await?;
    for (index, other) in others.iter().enumerate() {
        let device = Bmc::at(other.address());
        gateway.settings(&fleet.clone().node(&format!("m{index}"), &device, &["detach"]))?;
        gateway.process()?.signal(rustix::process::Signal::HUP);
    }
    let last = async {
        loop {
            let now = nodes(&gateway).await;
            if now.contains("\"m2\"") && !now.contains("\"m1\"") && !now.contains("\"m0\"") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, last).await.expect("the last ones hold");
    assert!(gateway.process()?.still_runs().is_ok());
    Ok(())
}

/// Until a process takes the signal it dies of it.
#[tokio::test]
async fn a_signal_in_the_first_moments_of_the_start_is_a_reload_after_it() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::new(&fleet)?;
    let file = gateway.settings_file();
    let whole = std::fs::read_to_string(&file).expect("it is there");
    let later = file.with_extension("later");
    std::fs::rename(&file, &later).expect("renamed");
    // The start is held at its first step, where it reads its settings.
    let made = std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo runs");
    assert!(made.success());
    gateway.launch(&[])?;
    let at_it = {
        let file = file.clone();
        tokio::task::spawn_blocking(move || std::fs::OpenOptions::new().write(true).open(file))
    };
    let opened = tokio::time::timeout(SOON, at_it).await.expect("it reads").expect("no panic");
    let mut pipe = opened.expect("opened");
    for _ in 0..3 {
        gateway.process()?.signal(rustix::process::Signal::HUP);
    }
    std::fs::rename(&later, &file).expect("renamed");
    std::io::Write::write_all(&mut pipe, whole.as_bytes()).expect("it still reads");
    drop(pipe);
    gateway.ready().await?;
    eventually("the reload", SOON, || gateway.log().contains("the new settings hold")).await?;
    assert_eq!(gateway.log().matches("reading the settings anew").count(), 1, "{}", gateway.log());
    Ok(())
}
