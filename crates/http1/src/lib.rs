//! The HTTP/1.1 server codec: strict, and without a buffer while a connection is idle.
