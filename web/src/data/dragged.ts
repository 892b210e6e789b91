import type { Schemas } from '../api/client';

// What is dragged within the studio: results and uploads by their ids. Files of the system come as files.

/** DraggedItem is one result or upload on its way to a media field or a board. */
export type DraggedItem = {
  kind: 'LIBRARY_REF' | 'UPLOAD_REF';
  id: string;
  type: Schemas['Medium'];
  /** The address of a small picture, shown until the item itself is read. */
  thumb: string | null;
};

/** draggedType is the name under which a drag carries items of the studio. */
export const draggedType = 'application/x-atelier-ref';

/** writeDragged puts items on a drag that starts. */
export function writeDragged(transfer: DataTransfer, items: DraggedItem[]): void {
  transfer.effectAllowed = 'copyMove';
  transfer.setData(draggedType, JSON.stringify(items));
}

/** hasDragged reports whether a drag carries items of the studio; which ones is known only when they are dropped. */
export function hasDragged(transfer: DataTransfer | null): boolean {
  return transfer?.types.includes(draggedType) ?? false;
}

/** hasFiles reports whether a drag carries files of the system. */
export function hasFiles(transfer: DataTransfer | null): boolean {
  return transfer?.types.includes('Files') ?? false;
}

/** readDragged returns the items of a drop; a drag from elsewhere has none. */
export function readDragged(transfer: Pick<DataTransfer, 'getData'>): DraggedItem[] {
  try {
    const items: unknown = JSON.parse(transfer.getData(draggedType));

    return Array.isArray(items) ? items.filter(isDraggedItem) : [];
  } catch {
    return [];
  }
}

function isDraggedItem(value: unknown): value is DraggedItem {
  const item = value as Partial<DraggedItem> | null;

  return (
    typeof item === 'object' &&
    item !== null &&
    (item.kind === 'LIBRARY_REF' || item.kind === 'UPLOAD_REF') &&
    typeof item.id === 'string' &&
    typeof item.type === 'string'
  );
}
