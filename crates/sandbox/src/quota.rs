//! What holds the limits for bytes and files of one run.

use std::os::fd::BorrowedFd;
use std::path::Path;

use model::limits::DiskMode;

use crate::error::SandboxError;
use crate::image::{Image, NoImage};
use crate::spec::Spec;

/// What holds the limits for bytes and files.
#[derive(Debug)]
pub(crate) enum Quota {
    /// One tmpfs.
    Memory,
    /// One file system in a file.
    Image(Image),
    /// Nothing but the supervisor, which measures; with the reason.
    Watched(String),
}

impl Quota {
    /// Makes what holds the limits of a run. Where the host has no means for that, the supervisor measures.
    pub(crate) fn of(spec: &Spec) -> Result<Self, SandboxError> {
        if spec.grant.profile.limits.disk_mode == DiskMode::Memory {
            return Ok(Self::Memory);
        }
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Watched("only root can mount an image".to_owned()));
        }
        match Image::make(spec) {
            Ok(image) => Ok(Self::Image(image)),
            Err(NoImage::NotHere(why)) => Ok(Self::Watched(format!("no image can be had: {why}"))),
            Err(NoImage::Full(error)) => Err(SandboxError::prepare("room for the writable places")(error)),
        }
    }

    /// Tells whether every writable place lies in one store, out of which is copied at the end.
    pub(crate) fn is_store(&self) -> bool {
        !matches!(self, Self::Watched(_))
    }

    /// Returns the image.
    pub(crate) fn image(&self) -> Option<&Image> {
        match self {
            Self::Image(image) => Some(image),
            _ => None,
        }
    }

    /// Returns the mount that the launcher is given.
    pub(crate) fn mount(&self) -> Option<BorrowedFd<'_>> {
        self.image().and_then(Image::mount)
    }

    /// Notes that the launcher has the mount.
    pub(crate) fn handed_over(&mut self, files: u64) -> std::io::Result<()> {
        if let Self::Image(image) = self { image.handed_over(files) } else { Ok(()) }
    }

    /// Lets go of what holds the limits.
    pub(crate) fn let_go(self) {
        if let Self::Image(image) = self {
            image.let_go();
        }
    }

    /// Tells whether the disk of the state directory gets too full for what is in the image.
    pub(crate) fn disk_gets_full(&self, run_directory: &Path) -> bool {
        self.image().is_some_and(|image| image.disk_gets_full(run_directory))
    }
}
