//! The probes of the command's filter: one or more calls for each of its groups, out of the filter's own table.

use launcher::message::{Observation, Saw};
use launcher::plan::FilterProbe;
use model::enforcement::Layer;
use model::evidence::Probe;

use super::describe;
use crate::seccomp::{Answer, Arch, PROBES};

/// Returns the calls for the prober to make.
pub(crate) fn probes() -> Vec<FilterProbe> {
    table().map(|(name, call, arguments, _)| FilterProbe { name, call, arguments }).collect()
}

/// Judges what the prober saw. A call that was not made did not hold.
pub(super) fn judge(observations: &[Observation]) -> Vec<Probe> {
    table()
        .map(|(name, _, _, errno)| {
            let saw = observations.iter().find(|o| o.probe == name).map(|o| &o.saw);
            Probe {
                held: saw == Some(&Saw::Errno(errno)),
                observed: saw.map_or_else(|| "not tried".to_owned(), describe),
                layer: Layer::Seccomp,
                control: None,
                name,
            }
        })
        .collect()
}

/// Returns the name, number, arguments and expected error of every call that this machine has.
fn table() -> impl Iterator<Item = (String, u32, [u64; 6], i32)> {
    let arch = Arch::NATIVE;
    PROBES.iter().enumerate().filter_map(move |(at, probe)| {
        let Answer::Fail(errno) = probe.answer else { return None };
        let name = format!("seccomp-{}-{at}", probe.group.name());
        Some((name, probe.number(arch)?, probe.args, i32::from(errno as u16)))
    })
}
