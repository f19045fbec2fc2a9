use crate::declare::settings;

settings! {
    /// A sink that forgets; it has no settings.
    pub struct BlackholeSink {}
}
