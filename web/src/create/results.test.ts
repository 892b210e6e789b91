import { expect, test } from 'vitest';
import type { Run } from '../data/runs';
import { fileName, resultsOf } from './results';

const run = {
  prompt: 'Füchse, im Schnee!',
  tool_name: 'Sketch',
  outputs: [
    { id: 'a', expired: false, mime_type: 'image/jpeg' },
    { id: 'b', expired: true, mime_type: 'image/jpeg' },
    { id: 'c', expired: false, mime_type: 'image/png' },
  ],
} as unknown as Run;

test('deleted results are left out and the others are counted anew', () => {
  expect(resultsOf(run).map((one) => [one.id, one.place, one.of])).toEqual([
    ['a', 1, 2],
    ['c', 2, 2],
  ]);
});

test('files are named by the prompt', () => {
  const [first, second] = resultsOf(run);

  expect(first && fileName(first)).toMatch(/^Fu.?chse-im-Schnee-1\.jpg$/);
  expect(second && fileName(second)).toMatch(/-2\.png$/);
});
