//! Tunnels between network namespaces.

