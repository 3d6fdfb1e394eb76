//! One gateway fences a whole rack while others are looked at, and looks at a fleet while a rack falls: neither waits for the other.

use std::sync::Arc;
use std::time::Duration;

use picket_core::time::Clock;
use picket_driver_ipmi::crypto::Suite;
use picket_driver_sim::{Fault, SimClock};
use picket_fleet::{Account, BmcOptions, Role};
use picket_tests::peers::{OPERATOR, PASSWORD, eventually, fresh_address};
use picket_tests::{Bmc, Fleet, Gateway, Result, Said, Webhook};

const RACK: u32 = 40;
const OTHERS: u32 = 8;
const SOON: Duration = Duration::from_secs(60);

/// A rack, other nodes, and one gateway over all of them.
struct Room {
    fleet: picket_fleet::Fleet,
    webhook: Webhook,
    gateway: Gateway,
}

impl Room {
    /// Devices of the others have these lines besides.
    async fn new(of_others: &str) -> Result<Self> {
        let account =
            Account { name: OPERATOR.to_owned(), password: PASSWORD.to_owned(), role: Role::Operator };
        let accounts: Arc<[Account]> = Arc::new([account]);
        let racked = (1..=RACK).map(|number| format!("r1n{number}"));
        let names = racked.chain((1..=OTHERS).map(|number| format!("r2n{number}")));
        let bmc = |(seed, name)| BmcOptions {
            name,
            ipmi: fresh_address(),
            accounts: accounts.clone(),
            suites: vec![Suite::Sha1, Suite::Sha256],
            sessions: 4,
            idle: SOON,
            redfish: None,
            seed,
        };
        let options: Vec<BmcOptions> = (1..).zip(names).map(bmc).collect();
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let fleet = picket_fleet::Fleet::start(&options, &clock).await.expect("free addresses");
        let webhook = Webhook::start().await?;
        let settings = options.iter().fold(Fleet::new(), |settings, one| {
            let lines = if one.name.starts_with("r2") { of_others } else { "" };
            settings.node(&one.name, &Bmc::at(one.ipmi).with(lines), &["detach"])
        });
        let settings = settings.webhook("detach", &webhook.url(), "settle = \"0s\"");
        let gateway = Gateway::start(&settings).await?;
        gateway.checked().await?;
        Ok(Self { fleet, webhook, gateway })
    }

    fn others(&self) -> impl Iterator<Item = &Arc<picket_fleet::Bmc>> {
        self.fleet.bmcs().filter(|bmc| bmc.name().starts_with("r2"))
    }

    async fn fence(&self) -> Result<Said> {
        self.gateway.picket(&["fence", "r1n[1-40]", "--yes", "--reason", "a test"]).await
    }

    /// Each of the rack was switched off once and let go once, and nobody else.
    fn only_the_rack_is_off(&self) {
        for bmc in self.fleet.bmcs() {
            let now = bmc.now();
            let edges = bmc.world().edges(bmc.name(), now).to_vec();
            let falls = edges.iter().filter(|edge| !edge.on).count();
            let racked = usize::from(bmc.name().starts_with("r1"));
            assert_eq!((falls, bmc.is_on()), (racked, racked == 0), "{}: {edges:?}", bmc.name());
            let let_go =
                self.webhook.releases().iter().filter(|hook| hook.text("node") == bmc.name()).count();
            assert_eq!(let_go, racked, "{}", bmc.name());
        }
    }
}

#[tokio::test]
async fn a_rack_falls_and_whoever_asks_for_others_is_answered_meanwhile() -> Result<()> {
    let room = Room::new("").await?;
    // It ends only once the last of them obeys.
    let stubborn = room.fleet.bmc("r1n40").expect("it is there");
    stubborn.fault(Fault::OffIgnored);
    let (fenced, ()) = tokio::try_join!(room.fence(), async {
        let falling = || room.fleet.bmcs().filter(|bmc| !bmc.is_on()).count() == 39;
        eventually("all others of the rack fall", SOON, falling).await?;
        let status = room.gateway.picket(&["status"]).await?;
        assert_eq!(status.code, 0, "{status:?}");
        assert!(status.out.contains("r1n40") && status.out.contains("fencing"), "{}", status.out);
        let check = room.gateway.picket(&["check", "r2n[1-8]"]).await?;
        assert!(check.code == 0 && check.out.contains("8 of 8"), "{check:?}");
        stubborn.mend();
        Ok(())
    })?;
    assert_eq!(fenced.code, 0, "{fenced:?}");
    room.only_the_rack_is_off();
    Ok(())
}

#[tokio::test]
async fn a_check_that_waits_for_silent_boards_keeps_no_rack_from_falling() -> Result<()> {
    // A check of theirs ends by no deadline of its own before the fences do.
    let room = Room::new("call = \"5m\"").await?;
    room.others().for_each(|bmc| bmc.fault(Fault::Silent));
    let before: Vec<usize> = room.others().map(|bmc| bmc.datagrams()).collect();
    let mut check = Box::pin(room.gateway.picket(&["check"]));
    let fence = async {
        // The check has come to the boards that do not answer.
        let asked = || room.others().zip(&before).all(|(bmc, before)| bmc.datagrams() > *before);
        eventually("the check waits for them", SOON, asked).await?;
        room.fence().await
    };
    let fenced = tokio::select! {
        biased;
        said = &mut check => panic!("the check ended first: {said:?}"),
        fenced = fence => fenced?,
    };
    assert_eq!(fenced.code, 0, "{fenced:?}");
    room.others().for_each(|bmc| bmc.mend());
    let check = check.await?;
    assert!(check.out.contains("r2n8") && !check.out.contains("r2n8 not ready"), "{check:?}");
    room.only_the_rack_is_off();
    Ok(())
}
