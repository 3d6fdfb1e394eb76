//! Each fault of docs/rehearse-settings.md before the drivers that may meet it: how a fence ends, and in which words.

mod both;
mod fence;
mod ipmi;
mod redfish;
mod scene;
mod table;
