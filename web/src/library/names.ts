import type { Item } from './items';

const endings: Record<string, string> = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'image/heic': 'heic',
  'image/heif': 'heif',
  'video/mp4': 'mp4',
  'video/webm': 'webm',
  'video/quicktime': 'mov',
  'audio/mpeg': 'mp3',
  'audio/wav': 'wav',
  'audio/flac': 'flac',
  'audio/ogg': 'ogg',
  'model/gltf-binary': 'glb',
  'text/plain': 'txt',
};

type Named = Pick<Item, 'label' | 'mime_type'>;

/** wordsOf turns a prompt or a file's name into the short first part of a name that every system takes. */
export function wordsOf(label: string | null): string {
  const words = (label ?? '')
    .replace(/\.[a-z0-9]{2,4}$/i, '')
    .normalize('NFC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .slice(0, 48)
    .replace(/^-+|-+$/g, '');

  return words || 'result';
}

/** nameFile returns the name under which one item is saved. */
export function nameFile(item: Named): string {
  return `${wordsOf(item.label)}.${endings[item.mime_type] ?? 'bin'}`;
}

/** nameFiles returns the names of many items in one ZIP file, numbered in their order so that no two are the same. */
export function nameFiles(items: Named[]): string[] {
  const digits = Math.max(2, String(items.length).length);

  return items.map((item, place) => `${String(place + 1).padStart(digits, '0')}-${nameFile(item)}`);
}

/** nameArchive returns the name of a ZIP file that is made at a time. */
export function nameArchive(count: number, now: Date): string {
  const pad = (value: number) => String(value).padStart(2, '0');
  const day = `${now.getFullYear()}-${pad(now.getMonth() + 1)}-${pad(now.getDate())}`;

  return `atelier-${day}-${count}-files.zip`;
}
