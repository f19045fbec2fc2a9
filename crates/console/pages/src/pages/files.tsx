// The files that sources follow: asked for every two seconds while the page is open.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { pause, poll } from "../data/poll";
import { getJson } from "../data/request";
import { bytes } from "../format/bytes";
import { compact, count, percent, plural } from "../format/count";
import { harmless } from "../format/text";
import { Card, Empty, PageHead } from "../ui/card";
import { Dash } from "../ui/dash";
import { FilterBox } from "../ui/filter";
import { Name, Stranger } from "../ui/stranger";
import { Table, type Column } from "../ui/table";

interface FilesReport {
  sources: FollowingSource[];
  files: FollowedFile[];
  next: string | null;
}

interface FollowingSource {
  name: string;
  known: number;
  matching: number;
  lag_bytes: number;
  held: number;
  held_bytes: number;
  untracked: number;
  unreadable: { path: string; reason: string }[];
}

interface FollowedFile {
  source: string;
  input: string;
  path: string;
  state: string;
  offset: number;
  size: number;
  lag_bytes: number;
  records: number;
  records_per_second: number;
  reason: string | null;
}

const POLL_MS = 2_000;
const TYPED_MS = 250;
const MOST = 100;

const COLUMNS: Column<FollowedFile>[] = [
  {
    title: "File",
    head: true,
    cell: (file) => (
      <>
        <Name most={160}>{file.path}</Name>
        <div class="sub">
          {file.source}
          {file.input === "" ? "" : `, ${harmless(file.input)}`}
        </div>
      </>
    ),
  },
  { title: "State", cell: (file) => file.state },
  { title: "Read", right: true, cell: (file) => `${bytes(file.offset)} of ${bytes(file.size)}` },
  { title: "Lag", right: true, cell: (file) => (file.lag_bytes === 0 ? <span class="dim">none</span> : `${bytes(file.lag_bytes)} (${percent(file.lag_bytes, file.size)} %)`) },
  { title: "Records", right: true, cell: (file) => count(file.records) },
  { title: "Lately", right: true, cell: (file) => `${compact(file.records_per_second)}/s` },
  { title: "Why not", wide: true, cell: (file) => (file.reason === null ? <Dash /> : <Stranger text={file.reason} />) },
];

export function Files() {
  const pattern = useSignal("");
  const report = useSignal<FilesReport | undefined>(undefined);
  const problem = useSignal("");
  const wanted = pattern.value.trim();
  useEffect(() => {
    const ended = new AbortController();
    const ask = async (): Promise<void> => {
      const query = new URLSearchParams({ sort: "lag", limit: String(MOST), ...(wanted === "" ? {} : { match: wanted }) });
      const answer = await getJson<FilesReport>(`/files.json?${query.toString()}`, ended.signal);
      if (ended.signal.aborted) return;
      if (answer.ok) report.value = answer.value;
      problem.value = answer.ok ? "" : answer.message;
    };
    // While a pattern is typed, each letter is a new one.
    void pause(report.peek() ? TYPED_MS : 0, ended.signal).then(() => poll(ask, POLL_MS, ended.signal));
    return () => ended.abort();
  }, [wanted]);
  const all = report.value;
  return (
    <>
      <PageHead title="Files" aside={<FilterBox value={pattern} label="Path, or pattern: *.log" />}>
        The log files that sources follow, those with the most lag first.
      </PageHead>
      {problem.value !== "" && <p class="notice warn">{harmless(problem.value)}</p>}
      {all && all.sources.length === 0 && <Empty title="No source follows files.">Configure <code>sources.file</code> or <code>sources.kubernetes_logs</code> to collect logs from files.</Empty>}
      {all?.sources.map((source) => <SourceCard key={source.name} source={source} />)}
      {all && all.sources.length > 0 && (
        <Card title="Most lag" note={all.files.length >= MOST ? `the first ${MOST}` : plural(all.files.length, "file")}>
          <Table caption="Files" columns={COLUMNS} rows={all.files} id={(file) => `${file.source} ${file.input} ${file.path}`} none="No file matches." />
        </Card>
      )}
    </>
  );
}

function SourceCard({ source }: { source: FollowingSource }) {
  return (
    <Card title={source.name} note={`${plural(source.known, "file")} known, ${count(source.matching)} match, ${bytes(source.lag_bytes)} lag`}>
      {source.untracked > 0 && <p class="say warn">{plural(source.untracked, "file")} not read, because <code>max_files</code> others are.</p>}
      {source.held > 0 && <p class="say">{plural(source.held, "deleted file")} still open: {bytes(source.held_bytes)} of disk that is not free yet.</p>}
      {source.unreadable.length > 0 && (
        <ul class="plain">
          {source.unreadable.map((path) => (
            <li key={path.path} class="warn">
              <Stranger text={`${path.path}: ${path.reason}`} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
