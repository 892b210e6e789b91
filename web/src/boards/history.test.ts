import { describe, expect, it } from 'vitest';
import { History, type Target } from './history';
import type { Draft, Fields } from './model';

class Table implements Target {
  nodes = new Map<string, Fields>();
  update(changes: Array<[string, Fields]>) {
    for (const [key, fields] of changes) {
      this.nodes.set(key, { ...this.nodes.get(key), ...fields });
    }
  }
  restore(key: string, { kind: _kind, item: _item, ref: _ref, ...fields }: Draft) {
    this.nodes.set(key, fields);
  }
  remove(keys: string[]) {
    for (const key of keys) {
      this.nodes.delete(key);
    }
  }
}

describe('History', () => {
  it('takes back and makes again', () => {
    const table = new Table();
    const history = new History();
    table.restore('a', { kind: 'TEXT', x: 0, y: 0 });
    history.record([{ kind: 'add', key: 'a', draft: { kind: 'TEXT', x: 0, y: 0 } }]);
    table.update([['a', { x: 5 }]]);
    history.record([{ kind: 'set', key: 'a', before: { x: 0 }, after: { x: 5 } }]);
    table.remove(['a']);
    history.record([{ kind: 'remove', key: 'a', draft: { kind: 'TEXT', x: 5, y: 0 } }]);

    expect(history.undo(table)).toEqual(['a']);
    expect(table.nodes.get('a')).toEqual({ x: 5, y: 0 });
    history.undo(table);
    expect(table.nodes.get('a')).toEqual({ x: 0, y: 0 });
    history.undo(table);
    expect(table.nodes.size).toBe(0);
    expect(history.canUndo).toBe(false);

    history.redo(table);
    history.redo(table);
    expect(table.nodes.get('a')).toEqual({ x: 5, y: 0 });
    history.redo(table);
    expect(table.nodes.size).toBe(0);
    expect(history.canRedo).toBe(false);
  });

  it('leaves fields alone that another person changed', () => {
    const table = new Table();
    const history = new History();
    table.restore('a', { kind: 'TEXT', text: 'mine', x: 0, y: 0 });
    table.update([['a', { x: 5 }]]);
    history.record([{ kind: 'set', key: 'a', before: { x: 0 }, after: { x: 5 } }]);
    table.update([['a', { text: 'theirs' }]]);
    history.undo(table);
    expect(table.nodes.get('a')).toEqual({ text: 'theirs', x: 0, y: 0 });
  });

  it('makes one step of arrow keys in short order', () => {
    const table = new Table();
    const history = new History();
    const move = (from: number, to: number, now: number) =>
      history.record([{ kind: 'set', key: 'a', before: { x: from }, after: { x: to } }], 'arrows', now);
    move(0, 1, 1000);
    move(1, 2, 1100);
    move(2, 3, 5000);
    history.undo(table);
    expect(table.nodes.get('a')).toEqual({ x: 2 });
    history.undo(table);
    expect(table.nodes.get('a')).toEqual({ x: 0 });
    expect(history.canUndo).toBe(false);
  });

  it('forgets what was taken back once something new is done', () => {
    const table = new Table();
    const history = new History();
    history.record([{ kind: 'set', key: 'a', before: { x: 0 }, after: { x: 1 } }]);
    history.undo(table);
    history.record([{ kind: 'set', key: 'a', before: { y: 0 }, after: { y: 1 } }]);
    expect(history.canRedo).toBe(false);
  });
});
