import { describe, expect, it } from 'vitest';
import {
  alignBoxes,
  boundsOf,
  boxesInside,
  distributeBoxes,
  findGuides,
  freePlaceBeside,
  placeInGrid,
  readingOrder,
  stackChanges,
} from './arrange';

const box = (key: string, x: number, y: number, width = 10, height = 10) => ({ key, x, y, width, height });

describe('arrange', () => {
  it('finds the rectangle around boxes', () => {
    expect(boundsOf([box('a', 0, 5), box('b', 20, -5, 30, 5)])).toEqual({ x: 0, y: -5, width: 50, height: 20 });
    expect(boundsOf([])).toEqual({ x: 0, y: 0, width: 0, height: 0 });
  });

  it('aligns at each edge and middle', () => {
    const boxes = [box('a', 0, 0, 10, 10), box('b', 30, 40, 20, 20)];
    expect(alignBoxes(boxes, 'left')).toEqual([
      ['a', { x: 0 }],
      ['b', { x: 0 }],
    ]);
    expect(alignBoxes(boxes, 'right')[0]).toEqual(['a', { x: 40 }]);
    expect(alignBoxes(boxes, 'bottom')[0]).toEqual(['a', { y: 50 }]);
    expect(alignBoxes(boxes, 'center')[1]).toEqual(['b', { x: 15 }]);
    expect(alignBoxes(boxes, 'middle')[0]).toEqual(['a', { y: 25 }]);
  });

  it('spreads boxes evenly and leaves the outer two', () => {
    const boxes = [box('c', 100, 0), box('a', 0, 0), box('b', 10, 0, 20)];
    expect(distributeBoxes(boxes, 'across')).toEqual([
      ['a', { x: 0 }],
      ['b', { x: 45 }],
      ['c', { x: 100 }],
    ]);
    expect(distributeBoxes(boxes.slice(0, 2), 'down')).toEqual([]);
  });

  it('tells what lies in a frame', () => {
    const frame = box('frame', 0, 0, 100, 100);
    const inside = box('in', 90, 90, 18, 18);
    expect(boxesInside(frame, [frame, inside, box('out', 96, 96), box('larger', -50, -50, 200, 200)])).toEqual([
      inside,
    ]);
  });

  it('finds the nearest line within reach', () => {
    const guides = findGuides(box('m', 102, 50), [box('a', 100, 0), box('b', 90, 200, 10, 10)], 6);
    expect(guides.dx).toBe(-2);
    expect(guides.vertical).toEqual({ x: 100, from: 0, to: 60 });
    expect(guides.dy).toBe(0);
    expect(guides.horizontal).toBeUndefined();
    expect(findGuides(box('m', 103, 50), [box('a', 500, 500)], 6)).toEqual({ dx: 0, dy: 0 });
  });

  it('reads in rows', () => {
    const order = readingOrder([box('d', 0, 30), box('b', 50, 2), box('a', 0, 4), box('c', 90, 0)]);
    expect(order.map((one) => one.key)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('places several around a point and one beside another', () => {
    const places = placeInGrid(
      [1, 2, 3, 4].map(() => ({ width: 100, height: 50 })),
      { x: 0, y: 0 },
      20,
    );
    expect(places).toEqual([
      { x: -110, y: -60 },
      { x: 10, y: -60 },
      { x: -110, y: 10 },
      { x: 10, y: 10 },
    ]);
    const beside = freePlaceBeside(box('a', 0, 0), { width: 10, height: 10 }, [box('b', 34, 0)]);
    expect(beside).toEqual({ x: 34, y: 34 });
  });

  it('stacks in front and behind, in the same order', () => {
    const all = [3, 1, 2].map((z) => ({ key: `n${z}`, z }));
    expect(stackChanges(all.slice(0, 2), all, 'front')).toEqual([
      ['n1', { z: 3 }],
      ['n3', { z: 4 }],
    ]);
    expect(stackChanges(all.slice(0, 1), all, 'back')).toEqual([['n3', { z: -1 }]]);
  });
});
