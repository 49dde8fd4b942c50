//! Cassettes: records of clock, entropy, listings and HTTP. Their schema, ledger and differences are judged here.
