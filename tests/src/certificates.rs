//! Certificates that `openssl` makes.

use crate::finish;
use std::path::Path;
use std::process::Command;

/// Makes a certificate authority in `folder`: `NAME.pem`, `NAME.key`.
///
/// # Panics
/// When `openssl` fails.
pub fn authority(folder: &Path, name: &str) {
    openssl(folder, &format!("ecparam -genkey -name prime256v1 -noout -out {name}.key"));
    openssl(folder, &format!("req -x509 -new -key {name}.key -subj /CN={name} -days 2 -out {name}.pem"));
}

/// Makes a certificate for this machine, signed by `authority`: `NAME.pem`, `NAME.key`, which take the place of earlier ones.
///
/// # Panics
/// When `openssl` fails.
pub fn sign(folder: &Path, authority: &str, name: &str, subject: &str) {
    std::fs::write(folder.join("san"), "subjectAltName=DNS:localhost,IP:127.0.0.1").unwrap();
    openssl(folder, &format!("ecparam -genkey -name prime256v1 -noout -out {name}.new"));
    openssl(folder, &format!("req -new -key {name}.new -subj {subject} -out {name}.csr"));
    let by = format!("-CA {authority}.pem -CAkey {authority}.key -CAcreateserial");
    openssl(folder, &format!("x509 -req -in {name}.csr {by} -days 2 -extfile san -out {name}.crt"));
    for (made, named) in [("new", "key"), ("crt", "pem")] {
        let path = |extension| folder.join(format!("{name}.{extension}"));
        std::fs::rename(path(made), path(named)).unwrap();
    }
}

fn openssl(folder: &Path, arguments: &str) {
    finish(Command::new("openssl").args(arguments.split(' ')).current_dir(folder)).succeeded();
}
