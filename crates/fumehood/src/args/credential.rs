//! The verbs about credentials: `credential list`, `show`, `revoke` and `rotate`.

use clap::{Args, Subcommand};

use super::value::reason;

/// Arguments of `credential`.
#[derive(Debug, Args)]
pub struct CredentialArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub verb: CredentialVerb,
}

/// What can be done with credentials.
#[derive(Debug, Subcommand)]
pub enum CredentialVerb {
    /// List the credentials of your settings, and which are in use or taken back
    List(CredentialListArgs),
    /// Show what a credential is for, who has it now and who had it
    Show(CredentialShowArgs),
    /// Take a credential back: what has it loses it at once, and nothing gets it until it is rotated
    Revoke(CredentialRevokeArgs),
    /// Go on with the new value that was put in the place of the old one
    Rotate(CredentialRotateArgs),
}

const LIST_EXAMPLES: &str = "\
Examples:
  fumehood credential list
  fumehood credential list --json

No value is read for that.";

/// Arguments of `credential list`.
#[derive(Debug, Args)]
#[command(after_long_help = LIST_EXAMPLES)]
pub struct CredentialListArgs {}

const SHOW_EXAMPLES: &str = "\
Examples:
  fumehood credential show forge
  fumehood credential show forge --json";

/// Arguments of `credential show`.
#[derive(Debug, Args)]
#[command(after_long_help = SHOW_EXAMPLES)]
pub struct CredentialShowArgs {
    /// The credential
    #[arg(value_name = "CREDENTIAL")]
    pub credential: String,
}

const REVOKE_EXAMPLES: &str = "\
Examples:
  fumehood credential revoke forge --reason 'it was on a screen'
  fumehood credential revoke forge --json

Runs that have it go on without it: connections on which it was used are closed within a fifth of a second, and further
requests are refused. Whoever gave it out has to be told, too: a value that got out is valid there until they end it.";

/// Arguments of `credential revoke`.
#[derive(Debug, Args)]
#[command(after_long_help = REVOKE_EXAMPLES)]
pub struct CredentialRevokeArgs {
    /// The credential
    #[arg(value_name = "CREDENTIAL")]
    pub credential: String,
    /// Why, for the record and for whoever is refused
    #[arg(long, value_name = "TEXT", value_parser = reason, default_value = "no reason was given")]
    pub reason: String,
}

const ROTATE_EXAMPLES: &str = "\
Examples:
  fumehood credential rotate forge

First put the new value where your settings say that it is: the variable, the file, the vault, or what the command prints. What still has
the old one loses it at once. A credential that was taken back can be used again after that.";

/// Arguments of `credential rotate`.
#[derive(Debug, Args)]
#[command(after_long_help = ROTATE_EXAMPLES)]
pub struct CredentialRotateArgs {
    /// The credential
    #[arg(value_name = "CREDENTIAL")]
    pub credential: String,
}
