import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { uploadFile } from '../api/client';
import { messageOfUpload } from '../data/uploads';
import { text } from '../text/form';
import { type Leaf, type MediaValue, type Medium, mediumOf, takesMany } from './fields';
import { accepts } from './mediafields';

/** Sending is a file on its way to the service. */
export type Sending = { number: number; key: string; name: string; part: number; stop: () => void };

/** Uploads are the files that a form sends, and the reasons why some were not stored. */
export type Uploads = {
  sending: Sending[];
  /** The reason why the last file of a field was not stored, by `fieldKey`. */
  problems: Record<string, string>;
  addFiles: (field: Leaf, files: Iterable<File>) => void;
  clearProblem: (key: string) => void;
};

const kinds: Array<[string, Medium]> = [
  ['image/', 'IMG'],
  ['video/', 'VID'],
  ['audio/', 'AUDIO'],
  ['model/', 'ASSET_3D'],
];

/** mediumOfFile returns the kind of a file of the system, as far as the browser knows it. */
export function mediumOfFile(file: Pick<File, 'type' | 'name'>): Medium | undefined {
  if (/\.glb$/i.test(file.name)) {
    return 'ASSET_3D';
  }
  if (/\.hei[cf]$/i.test(file.name)) {
    return 'IMG';
  }
  return kinds.find(([start]) => file.type.startsWith(start))?.[1];
}

/** typesOf names the types of files that a field takes. */
export function typesOf(field: Leaf): string {
  const list = field.display.accept;
  if (!list) {
    return text.anyType[mediumOf(field) ?? 'IMG'];
  }
  return list.map((mime) => (mime.split('/')[1] ?? mime).replace(/^x-/, '').toUpperCase()).join(', ');
}

/** checkFile returns why a file cannot go into a field; undefined if the service should decide. */
export function checkFile(field: Leaf, file: Pick<File, 'name' | 'type'>): string | undefined {
  return accepts(field, file.type) ? undefined : text.wrongType(file.name, typesOf(field));
}

/** useUploads sends files as soon as they are chosen and puts them into their fields once they are stored. */
export function useUploads(teamId: string | undefined, onStored: (field: Leaf, file: MediaValue) => void): Uploads {
  const [sending, setSending] = useState<Sending[]>([]);
  const [problems, setProblems] = useState<Record<string, string>>({});
  const count = useRef(0);
  const stored = useRef(onStored);
  stored.current = onStored;
  const running = useRef(new Set<AbortController>());

  useEffect(() => {
    const all = running.current;
    return () => {
      for (const one of all) {
        one.abort();
      }
    };
  }, []);

  const setProblem = useCallback((key: string, problem: string | undefined) => {
    setProblems(({ [key]: _, ...others }) => (problem ? { ...others, [key]: problem } : others));
  }, []);

  const send = useCallback(
    async (field: Leaf, file: File) => {
      count.current += 1;
      const number = count.current;
      const stop = new AbortController();
      running.current.add(stop);
      const entry = { number, key: field.fieldKey, name: file.name, part: 0, stop: () => stop.abort() };
      setSending((all) => [...all, entry]);

      const onProgress = (part: number) =>
        setSending((all) => all.map((one) => (one.number === number ? { ...one, part } : one)));
      try {
        const upload = await uploadFile(file, teamId, onProgress, stop.signal);
        stored.current(field, {
          kind: 'UPLOAD_REF',
          id: upload.id,
          type: upload.type,
          thumb: upload.thumb_url,
          name: upload.name,
        });
      } catch (error) {
        if (!stop.signal.aborted) {
          setProblem(field.fieldKey, text.uploadFailed(file.name, messageOfUpload(file, error)));
        }
      } finally {
        running.current.delete(stop);
        setSending((all) => all.filter((one) => one.number !== number));
      }
    },
    [teamId, setProblem],
  );

  const addFiles = useCallback(
    (field: Leaf, files: Iterable<File>) => {
      const all = [...files];
      const limit = takesMany(field) ? (field.display.max_items ?? 12) : 1;
      setProblem(field.fieldKey, all.length > limit ? text.noRoom(field.label, limit) : undefined);
      for (const file of all.slice(0, limit)) {
        const problem = checkFile(field, file);
        if (problem) {
          setProblem(field.fieldKey, problem);
        } else {
          void send(field, file);
        }
      }
    },
    [send, setProblem],
  );

  return useMemo(
    () => ({ sending, problems, addFiles, clearProblem: (key) => setProblem(key, undefined) }),
    [sending, problems, addFiles, setProblem],
  );
}
