//! Programs of Debian's packages, unpacked by `make test` and not installed: two syslog daemons would take each other's place.

use crate::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder that the packages were unpacked in.
pub struct Debian(PathBuf);

impl Debian {
    /// The folder, if `program` is in it; otherwise says loudly that it is not, as on other systems.
    pub fn with(program: &str) -> Option<Debian> {
        let name = "TIDEGATE_TEST_SHIPPERS";
        let Some(folder) = std::env::var_os(name).filter(|value| !value.is_empty()) else {
            skip(name, &format!("{name} is not set; `make test` sets it"));
            return None;
        };
        let debian = PathBuf::from(folder).join("debian");
        if !debian.join(program).is_file() {
            let why =
                format!("there is no {program} of Debian's; `make test` unpacks it where there is apt-get");
            skip("debian", &why);
            return None;
        }
        Some(Debian(debian))
    }

    /// A file or folder of the packages.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// rsyslog in the foreground, with this configuration and its state in `state`.
    ///
    /// # Panics
    /// When its library path has a colon.
    pub fn rsyslog(&self, config: &Path, state: &Path) -> Command {
        let mut command = Command::new(self.path("usr/sbin/rsyslogd"));
        command.arg("-n").arg("-f").arg(config).arg("-i").arg(state.join("pid"));
        command.arg("-M").arg(self.path(&library_folder()).join("rsyslog"));
        self.with_libraries(command)
    }

    /// syslog-ng in the foreground, with this configuration and its state in `state`.
    ///
    /// # Panics
    /// When its library path has a colon.
    pub fn syslog_ng(&self, config: &Path, state: &Path) -> Command {
        let mut command = Command::new(self.path("usr/sbin/syslog-ng"));
        command.args(["-F", "-e", "--no-caps", "-f"]).arg(config);
        command.arg("--module-path").arg(self.path("usr/lib/syslog-ng/3.38"));
        for (option, name) in [("-R", "persist"), ("-p", "pid"), ("-c", "control")] {
            command.arg(option).arg(state.join(name));
        }
        self.with_libraries(command)
    }

    /// The program finds the libraries that it came with.
    fn with_libraries(&self, mut command: Command) -> Command {
        let own = library_folder();
        let folders = [own.as_str(), "usr/lib/syslog-ng", own.trim_start_matches("usr/")];
        let path = std::env::join_paths(folders.map(|folder| self.path(folder))).unwrap();
        command.env("LD_LIBRARY_PATH", path);
        command
    }
}

/// Debian's folder for libraries on machines of this kind.
fn library_folder() -> String {
    format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH)
}
