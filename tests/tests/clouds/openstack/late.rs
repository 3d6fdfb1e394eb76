//! S8: what was permitted a token's life ago is refused, by the far side where it is on its way with its token, and by us where it would
//! go with another one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use picket_core::power::Power;
use picket_driver::conformance::orders::Orders;
use picket_driver::{
    Call, Context, DriverError, DriverKind, Effect, ErrorKind, PowerDriver, VolumeAt, Witness,
};
use picket_driver_openstack::OpenstackKind;
use picket_engine::clock::SystemClock;
use picket_tests::Result;
use picket_tests::peers::{OPENSTACK_HOSTS, OpenStack, Who};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::openstack::driven::Plan;

/// Longer than the two minutes before their end in which the cloud's services, whose own tokens live no longer, ask for new ones.
const LIFE: Duration = Duration::from_secs(150);

/// By how much more a token may outlive what it says: clocks differ.
const CLOCKS: Duration = Duration::from_secs(60);

/// One whose tokens live for so long, for all tests here that want such a one. It ends with this process.
pub async fn short_lived() -> Result<&'static OpenStack> {
    static CLOUD: OnceCell<OpenStack> = OnceCell::const_new();
    CLOUD.get_or_try_init(|| OpenStack::with_token_life(LIFE)).await
}

/// Stands at the permit that is asked for the so-manieth time, as a process does that was stopped there.
#[derive(Debug)]
struct Stopped {
    at: AtomicU32,
}

impl Witness for Stopped {
    fn permitted(&self) {
        if self.at.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        // Nothing else of its order runs meanwhile, as if the whole process were stopped; the other orders of the test go on.
        tokio::task::block_in_place(|| {
            let (began, time) = (Instant::now(), LIFE + Duration::from_secs(1));
            while began.elapsed() < time {
                std::thread::park_timeout(time - began.elapsed());
            }
        });
    }
}

/// What was permitted.
#[derive(Clone, Debug)]
enum Late {
    Start,
    Detach(VolumeAt),
}

/// One server by which something is sent late.
struct Sender {
    by: Arc<dyn PowerDriver>,
    orders: Orders,
    clock: Arc<SystemClock>,
}

impl Sender {
    /// Its server is off, as it says itself, with a token that is not about to be renewed.
    async fn over(server: &str, clouds: &Path) -> Self {
        let clock = Arc::new(SystemClock);
        let settings = json!({ "server": server, "cloud": "cloud", "clouds_file": clouds });
        let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the kernel has random bytes");
        let context = Context { clock: clock.clone(), random: Arc::new(random) };
        let settings = settings.as_object().expect("a table");
        let driver = || OpenstackKind::default().make(settings, &context).expect("right settings");
        let by = driver();
        let orders = Orders::new(by.traits(), clock.clone()).await.expect("orders");
        let mut sender = Self { by, orders, clock };
        let off = sender.orders.off().await.expect("an order");
        sender.by.power_off(&off, &sender.call(60)).await.expect("it is taken");
        sender.until_off().await;
        sender.by = driver();
        sender.until_off().await;
        sender
    }

    fn call(&self, seconds: u64) -> Call {
        let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
        Call::control(end, self.clock.clone(), self.orders.permit())
    }

    /// Asks until it is told; a cloud that is busy with its own beginning may leave a question unanswered.
    async fn until_off(&self) {
        let call = self.call(150);
        while !self.by.read_power(&call).await.is_ok_and(|reading| reading.power == Power::Off) {
            assert!(tokio::time::Instant::now() < call.deadline(), "it is not off for so long");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Sends it, and is stopped at the permit that is asked for the so-manieth time.
    async fn sends(&self, what: &Late, at: u32) -> DriverError {
        let call = self.call(600).before(Arc::new(Stopped { at: AtomicU32::new(at) }));
        match what {
            Late::Start => {
                let on = self.orders.on().await.expect("an order");
                self.by.power_on(on, &call).await.map(drop).expect_err("it is too late")
            }
            Late::Detach(volume) => {
                let release = self.orders.release(LIFE + CLOCKS).await.expect("an order");
                let permit = self.orders.release_permit(&release).await.expect("a permit");
                let volumes = self.by.volumes().expect("it knows volumes");
                let sent = volumes.detach(&release.order, &permit, volume, false, &call).await;
                sent.expect_err("it is too late")
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn what_was_permitted_long_ago_is_refused() -> Result<()> {
    let cloud = short_lived().await?;
    // Its gateway's token ends in the meantime: it logs in anew, and fences all the same.
    let kept = cloud.server("kept", OPENSTACK_HOSTS[0]).await?;
    let driven = Plan::over(&Who::Tenant, &[&kept]).start_on(cloud).await?;
    let clouds = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(clouds.path(), cloud.clouds_yaml(&Who::Admin)).expect("it can be written");
    let mut late = Vec::new();
    for (number, is_start, at) in [(1, true, 1), (2, true, 2), (3, false, 1), (4, false, 2)] {
        let server = cloud.server(&format!("late-{number}"), OPENSTACK_HOSTS[number % 2]).await?;
        let what = match is_start {
            true => Late::Start,
            false => {
                let volume = cloud.volume(&format!("late-{number}")).await?;
                cloud.attach(&server, &volume).await?;
                Late::Detach(VolumeAt { id: volume, device: "/dev/sdb".to_owned() })
            }
        };
        late.push((server, what, at));
    }
    let sent = late.iter().map(|(server, what, at)| {
        let (server, what, at, clouds) = (server.clone(), what.clone(), *at, clouds.path().to_owned());
        tokio::spawn(async move { Sender::over(&server, &clouds).await.sends(&what, at).await })
    });
    let sent = futures::future::join_all(sent).await;
    for ((server, what, at), error) in late.iter().zip(sent) {
        let error = error.expect("it ends");
        let (kind, detail) = match (what, at) {
            (_, 1) => (ErrorKind::Refused, "newer than the store's last word"),
            // Its token has ended, as that of a detach has: there our own look right before the wire is the first to refuse.
            (Late::Start, _) => (ErrorKind::Authentication, ""),
            (Late::Detach(_), _) => (ErrorKind::Refused, "the permit's time is over"),
        };
        assert_eq!((error.kind, error.effect), (kind, Effect::DidNotHappen), "{what:?}: {error}");
        assert!(error.detail.contains(detail), "{what:?}: {error}");
        assert!(cloud.runs_on(server)?.is_empty(), "{what:?}");
        if let Late::Detach(volume) = what {
            cloud.until_volume(&volume.id, "in-use").await?;
        }
    }
    driven.must_fence().await?;
    Ok(())
}
