import { expect, test } from 'vitest';
import type { Run } from '../data/runs';
import type { BoardNode } from './model';
import { nameOf } from './names';

const node = (fields: Partial<BoardNode>) => ({ item: null, text: '', ...fields }) as BoardNode;

test('a run is named by its tool and prompt as far as they are known', () => {
  const run = node({ kind: 'GENERATION' });
  expect(nameOf(run, { tool_name: 'Sketch', prompt: 'a fox' } as Run)).toBe('Run: Sketch, a fox');
  expect(nameOf(run, { tool_name: 'Sketch', prompt: null } as Run)).toBe('Run: Sketch');
  expect(nameOf(run)).toMatch(/^Run: \S/);
});

test('a text is named by its words, without marks', () => {
  expect(nameOf(node({ kind: 'TEXT', text: '# Coast' }))).toBe('Text: Coast');
});
