//! The whole line beside the race, from the call to the proof.

use std::time::{Duration, Instant};

use futures::future::try_join_all;
use picket_core::rules::Rules;

use crate::Wrong;
use crate::options::Options;
use crate::race::cost;
use crate::race::farm::Farm;
use crate::race::line::Line;
use crate::race::series::{Series, millis};
use crate::race::subject::Maker;
use crate::sims::Sims;

/// The numbers of many fences.
#[derive(Default)]
struct Table {
    alone: Series,
    alone_without_dwell: Series,
    together: Series,
    together_without_dwell: Series,
    fences: u32,
    cpu: Duration,
    packets: u64,
}

impl Table {
    /// A fresh engine: `alone` nodes one after another, then the rest at once.
    async fn round(
        &mut self,
        farm: &dyn Farm,
        maker: &Maker,
        rules: &Rules,
        alone: usize,
    ) -> Result<(), Wrong> {
        farm.switch_on()?;
        let line = Line::start(maker, farm.addresses(), rules).await?;
        let (cpu, packets) = (cost::own_cpu(), line.packets());
        let (singles, crowd) = line.nodes.split_at(alone);
        for node in singles {
            let took = line.fence(node).await?;
            self.alone.push(took.whole);
            self.alone_without_dwell.push(took.whole.saturating_sub(took.dwell));
        }
        let start = Instant::now();
        let all = try_join_all(crowd.iter().map(|node| line.fence(node))).await?;
        let whole = start.elapsed();
        let dwell = all.iter().map(|took| took.dwell).min().unwrap_or_default();
        self.together.push(whole);
        self.together_without_dwell.push(whole.saturating_sub(dwell));
        self.cpu += cost::own_cpu().saturating_sub(cpu);
        self.packets += line.packets() - packets;
        self.fences += line.nodes.len() as u32;
        farm.must_be_off("the engine")?;
        line.end().await
    }

    fn print(&self, name: &str, rules: &Rules, crowd: usize) {
        let head = format!("{name}: readings {}, dwell {:?}", rules.readings, rules.dwell);
        println!("  {head}");
        for (what, whole, without) in [
            ("one alone".to_owned(), &self.alone, &self.alone_without_dwell),
            (format!("{crowd} at once"), &self.together, &self.together_without_dwell),
        ] {
            println!(
                "    {what:<14} median {:>8} ms, p95 {:>8} ms; without the dwell median {:>7} ms, p95 {:>7} ms",
                millis(whole.median()),
                millis(whole.quantile(0.95)),
                millis(without.median()),
                millis(without.quantile(0.95)),
            );
        }
        let fences = self.fences.max(1);
        println!(
            "    a fence: {:.0} us of processor time, {:.1} packets",
            (self.cpu / fences).as_secs_f64() * 1e6,
            self.packets as f64 / f64::from(fences)
        );
    }
}

/// Prints the whole line beside the race, with its numbers and with the shipped ones.
pub async fn the_race(options: &Options) -> Result<(), Wrong> {
    const ALONE: usize = 8;
    const CROWD: usize = 64;
    println!(
        "\nBESIDE: THE WHOLE LINE, from the call to the stored proof, sessions warm: intent, identity, hold, first look, \
         off,\n  readings, each stored before it is sent. Embedded store on {}",
        std::env::temp_dir().display()
    );
    let farm = Sims::start(ALONE + CROWD, true).await?;
    let maker = Maker::new()?;
    let shipped = Rules::default();
    // The judge takes an Off for recent as long as three dwells, and wants one that was asked for after the first of
    // them was answered: without any dwell it would prove nothing.
    let race = Rules { readings: 1, dwell: Duration::from_millis(20), ..shipped.clone() };
    for (name, rules, rounds) in [
        ("nearest to the race, which has no dwell", race, if options.quick { 1 } else { 5 }),
        ("as shipped", shipped, 1),
    ] {
        let mut table = Table::default();
        for _ in 0..rounds {
            table.round(&farm, &maker, &rules, ALONE).await?;
        }
        table.print(name, &rules, CROWD);
    }
    Ok(())
}
