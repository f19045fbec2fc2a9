//! The books: received, accepted, refused, delivered, queued, dropped. They balance.
