import type { Medium } from '../form/fields';
import { text } from '../text/flows';
import type { FlowField } from './model';

// Which values go into which inputs. The service decides; this is what the canvas can tell while a line is drawn.

type Family = 'text' | 'number' | 'seed' | 'boolean' | 'select' | 'multiselect' | 'size' | 'file' | 'none';

const families: Record<string, Family> = {
  PROMPT: 'text',
  NEG_PROMPT: 'text',
  TEXT: 'text',
  TEXT_AREA: 'text',
  SLIDER: 'number',
  UPSCALE_FACTOR_SLIDER: 'number',
  CFG: 'number',
  STEPS: 'number',
  NUM: 'number',
  SEED: 'seed',
  BOOLEAN: 'boolean',
  SINGLE_SELECT: 'select',
  MODEL_SINGLE_SELECT: 'select',
  MULTI_SELECT: 'multiselect',
  WIDTH_HEIGHT: 'size',
  IMG: 'file',
  IMGS: 'file',
  VIDEO: 'file',
  AUDIO: 'file',
  ASSET_3D: 'file',
};

const media: Record<string, Medium> = { IMG: 'IMG', IMGS: 'IMG', VIDEO: 'VID', AUDIO: 'AUDIO', ASSET_3D: 'ASSET_3D' };

/** Kind is what a handle gives or takes: a family of values, for files their medium, and whether it is a list. */
export type Kind = { family: Family; medium?: Medium; many: boolean };

/** kindOfType returns the kind of a field's type. */
export function kindOfType(type: string | undefined): Kind {
  return { family: families[type ?? ''] ?? 'none', medium: media[type ?? ''], many: type === 'IMGS' };
}

/** kindOfOutput returns the kind of the results of a tool. */
export function kindOfOutput(medium: Medium, many = false): Kind {
  return { family: 'file', medium, many };
}

/** nameOfKind names a kind for people. */
export function nameOfKind({ family, medium, many }: Kind): string {
  if (family === 'file') {
    return many ? text.mediaMany[medium ?? 'IMG'] : text.mediaOne[medium ?? 'IMG'];
  }
  return text.families[family];
}

/** Refusal is the reason why a value does not go into an input. */
export type Refusal = string | undefined;

/** refuseField returns why a field of the flow's form does not go into an input of a tool. */
export function refuseField(from: Kind, to: Kind): Refusal {
  if (from.family !== to.family && !(from.family === 'number' && to.family === 'seed')) {
    return text.wrongKind(nameOfKind(to), nameOfKind(from));
  }
  if (from.medium !== to.medium) {
    return text.wrongKind(nameOfKind(to), nameOfKind(from));
  }
  return from.many && !to.many ? text.onlyOne(nameOfKind(to)) : undefined;
}

/** refuseResult returns why results of a step do not go into an input of a tool. */
export function refuseResult(medium: Medium, to: Kind): Refusal {
  if (to.family !== 'file' || to.medium !== medium) {
    return text.wrongKind(nameOfKind(to), nameOfKind(kindOfOutput(medium)));
  }
  return undefined;
}

/** isList reports whether a field of the flow's form holds a list of files. */
export const isList = (field: FlowField) => field.type === 'IMGS';
