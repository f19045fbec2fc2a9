//! The protocol without the socket: records in, plain bytes out, and the other way round.

use crate::expiry::{self, ValidUntil};
use rustls::Error;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError};
use std::io;

/// One connection's secrets, and what of it waits to be sent.
pub(crate) struct TlsSession {
    tls: UnbufferedServerConnection,
    /// How long the certificates are valid that the peer has shown, now or in the session that it resumed.
    pub(crate) valid_until: ValidUntil,
    /// Records that the socket has not taken yet. Empty, and without memory, but for moments.
    pub(crate) unsent: Vec<u8>,
    /// The peer has said that it sends no more.
    pub(crate) ended: bool,
    /// It broke a rule: nothing is read or written any more.
    broken: bool,
}

/// The result of processing some records.
pub(crate) struct ProcessedRecords {
    /// How many bytes of them are done with.
    pub(crate) used: usize,
    /// How many plain bytes they gave.
    pub(crate) plain: usize,
}

impl TlsSession {
    pub(crate) fn new(tls: UnbufferedServerConnection) -> TlsSession {
        TlsSession { tls, valid_until: ValidUntil::NEVER, unsent: Vec::new(), ended: false, broken: false }
    }

    pub(crate) fn tls(&self) -> &UnbufferedServerConnection {
        &self.tls
    }

    /// Takes in whole records. What is in them goes to `into`, and where that is full to `over`.
    pub(crate) fn open(
        &mut self,
        records: &mut [u8],
        into: &mut [u8],
        over: &mut Vec<u8>,
    ) -> io::Result<ProcessedRecords> {
        if self.broken {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let opened = if self.tls.is_handshaking() {
            let mut valid_until = self.valid_until;
            let opened = expiry::during(&mut valid_until, || self.take(records, into, over));
            self.valid_until = valid_until;
            opened
        } else {
            self.take(records, into, over)
        };
        self.broken |= opened.is_err();
        opened
    }

    fn take(
        &mut self,
        records: &mut [u8],
        into: &mut [u8],
        over: &mut Vec<u8>,
    ) -> io::Result<ProcessedRecords> {
        let TlsSession { tls, unsent, ended, .. } = self;
        let (mut used, mut plain) = (0, 0);
        loop {
            let status = tls.process_tls_records(records.get_mut(used..).unwrap_or_default());
            let done = match status.state {
                Err(error) => {
                    self.lament();
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let bytes = record.map_err(invalid)?.payload;
                        let free = into.get_mut(plain..).unwrap_or_default();
                        let (fits, rest) = bytes.split_at(bytes.len().min(free.len()));
                        free.iter_mut().zip(fits).for_each(|(to, from)| *to = *from);
                        plain += fits.len();
                        over.extend_from_slice(rest);
                    }
                    false
                }
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    encode(data, unsent)?;
                    false
                }
                // It is in `unsent`, from where it will be sent.
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    false
                }
                Ok(ConnectionState::PeerClosed) => {
                    *ended = true;
                    false
                }
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => true,
                Ok(ConnectionState::Closed) => {
                    *ended = true;
                    true
                }
                // Early data is not offered.
                Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
            };
            used += status.discard;
            if done {
                return Ok(ProcessedRecords { used, plain });
            }
        }
    }

    /// Makes records of `plain` in `out`; returns how long they are.
    pub(crate) fn seal(&mut self, plain: &[u8], out: &mut [u8]) -> io::Result<usize> {
        self.writing(|traffic| traffic.encrypt(plain, out))
    }

    /// Makes a record that says that nothing more will be sent.
    pub(crate) fn seal_end(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.writing(|traffic| traffic.queue_close_notify(out))
    }

    fn writing(
        &mut self,
        write: impl FnOnce(
            &mut rustls::unbuffered::WriteTraffic<'_, rustls::server::ServerConnectionData>,
        ) -> Result<usize, EncryptError>,
    ) -> io::Result<usize> {
        if self.broken {
            return Err(io::ErrorKind::NotConnected.into());
        }
        loop {
            match self.tls.process_tls_records(&mut []).state.map_err(invalid)? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    return write(&mut traffic).map_err(io::Error::other);
                }
                ConnectionState::EncodeTlsData(data) => encode(data, &mut self.unsent)?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.ended = true,
                _ => return Err(io::ErrorKind::NotConnected.into()),
            }
        }
    }

    /// Puts the alert that follows an error where it will be sent from.
    fn lament(&mut self) {
        // Pending output is handed out before any input is processed, and maybe no input may be processed any more.
        while self.tls.wants_write() {
            let Ok(ConnectionState::EncodeTlsData(data)) = self.tls.process_tls_records(&mut []).state else {
                return;
            };
            if encode(data, &mut self.unsent).is_err() {
                return;
            }
        }
    }

    /// Whether something can still be said.
    pub(crate) fn is_open(&self) -> bool {
        !self.broken && !self.tls.is_handshaking()
    }

    /// From now on nothing is read or written.
    pub(crate) fn give_up(&mut self) {
        self.broken = true;
    }
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn encode<D>(mut data: EncodeTlsData<'_, D>, unsent: &mut Vec<u8>) -> io::Result<()> {
    let needed = match data.encode(&mut []) {
        Ok(_) => return Ok(()),
        Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => required_size,
        Err(error) => return Err(io::Error::other(error)),
    };
    let before = unsent.len();
    // As long as one record, which this made.
    unsent.resize(before + needed, 0);
    let written = data.encode(unsent.get_mut(before..).unwrap_or_default()).map_err(io::Error::other)?;
    unsent.truncate(before + written);
    Ok(())
}
