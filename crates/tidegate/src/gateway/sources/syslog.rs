//! The source `syslog`.

use super::running::{LARGEST_BATCH, RunningKind, RunningServices, RunningSource};
use super::{SourceEnvironment, SourceKind};
use crate::Failure;
use crate::gateway::unix_socket;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use tidegate_arena::Reservation;
use tidegate_config::{Config, Name, SyslogAddress, SyslogFormat, SyslogFraming, SyslogListener};
use tidegate_journal::{Protocol, Signal};
use tidegate_log_intake::TaskGroup;
use tidegate_syslog::{
    DatagramReceiver, DatagramSocket, Format, Framing, HalfMessages, ParseSettings, StreamReceiver,
    StreamSettings, Zone,
};

pub(super) const KIND: SourceKind = SourceKind {
    name: "syslog",
    max_body_setting: "sources.syslog",
    max_body: |_| LARGEST_BATCH,
    max_received: |_| LARGEST_BATCH,
    records: &[(Protocol::Otlp, Signal::Logs)],
    thread_bytes: tidegate_syslog::THREAD_BYTES,
    allowance: |limits| &limits.syslog,
    shown: |config| {
        let addresses: Vec<String> =
            config.sources.syslog.listeners.values().map(|listener| listener.address.to_string()).collect();
        ("syslog", addresses.join("   "))
    },
    runs: Some(RunningKind {
        is_configured: |config| !config.sources.syslog.listeners.is_empty(),
        declared: |config| config.sources.syslog.listeners.values().map(declared).collect(),
        files: |config| 2 * config.sources.syslog.listeners.len() as u64,
        checkpoints: |_| 0,
        start,
    }),
    start: |http, _| Ok(http),
};

fn declared(listener: &SyslogListener) -> Reservation {
    let (what, bytes) = match listener.address {
        SyslogAddress::Udp(_) | SyslogAddress::UnixDatagram(_) => {
            ("buffers of a syslog listener for datagrams", DatagramReceiver::BUFFER_BYTES)
        }
        _ => (
            "buffers of a syslog listener for connections",
            StreamReceiver::buffer_bytes(listener.max_message.as_usize()),
        ),
    };
    Reservation { owner: "source", what, count: 1, each: bytes as u64, setting: None }
}

fn start(
    environment: &SourceEnvironment<'_>,
    services: &mut RunningServices<'_>,
) -> Result<Box<dyn RunningSource>, Failure> {
    let tasks = TaskGroup::new();
    let half = HalfMessages::new(environment.arena.clone());
    for (name, listener) in &environment.config.sources.syslog.listeners {
        listen(environment, services, (&tasks, &half), (name, listener))?;
    }
    Ok(Box::new(tasks))
}

/// The mistakes in names of time zones, in a sentence each with the setting.
pub(super) fn check(config: &Config) -> Vec<String> {
    let zones = config.sources.syslog.listeners.iter().map(|(name, listener)| zone(name, listener));
    zones.filter_map(Result::err).map(|Failure(error)| error).collect()
}

fn zone(name: &Name, listener: &SyslogListener) -> Result<Zone, Failure> {
    Zone::named(&listener.timezone).ok_or_else(|| {
        let zone = &listener.timezone;
        Failure(format!(
            "`sources.syslog.listeners.{name}.timezone`: the system has no time zone `{zone}`; write `UTC`, `local`, an offset such as `+02:00`, or a name of its time zone database"
        ))
    })
}

fn listen(
    environment: &SourceEnvironment<'_>,
    services: &mut RunningServices<'_>,
    (tasks, half): (&TaskGroup, &HalfMessages),
    (name, listener): (&Name, &SyslogListener),
) -> Result<(), Failure> {
    let config = environment.config;
    let setting = |of: &str| format!("sources.syslog.listeners.{name}.{of}");
    let tenant = listener.tenant.as_ref().or(config.sources.syslog.tenant.as_ref());
    let tenant = tenant.map(|tenant| tenant.as_str());
    let intake = services.intake(environment, tenant, "sources.syslog.tenant")?;
    let zone = zone(name, listener)
        .map_err(|Failure(error)| Failure(format!("starting the source `syslog`: {error}")))?;
    let format = match listener.format {
        SyslogFormat::Auto => Format::Auto,
        SyslogFormat::Rfc5424 => Format::Rfc5424,
        SyslogFormat::Rfc3164 => Format::Rfc3164,
    };
    let parse = ParseSettings { format, zone, is_local: listener.address.socket().is_none() };
    let max_message = listener.max_message.as_usize();
    let address = setting("address");
    let worker = services.workers.worker(0).clone();
    let receive = |socket: DatagramSocket| {
        let receiver = DatagramReceiver::new(intake.clone(), parse.clone(), max_message);
        tasks.spawn_watched(&worker, "the receiver of datagrams", async move {
            if let Err(error) = receiver.run(socket).await {
                tracing::error!(%error, "datagrams of syslog can no longer be received");
            }
        });
    };
    let streams = |transport| {
        let framing = match listener.framing {
            SyslogFraming::Auto => Framing::Auto,
            SyslogFraming::OctetCounting => Framing::OctetCounting,
            SyslogFraming::Newline => Framing::Newline,
        };
        let settings = StreamSettings {
            parse: parse.clone(),
            framing,
            max_message,
            message_timeout: config.limits.body_timeout.get(),
            idle_timeout: listener.idle_timeout.map(|idle| idle.get()),
            transport,
        };
        Arc::new(StreamReceiver::new(intake.clone(), settings, half.clone(), tasks.clone()))
    };
    match &listener.address {
        SyslogAddress::Tcp(at) => {
            services.accept_tcp(config, (address, *at), None, streams("tcp"))?;
        }
        SyslogAddress::Tls(at) => {
            let shown = config.listen.tls.effective_of(&listener.tls);
            let setting = setting("tls");
            let shown = shown.ok_or_else(|| {
                Failure(format!(
                    "listening on {at} (`{address}`): there is no certificate; set `{setting}.cert_file` and `{setting}.key_file`, or those of `listen.tls`"
                ))
            })?;
            services.accept_tcp(config, (address, *at), Some(shown), streams("tcp"))?;
        }
        SyslogAddress::Udp(at) => receive(DatagramSocket::Udp(udp(*at, &address)?)),
        SyslogAddress::Unix(socket) => services.accept_unix((address, socket.path()), streams("unix"))?,
        SyslogAddress::UnixDatagram(path) => {
            let (socket, file) = unix_socket::receive(path.path(), &address)?;
            services.keep(file);
            receive(DatagramSocket::Unix(socket));
        }
    }
    Ok(())
}

fn udp(address: SocketAddr, setting: &str) -> Result<UdpSocket, Failure> {
    let bind = || {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok::<UdpSocket, std::io::Error>(socket)
    };
    bind().map_err(|error| {
        Failure(format!(
            "listening on {address} (`{setting}`): {error}; is another program, or another tidegate, using it?"
        ))
    })
}
