import type { MediaValue } from '../form/fields';
import type { Result } from './results';

/** mediaValueOf is a result as a form holds it. */
export function mediaValueOf(result: Result): MediaValue {
  return { kind: 'LIBRARY_REF', id: result.id, type: result.type, thumb: result.thumb_url, name: result.label };
}
