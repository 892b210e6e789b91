import type { Schemas } from '../api/client';
import type { DraggedItem } from '../data/dragged';
import type { ViewerItem } from '../data/Viewer';

/** Item is a result or an upload as the library shows it. */
export type Item = ViewerItem & {
  kind: 'LIBRARY_REF' | 'UPLOAD_REF';
  url: string;
  mime_type: string;
  duration_seconds: number | null;
  size_bytes: number;
  created: string;
  /** The prompt of a result, the name of an upload. */
  label: string | null;
  favorited: boolean;
  tool_id: string | null;
  request_id: string | null;
  note: string | null;
};

/** itemOfResult shows a result as an item. */
export function itemOfResult(result: Schemas['LibraryItem']): Item {
  const { team_id: _, prompt, ...rest } = result;

  return { ...rest, kind: 'LIBRARY_REF', label: prompt };
}

/** itemOfUpload shows an upload as an item. */
export function itemOfUpload(upload: Schemas['Upload']): Item {
  const { sha256: _, name, ...rest } = upload;

  return { ...rest, kind: 'UPLOAD_REF', label: name, favorited: false, tool_id: null, request_id: null, note: null };
}

/** draggedOf writes an item as a drag carries it. */
export function draggedOf(item: Item): DraggedItem {
  return { kind: item.kind, id: item.id, type: item.type, thumb: item.thumb_url };
}

/** smallPicture returns the address of the picture that a tile shows; sound has none. */
export function smallPicture(item: Item): string | null {
  return item.thumb_url ?? item.preview_url;
}
