//! One stream, opened again with the same key as long as patience lasts.

use std::time::Duration;

use picket_proto::v1::{FenceUpdate, Outcome};
use tokio::time::Instant;
use tokio_stream::StreamExt;
use tonic::Status;

use crate::connect::Client;
use crate::gateway_error::GatewayError;
use crate::motion::{FollowEnd, Motion};

/// Before the first and the later tries.
const WAIT: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(3));

/// What happens to a stream.
#[derive(Debug)]
pub enum Event {
    /// The request is being sent.
    Asked,
    /// A message.
    Update(Box<FenceUpdate>),
    /// The stream broke; it is opened again.
    Broken {
        /// Why.
        why: String,
        /// When.
        again_in: Duration,
    },
    /// Its end.
    End(FollowEnd),
}

/// Follows one motion to its end. `tell` answers whether anybody still listens.
pub async fn follow(mut client: Client, motion: &Motion, patience: Duration, tell: impl Fn(Event) -> bool) {
    let mut last_sign = Instant::now();
    let mut wait = WAIT.0;
    if !tell(Event::Asked) {
        return;
    }
    loop {
        let before = last_sign;
        let why = match run(&mut client, motion, &tell, &mut last_sign).await {
            Ok(outcome) => {
                tell(Event::End(FollowEnd::Outcome(outcome)));
                return;
            }
            Err(status) => GatewayError::from(&status),
        };
        if last_sign > before {
            wait = WAIT.0;
        }
        let end = if !why.is_passing() {
            FollowEnd::Refused(why)
        } else if last_sign.elapsed() + wait > patience {
            FollowEnd::Lost(why.message)
        } else {
            let heard = tell(Event::Broken { why: why.message, again_in: wait });
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(WAIT.1);
            if heard {
                continue;
            }
            return;
        };
        tell(Event::End(end));
        return;
    }
}

async fn run(
    client: &mut Client,
    motion: &Motion,
    tell: &impl Fn(Event) -> bool,
    last_sign: &mut Instant,
) -> Result<Outcome, Status> {
    let mut updates = motion.open(client).await?;
    while let Some(update) = updates.next().await {
        let update = update?;
        *last_sign = Instant::now();
        let outcome = update.outcome.clone();
        tell(Event::Update(Box::new(update)));
        if let Some(outcome) = outcome {
            return Ok(outcome);
        }
    }
    Err(Status::unavailable("the stream ended without an outcome"))
}
