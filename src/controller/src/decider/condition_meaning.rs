//! What a status of a condition means, where its type is one that many clusters have.

/// Types of which True is the healthy status: Kubernetes' own, and those of EKS' node monitoring agent.
pub(crate) const TRUE_IS_HEALTHY: [&str; 6] = [
    "Ready",
    "KernelReady",
    "NetworkingReady",
    "StorageReady",
    "ContainerRuntimeReady",
    "AcceleratedHardwareReady",
];

/// Types of which False is the healthy status: Kubernetes' own, and those that node-problem-detector has as it is shipped.
pub(crate) const FALSE_IS_HEALTHY: [&str; 13] = [
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "NetworkUnavailable",
    "KernelDeadlock",
    "ReadonlyFilesystem",
    "CorruptDockerOverlay2",
    "FrequentKubeletRestart",
    "FrequentDockerRestart",
    "FrequentContainerdRestart",
    "FrequentUnregisterNetDevice",
    "KubeletUnhealthy",
    "ContainerRuntimeUnhealthy",
];

/// Whether people know which status of that type is the healthy one.
pub(super) fn is_known(kind: &str) -> bool {
    TRUE_IS_HEALTHY.contains(&kind) || FALSE_IS_HEALTHY.contains(&kind)
}

/// Whether a condition of that type and status is what a healthy Node says. Of a type that is not known nobody can tell.
pub(super) fn is_healthy(kind: &str, status: &str) -> bool {
    match status {
        "True" => TRUE_IS_HEALTHY.contains(&kind),
        "False" => FALSE_IS_HEALTHY.contains(&kind),
        _ => false,
    }
}
