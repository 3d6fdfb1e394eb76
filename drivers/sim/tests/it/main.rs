//! The simulated devices conform: host devices and outlets, with and without sessions. And the suite sees what it is there to see:
//! drivers that are wrong on purpose. And the world behind them by itself.

mod mutants;
mod properties;
mod subject;
mod world;
mod wrong;
mod wrong_volumes;
mod wrongs;

use picket_driver::conformance::run;

use subject::Simulated;

async fn conforms(subject: Simulated, left_out: &[&str]) {
    let report = run(&subject).await.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report.left_out, left_out, "{report:?}");
}

/// What its answers cannot be made to say: it has no paths.
const SAYS_ALL: [&str; 1] = [REDIRECT];
const REDIRECT: &str = "a redirect to the same place is followed, once";
/// What a device without sessions and epochs does not have.
const NO_SESSIONS: [&str; 8] = [
    "a restart begins an epoch after loss",
    "after a restart no off is sent before a reading",
    "nothing is sent in another life than that in which it was identified",
    "a quiesce that is not answered is none",
    "after a quiesce no late copy is executed",
    "no session is opened for an on",
    REDIRECT,
    "no login leaves a session behind",
];

#[tokio::test(start_paused = true)]
async fn a_host_device_conforms() {
    conforms(Simulated::new("bmc", |_| {}), &SAYS_ALL).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_device_whose_sessions_have_names_conforms() {
    conforms(Simulated::named("bmc"), &SAYS_ALL).await;
}

#[tokio::test(start_paused = true)]
async fn an_outlet_conforms() {
    conforms(Simulated::new("outlet", |_| {}), &SAYS_ALL).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_device_without_sessions_conforms() {
    conforms(Simulated::sessionless("bmc"), &NO_SESSIONS).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_device_that_knows_of_volumes_conforms() {
    conforms(Simulated::with_volumes(), &SAYS_ALL).await;
}
