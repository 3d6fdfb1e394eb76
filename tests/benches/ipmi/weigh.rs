//! Memory a node, weighed in processes that did nothing before.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;

use futures::future::try_join_all;
use picket_core::rules::Rules;
use tokio::task::JoinSet;

use crate::Wrong;
use crate::options::Load;
use crate::race::cost;
use crate::race::farm::Farm;
use crate::race::line::Line;
use crate::race::powerman::Powerman;
use crate::race::subject::Maker;
use crate::sims::Sims;

/// Prints what a node takes, of ours and of powerman.
pub async fn nodes(bmcs: usize) -> Result<(), Wrong> {
    println!("\nMEMORY A NODE, growth of the resident set by {bmcs} nodes with warm sessions");
    let farm = Sims::start(bmcs, false).await?;
    let program = std::env::current_exe()?;
    for (load, what) in
        [(Load::Drivers, "picket, driver"), (Load::Engine, "picket, driver, engine and embedded store")]
    {
        farm.switch_on()?;
        let mut command = Command::new(&program);
        command.arg(format!("--weigh={}", load.word()));
        command.args(farm.addresses().iter().map(SocketAddr::to_string));
        let output = tokio::task::block_in_place(|| command.output())?;
        let said = String::from_utf8_lossy(&output.stdout);
        let bytes: u64 = said.trim().parse().map_err(|_| {
            format!("weighing {}: {said}{}", load.word(), String::from_utf8_lossy(&output.stderr))
        })?;
        print(what, bytes, bmcs);
    }
    let powerman = Powerman::start(&farm).await?;
    print("beside: powermand and its ipmipower, all of them", powerman.resident(), bmcs);
    Ok(())
}

fn print(what: &str, bytes: u64, bmcs: usize) {
    println!("  {what:<50} {:>7.1} KiB", bytes as f64 / 1024.0 / bmcs as f64);
}

/// The child: puts the load on, and prints by how many bytes it grew.
pub async fn child(load: Load, bmcs: &[SocketAddr]) -> Result<(), Wrong> {
    let before = cost::resident(std::process::id());
    let maker = Maker::new()?;
    let grown = || cost::resident(std::process::id()).saturating_sub(before);
    match load {
        Load::Drivers => {
            let subjects = try_join_all(bmcs.iter().map(|bmc| maker.subject(*bmc))).await?;
            let subjects: Vec<_> = subjects.into_iter().map(Arc::new).collect();
            let mut looks = JoinSet::new();
            for subject in &subjects {
                let subject = subject.clone();
                looks.spawn(async move { subject.look().await.map(drop) });
            }
            while let Some(ended) = looks.join_next().await {
                ended??;
            }
            println!("{}", grown());
            for subject in &subjects {
                subject.close().await?;
            }
            Ok(())
        }
        Load::Engine => {
            let line = Line::start(&maker, bmcs, &Rules::default()).await?;
            println!("{}", grown());
            line.end().await
        }
    }
}
