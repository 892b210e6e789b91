import { expect, test } from 'vitest';
import { nameAgent } from './agents';

test('nameAgent names browsers and systems', () => {
  const chrome =
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36';
  expect(nameAgent(chrome)).toBe('Chrome on Linux');
  expect(nameAgent(`${chrome} Edg/156.0.0.0`)).toBe('Edge on Linux');
  expect(
    nameAgent('Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605 Version/19.0 Safari/604'),
  ).toBe('Safari on iOS');
  expect(nameAgent('Mozilla/5.0 (Windows NT 10.0; rv:150.0) Gecko/20100101 Firefox/150.0')).toBe('Firefox on Windows');
});

test('nameAgent takes the first word of an app', () => {
  expect(nameAgent('atelier/2.4.0 (linux; amd64)')).toBe('atelier');
  expect(nameAgent('')).toBe('?');
});
