//! Datagrams that the kernel dropped because the socket's buffer was full.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd;

/// Counts the drops of one UDP socket.
pub(crate) struct KernelDrops {
    inode: Option<u64>,
    seen: u64,
}

impl KernelDrops {
    /// Those of `socket`, from now on.
    pub(crate) fn of(socket: &impl AsFd) -> KernelDrops {
        let inode = rustix::fs::fstat(socket).ok().map(|stat| stat.st_ino);
        let mut drops = KernelDrops { inode, seen: 0 };
        drops.take();
        drops
    }

    /// How many there were since the last call.
    pub(crate) fn take(&mut self) -> u64 {
        let Some(all) = self.inode.and_then(drops) else { return 0 };
        let more = all.saturating_sub(self.seen);
        self.seen = all;
        more
    }
}

/// All drops of the UDP socket with this inode, as `/proc/net/udp` and `/proc/net/udp6` have them.
fn drops(inode: u64) -> Option<u64> {
    ["/proc/self/net/udp", "/proc/self/net/udp6"].into_iter().find_map(|path| {
        let lines = BufReader::new(File::open(path).ok()?).lines();
        lines.map_while(Result::ok).find_map(|line| drops_of(&line, inode))
    })
}

/// `sl local rem st tx:rx tr:tm retrnsmt uid timeout inode ref pointer drops`
fn drops_of(line: &str, inode: u64) -> Option<u64> {
    let mut columns = line.split_ascii_whitespace().skip(9);
    let is_it = columns.next()?.parse() == Ok(inode);
    is_it.then(|| columns.nth(2)?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// A datagram that a socket has no room for is counted once.
    #[test]
    fn counts_what_overflows() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut drops = KernelDrops::of(&receiver);
        assert_eq!(drops.take(), 0);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = receiver.local_addr().unwrap();
        let sent = (0..20_000).filter(|_| sender.send_to(&[b'x'; 1000], address).is_ok()).count() as u64;
        receiver.set_nonblocking(true).unwrap();
        let (mut received, mut buffer) = (0, [0; 2000]);
        while receiver.recv(&mut buffer).is_ok() {
            received += 1;
        }
        assert!(received < sent, "nothing overflowed");
        let dropped = drops.take();
        // Some may be dropped before they reach the socket.
        assert!(dropped > 0 && dropped + received <= sent, "{dropped} and {received} of {sent}");
        assert_eq!(drops.take(), 0);
    }
}
