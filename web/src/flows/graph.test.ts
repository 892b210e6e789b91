import { describe, expect, test } from 'vitest';
import { text } from '../text/flows';
import { poster, tools } from './fixtures';
import { cutLine, drawWire, linesOf, refuseWire, rowsOf } from './graph';
import { kindOfType, nameOfKind, refuseField } from './kinds';
import { arrange, formId, layersOf } from './layout';
import { placeProblem, sentenceOf } from './problems';
import { reduceTo } from './reduce';

const stepOf = (id: string) => poster.steps.find((step) => step.id === id) ?? { id, tool: '' };
const wire = (source: string, sourceHandle: string, target: string, targetHandle: string) => ({
  source,
  sourceHandle,
  target,
  targetHandle,
});

describe('lines', () => {
  test('every source is a line, also through options and for a list', () => {
    expect(linesOf(poster).map((line) => `${line.from} ${line.fromHandle} > ${line.to} ${line.toHandle}`)).toEqual([
      `${formId} field:prompt > drawing in:prompt`,
      'drawing out > print each',
      'print out > page in:pictures',
      'drawing out > page in:pictures',
      `${formId} field:photos > page in:pictures`,
    ]);
    expect(new Set(linesOf(poster).map((line) => line.id)).size).toBe(5);
  });

  test('a line that is cut is gone, and a line that is drawn is there', () => {
    for (const line of linesOf(poster)) {
      expect(linesOf(cutLine(poster, line)).length).toBe(4);
    }
    const plain = { ...poster, steps: [stepOf('drawing'), { id: 'print', tool: 'large' }] };
    const drawn = drawWire(plain, tools, wire('drawing', 'out', 'print', 'in:picture'));

    expect(drawn.steps[1]?.inputs).toEqual({ picture: { step: 'drawing' } });
    const page = { ...poster, steps: [stepOf('drawing'), { id: 'page', tool: 'sheet' }] };
    expect(drawWire(page, tools, wire('drawing', 'out', 'page', 'in:pictures')).steps[1]?.inputs).toEqual({
      pictures: { step: 'drawing', result: 'all' },
    });
  });

  test('wrong kinds and circles are refused with a reason', () => {
    const draft = { ...poster, steps: [...poster.steps, { id: 'song', tool: 'tune' }, { id: 'x', tool: 'large' }] };

    expect(refuseWire(draft, tools, wire('song', 'out', 'x', 'in:picture'))).toBe(
      'This input takes a picture, not a sound.',
    );
    expect(refuseWire(draft, tools, wire(formId, 'field:prompt', 'x', 'in:picture'))).toBe(
      'This input takes a picture, not text.',
    );
    expect(refuseWire(draft, tools, wire(formId, 'field:photos', 'x', 'in:picture'))).toContain('once per item');
    expect(refuseWire(draft, tools, wire('page', 'out', 'drawing', 'in:prompt'))).toBe(text.circle);
    expect(refuseWire(draft, tools, wire('x', 'out', 'x', 'in:picture'))).toBe(text.connectSteps);
    expect(refuseWire(draft, tools, wire('drawing', 'out', 'x', 'in:picture'))).toBeUndefined();
    expect(refuseWire(draft, tools, wire(formId, 'field:photos', 'page', 'in:pictures'))).toBeUndefined();
  });
});

describe('nodes', () => {
  test('a node shows files, what is needed, and what is fed', () => {
    expect(rowsOf(stepOf('drawing'), tools.get('draw')).map((row) => [row.key, row.missing])).toEqual([
      ['prompt', false],
    ]);
    expect(rowsOf({ id: 'x', tool: 'large' }, tools.get('large')).map((row) => [row.key, row.missing])).toEqual([
      ['picture', true],
    ]);
    expect(rowsOf(stepOf('print'), tools.get('large'))[0]?.note).toBe(text.item);
  });

  test('a tool that is not known keeps the handles of its lines', () => {
    expect(rowsOf(stepOf('page'), null).map((row) => row.key)).toEqual(['pictures']);
  });

  test('kinds fit by family, medium and number', () => {
    expect(refuseField(kindOfType('PROMPT'), kindOfType('TEXT'))).toBeUndefined();
    expect(refuseField(kindOfType('NUM'), kindOfType('SEED'))).toBeUndefined();
    expect(refuseField(kindOfType('SEED'), kindOfType('NUM'))).toBeDefined();
    expect(refuseField(kindOfType('IMG'), kindOfType('IMGS'))).toBeUndefined();
    expect(refuseField(kindOfType('VIDEO'), kindOfType('IMG'))).toBeDefined();
    expect(nameOfKind(kindOfType('IMGS'))).toBe('pictures');
  });
});

describe('layout', () => {
  test('a step stands after all that it needs', () => {
    expect([...layersOf(poster.steps)]).toEqual([
      ['drawing', 0],
      ['print', 1],
      ['page', 2],
    ]);
  });

  test('circles end', () => {
    const steps = [
      { id: 'a', tool: 't', inputs: { x: { step: 'b' } } },
      { id: 'b', tool: 't', inputs: { x: { step: 'a' } } },
    ];
    expect(layersOf(steps).size).toBe(2);
  });

  test('the form is at the left, and nodes of a column do not overlap', () => {
    const steps = [stepOf('drawing'), { id: 'song', tool: 'tune' }, stepOf('print')];
    const places = arrange(steps, () => 100);

    expect(places.get(formId)?.x).toBe(0);
    expect(places.get('drawing')?.x).toBe(places.get('song')?.x);
    expect((places.get('song')?.y ?? 0) - (places.get('drawing')?.y ?? 0)).toBeGreaterThan(100);
    expect(places.get('print')?.x).toBeGreaterThan(places.get('song')?.x ?? 0);
  });
});

describe('a part of a flow', () => {
  test('has what a step needs, with the fields that it uses', () => {
    const part = reduceTo(poster, 'print', 'Part');

    expect(part.steps.map((step) => step.id)).toEqual(['drawing', 'print']);
    expect(part.fields.map((field) => field.key)).toEqual(['prompt']);
    expect(part).toMatchObject({ name: 'Part', results: ['print'], shared: false });
  });

  test('runs its last step whatever the condition', () => {
    const part = reduceTo(poster, 'page', 'Part');

    expect(part.steps.at(-1)?.when).toBeUndefined();
    expect(part.fields).toHaveLength(2);
  });
});

describe('problems', () => {
  test('are shown at their node and input', () => {
    expect(placeProblem(poster, { path: 'steps.1.inputs.picture', message: 'x' })).toMatchObject({
      node: 'print',
      part: 'inputs.picture',
    });
    expect(
      placeProblem(poster, { path: 'steps.1.inputs', message: 'the field picture of large is required' }).part,
    ).toBe('inputs.picture');
    expect(placeProblem(poster, { path: 'fields.0.type', message: 'x' })).toMatchObject({
      node: formId,
      part: 'prompt',
    });
    expect(placeProblem(poster, { path: 'results', message: 'x' }).node).toBeUndefined();
  });

  test('are sentences', () => {
    expect(sentenceOf('there is no step large')).toBe('There is no step large.');
  });
});
