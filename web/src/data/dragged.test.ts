import { expect, test } from 'vitest';
import { type DraggedItem, readDragged } from './dragged';

const carrying = (data: string) => ({ getData: () => data });

test('items of a drag are read as they were written', () => {
  const items: DraggedItem[] = [{ kind: 'LIBRARY_REF', id: 'req_1:0', type: 'IMG', thumb: null }];

  expect(readDragged(carrying(JSON.stringify(items)))).toEqual(items);
});

test('a drag from elsewhere has no items', () => {
  expect(readDragged(carrying(''))).toEqual([]);
  expect(readDragged(carrying('{"kind":"LIBRARY_REF"}'))).toEqual([]);
  expect(readDragged(carrying('[null,{"kind":"OTHER","id":"1","type":"IMG"},{"kind":"UPLOAD_REF"}]'))).toEqual([]);
});
