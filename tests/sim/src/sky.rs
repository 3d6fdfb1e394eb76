//! The networks of one gateway: to the store, and to the devices. Late, twice, lost, cut in one direction or both.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_driver_sim::{Answer, Link, Packet, Random, Request, Trouble, Verb};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::gate::{Leaving, Process};
use crate::scene::{Scene, ms, s};
use crate::shape::{DETACH_LIFE, Weakness};
use crate::trace::{Control, GatewayId, What};

/// The usual way, there or back.
pub(crate) const WAY: Duration = Duration::from_micros(500);
/// The longest that a network to devices delays a packet. Longer ones would outlive what the far side bounds (S8): devices
/// are asked for such by faults of their own.
const LATE: Duration = Duration::from_secs(1);

/// One direction after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weather {
    pub(crate) cut_there: bool,
    pub(crate) cut_back: bool,
    /// 0 to 100, in each direction.
    pub(crate) loss: u8,
    pub(crate) slow: Duration,
    /// 0 to 100.
    pub(crate) twice: u8,
    /// 0 to 100: so many are late by seconds, and pass by what was sent after them.
    pub(crate) late: u8,
}

/// How one request fares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journey {
    pub(crate) there: Option<Duration>,
    pub(crate) back: Option<Duration>,
    /// A second copy arrives so much after the first.
    pub(crate) again: Option<Duration>,
}

#[derive(Debug)]
struct State {
    random: Random,
    store: Weather,
    devices: Weather,
}

/// The weather over one gateway's networks.
#[derive(Debug)]
pub(crate) struct Sky(Mutex<State>);

impl Sky {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let state =
            State { random: Random::new(seed), store: Weather::default(), devices: Weather::default() };
        Arc::new(Self(Mutex::new(state)))
    }

    pub(crate) fn set_store(&self, weather: Weather) {
        self.0.lock().store = weather;
    }

    pub(crate) fn set_devices(&self, mut weather: Weather) {
        (weather.slow, weather.late) = (weather.slow.min(LATE), 0);
        self.0.lock().devices = weather;
    }

    pub(crate) fn clear(&self) {
        let mut state = self.0.lock();
        (state.store, state.devices) = (Weather::default(), Weather::default());
    }

    pub(crate) fn is_store_calm(&self) -> bool {
        self.0.lock().store.is_calm()
    }

    pub(crate) fn to_store(&self) -> Journey {
        let State { random, store, .. } = &mut *self.0.lock();
        store.journey(random)
    }

    fn is_calm_at_devices(&self) -> bool {
        self.0.lock().devices.is_calm()
    }

    fn to_devices(&self) -> Journey {
        let State { random, devices, .. } = &mut *self.0.lock();
        devices.journey(random)
    }
}

impl Weather {
    /// Something bad, drawn.
    pub(crate) fn draw(random: &mut Random) -> Self {
        let mut weather = Self::default();
        match random.below(7) {
            0 => (weather.cut_there, weather.cut_back) = (true, true),
            1 => weather.cut_there = true,
            2 => weather.cut_back = true,
            3 => weather.loss = u8::try_from(5 + random.below(50)).unwrap_or(5),
            4 => weather.slow = random.between(ms(10), s(6)),
            5 => weather.late = u8::try_from(5 + random.below(40)).unwrap_or(5),
            _ => {
                weather.twice = u8::try_from(20 + random.below(70)).unwrap_or(20);
                weather.slow = random.between(ms(1), s(1));
            }
        }
        weather
    }

    /// Nothing arrives anywhere.
    pub(crate) fn dark() -> Self {
        Self { cut_there: true, cut_back: true, ..Self::default() }
    }

    fn is_calm(&self) -> bool {
        let troubles = [self.loss, self.twice, self.late];
        !self.cut_there && !self.cut_back && troubles == [0; 3] && self.slow.is_zero()
    }

    fn journey(&self, random: &mut Random) -> Journey {
        if self.is_calm() {
            return Journey { there: Some(WAY), back: Some(WAY), again: None };
        }
        let mut way = |cut: bool| {
            let lost = random.percent(self.loss);
            let late = if random.percent(self.late) { random.between(s(2), s(8)) } else { Duration::ZERO };
            let time = WAY + late + random.between(Duration::ZERO, self.slow);
            (!cut && !lost).then_some(time)
        };
        let (there, back) = (way(self.cut_there), way(self.cut_back));
        let again = random.percent(self.twice).then(|| random.between(Duration::ZERO, LATE));
        Journey { there, back, again }
    }
}

/// One gateway's network to the devices.
#[derive(Debug)]
pub(crate) struct Wires {
    pub(crate) gateway: GatewayId,
    pub(crate) scene: Arc<Scene>,
    pub(crate) sky: Arc<Sky>,
    pub(crate) process: Arc<Process>,
}

impl Wires {
    /// A question, while the network is calm: nobody but whoever asks notices when it arrives.
    async fn look(&self, packet: &Packet) -> Answer {
        sleep(WAY).await;
        let now = self.scene.now();
        let answer = self.scene.world().ask(now, &packet.device, packet.session, &packet.request);
        if answer.what != Err(Trouble::Silence) {
            sleep(WAY).await;
        }
        answer
    }
}

fn control(request: &Request) -> Option<Control> {
    match request {
        Request::Command(verb) => Some(Control::Power(*verb)),
        Request::SetHold(_) => Some(Control::Hold),
        Request::Detach { .. } => Some(Control::Detach),
        _ => None,
    }
}

#[async_trait]
impl Link for Wires {
    async fn carry(&self, mut packet: Packet, patience: Duration) -> Answer {
        // The far side counts the life of what it is asked by its own clock, from when it gave leave to ask: a token's, which is older than
        // the store's word.
        if let Request::Detach { not_after, .. } = &mut packet.request {
            let heeds = self.scene.shape.weakness != Weakness::DetachesHeedNoEnd;
            let node = &self.scene.shape.owner(&packet.device).id;
            let leave = self.scene.past(|past| past.checked(self.gateway, node));
            *not_after = leave + if heeds { DETACH_LIFE / 2 } else { DETACH_LIFE * 1_000 };
        }
        if let Some(control) = control(&packet.request) {
            let (gateway, device) = (self.gateway, packet.device.clone());
            let permitted = self.scene.now();
            self.scene.note(What::Permitted { gateway, device: device.clone(), control });
            let leaving = match control {
                Control::Power(Verb::Off) => Leaving::Off,
                Control::Power(Verb::On) => Leaving::On,
                Control::Hold => Leaving::Hold,
                Control::Detach => Leaving::Release,
            };
            self.process.leaves(leaving).await;
            let after = self.scene.now().since(permitted);
            self.scene.note(What::Sent { gateway, device, control, after });
        } else if self.sky.is_calm_at_devices() {
            return self.look(&packet).await;
        }
        let journey = self.sky.to_devices();
        let (reply, answer) = oneshot::channel();
        tokio::spawn(carry(self.scene.clone(), packet, journey, reply));
        match timeout(patience, answer).await {
            Ok(Ok(answer)) => answer,
            _ => Answer { late_by: Duration::ZERO, what: Err(Trouble::Silence) },
        }
    }
}

/// The network itself: it goes on whatever becomes of who sent it.
async fn carry(scene: Arc<Scene>, packet: Packet, journey: Journey, reply: oneshot::Sender<Answer>) {
    let Some(there) = journey.there else { return };
    sleep(there).await;
    let ask = |scene: &Scene| {
        let now = scene.now();
        scene.world().ask(now, &packet.device, packet.session, &packet.request)
    };
    let answer = ask(&scene);
    let Some(again) = journey.again else {
        return answered(journey, answer, reply).await;
    };
    let second = async {
        sleep(again).await;
        // Whoever asked throws the second answer away.
        let _ = ask(&scene);
    };
    tokio::join!(biased; answered(journey, answer, reply), second);
}

async fn answered(journey: Journey, answer: Answer, reply: oneshot::Sender<Answer>) {
    // A device that says nothing is waited for by whoever asked.
    if let Some(back) = journey.back.filter(|_| answer.what != Err(Trouble::Silence)) {
        sleep(back).await;
        let _ = reply.send(answer);
    }
}
