//! What the doctor is told of a gateway: the meaning of its configuration, as plain data.

use crate::cli::ConfigArgs;
use crate::commands::check::{CheckedFiles, look};
use crate::gateway::sinks::kinds;
use crate::gateway::{listeners, plan, sources};
use crate::{Failure, VERSION};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tidegate_config::{
    Config, EffectiveTls, Errors, Listener as ListenerName, Origin, Problem, Sink, Substituted, SyslogAddress,
};
use tidegate_doctor::{
    Address, Certificate, Configuration, DataFolder, Durability, Files, Folder, Journal, Lake, Listener,
    Memory, Peer, Program, Setup, Subject,
};

/// The most endpoints of a sink that are asked.
const MOST_PEERS: usize = 64;

/// The gateway that the arguments name.
pub(super) fn of(args: &ConfigArgs) -> Subject {
    let date = env!("TIDEGATE_DATE").parse().ok().map(Duration::from_secs);
    let date = date.and_then(|date| SystemTime::UNIX_EPOCH.checked_add(date));
    let program = Program { version: VERSION.to_owned(), date };
    let mut configuration = Configuration { file: args.config.clone(), ..Configuration::default() };
    let (config, substituted) = match &args.config {
        None => (Some(Config::default()), Substituted::default()),
        Some(file) => {
            // Files that are missing are errors of a configuration that can be read.
            if let Err(errors) = tidegate_config::load_and_look(file) {
                configuration.errors = words(file, &errors);
            }
            match tidegate_config::load(file) {
                Ok(loaded) => {
                    configuration.notes = loaded.warnings;
                    (Some(loaded.config), loaded.substituted)
                }
                Err(errors) => (None, errors.substituted().clone()),
            }
        }
    };
    let Substituted { variables, contents, .. } = substituted;
    let Some(config) = config else {
        return Subject { program, configuration, setup: None, secrets: Vec::new(), contents, variables };
    };
    let CheckedFiles { wrong, notes } = look(&config);
    let setup = setup(&config);
    // Of files there is a check of its own.
    let is_of_files =
        |text: &String| [&setup.files.error, &setup.files.shortage].contains(&&Some(text.clone()));
    configuration.errors.extend(wrong.into_iter().filter(|error| !is_of_files(error)));
    let notes = notes.into_iter().filter(|note| !is_of_files(note)).collect::<Vec<_>>();
    configuration.notes.extend(notes);
    // Tests have examples of telemetry.
    let without_tests = Config { tests: Config::default().tests, ..config.clone() };
    configuration.effective = tidegate_config::effective(&without_tests);
    let secrets = tidegate_config::secrets(&config);
    Subject { program, configuration, setup: Some(setup), secrets, contents, variables }
}

/// Each error with its place, its line and what to do.
fn words(file: &Path, errors: &Errors) -> Vec<String> {
    let file = file.display();
    let words = |problem: &Problem| {
        let mut text = match &problem.place {
            None => format!("{file}: {}", problem.message),
            Some(place) => format!(
                "{file}:{}:{}: {}\n  {} | {}",
                place.line, place.column, problem.message, place.line, place.excerpt
            ),
        };
        if !problem.help.is_empty() {
            text.push_str(&format!("\nhelp: {}", problem.help));
        }
        text
    };
    errors.problems().iter().map(words).collect()
}

fn setup(config: &Config) -> Setup {
    let planned = plan::of(config);
    let files = planned.files;
    let memory = Memory {
        budget: planned.budget.bytes.get(),
        origin: planned.budget.to_string(),
        is_configured: planned.budget.origin == Origin::Configured,
        kernel: tidegate_config::kernel_needs(planned.budget.bytes, planned.connections).get(),
        address_space: planned.window as u64 * planned.windows as u64,
    };
    let follows_files =
        sources::configured(config).any(|kind| matches!(kind.name, "file" | "kubernetes_logs"));
    let files = Files {
        needed: files.needed(),
        allowed: files.allowed(),
        error: files.check().err().map(|error| error.to_string()),
        shortage: files.is_short().then(|| files.to_string()),
        follows_files,
    };
    let (peers, left_out) = peers(config);
    Setup {
        memory,
        files,
        data: data(config),
        listeners: listeners(config),
        admin: config.listen.admin,
        certificates: certificates(config),
        peers,
        left_out,
        sinks: config.sinks.keys().map(|name| name.as_str().to_owned()).collect(),
    }
}

fn data(config: &Config) -> DataFolder {
    let journal = Journal {
        quota: config.journal.quota.get(),
        segment: config.journal.segment.get(),
        durability: match config.journal.durability {
            tidegate_config::Durability::Fsync => Durability::Fsync,
            tidegate_config::Durability::PageCache => Durability::PageCache,
            tidegate_config::Durability::Memory => Durability::Memory,
        },
    };
    let (mut lakes, mut others) = (Vec::new(), Vec::new());
    for (name, sink) in &config.sinks {
        if let Sink::Lake(lake) = sink {
            let (path, retention) = (lake.folder(&config.data), lake.retention.bytes.get());
            lakes.push(Lake { sink: name.to_string(), path, retention });
        }
        if let Some(handoff) = kinds::of(sink).handoff() {
            let path =
                handoff.path.clone().unwrap_or_else(|| config.data.join("handoff").join(name.as_str()));
            let setting = format!("sinks.{name}.handoff");
            others.push(Folder { setting, path, quota: handoff.total_quota.get() });
        }
    }
    if let Some(fleet) = &config.listen.fleet {
        let (setting, path) = ("listen.fleet".to_owned(), config.data.join("fleet"));
        others.push(Folder { setting, path, quota: fleet.files.get() });
    }
    DataFolder { path: config.data.clone(), journal, lakes, others }
}

fn listeners(config: &Config) -> Vec<Listener> {
    let listener = |setting: String, address| Listener { setting, address };
    let shared = listeners::addresses(&config.listen).map(|(setting, address)| {
        let address = match address {
            listeners::Address::Tcp(address) => Address::Tcp(address),
            listeners::Address::Unix(path) => Address::Unix(path.to_owned()),
        };
        listener(setting.to_owned(), address)
    });
    let syslog = config.sources.syslog.listeners.iter().map(|(name, settings)| {
        let address = match &settings.address {
            SyslogAddress::Tcp(address) | SyslogAddress::Tls(address) => Address::Tcp(*address),
            SyslogAddress::Udp(address) => Address::Udp(*address),
            SyslogAddress::Unix(socket) | SyslogAddress::UnixDatagram(socket) => {
                Address::Unix(socket.path().to_owned())
            }
        };
        listener(format!("sources.syslog.listeners.{name}"), address)
    });
    let forward = &config.sources.fluent_forward;
    let tcp = forward
        .address
        .map(|address| listener("sources.fluent_forward.address".to_owned(), Address::Tcp(address)));
    let unix = forward.unix.as_ref().map(|socket| {
        listener("sources.fluent_forward.unix".to_owned(), Address::Unix(socket.path().to_owned()))
    });
    shared.chain(syslog).chain(tcp).chain(unix).collect()
}

fn certificates(config: &Config) -> Vec<Certificate> {
    let mut all: Vec<Certificate> = Vec::new();
    let mut add = |certificate: Certificate| {
        // One that several addresses show is one.
        if !all.iter().any(|known| (&known.file, &known.key) == (&certificate.file, &certificate.key)) {
            all.push(certificate);
        }
    };
    let mut shown = |setting: &str, tls: Option<EffectiveTls<'_>>, address: Option<SocketAddr>| {
        let (Some(tls), Some(_)) = (tls, address) else { return };
        let (file, key) = (tls.cert_file.to_owned(), Some(tls.key_file.to_owned()));
        add(Certificate { setting: setting.to_owned(), file, key, shown_at: address });
        if let Some(ca) = tls.client_ca_file {
            let setting = format!("{setting}, authorities of clients");
            add(Certificate { setting, file: ca.to_owned(), key: None, shown_at: None });
        }
    };
    let tls = &config.listen.tls;
    for listener in ListenerName::ALL {
        shown(&format!("listen.{listener}"), tls.effective(listener), listener.address(&config.listen));
    }
    for (name, listener) in &config.sources.syslog.listeners {
        if let SyslogAddress::Tls(address) = listener.address {
            shown(
                &format!("sources.syslog.listeners.{name}"),
                tls.effective_of(&listener.tls),
                Some(address),
            );
        }
    }
    let forward = &config.sources.fluent_forward;
    let own = forward.tls.as_ref().and_then(|own| tls.effective_of(own));
    shown("sources.fluent_forward", own, forward.address);
    for (name, sink) in &config.sinks {
        let Some(tls) = sink.tls() else { continue };
        if let Some(file) = &tls.ca_file {
            let setting = format!("sinks.{name}.tls.ca_file");
            add(Certificate { setting, file: file.clone(), key: None, shown_at: None });
        }
        if let Some((file, key)) = tls.cert_file.clone().zip(tls.key_file.clone()) {
            let setting = format!("sinks.{name}.tls.cert_file");
            add(Certificate { setting, file, key: Some(key), shown_at: None });
        }
    }
    let postgres = config.listen.fleet.as_ref().and_then(|fleet| fleet.postgres.as_ref());
    if let Some(file) = postgres.and_then(|postgres| postgres.ca_file.clone()) {
        let setting = "listen.fleet.postgres.ca_file".to_owned();
        add(Certificate { setting, file, key: None, shown_at: None });
    }
    all
}

/// Sinks, each with how many of its endpoints are left out.
type LeftOut = Vec<(String, usize)>;

/// The endpoints of all sinks, or why there are none; and the sinks that have too many, with how many are left out.
fn peers(config: &Config) -> (Vec<Result<Peer, String>>, LeftOut) {
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    for (name, sink) in &config.sinks {
        match kinds::of(sink).probes() {
            Err(Failure(error)) => all.push(Err(format!("`sinks.{name}`: {error}"))),
            Ok(probes) => {
                let more = probes.len().saturating_sub(MOST_PEERS);
                if more > 0 {
                    left_out.push((name.to_string(), more));
                }
                let peer = |probe| Ok(Peer { sink: name.to_string(), kind: sink.kind(), probe });
                all.extend(probes.into_iter().take(MOST_PEERS).map(peer));
            }
        }
    }
    (all, left_out)
}
