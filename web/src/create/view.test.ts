import { expect, test } from 'vitest';
import { fit, move, zoomAt } from './view';

test('the point under the pointer stays in its place', () => {
  const view = zoomAt(fit, 2, { x: 100, y: 50 });

  expect(view).toEqual({ scale: 2, x: -100, y: -50 });
  expect(zoomAt(view, 0.5, { x: 100, y: 50 })).toEqual(fit);
});

test('zoom has limits, and a whole picture is not moved', () => {
  expect(zoomAt(fit, 0.2, { x: 0, y: 0 })).toEqual(fit);
  expect(zoomAt(fit, 99, { x: 0, y: 0 }).scale).toBe(16);
  expect(move(fit, 5, 5)).toEqual(fit);
  expect(move({ scale: 2, x: 0, y: 0 }, 5, 6)).toEqual({ scale: 2, x: 5, y: 6 });
});
