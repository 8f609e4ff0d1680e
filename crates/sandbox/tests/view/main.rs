//! What a sandbox sees of hosts that are made up for the purpose: homes with tools and credentials in them, other
//! distributions, links, groups, and workspaces in odd places.
#![allow(clippy::unwrap_used)]

mod credentials;
mod fixture;
mod places;
mod programs;
mod system;
mod tools;
