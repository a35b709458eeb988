//! Every isolation level, on the setups that reach it: root, an ordinary user, and where nobody may make user namespaces.
#![cfg(target_arch = "x86_64")]

mod demo;
mod doctor;
mod setup;
mod shells;
