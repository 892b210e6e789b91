import { mergeRun, type Run } from '../data/runs';
import { freePlaceBeside } from './arrange';
import type { BoardEditor } from './editor';
import { type BoardNode, type Draft, shapeSize, sizeOf } from './model';

/** RunBook knows the newest state of the runs on a board, and their unfinished pictures. */
export class RunBook {
  private readonly runs = new Map<string, Run>();
  private readonly previews = new Map<string, string>();
  private readonly listeners = new Set<() => void>();

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };

  runOf = (id: string) => this.runs.get(id);
  previewOf = (id: string) => this.previews.get(id);

  /** put takes the state of a run. */
  put(run: Run): void {
    const known = this.runs.get(run.request_id);
    this.runs.set(run.request_id, known ? mergeRun(known, run) : run);
    if (run.status !== 'pending') {
      this.previews.delete(run.request_id);
    }
    this.tell();
  }

  /** putPreview takes an unfinished picture of a run. */
  putPreview(id: string, url: string): void {
    this.previews.set(id, url);
    this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners) {
      listener();
    }
  }
}

/** resultDrafts returns the nodes that take the place of a run: the first where the run lies, the others beside it. */
export function resultDrafts(node: BoardNode, run: Run, editor: Pick<BoardEditor, 'boxes'>): Draft[] {
  const others = editor.boxes().filter((box) => box.key !== node.key);
  const place = { x: node.x, y: node.y };
  const drafts: Draft[] = [];

  for (const output of run.outputs.filter((one) => !one.expired)) {
    const room = sizeOf(node).width;
    const shape =
      output.width && output.height ? shapeSize(output.width, output.height) : { width: room, height: room };
    const size =
      output.type === 'AUDIO'
        ? { width: 0, height: 0 }
        : { width: room, height: Math.round((room * shape.height) / shape.width) };
    const [last] = others.slice(-1);
    const at = drafts.length === 0 || !last ? place : freePlaceBeside(last, size, others);
    drafts.push({ kind: 'LIBRARY_REF', ref: output.id, ...at, ...size, z: node.z, item: itemOf(output) });
    others.push({ key: output.id, ...at, width: size.width || room, height: size.height || room });
  }

  return drafts;
}

function itemOf(output: Run['outputs'][number]): Draft['item'] {
  if (!output.url) {
    return null;
  }
  return {
    type: output.type,
    mime_type: output.mime_type,
    url: output.url,
    thumb_url: output.thumb_url,
    preview_url: output.preview_url,
    blurhash: output.blurhash,
    width: output.width,
    height: output.height,
    duration_seconds: output.duration_seconds,
    size_bytes: output.size_bytes,
  };
}
