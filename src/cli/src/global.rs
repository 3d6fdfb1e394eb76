//! What all commands take.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::certificates::Certificates;
use crate::duration;

/// What all commands take.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of all commands")]
pub struct Global {
    /// Where the gateway answers: unix:/run/picket/picket.sock, https://gateway:7070 or http://127.0.0.1:7070; several
    /// are separated by commas
    #[arg(long, global = true, value_name = "ENDPOINT")]
    pub endpoint: Option<String>,
    /// Which context of the file with contexts
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "endpoint")]
    pub context: Option<String>,
    /// The file with contexts [default: $XDG_CONFIG_HOME/picket/config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What https wants
    #[command(flatten)]
    pub certificates: Certificates,
    /// In which form answers are told
    #[arg(short, long, global = true, value_enum, default_value_t, value_name = "FORM")]
    pub output: Format,
    /// Do not ask before harm
    #[arg(short, long, global = true)]
    pub yes: bool,
    /// Give up after this long; what was begun goes on [default: 30s for calls that only ask, else none]
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration::parse)]
    pub timeout: Option<Duration>,
}

/// In which form answers are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// For scripts: keys are stable, times RFC 3339, spans in seconds
    Json,
    /// The same as YAML
    Yaml,
}
