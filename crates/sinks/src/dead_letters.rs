//! shim
use tidegate_journal::Meta;
/// shim
#[derive(Clone, Debug)]
pub struct DeadLetters;
/// shim
pub struct DeadLetter<'a> {
    /// s
    pub sink: &'a str,
    /// s
    pub reason: &'a str,
    /// s
    pub meta: &'a Meta,
    /// s
    pub body: &'a [u8],
}
impl DeadLetters {
    /// s
    pub fn add(&self, _l: DeadLetter<'_>) -> std::io::Result<()> {
        Ok(())
    }
}
