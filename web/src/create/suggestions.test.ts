import { expect, test } from 'vitest';
import type { ToolDetail } from '../data/catalog';
import { makeSuggestions } from './suggestions';

function tool(name: string, type: ToolDetail['output']['type'], fields: object[], tokens = 1): ToolDetail {
  return {
    id: name,
    name,
    description: `${name} makes things. It is fast.`,
    tokens_per_result: tokens,
    output: { type, mime_types: [] },
    fields: fields.map((field) => ({ isField: true, required: false, defaultValue: null, display: {}, ...field })),
  } as unknown as ToolDetail;
}

const prompt = { fieldKey: 'prompt', type: 'PROMPT', required: true, display: { placeholder: 'red fox' } };
const picture = { fieldKey: 'picture', type: 'IMG', required: true };
const words = { fieldKey: 'text', type: 'TEXT_AREA', required: true };

test('a picture from a prompt comes first, then other kinds, then other tools', () => {
  const tools = [
    tool('gradient', 'IMG', []),
    tool('upscale', 'IMG', [picture]),
    tool('sketch', 'IMG', [prompt]),
    tool('speech', 'AUDIO', [words]),
  ];
  const found = makeSuggestions(tools, 100);

  expect(found.map((one) => one.tool.name)).toEqual(['sketch', 'gradient', 'speech']);
  expect(found[0]).toMatchObject({ title: 'red fox', inputs: { prompt: 'red fox' } });
  expect(found[1]).toMatchObject({ title: 'gradient makes things', inputs: {} });
});

test('one tool alone gives three prompts', () => {
  const found = makeSuggestions([tool('sketch', 'IMG', [prompt])], 100);

  expect(new Set(found.map((one) => one.title)).size).toBe(3);
  expect(found.every((one) => one.tool.name === 'sketch')).toBe(true);
});

test('tools that need files or more tokens than there are cannot be tried', () => {
  expect(makeSuggestions([tool('upscale', 'IMG', [picture]), tool('dear', 'IMG', [prompt], 500)], 100)).toEqual([]);
});

test('a prompt that is too long for its field is not offered', () => {
  const short = { ...prompt, display: { max_length: 3 } };

  expect(makeSuggestions([tool('sketch', 'IMG', [short])], 100)).toEqual([]);
});
