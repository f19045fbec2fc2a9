//! Generators of realistic traffic, and sinks that check what arrives.
