//! Wire formats as views over borrowed bytes: checks, joins and translations. No I/O.
