import { loadPart } from '../ui/part';
import type { Item } from './items';
import { nameArchive, nameFile, nameFiles } from './names';

export type Progress = { done: number; count: number };

/** FileError says which file could not be read. */
export class FileError extends Error {
  constructor(readonly fileName: string) {
    super(fileName);
  }
}

function saveBlob(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  saveAddress(address, name);
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function saveAddress(address: string, name: string): void {
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
}

async function fetchFile(item: Item, name: string, signal: AbortSignal): Promise<Response> {
  const response = await fetch(item.url, { signal, credentials: 'omit' });
  if (!response.ok) {
    throw new FileError(name);
  }
  return response;
}

// Up to this size a file is read before it is saved, under a name that says what it shows.
const readBytes = 50_000_000;

/**
 * downloadOne saves one file. The service names its files after their tools, and a browser prefers that name, so the file
 * is read first and saved from memory. A large file is saved by the browser itself, unless it is of another origin, since
 * browsers would open it instead.
 */
export async function downloadOne(item: Item, signal: AbortSignal): Promise<void> {
  const name = nameFile(item);
  const here = new URL(item.url, location.href).origin === location.origin;
  if (here && item.size_bytes > readBytes) {
    saveAddress(item.url, name);
    return;
  }
  const response = await fetchFile(item, name, signal);
  saveBlob(await response.blob(), name);
}

type SavePicker = (options: { suggestedName: string }) => Promise<{
  createWritable: () => Promise<WritableStream<Uint8Array>>;
}>;

// From this size on, a ZIP file is written to the disk while it is made; smaller ones fit into memory.
const largeBytes = 500_000_000;

/** openTarget asks where to save a large file that is written while it is made, in browsers that can do so. */
async function openTarget(name: string, bytes: number): Promise<WritableStream<Uint8Array> | undefined> {
  const picker = (globalThis as { showSaveFilePicker?: SavePicker }).showSaveFilePicker;
  if (!picker || bytes < largeBytes) {
    return undefined;
  }
  const file = await picker({ suggestedName: name });

  return file.createWritable();
}

/** downloadMany saves many files as one ZIP file, which is written while the files are read one after the other. */
export async function downloadMany(
  items: Item[],
  onProgress: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<void> {
  const archive = nameArchive(items.length, new Date());
  const bytes = items.reduce((sum, item) => sum + item.size_bytes, 0);
  const target = await openTarget(archive, bytes);
  const { downloadZip } = await loadPart(() => import('client-zip'));
  const names = nameFiles(items);

  async function* files() {
    for (const [place, item] of items.entries()) {
      const name = names[place] ?? nameFile(item);
      signal.throwIfAborted();
      onProgress({ done: place, count: items.length });
      yield { name, lastModified: new Date(item.created), input: await fetchFile(item, name, signal) };
    }
    onProgress({ done: items.length, count: items.length });
  }

  const response = downloadZip(files());
  if (target && response.body) {
    await response.body.pipeTo(target, { signal });
    return;
  }
  const blob = await response.blob();
  signal.throwIfAborted();
  saveBlob(blob, archive);
}
