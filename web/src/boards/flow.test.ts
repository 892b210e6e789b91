import { describe, expect, it } from 'vitest';
import { applyNodes, toFlowNode } from './flow';
import { type BoardNode, showDraft } from './model';

const node = (key: string, change: Partial<BoardNode> = {}): BoardNode => ({
  ...showDraft(key, { kind: 'TEXT', text: 'words', x: 1, y: 2 }),
  ...change,
});

describe('flow', () => {
  it('keeps the data of a node that only moves, so that it is not drawn again', () => {
    const before = toFlowNode(node('a'), undefined);
    expect(toFlowNode(node('a', { x: 50, z: 9 }), before).data).toBe(before.data);
    expect(toFlowNode(node('a', { text: 'other' }), before).data).not.toBe(before.data);
  });

  it('puts sections behind everything', () => {
    const section = toFlowNode(node('s', { text: '# Mood', width: 100, height: 100, z: 1_000_000 }), undefined);
    expect(section.type).toBe('section');
    expect(section.zIndex).toBeLessThan(0);
  });

  it('adds, changes and drops nodes, and leaves what is dragged where the pointer has it', () => {
    const nodes = new Map([
      ['a', node('a', { x: 9 })],
      ['c', node('c')],
    ]);
    const before = [
      { ...toFlowNode(node('a'), undefined), dragging: true, position: { x: 5, y: 5 } },
      toFlowNode(node('b'), undefined),
    ];
    const after = applyNodes(before, new Set(['a', 'b', 'c']), (key) => nodes.get(key));
    expect(after.map((one) => one.id)).toEqual(['a', 'c']);
    expect(after[0]?.position).toEqual({ x: 5, y: 5 });
  });
});
