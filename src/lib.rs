//! relatch: a recovery coordinator for Docker.
