//! The commands about the fleet.

use super::opamp::{CollectorCommand, ConfigCommand};
use super::{AdminArgs, ConfigArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The running gateway, and how to print.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Show the fleet as a whole: agents by status and version, and what has happened since the start
    Status(FleetArgs),
    /// Policies: what agents are to run
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Enrolment tokens: who may join
    #[command(subcommand)]
    Token(TokenCommand),
    /// Agents
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Actions: what agents were told to do, and what they said
    #[command(subcommand)]
    Action(ActionCommand),
    /// Uploads: files that agents have sent, such as diagnostics
    #[command(subcommand)]
    Upload(UploadCommand),
    /// Artifacts: files that policies list
    #[command(subcommand)]
    Artifact(ArtifactCommand),
    /// Files that actions name
    #[command(subcommand)]
    File(AgentFileCommand),
    /// Configurations of collectors that speak OpAMP
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Collectors, and other agents that speak OpAMP
    #[command(subcommand)]
    Collector(CollectorCommand),
    /// Make an enrolment token, and print the line to run on a host
    EnrollCommand(EnrollCommandArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Put a policy, and say what changes for how many agents
    ///
    /// The file is YAML or JSON: what Kibana shows as a policy, with `outputs` and `inputs`. It can be kept in version control: a
    /// policy that has not changed keeps its revision. An invalid one is refused, and the old one stays.
    Put {
        /// The file
        file: PathBuf,
        /// The policy's id. Default: `id` in the file, or else the file's name
        #[arg(long)]
        id: Option<String>,
        /// Only show what would change
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// List policies
    Ls(FleetArgs),
    /// Show a policy, as it can be changed and put again
    Show {
        /// The policy's id
        id: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Show what putting a file would change
    Diff {
        /// The file
        file: PathBuf,
        /// The policy's id. Default: `id` in the file, or else the file's name
        #[arg(long)]
        id: Option<String>,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Remove a policy that no agent and no token has
    Rm {
        /// The policy's id
        id: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token with which agents enrol under a policy
    Create {
        /// The policy's id
        #[arg(long)]
        policy: String,
        /// A name, for people
        #[arg(long, default_value = "")]
        name: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// List tokens, without their secrets
    Ls(FleetArgs),
    /// Revoke a token: nobody enrols with it any more
    Revoke {
        /// The token's id
        id: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
}

/// The agents of an action.
#[derive(Debug, Args)]
#[group(required = true)]
pub(crate) struct AgentFilter {
    /// Ids of agents
    pub(crate) ids: Vec<String>,
    /// All agents of this policy
    #[arg(long, value_name = "ID", conflicts_with = "ids")]
    pub(crate) policy: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// List agents
    Ls {
        /// Only those that report this health, such as `error` or `degraded`
        #[arg(long)]
        status: Option<String>,
        /// Only those with this policy
        #[arg(long)]
        policy: Option<String>,
        /// Only those with this in their id or the name of their host
        #[arg(long, value_name = "TEXT")]
        host: Option<String>,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Show an agent, with its metadata
    Show {
        /// The agent's id
        id: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Give an agent another policy
    Reassign {
        /// The agent's id
        id: String,
        /// The new policy's id
        #[arg(long)]
        policy: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Have agents unenrol: their keys are revoked when they have acknowledged it
    Unenroll {
        #[command(flatten)]
        agents: AgentFilter,
        /// Revoke their keys at once, without telling them
        #[arg(long, conflicts_with = "policy")]
        force: bool,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Have agents upgrade
    Upgrade {
        #[command(flatten)]
        agents: AgentFilter,
        /// The version
        #[arg(long)]
        version: String,
        /// Where the packages are, if not at Elastic
        #[arg(long, value_name = "URI")]
        source_uri: Option<String>,
        /// Spread the starts over this many seconds
        #[arg(long, value_name = "SECONDS")]
        rollout_seconds: Option<u64>,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Have agents collect diagnostics
    Diagnostics {
        #[command(flatten)]
        agents: AgentFilter,
        #[command(flatten)]
        fleet: FleetArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ActionCommand {
    /// List actions, the newest first
    Ls(FleetArgs),
    /// Show an action, and what agents said
    Show {
        /// The action's id
        id: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Cancel an action: agents that have not got it do not get it, and those that have got it are told to cancel it
    ///
    /// An agent that has finished the action does not undo it. If this fails in the middle, run it again: it tells the agents that were left out.
    Cancel {
        /// The action's id
        id: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UploadCommand {
    /// List uploads, the newest first
    Ls(FleetArgs),
    /// Fetch an upload
    Get {
        /// The upload's id, as in `data.upload_id` of what the agent says of the action
        id: String,
        /// Where to write it. Default: the standard output
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Remove an upload
    Rm {
        /// The upload's id
        id: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactCommand {
    /// Put an artifact, and print the path by which policies list it (`relative_url`)
    Put {
        /// The file, as agents get it
        file: PathBuf,
        /// Its id in policies. Default: the file's name
        #[arg(long)]
        id: Option<String>,
        /// The SHA-256 of what the file decodes to, where it is compressed: policies list it by that
        #[arg(long, value_name = "SHA256")]
        decoded_sha256: Option<String>,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// List artifacts, the newest first
    Ls(FleetArgs),
    /// Remove an artifact
    Rm {
        /// What policies call it
        id: String,
        /// The SHA-256 in its path
        sha256: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentFileCommand {
    /// Put a file, and print its id: agents may fetch it while they have an action with the id in its data
    Put {
        /// The file
        file: PathBuf,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// List files for agents, the newest first
    Ls(FleetArgs),
    /// Remove a file
    Rm {
        /// The file's id
        id: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct EnrollCommandArgs {
    /// The policy's id
    #[arg(long)]
    pub(crate) policy: String,
    /// The URL by which hosts reach `listen.fleet`, such as https://gateway.example:8220
    #[arg(long)]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
}
