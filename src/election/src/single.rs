//! A gateway that stands alone: whoever holds the store leads.

use std::sync::Arc;

use async_trait::async_trait;
use picket_core::election::{Election, ElectionError, Lease, Member, Won};
use picket_core::store::Store;
use tokio::sync::Mutex;

/// Always wins. That nobody else leads is seen to by the store, which one process holds at a time; what a former
/// leadership still had on its way is refused by the store, since a new term has begun.
///
/// Its lease has no end: leadership ends by [`Election::resign`], by the next [`Election::campaign`], or by a jump of
/// the clocks, after which a new campaign takes a new term.
#[derive(Debug)]
pub struct Single {
    store: Arc<dyn Store>,
    me: Member,
    lease: Mutex<Option<Arc<Lease>>>,
}

impl Single {
    /// An election whose terms are kept in `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, me: Member::default(), lease: Mutex::new(None) }
    }

    /// The same, of a gateway that callers know so.
    #[must_use]
    pub fn of(self, me: Member) -> Self {
        Self { me, ..self }
    }
}

#[async_trait]
impl Election for Single {
    async fn campaign(&self) -> Result<Won, ElectionError> {
        // Held until the term is won: of two campaigns at once the second ends what the first has won.
        let mut held = self.lease.lock().await;
        // The former permit sends nothing any more from before the store knows the new term.
        end(&mut held);
        let term =
            self.store.take_term().await.map_err(|error| ElectionError::Unavailable(error.to_string()))?;
        let lease = Lease::endless();
        *held = Some(Arc::clone(&lease));
        tracing::info!(term = term.0, "leads, alone");
        Ok(Won { term, incarnation: self.store.incarnation(), lease })
    }

    async fn resign(&self) -> Result<(), ElectionError> {
        end(&mut *self.lease.lock().await);
        tracing::info!("leads no more");
        Ok(())
    }

    fn me(&self) -> Member {
        self.me.clone()
    }
}

fn end(held: &mut Option<Arc<Lease>>) {
    if let Some(former) = held.take() {
        former.end();
    }
}
