import { expect, test } from 'vitest';
import { parseDraft } from './drafts';

test('a stored draft comes back as it was', () => {
  const draft = { values: { prompt: 'owl', seed: 3 }, count: 4, hash: 'v1:x' };

  expect(parseDraft(JSON.stringify(draft))).toEqual(draft);
});

test('what is no draft counts as none', () => {
  for (const stored of [null, '', 'null', '[1]', '{"values":3}', '{"values":null}', '{broken']) {
    expect(parseDraft(stored)).toEqual({ values: {} });
  }
  expect(parseDraft('{"values":{},"count":"4","hash":7}')).toEqual({ values: {} });
});
