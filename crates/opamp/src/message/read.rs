//! What an agent sends.

use super::ConfigStatus;
use tidegate_wire::proto::{Key, Malformed, Reader, WireType};

/// A message of an agent, with the parts that matter here. Each is in the agent's bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AgentToServer<'a> {
    pub(crate) instance_uid: &'a [u8],
    pub(crate) sequence: u64,
    pub(crate) description: Option<&'a [u8]>,
    pub(crate) capabilities: u64,
    pub(crate) health: Option<Health<'a>>,
    pub(crate) effective_config: Option<&'a [u8]>,
    pub(crate) remote_config_status: Option<RemoteConfigStatus<'a>>,
    pub(crate) is_disconnect: bool,
    pub(crate) flags: u64,
}

/// The health of an agent as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Health<'a> {
    pub(crate) is_healthy: bool,
    pub(crate) last_error: &'a str,
    pub(crate) status: &'a str,
}

/// The outcome of the configuration that it was sent last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RemoteConfigStatus<'a> {
    pub(crate) hash: &'a [u8],
    pub(crate) status: ConfigStatus,
    pub(crate) error: &'a str,
}

impl<'a> AgentToServer<'a> {
    /// Reads a message.
    ///
    /// # Errors
    /// Where it is malformed. What is not read here is checked no further than its length.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<AgentToServer<'a>, Malformed> {
        let mut message = AgentToServer::default();
        let mut reader = Reader::new(bytes);
        while let Some(key) = reader.key()? {
            match key.field {
                1 => message.instance_uid = reader.bytes(key)?,
                2 => message.sequence = reader.varint(key)?,
                3 => message.description = Some(reader.bytes(key)?),
                4 => message.capabilities = reader.varint(key)?,
                5 => message.health = Some(Health::read(reader.message(key)?)?),
                6 => message.effective_config = Some(reader.bytes(key)?),
                7 => message.remote_config_status = Some(RemoteConfigStatus::read(reader.message(key)?)?),
                9 => {
                    reader.message(key)?;
                    message.is_disconnect = true;
                }
                10 => message.flags = reader.varint(key)?,
                _ => reader.skip(key)?,
            }
        }
        Ok(message)
    }
}

impl<'a> Health<'a> {
    fn read(mut reader: Reader<'a>) -> Result<Health<'a>, Malformed> {
        let mut health = Health::default();
        while let Some(key) = reader.key()? {
            match key.field {
                1 => health.is_healthy = reader.varint(key)? != 0,
                3 => health.last_error = text(reader.bytes(key)?),
                4 => health.status = text(reader.bytes(key)?),
                _ => reader.skip(key)?,
            }
        }
        Ok(health)
    }
}

impl<'a> RemoteConfigStatus<'a> {
    fn read(mut reader: Reader<'a>) -> Result<RemoteConfigStatus<'a>, Malformed> {
        let mut status = RemoteConfigStatus::default();
        while let Some(key) = reader.key()? {
            match key.field {
                1 => status.hash = reader.bytes(key)?,
                2 => status.status = ConfigStatus::of(reader.varint(key)?),
                3 => status.error = text(reader.bytes(key)?),
                _ => reader.skip(key)?,
            }
        }
        Ok(status)
    }
}

/// Gives `put` the name and the body of each file of an effective configuration.
///
/// # Errors
/// Where it is malformed.
pub(crate) fn config_files<'a>(
    effective_config: &'a [u8],
    mut put: impl FnMut(&'a str, &'a [u8]),
) -> Result<(), Malformed> {
    let mut reader = Reader::new(effective_config);
    each(&mut reader, 1, |mut map| {
        each(&mut map, 1, |mut entry| {
            let (mut name, mut body) = ("", &[][..]);
            while let Some(key) = entry.key()? {
                match key.field {
                    1 => name = text(entry.bytes(key)?),
                    2 => each(&mut entry.message(key)?, 1, |file| {
                        body = file.rest();
                        Ok(())
                    })?,
                    _ => entry.skip(key)?,
                }
            }
            put(name, body);
            Ok(())
        })
    })
}

/// Gives `look` each message in a field; skips the others.
pub(super) fn each<'a>(
    reader: &mut Reader<'a>,
    field: u32,
    mut look: impl FnMut(Reader<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    while let Some(key) = reader.key()? {
        match key {
            Key { field: found, wire: WireType::Length } if found == field => look(reader.message(key)?)?,
            _ => reader.skip(key)?,
        }
    }
    Ok(())
}

/// A text; what is not UTF-8 counts as none.
pub(super) fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap_or_default()
}
