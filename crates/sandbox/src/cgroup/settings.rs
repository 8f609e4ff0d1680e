//! The limits as the kernel's files want them, and whether they hold.

use std::num::NonZeroUsize;

use super::files::Directory;
use super::mounts::Version;
use super::{CgroupError, Cpu, Request, Resource};

/// Length of the time in which a share of processor time is counted, in microseconds: the kernel's default.
const PERIOD_US: u64 = 100_000;
/// The kernel takes no smaller share.
const QUOTA_MIN_US: u64 = 1_000;

/// Sets the limit on one resource and reads it back.
pub(super) fn apply(
    group: &Directory,
    version: Version,
    resource: Resource,
    request: &Request<'_>,
) -> Result<(), CgroupError> {
    match (resource, version) {
        (Resource::Memory, Version::V2) => {
            bytes(group, "memory.max", request.memory.get())?;
            // Half a build is of no use: when one process has to go, all go.
            optional(group, "memory.oom.group", "1")
        }
        (Resource::Memory, Version::V1) => bytes(group, "memory.limit_in_bytes", request.memory.get()),
        (Resource::Swap, Version::V2) if group.has("memory.swap.max") => {
            bytes(group, "memory.swap.max", request.swap.get())
        }
        (Resource::Swap, Version::V1) if group.has("memory.memsw.limit_in_bytes") => {
            // Version 1 counts both together, and never takes less than the memory alone.
            bytes(group, "memory.memsw.limit_in_bytes", request.memory.plus(request.swap).get())
        }
        // A kernel that cannot count swap was accepted only because the machine has none.
        (Resource::Swap, _) => Ok(()),
        (Resource::Pids, _) => exactly(group, "pids.max", &request.pids.to_string()),
        (Resource::Cpu, version) => cpu(group, version, request.cpu),
    }
}

fn cpu(group: &Directory, version: Version, cpu: Cpu) -> Result<(), CgroupError> {
    let quota = quota_us(cpu, processors());
    match version {
        Version::V2 => exactly(group, "cpu.max", &format!("{quota} {PERIOD_US}"))?,
        Version::V1 => {
            exactly(group, "cpu.cfs_period_us", &PERIOD_US.to_string())?;
            exactly(group, "cpu.cfs_quota_us", &quota.to_string())?;
        }
    }
    if cpu == Cpu::AllButReserve {
        // Half of what a group has that says nothing (100 and 1024).
        let (file, weight) =
            if version == Version::V2 { ("cpu.weight", "50") } else { ("cpu.shares", "512") };
        optional(group, file, weight)?;
    }
    Ok(())
}

/// Returns the processor time of one period.
fn quota_us(cpu: Cpu, processors: u64) -> u64 {
    let all = processors * PERIOD_US;
    let quota = match cpu {
        Cpu::Millis(millis) => u64::from(millis) * PERIOD_US / 1000,
        Cpu::AllButReserve => all - all / 100,
    };
    quota.max(QUOTA_MIN_US)
}

/// Returns how many processors this process may use, by its affinity and the quotas above it.
fn processors() -> u64 {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get) as u64
}

/// Writes a number of bytes. The kernel rounds down to whole pages.
fn bytes(group: &Directory, file: &str, wanted: u64) -> Result<(), CgroupError> {
    let page = rustix::param::page_size() as u64;
    group.write(file, &wanted.to_string())?;
    let found = group.read(file)?.unwrap_or_default();
    let holds = found.trim().parse::<u64>().is_ok_and(|found| found <= wanted && wanted - found < page);
    if holds { Ok(()) } else { Err(not_held(group, file, &wanted.to_string(), &found)) }
}

fn exactly(group: &Directory, file: &str, wanted: &str) -> Result<(), CgroupError> {
    group.write(file, wanted)?;
    let found = group.read(file)?.unwrap_or_default();
    if found.trim() == wanted { Ok(()) } else { Err(not_held(group, file, wanted, &found)) }
}

/// Writes what makes a limit better but is not the limit, where the kernel has it.
fn optional(group: &Directory, file: &str, value: &str) -> Result<(), CgroupError> {
    if group.has(file) { group.write(file, value) } else { Ok(()) }
}

fn not_held(group: &Directory, file: &str, wanted: &str, found: &str) -> CgroupError {
    CgroupError::NotHeld {
        path: group.path.join(file),
        wanted: wanted.to_owned(),
        found: found.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_counted_in_thousandths_of_one_processor() {
        assert_eq!(quota_us(Cpu::Millis(200), 2), 20_000);
        assert_eq!(quota_us(Cpu::Millis(3000), 2), 300_000);
        assert_eq!(quota_us(Cpu::Millis(0), 2), QUOTA_MIN_US);
        assert_eq!(quota_us(Cpu::AllButReserve, 2), 198_000);
        assert_eq!(quota_us(Cpu::from(None), 64), 6_336_000);
    }
}
