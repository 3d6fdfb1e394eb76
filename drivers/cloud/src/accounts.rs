//! One client for all devices of an account.
//!
//! # Invariants
//!
//! - An account is there once, for as long as a device of it is: two would keep the cloud's limits twice.
//!   Shown by `an_account_is_there_once_and_as_long_as_a_device_of_it`.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// The accounts whose devices are there, by what the settings say of each.
#[derive(Debug)]
pub struct Accounts<Settings, Account>(Mutex<Vec<(Settings, Weak<Account>)>>);

impl<Settings, Account> Default for Accounts<Settings, Account> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Settings: PartialEq, Account> Accounts<Settings, Account> {
    /// The account of these settings: the one that is there, or a new one.
    ///
    /// # Errors
    /// That of `make`: there is none, and none is kept.
    pub fn get<E>(
        &self,
        settings: Settings,
        make: impl FnOnce(&Settings) -> Result<Account, E>,
    ) -> Result<Arc<Account>, E> {
        let mut accounts = self.0.lock();
        accounts.retain(|(_, account)| account.strong_count() > 0);
        let known = accounts.iter().find(|(of, _)| *of == settings);
        if let Some(account) = known.and_then(|(_, account)| account.upgrade()) {
            return Ok(account);
        }
        let account = Arc::new(make(&settings)?);
        accounts.push((settings, Arc::downgrade(&account)));
        Ok(account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_there_once_and_as_long_as_a_device_of_it() {
        let accounts: Accounts<&str, u32> = Accounts::default();
        let none = || -> Result<u32, String> { panic!("it is there") };
        let one = accounts.get("one", |_| Ok::<_, String>(1)).expect("made");
        let other = accounts.get("other", |_| Ok::<_, String>(2)).expect("made");
        assert!(Arc::ptr_eq(&one, &accounts.get("one", |_| none()).expect("there")));
        assert_eq!((*one, *other), (1, 2));
        drop(one);
        assert_eq!(accounts.get("one", |_| Err("no file")), Err("no file"));
        assert_eq!(accounts.get("one", |_| Ok::<_, String>(3)).as_deref(), Ok(&3));
        assert!(Arc::ptr_eq(&other, &accounts.get("other", |_| none()).expect("there")));
    }
}
