import { expect, test } from 'vitest';
import { textOf } from './HtmlNote';

test('tags go, their text stays', () => {
  expect(textOf('<p>Pictures are <b>not</b> kept.</p><p>Ask&nbsp;first &amp; wait.</p>')).toBe(
    'Pictures are not kept. Ask&nbsp;first & wait.',
  );
  expect(textOf('&lt;b&gt;')).toBe('<b>');
});
