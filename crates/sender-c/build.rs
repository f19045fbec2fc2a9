//! Gives the shared library its name for the loader, so that programs keep to one version of the interface.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if matches!(system.as_str(), "linux" | "freebsd" | "netbsd" | "openbsd" | "android") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtidegate_sender_c.so.0");
    }
}
