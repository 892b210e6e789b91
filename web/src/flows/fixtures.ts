import type { ToolDetail } from '../data/catalog';
import type { Leaf } from '../form/fields';
import type { Tools } from './graph';
import type { FlowDraft } from './model';

// Flows and tools for tests.

/** leaf is a field of a tool. */
export function leaf(fieldKey: string, type: Leaf['type'], change: Partial<Leaf> = {}): Leaf {
  return {
    uuid: fieldKey,
    isField: true,
    fieldKey,
    type,
    label: fieldKey,
    required: false,
    defaultValue: null,
    display: {},
    ...change,
  };
}

const tool = (slug: string, type: 'IMG' | 'AUDIO' | 'VID', ...fields: Leaf[]) =>
  ({
    id: slug,
    slug,
    name: slug,
    fields,
    output: { type, mime_types: [] },
    num_results: null,
  }) as unknown as ToolDetail;

/** tools are a tool that draws, one that enlarges, one that makes a sheet of pictures, and one that makes a tune. */
export const tools: Tools = new Map([
  [
    'draw',
    tool('draw', 'IMG', leaf('prompt', 'PROMPT', { required: true }), leaf('style', 'TEXT', { defaultValue: 'flat' })),
  ],
  [
    'large',
    tool('large', 'IMG', leaf('picture', 'IMG', { required: true }), leaf('factor', 'NUM', { defaultValue: 2 })),
  ],
  ['sheet', tool('sheet', 'IMG', leaf('pictures', 'IMGS', { required: true }), leaf('title', 'TEXT'))],
  ['tune', tool('tune', 'AUDIO')],
]);

/** poster is a flow with every kind of source that the canvas shows. */
export const poster: FlowDraft = {
  name: 'Poster',
  description: '',
  fields: [
    { key: 'prompt', type: 'PROMPT', label: 'Prompt', required: true },
    { group: 'More', fields: [{ key: 'photos', type: 'IMGS', label: 'Photos', max_items: 4 }] },
  ],
  steps: [
    { id: 'drawing', tool: 'draw', inputs: { prompt: { field: 'prompt' }, style: 'flat' }, num_results: 2 },
    {
      id: 'print',
      tool: 'large',
      for_each: { step: 'drawing' },
      max: 4,
      inputs: { picture: { item: true } },
      otherwise: 'skip',
    },
    {
      id: 'page',
      tool: 'sheet',
      inputs: {
        pictures: {
          first_of: [{ step: 'print', result: 'all' }, { all_of: [{ step: 'drawing' }, { field: 'photos' }] }],
        },
        title: { value: 'Owls' },
      },
      when: { field: 'prompt', given: true },
    },
  ],
  results: ['page'],
  shared: false,
};
