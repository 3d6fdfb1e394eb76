//! A machine that comes on by itself while its volumes are let go.

use std::time::{Duration, SystemTime};

use picket_tests::peers::until;
use picket_tests::{Daemon, Gateway, Result};
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::cluster::door::Door;
use crate::cluster::fenced::{
    fence, is_told, login, no_more, power, recorded, settings, unfence, until_clean, until_out_of_service,
};
use crate::cluster::odd::spec;
use crate::cluster::scene::{OUT_OF_SERVICE, cluster, lend, no_more_of, sleeping, told};

/// An API server that does not answer for so long is not waited for: the machine is fenced again beside it.
const NOT_WAITED_FOR: Duration = Duration::from_millis(1_500);

/// Its power is back while the taint stands and what detaches sleeps: the taint is gone before anything else is done, the machine is
/// fenced again, and only then its volume is let go. What is bound to it meanwhile goes like the rest. The record tells it.
#[tokio::test]
async fn power_that_is_back_while_the_taint_stands_takes_the_taint_away_first() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let before = power(machine).len();
    let database = cluster.database("breach", &[machine]).await?;
    database.runs_on(machine.name()).await?;
    let door = Door::before(cluster, &login(cluster).await?).await?;
    let nodes = [(machine.name(), machine, "pods")];
    let fleet = settings(cluster, door.login(), &nodes, &no_more).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;

    let asleep = sleeping(cluster).await;
    fence(&gateway, machine.name(), "confirmed").await?;
    until_out_of_service(cluster, machine, true).await?;
    is_told(&gateway, machine.name(), "left: ").await?;
    machine.force(true).await?;
    let switched = async || Ok(power(machine)[before..] == ["off", "on", "off"]);
    until("it is fenced again", Duration::from_secs(120), switched).await?;
    let off = machine.power_events().pop().expect("it was switched off");
    let of = |body: fn(&str) -> bool| {
        door.changes().into_iter().filter(move |one| body(&one.body) && one.status == Some(200))
    };
    let set =
        || of(|body| body.contains(r#""op":"add","path":"/spec/taints"#) && body.contains(OUT_OF_SERVICE));
    let again = async || Ok(set().any(|one| one.at > off.at));
    until("it is set again", Duration::from_secs(120), again).await?;
    let taken = || of(|body| body.contains(r#""op":"remove","path":"/spec/taints/"#));
    let first = taken().next().unwrap_or_else(|| panic!("it was never taken away\n{}", gateway.log()));
    // Power is read every two seconds (K3); what a busy machine takes for a reading is none of ours.
    let on = machine.power_events().into_iter().rfind(|event| event.what == "on").expect("it came on");
    let seen = seen_on(&gateway.log());
    assert!(seen < on.at + Duration::from_secs(120), "{on:?} {seen:?}\n{}", gateway.log());
    // The Node is read before it is changed: what the API server took for that, by the door's clock, is none of ours either.
    let waited = door.waited(seen, first.at);
    let words = || format!("{first:#?} {seen:?} {off:?} {waited:?}\n{}", gateway.log());
    assert!(first.at < off.at || waited >= NOT_WAITED_FOR, "{}", words());
    let last = set().next_back().expect("it is set again");
    assert!(last.at > first.at, "{first:#?} {last:#?}\n{}", gateway.log());
    assert!(!machine.runs(), "it stands on a new confirmation");
    let calls = database.csi_calls();
    assert_eq!(told(&calls), [("attach", machine.name()), ("mount", machine.name())]);
    // Where a volume had to be bound first a scheduler may come to it minutes after the others were gone.
    let late = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "breach-late" },
        "spec": spec(&json!({ "nodeName": machine.name() })),
    });
    cluster.apply(&late).await?;
    let it = ["get", "pod", "breach-late", "--ignore-not-found"];
    let gone = async || Ok(cluster.json(&it).await?.is_null());
    until("it goes like the others", Duration::from_secs(60), gone).await?;
    until_out_of_service(cluster, machine, true).await?;
    assert_eq!(told(&database.csi_calls()).len(), 2, "nothing is let go while what detaches sleeps");
    drop(asleep);

    is_told(&gateway, machine.name(), "released").await?;
    let history = gateway.picket(&["history", machine.name()]).await?;
    assert!(history.out.contains("a breach: found on"), "{history:?}");
    let recorded = recorded(&gateway, machine.name()).await?;
    assert!(recorded.contains("bound to it meanwhile: default/breach-late"), "{recorded}");
    door.all_end();
    unfence(&gateway, machine.name()).await?;
    cluster.until_ready(machine, true).await?;
    until_clean(cluster, machine).await?;
    database.runs_on(machine.name()).await?;
    assert_eq!(database.writers().overlaps(), 0);
    assert_eq!(power(machine)[before..], ["off", "on", "off", "on"]);
    no_more_of(cluster, "breach").await?;
    lent.leave().await?;
    Ok(())
}

/// When the gateway read On, by its own log.
fn seen_on(log: &str) -> SystemTime {
    let line = log.lines().find(|line| line.contains("breach: a fenced node is on")).expect("it is told");
    let at = OffsetDateTime::parse(line.split(' ').next().unwrap_or_default(), &Rfc3339);
    at.unwrap_or_else(|error| panic!("{error}: {line}")).into()
}
