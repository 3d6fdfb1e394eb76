//! The way from one store to another (S21, docs/backup.md): drain, back up, mark, restore; the old one is refused, and in the new
//! one nothing is proven.

use std::time::Duration;

use picket_tests::peers::{EtcdCluster, IpmiSim, eventually};
use picket_tests::{Bmc, Fleet, Gateway, PASSWORD_VARIABLE, Result, Said, Webhook, picketd};
use tokio::time::{Instant, sleep};

/// What may have been under way is waited out after a restore: receipts, releases, half a minute of the BMC's sessions.
const PATIENCE: Duration = Duration::from_secs(180);

/// A node that will be fenced, one that stays on, and what lets the first one's volumes go.
struct Scene {
    fenced: IpmiSim,
    normal: IpmiSim,
    webhook: Webhook,
    etcd: EtcdCluster,
}

impl Scene {
    async fn start() -> Result<Self> {
        let fenced = IpmiSim::builder().holds().start().await?;
        let webhook = Webhook::with_witness(fenced.truth()).await?;
        let normal = IpmiSim::builder().holds().start().await?;
        Ok(Self { fenced, normal, webhook, etcd: EtcdCluster::start(1).await? })
    }

    fn fleet(&self) -> Fleet {
        let device = |bmc: &IpmiSim| Bmc::simulated(bmc.address());
        Fleet::new()
            .with("[rules]\ndwell = \"500ms\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"")
            .node("n1", &device(&self.fenced), &["detach"])
            .node("n2", &device(&self.normal), &[])
            .webhook("detach", &self.webhook.url(), "settle = \"0s\"")
    }

    /// A gateway over etcd, not yet started.
    fn shared(&self, name: &str, prefix: &str) -> Result<Gateway> {
        let endpoints = self.etcd.endpoints();
        let fleet = self.fleet().with(&format!(
            "[gateway]\nname = {name:?}\n[store]\nkind = \"etcd\"\nendpoints = {endpoints:?}\nallow_anonymous = true\n\
             prefix = {prefix:?}\n[election]\nlease = \"9s\""
        ));
        Gateway::new(&fleet)
    }

    /// Nothing was sent or let go on a backup's word: one fence, one release, nobody switched anything on.
    fn untouched(&self) -> Result<()> {
        let told = |bmc: &IpmiSim, what: &str| bmc.commands().iter().filter(|one| one.what == what).count();
        assert!(!self.fenced.is_on()? && self.normal.is_on()?);
        assert_eq!(
            (told(&self.fenced, "on"), told(&self.normal, "off"), self.webhook.releases().len()),
            (0, 0, 1)
        );
        assert!(self.webhook.releases().iter().all(|one| one.on == Some(false)));
        Ok(())
    }
}

/// A task of `picketd` with that gateway's settings. A check reads secrets as well.
async fn task(gateway: &Gateway, arguments: &[&str]) -> Result<Said> {
    picketd(&gateway.settings_file(), arguments, &[(PASSWORD_VARIABLE, "a test")]).await
}

async fn done(gateway: &Gateway, arguments: &[&str]) -> Result<String> {
    let said = task(gateway, arguments).await?;
    assert_eq!(said.code, 0, "{arguments:?}: {said:?}");
    Ok(said.out)
}

/// `picket`, which succeeds.
async fn asks(gateway: &Gateway, arguments: &[&str]) -> Result<String> {
    let said = gateway.picket(arguments).await?;
    assert_eq!(said.code, 0, "{arguments:?}: {said:?}\n{}", gateway.log());
    Ok(said.out)
}

async fn says(gateway: &Gateway, node: &str, words: &[&str]) -> Result<String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let said = gateway.picket(&["status", node]).await?;
        if words.iter().all(|word| said.out.contains(word)) {
            return Ok(said.out);
        }
        assert!(Instant::now() < until, "{words:?} in {said:?}\n{}", gateway.log());
        sleep(Duration::from_millis(200)).await;
    }
}

/// A backup of what is drained and stopped, with the mark; where it is.
async fn leave(gateway: &mut Gateway, where_to: &str) -> Result<String> {
    let drained = asks(gateway, &["drain", "--reason", "a move"]).await?;
    assert!(drained.contains("no fence is under way, and none starts"), "{drained}");
    gateway.stop().await?;
    let file = gateway.directory().join("backup").display().to_string();
    let said = done(gateway, &["backup", "--to", &file, "--moved-to", where_to]).await?;
    assert!(
        said.contains("2 nodes and 1 fences") && said.contains(&format!("marked as moved to {where_to}")),
        "{said}"
    );
    Ok(file)
}

/// In the new store: what was fenced is kept off, unproven; what was not is normal; the drain's pause still stands.
async fn is_restored(gateway: &Gateway, scene: &Scene) -> Result<()> {
    let said = says(gateway, "n1", &["fenced", "restored: ", "next "]).await?;
    assert!(!said.contains("proven off"), "nothing is proven: {said}");
    says(gateway, "n2", &["normal"]).await?;
    scene.untouched()?;
    let barred = gateway.picket(&["fence", "n2", "--yes", "--reason", "a test"]).await?;
    assert!(barred.code != 0 && barred.out.contains("paused"), "{barred:?}");
    asks(gateway, &["resume", "--everything", "--reason", "moved"]).await?;
    let held = gateway.picket(&["unfence", "n1", "--yes", "--reason", "a test"]).await?;
    assert!(!scene.fenced.is_on()?, "the hold of the restore stands: {held:?}");
    Ok(())
}

async fn comes_back(gateway: &Gateway, scene: &Scene) -> Result<()> {
    asks(gateway, &["unhold", "n1", "--holder", "restored", "--reason", "looked at it"]).await?;
    says(gateway, "n1", &["normal"]).await?;
    assert!(scene.fenced.is_on()?);
    Ok(())
}

#[tokio::test]
async fn from_the_embedded_store_to_etcd() -> Result<()> {
    let scene = Scene::start().await?;
    let mut old = Gateway::start(&scene.fleet()).await?;
    asks(&old, &["fence", "n1", "--yes", "--reason", "a test"]).await?;
    let file = leave(&mut old, "etcd").await?;
    let refused = old.refuses().await?;
    assert!(
        refused.code == 75 && refused.err.contains("was moved to etcd, and is not used any more"),
        "{refused:?}"
    );
    let (mut g1, mut g2) = (scene.shared("g1", "/picket/")?, scene.shared("g2", "/picket/")?);
    let said = done(&g1, &["restore", "--from", &file]).await?;
    assert!(said.contains("/picket/ in etcd: restored from the backup of "), "{said}");
    let twice = task(&g2, &["restore", "--from", &file]).await?;
    assert!(twice.code == 75 && twice.err.contains("something stands already"), "{twice:?}");
    g1.begin(&[]).await?;
    g2.begin(&[]).await?;
    is_restored(&g1, &scene).await?;
    // It is so over a leadership of the other as well.
    g1.stop().await?;
    eventually("the other leads", PATIENCE, || g2.log().contains("leading")).await?;
    says(&g2, "n1", &["fenced", "restored: "]).await?;
    scene.untouched()?;
    comes_back(&g2, &scene).await?;
    // And it fences.
    asks(&g2, &["fence", "n2", "--yes", "--reason", "a test"]).await?;
    assert!(!scene.normal.is_on()?);
    Ok(())
}

#[tokio::test]
async fn from_etcd_to_another_prefix_and_the_old_one_is_refused() -> Result<()> {
    let scene = Scene::start().await?;
    let mut old = scene.shared("g1", "/old/")?;
    old.begin(&[]).await?;
    asks(&old, &["fence", "n1", "--yes", "--reason", "a test"]).await?;
    let file = old.directory().join("too-early").display().to_string();
    let refused = task(&old, &["backup", "--to", &file, "--moved-to", "/new/"]).await?;
    assert!(refused.code == 75 && refused.err.contains("g1 leads over the store under /old/"), "{refused:?}");
    assert!(!std::path::Path::new(&file).exists(), "and no backup was taken");
    // While it leads a backup alone is fine, and so is a check.
    done(&old, &["backup", "--to", &file]).await?;
    let checked = done(&old, &["--check"]).await?;
    assert!(checked.contains("right, with 2 nodes") && !checked.contains("moved"), "{checked}");
    let file = leave(&mut old, "etcd at /new/").await?;
    let words = "the store under /old/ in etcd was moved to etcd at /new/, and is not used any more";
    let twice = task(&old, &["backup", "--to", &format!("{file}.2")]).await?;
    assert!(twice.code == 75 && twice.err.contains(words), "{twice:?}");
    let checked = task(&old, &["--check"]).await?;
    assert!(checked.code == 75 && checked.err.contains(&format!("store.prefix: {words}")), "{checked:?}");
    // A gateway over the old one leads nothing, and says why wherever it is asked.
    old.launch(&[])?;
    eventually("it says so", PATIENCE, || old.log().contains(words)).await?;
    let told = old.picket(&["gateways"]).await?;
    assert!(told.code == 5 && told.out.contains("was moved to etcd at /new/"), "{told:?}");
    let fence = old.picket(&["fence", "n2", "--yes", "--reason", "a test", "--timeout", "2s"]).await?;
    assert!(fence.code != 0 && scene.normal.is_on()?, "{fence:?}");
    assert_eq!(old.log().matches("leading term").count(), 1, "only before it was left: {}", old.log());

    // A check makes no store: there is room for the restore after it.
    let mut new = scene.shared("g1", "/new/")?;
    done(&new, &["--check"]).await?;
    done(&new, &["restore", "--from", &file]).await?;
    new.begin(&[]).await?;
    is_restored(&new, &scene).await?;
    comes_back(&new, &scene).await?;
    old.stop().await?;
    Ok(())
}

#[tokio::test]
async fn from_etcd_to_the_embedded_store_and_a_mark_that_is_taken_away() -> Result<()> {
    let scene = Scene::start().await?;
    let mut old = scene.shared("g1", "/picket/")?;
    old.begin(&[]).await?;
    asks(&old, &["fence", "n1", "--yes", "--reason", "a test"]).await?;
    let file = leave(&mut old, "one machine").await?;
    let mut new = Gateway::new(&scene.fleet())?;
    done(&new, &["restore", "--from", &file]).await?;
    new.begin(&[]).await?;
    is_restored(&new, &scene).await?;
    new.stop().await?;
    // The new one is given up, never to be used again: the old one is as it was, with its own proof.
    let said = done(&old, &["unseal"]).await?;
    assert!(said.contains("no longer marked as moved to one machine"), "{said}");
    let twice = task(&old, &["unseal"]).await?;
    assert!(twice.code == 75 && twice.err.contains("there is no mark to take away"), "{twice:?}");
    old.begin(&[]).await?;
    let said = says(&old, "n1", &["released"]).await?;
    assert!(!said.contains("restored"), "{said}");
    scene.untouched()
}
