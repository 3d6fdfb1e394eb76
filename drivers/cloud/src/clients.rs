//! The HTTP clients of one account.

use std::path::Path;

use picket_reach::web;
use reqwest::Client;

/// One for each kind of request.
#[derive(Debug)]
pub struct Clients {
    /// Connections are kept: a question may be asked again.
    pub questions: Client,
    /// For who gives tokens.
    pub logins: Client,
    /// Each has a connection of its own, and asks whether it may go once that is there.
    pub commands: Client,
}

impl Clients {
    /// Those that believe the CAs of that file, or else the system's, and keep so many connections to one place for questions. Without
    /// `https` nothing of CAs is needed.
    ///
    /// # Errors
    /// The file, or the system, has none.
    pub fn new(kept: usize, https: bool, ca_file: Option<&Path>) -> Result<Self, String> {
        Ok(Self {
            questions: web::client_keeping(kept, https, ca_file)?,
            logins: web::client(https, ca_file)?,
            commands: web::commands(https, ca_file)?,
        })
    }

    /// The same, of a cloud that is asked there, or where it says by itself. Whoever asks over plain HTTP may have a machine without CAs;
    /// tokens may come over HTTPS all the same.
    ///
    /// # Errors
    /// As those of [`new`](Self::new).
    pub fn at(endpoint: Option<&str>, kept: usize, ca_file: Option<&Path>) -> Result<Self, String> {
        let plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
        match Self::new(kept, true, ca_file) {
            Err(_) if plain => Self::new(kept, false, ca_file),
            made => made,
        }
    }
}
