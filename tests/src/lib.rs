//! Whole-program tests: tidegate as a process among real clients and servers.
