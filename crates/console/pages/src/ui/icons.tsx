// Line icons of 16 by 16.

const PATHS: Readonly<Record<string, string>> = {
  overview: "M2.5 8.5 8 3l5.5 5.500M4 7.500V13h8V7.5",
  flow: "M2 4h3.500c3 0 2 8 5 8H14M2 12h3.500c1 0 1.5-1 2-2.200M14 4h-3.500c-1 0-1.5 1-2 2.2",
  sources: "M2 8h8M7 5l3 3-3 3M13.5 3v10",
  sinks: "M6 8h8M11 5l3 3-3 3M2.5 3v10",
  tenants: "M6 7.500a2.25 2.25 0 1 0 0-4.5 2.25 2.25 0 0 0 0 4.500ZM2 13c0-2.2 1.8-3.5 4-3.500s4 1.3 4 3.500M11 3.300a2.2 2.2 0 0 1 0 4M12 9.800c1.3.4 2 1.5 2 3.2",
  memory: "M4 4h8v8H4zM6.5 1.500V4M9.5 1.500V4M6.5 12v2.500M9.5 12v2.500M1.5 6.500H4M1.5 9.500H4M12 6.500h2.500M12 9.500h2.5",
  journal: "M2.5 4.500c0-1.1 2.5-2 5.5-2s5.5.9 5.5 2-2.5 2-5.5 2-5.5-.9-5.5-2ZM2.5 4.500v7c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2v-7M2.5 8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2",
  tap: "M8 2v4M5 6h6v2.500a3 3 0 0 1-6 0zM8 11.500V14M3 3.500l1 1M13 3.500l-1 1",
  traces: "M2 3.500h7M4.5 8H12M7.5 12.500H14",
  logs: "M3 3.500h10M3 6.500h7M3 9.500h10M3 12.500h5",
  metrics: "M2 13.500h12M3 11l3-4 2.5 2L13 3",
  rejects: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM3.8 3.800l8.4 8.4",
  files: "M4 2h5l3 3v9H4zM9 2v3h3",
  agents: "M3 3h10v7H3zM6 13.500h4M8 10v3.5",
  configuration: "M2 4.500h6M11 4.500h3M2 11.500h2M7 11.500h7M9.5 3v3M5.5 10v3",
  menu: "M2 4h12M2 8h12M2 12h12",
  auto: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 2v12M8 5h5M8 8h6M8 11h5",
  light: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1.500V3M8 13v1.500M1.5 8H3M13 8h1.500M3.4 3.400l1 1M11.6 11.600l1 1M12.6 3.400l-1 1M4.4 11.600l-1 1",
  dark: "M13 9.500A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.500Z",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name] ?? ""} />
    </svg>
  );
}
