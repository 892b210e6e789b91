import { describe, expect, it } from 'vitest';
import type { ToolDetail } from '../data/catalog';
import { changeSeed, composeInputs, promptField, takesInputs } from './inputs';

const field = (fieldKey: string, type: string, required = false, defaultValue: unknown = null) => ({
  uuid: fieldKey,
  isField: true,
  fieldKey,
  type,
  label: fieldKey,
  required,
  defaultValue,
  display: {},
});
const tool = (...fields: unknown[]) =>
  ({ fields: [{ isField: false, label: 'All', children: fields }] }) as unknown as ToolDetail;
const picture = { kind: 'LIBRARY_REF' as const, id: 'a:1', type: 'IMG' };

describe('inputs', () => {
  it('puts the prompt and files into their fields, and leaves defaults to the service', () => {
    const made = composeInputs(
      tool(field('words', 'PROMPT', true), field('image', 'IMG', true), field('steps', 'STEPS', true, 20)),
      ' a fox ',
      [picture],
    );
    expect(made).toEqual({ words: 'a fox', image: { kind: 'LIBRARY_REF', id: 'a:1' } });
  });

  it('fills a list of pictures up to its limit', () => {
    const images = { ...field('images', 'IMGS', true), display: { max_items: 1 } };
    expect(composeInputs(tool(images), '', [picture, { ...picture, id: 'b:1' }])).toEqual({
      images: [{ kind: 'LIBRARY_REF', id: 'a:1' }],
    });
  });

  it('refuses what it cannot ask for', () => {
    expect(composeInputs(tool(field('words', 'PROMPT'), field('image', 'IMG', true)), 'x', [])).toBeUndefined();
    expect(composeInputs(tool(field('words', 'PROMPT')), 'x', [picture])).toBeUndefined();
    expect(takesInputs(tool(field('words', 'PROMPT')), [picture])).toBe(false);
  });

  it('finds the prompt, and drops the seed', () => {
    expect(promptField(tool(field('say', 'TEXT_AREA', true)))?.fieldKey).toBe('say');
    expect(changeSeed({ words: 'x', seed: 7 }, tool(field('seed', 'SEED')))).toEqual({ words: 'x' });
  });
});
