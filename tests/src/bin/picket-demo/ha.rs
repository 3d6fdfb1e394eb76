//! The story of three gateways: the one that leads is killed in the middle of a fence, and the fence goes on.

use std::time::{Duration, SystemTime};

use picket_tests::{Hook, PeerError, Result};
use tokio::time::{Instant, sleep};

use crate::showing::{BOOT, dead_before, heart_beats, picket, stays_off, two_machines, unproven};
use crate::teller::Teller;
use crate::trio::{Trio, name};

/// Until the leader's off makes the machine fall: two calls to a BMC, and time to spare for a busy machine.
const FALLS_WITHIN: Duration = Duration::from_secs(60);

/// How the leader died.
struct Death {
    leader: usize,
    at: SystemTime,
    since: Instant,
}

/// Tells it from the start to the end.
pub async fn tell(teller: &Teller) -> Result<()> {
    let hosts = two_machines(teller).await?;

    teller.chapter("Three gateways over three members of etcd");
    let mut trio = Trio::build(hosts).await?;
    teller.say("Any of them may die at any moment. One leads; the others tell what is stored, and stand by. Settings of g1:");
    teller.quote(&std::fs::read_to_string(trio.gateways[0].settings_file()).unwrap_or_default());
    teller.say("The command line is given all three, and finds out who leads:");
    teller.copy(&format!("export PICKET_ENDPOINT={}", trio.endpoints()));
    let endpoints = trio.endpoints();
    picket(teller, &endpoints, &["gateways"]).await?;

    teller.chapter("n1 is to be fenced, and whoever leads is killed in the middle");
    teller.say("The moment: n1 has fallen by the leader's off, and nothing is proven yet: that takes a second at least.");
    let death = fence(teller, &mut trio, &endpoints).await?;
    let led_after = death.since.elapsed();
    let next = trio.leader().await?;
    teller.say(&format!(
        "The fence that {} began was ended by {}, {:.1} s after the kill; the caller gave one command, and saw one end.",
        name(death.leader),
        name(next),
        led_after.as_secs_f64()
    ));
    picket(teller, &endpoints, &["gateways"]).await?;

    teller.chapter("What the storage was told");
    let release = released(&trio, &death)?;
    let wait = release.at.duration_since(death.at).unwrap_or_default().as_secs_f64();
    let (generation, key) = (release.number("generation"), release.text("key"));
    teller.seen(&format!(
        "asked to release n1, generation {generation}, {wait:.1} s after the kill; key {key}"
    ));
    teller.seen("n1 was off at that moment: its process was gone");
    dead_before(teller, "the release was asked for", release.at, &trio.hosts[0].observer).await?;
    stays_off(teller, &trio.hosts[0])?;
    heart_beats(teller, "n2", &trio.hosts[1].observer).await?;

    teller.chapter("What is kept of it");
    picket(teller, &endpoints, &["history", "n1"]).await?;

    teller.chapter(&format!("{} is started again, and n1 comes back", name(death.leader)));
    trio.gateways[death.leader].begin(&[]).await?;
    picket(teller, &endpoints, &["gateways"]).await?;
    picket(teller, &endpoints, &["unfence", "n1", "--yes", "--reason", "the demonstration is over"]).await?;
    trio.hosts[0].observer.wait_for(3, BOOT).await?;
    heart_beats(teller, "n1", &trio.hosts[0].observer).await?;
    stays_off(teller, &trio.hosts[0])?;
    picket(teller, &endpoints, &["status", "n1", "--fresh"]).await?;

    teller.chapter("What to try next");
    teller.say("deploy/three-machines        the same on three machines of yours: systemd, etcd, certificates by a script");
    teller.say("docs/gateways.md             what happens when, and what callers see");
    teller.say("cargo xtask bench ha         how fast another one takes over, beside the law's bounds");
    Ok(())
}

/// Runs the fence to its end, and kills whoever leads once the machine has fallen.
async fn fence(teller: &Teller, trio: &mut Trio, endpoints: &str) -> Result<Death> {
    let leader = trio.leader().await?;
    let Trio { gateways, hosts, webhook, .. } = trio;
    let kill = async {
        let deadline = Instant::now() + FALLS_WITHIN;
        while hosts[0].machine.lives() {
            if Instant::now() >= deadline {
                let (what, seen) = ("n1 falls by the leader's off".to_owned(), gateways[leader].log());
                return Err(PeerError::TimedOut { what, within: FALLS_WITHIN, seen });
            }
            sleep(Duration::from_millis(2)).await;
        }
        let process = gateways[leader].process()?.id();
        gateways[leader].kill();
        let death = Death { leader, at: SystemTime::now(), since: Instant::now() };
        let early = webhook.releases();
        if !early.is_empty() {
            return Err(unproven(format!("the leader dies before anything is released: {early:?}"), &[]));
        }
        teller.command(&format!("kill -9 {process}        # {}, which leads", name(leader)));
        teller.seen("n1 has fallen; nothing was asked of the storage yet");
        Ok(death)
    };
    let arguments = ["fence", "n1", "--yes", "--reason", "demonstration"];
    let (told, death) = tokio::join!(picket(teller, endpoints, &arguments), kill);
    told?;
    death
}

/// The one release, asked for after the leader's death, of a machine that was off.
fn released(trio: &Trio, death: &Death) -> Result<Hook> {
    let releases = trio.webhook.releases();
    let sound = releases.iter().all(|one| one.at > death.at && one.on == Some(false));
    match releases.first() {
        Some(first) if sound => Ok(first.clone()),
        _ => Err(unproven(format!("n1 is released after the kill, and off: {releases:?}"), &[])),
    }
}
