import { useCallback, useState } from 'react';
import { uploadFile } from '../api/client';
import { messageOfUpload } from '../data/uploads';
import { text } from '../text/boards';
import { useToast } from '../ui/Toast';
import { placeInGrid } from './arrange';
import type { BoardEditor } from './editor';
import { type Draft, longestSide, type NodeItem, type Point, shapeSize } from './model';

export type Uploading = { id: number; name: string; part: number };

let count = 0;

/** sizeOfItem returns the size at which a file is put on the board. */
export function sizeOfItem(item: NodeItem): { width: number; height: number } {
  if (item.type === 'AUDIO') {
    return { width: 300, height: 108 };
  }
  return item.width && item.height ? shapeSize(item.width, item.height) : { width: longestSide, height: longestSide };
}

/** draftsAround returns nodes for results and uploads, side by side around a point. */
export function draftsAround(
  picked: Array<{ kind: 'LIBRARY_REF' | 'UPLOAD_REF'; id: string; item: NodeItem | null }>,
  at: Point,
): Draft[] {
  const sizes = picked.map(({ item }) => (item ? sizeOfItem(item) : { width: longestSide, height: longestSide }));
  const places = placeInGrid(sizes, at);

  return picked.map(({ kind, id, item }, index) => ({
    kind,
    ref: id,
    item,
    ...(places[index] ?? at),
    ...(item ? sizes[index] : {}),
  }));
}

/** useUploads stores files and puts them on the board when they are there. */
export function useUploads(editor: BoardEditor, teamId: string | undefined) {
  const toast = useToast();
  const [running, setRunning] = useState<Uploading[]>([]);

  const upload = useCallback(
    async (files: File[], at: Point) => {
      const places = placeInGrid(
        files.map(() => ({ width: longestSide, height: longestSide })),
        at,
      );
      let done = 0;

      const uploadOne = async (file: File, place: Point) => {
        count += 1;
        const id = count;
        setRunning((before) => [...before, { id, name: file.name, part: 0 }]);
        const onProgress = (part: number) =>
          setRunning((before) => before.map((one) => (one.id === id ? { ...one, part } : one)));
        try {
          const stored = await uploadFile(file, teamId, onProgress);
          editor.add([{ kind: 'UPLOAD_REF', ref: stored.id, item: stored, ...place, ...sizeOfItem(stored) }]);
          done += 1;
        } catch (error) {
          toast({ text: text.uploadFailed(file.name, messageOfUpload(file, error)), seconds: 12 });
        }
        setRunning((before) => before.filter((one) => one.id !== id));
      };

      for (const [index, file] of files.entries()) {
        await uploadOne(file, places[index] ?? at);
      }
      if (done > 0) {
        toast({ text: text.uploadsDone(done) });
      }
    },
    [editor, teamId, toast],
  );

  return { running, upload };
}
