use crate::declare::settings;

settings! {
    /// The console.
    pub struct Console {
        /// Whether traces, logs and metrics in the journal and the lake can be searched on the console's pages, by whoever is on this
        /// machine or has credentials for the admin address. A search takes its memory from what requests leave free of `memory`, in a
        /// process of its own while it runs.
        search: bool = true,
    }
}
