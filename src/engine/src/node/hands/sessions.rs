//! Sessions by their names (S8): in which one a command would go, and the end of one that somebody else opened.

use picket_core::ids::DeviceId;

use super::turns::bounded;
use super::{Did, Doing, Hands};

impl Hands {
    /// In which session a command to the device would go now, where others can end it by its name.
    pub(in crate::node) fn session(&self, device: &DeviceId) -> Option<String> {
        let driver = self.plan.drivers.get(device)?;
        if driver.names_sessions() { driver.session() } else { None }
    }

    /// Ends a session that another process opened (S8): some questions, and a rest for what came in it last.
    pub(in crate::node) fn end_session(&self, device: &DeviceId, session: String) -> Doing {
        let (hands, device) = (self.clone(), device.clone());
        Box::pin(async move {
            hands.parts.hooks.reached("ending session").await;
            let time = hands.time(&device) * 3;
            let asking = hands.ask(&device, "end another's session");
            let result = match hands.ready(&device, time).await {
                Ok((driver, call, _turn)) => bounded(time, driver.end_session(&session, &call)).await,
                Err(error) => Err(error),
            };
            asking.answered(&result, |()| "ended".to_owned());
            hands.parts.hooks.reached("ended session").await;
            (device, Did::Ended { session, result })
        })
    }
}
