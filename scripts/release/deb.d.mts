export function formatDeb(options: { version: string; architecture: string; sbom: string }): Buffer
