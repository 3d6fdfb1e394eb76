//! Packets, counted by the driver and by a relay before the BMC that knows nothing of it.

use picket_tests::peers::{self, UdpFault};

use crate::Wrong;
use crate::race::contest::{Contestant, Deed};
use crate::race::farm::Farm;
use crate::race::goals::Goals;
use crate::race::powerman::{Powerman, Reached};
use crate::race::subject::{Maker, Subject};
use crate::sims::Sims;

struct Meter<'a> {
    relay: &'a UdpFault,
    before: u64,
}

impl<'a> Meter<'a> {
    fn new(relay: &'a UdpFault) -> Self {
        Self { relay, before: 0 }.rewound()
    }

    fn total(&self) -> u64 {
        let counts = self.relay.counts();
        counts.requests + counts.answers
    }

    fn rewound(mut self) -> Self {
        self.before = self.total();
        self
    }

    /// Packets since the last time.
    fn take(&mut self) -> u64 {
        let (before, now) = (self.before, self.total());
        self.before = now;
        now - before
    }
}

/// One step of the driver: prints what both counted, and returns it.
struct Count<'a> {
    subject: &'a Subject,
    meter: Meter<'a>,
    said: u64,
}

impl Count<'_> {
    fn step(&mut self, what: &str, goal: Option<(u64, &mut Goals)>) -> Result<(), Wrong> {
        let (said, seen) = (self.subject.packets() - self.said, self.meter.take());
        self.said += said;
        if said != seen {
            return Err(format!("{what}: the driver counts {said} packets and the relay {seen}").into());
        }
        let limit = goal.as_ref().map_or(String::new(), |(most, _)| format!("   at most {most}"));
        println!("  {what:<58} {said:>3}{limit}");
        if let Some((most, goals)) = goal {
            goals.judge(format!("packets, {what}: {said}, at most {most}"), said <= most);
        }
        Ok(())
    }
}

/// Counts everything, one BMC, nothing lost.
pub async fn count(goals: &mut Goals) -> Result<(), Wrong> {
    println!("\nPACKETS, both ways; each counted by the driver and by a relay, and both agree");
    let farm = Sims::start(1, true).await?;
    let bmc = farm.addresses()[0];
    let relay = UdpFault::start(bmc, 1).await?;
    // The button lock wants the administrator.
    let subject = Maker::new()?.subject_with(relay.address(), "administrator").await?;
    let driver = &subject.driver;
    let mut count = Count { subject: &subject, meter: Meter::new(&relay), said: 0 };

    subject.confirmed_off().await?;
    count.step("cold: login, off, first Off reading", Some((14, goals)))?;
    farm.switch_on()?;
    subject.look().await?;
    count.step("first look", Some((2, goals)))?;
    subject.confirmed_off().await?;
    count.step("warm: off, first Off reading", Some((4, goals)))?;
    subject.look().await?;
    count.step("each further reading", Some((2, goals)))?;
    driver.identify(&subject.call()).await?;
    count.step("identity", None)?;
    let found = driver.inspect_hold(&subject.call()).await?;
    count.step("hold: what is found", None)?;
    let order = subject.orders.hold(&found).await?;
    driver.engage_hold(&order, &subject.call()).await?;
    count.step("hold: engaged (policy, watchdog, button)", None)?;
    let order = subject.orders.unhold(&found).await?;
    driver.disengage_hold(&order, &subject.call()).await?;
    count.step("hold: put back", None)?;
    subject.close().await?;
    count.step("close", None)?;

    let mut meter = Meter::new(&relay);
    farm.switch_on()?;
    peers::Ipmipower::new(relay.address()).run("--off --wait-until-off").await?;
    farm.must_be_off("ipmipower")?;
    println!("  {:<58} {:>3}", "beside: ipmipower --off --wait-until-off", meter.take());
    let (hosts, plugs) = (relay.address().to_string(), relay.address().ip().to_string());
    let mut powerman = Powerman::at(&[Reached { bmcs: 1, hosts, plugs }], &farm).await?;
    // Its ipmipower asks now and then whether the BMC is there: the least of some is the off alone.
    let mut least = u64::MAX;
    for _ in 0..3 {
        farm.switch_on()?;
        meter.take();
        powerman.run(Deed::Off).await?;
        powerman.rest().await?;
        farm.must_be_off("powerman")?;
        // What it still says of its own accord would count for the next one.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        least = least.min(meter.take());
    }
    println!("  {:<58} {least:>3}", "beside: powerman, resident");
    Ok(())
}
