import type { Schemas } from '../api/client';
import type { Run } from '../data/runs';
import { text } from '../text/create';
import { nameOf } from './words';

export type Output = Schemas['GenerationOutput'];

/** Result is one output of a run that can still be seen. */
export type Result = Output & {
  run: Run;
  /** The place among the outputs of the run that are left, from 1, and their number. */
  place: number;
  of: number;
  label: string;
};

/** resultsOf returns the outputs of a run that were not deleted. */
export function resultsOf(run: Run): Result[] {
  const left = run.outputs.filter((output) => !output.expired);

  return left.map((output, at) => ({
    ...output,
    run,
    place: at + 1,
    of: left.length,
    label: text.result(nameOf(run), at + 1, left.length),
  }));
}

/** fileName is the name under which a result is saved. */
export function fileName(result: Pick<Result, 'run' | 'place' | 'of' | 'mime_type'>): string {
  const words = nameOf(result.run)
    .normalize('NFKD')
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60);
  const number = result.of > 1 ? `-${result.place}` : '';

  return `${words || 'result'}${number}.${extensionOf(result.mime_type)}`;
}

const extensions: Record<string, string> = {
  'image/jpeg': 'jpg',
  'audio/mpeg': 'mp3',
  'model/gltf-binary': 'glb',
  'text/plain': 'txt',
  'video/quicktime': 'mov',
  'image/svg+xml': 'svg',
};

function extensionOf(mime: string): string {
  return extensions[mime] ?? mime.split('/')[1]?.replace(/^x-/, '') ?? 'bin';
}
