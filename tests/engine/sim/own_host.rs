//! S17, K13: a gateway does not shoot the machine on which it stands, also where only the far side of a release tells which one that is.

use std::sync::Arc;

use picket_core::device::Identity;
use picket_core::outcome::{Outcome, Reason};
use picket_driver_sim::Fault;
use picket_engine::EngineError;
use picket_release::Machine;

use crate::lab::{Lab, NODE, node, s};
use crate::setup::Setup;

/// A gateway whose Node says that it is that machine, after the API server was away for a minute.
async fn told(seed: u64, says: impl FnOnce(&Identity) -> Identity) -> Lab {
    set_up(seed, says, |_| {}).await
}

async fn set_up(seed: u64, says: impl FnOnce(&Identity) -> Identity, adjust: impl FnOnce(&mut Setup)) -> Lab {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    adjust(&mut setup);
    let mut lab = Lab::dark(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    });
    lab.setup.own = Some(lab.observer.clone());
    assert!(tokio::time::timeout(s(60), lab.start()).await.is_err(), "it could shoot itself");
    let aside = lab.engine.aside().expect("it says why");
    assert!(aside.contains("worker-7") && aside.contains("the API server is away"), "{aside}");
    let identity = says(lab.world.lock().identity(NODE));
    *lab.observer.machine.lock() = Ok(Machine { provider_id: None, identity });
    lab.engine.until_leading().await;
    lab
}

#[tokio::test(start_paused = true)]
async fn who_is_told_that_it_stands_on_a_node_does_not_shoot_it() {
    let mut lab = told(61, Identity::clone).await;
    let call = lab.call();
    match lab.engine.fence(&node(), call).await {
        Err(EngineError::Blocked { reason: Reason::OwnHost, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!((lab.is_on(), lab.received("bmc").offs), (true, 0));
}

/// Nobody knew whose machine the BMC controls before it said it.
#[tokio::test(start_paused = true)]
async fn nor_one_that_says_so_only_in_its_fence() {
    let unknown = |setup: &mut Setup| setup.adjust = Arc::new(|spec| spec.identity = Identity::default());
    let mut lab = set_up(63, Identity::clone, unknown).await;
    assert_eq!(lab.fence().await, Outcome::Blocked(Reason::OwnHost));
    assert_eq!((lab.is_on(), lab.received("bmc").offs), (true, 0));
}

/// The settings know it by a serial number alone, and its BMC says a UUID alone.
#[tokio::test(start_paused = true)]
async fn nor_one_whose_settings_say_what_its_devices_never_say() {
    let serial = Identity { uuid: None, serial: Some("SN-7".to_owned()) };
    let by_serial = |setup: &mut Setup| setup.adjust = Arc::new(move |spec| spec.identity = serial.clone());
    let uuid_alone = |identity: &Identity| Identity { serial: None, ..identity.clone() };
    let mut lab = set_up(64, uuid_alone, by_serial).await;
    let said = uuid_alone(lab.world.lock().identity(NODE));
    lab.fault("bmc", Fault::SaysIdentity(said));
    assert_eq!(lab.fence().await, Outcome::Blocked(Reason::OwnHost));
    let call = lab.call();
    match lab.engine.fence(&node(), call).await {
        Err(EngineError::Blocked { reason: Reason::OwnHost, .. }) => {}
        other => panic!("it forgot where it stands: {other:?}"),
    }
    assert_eq!((lab.is_on(), lab.received("bmc").offs), (true, 0));
}

#[tokio::test(start_paused = true)]
async fn who_stands_on_none_of_them_fences_all() {
    let other = |_: &Identity| Identity { uuid: Identity::usable_uuid(&"ab".repeat(16)), serial: None };
    let mut lab = told(62, other).await;
    lab.fence().await;
    assert!(!lab.is_on());
}
