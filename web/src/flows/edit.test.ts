import { describe, expect, test } from 'vitest';
import {
  addStep,
  connect,
  disconnect,
  freeName,
  moveField,
  nameFrom,
  removeField,
  removeStep,
  renameField,
  renameStep,
  setForEach,
  setResult,
  withoutLeaf,
  wouldCircle,
} from './edit';
import { poster, tools } from './fixtures';
import { needsOf, sameDraft } from './model';

const stepOf = (draft: typeof poster, id: string) => draft.steps.find((step) => step.id === id);

describe('names', () => {
  test('a name that is taken gets a number', () => {
    expect(freeName('resize', ['draw'])).toBe('resize');
    expect(freeName('resize', ['resize', 'resize_2'])).toBe('resize_3');
  });

  test('words become an id', () => {
    expect(nameFrom('Contact-Sheet', 'step')).toBe('contact_sheet');
    expect(nameFrom('3D Überbau', 'step')).toBe('d_u_berbau');
    expect(nameFrom('…', 'step')).toBe('step');
  });
});

describe('steps', () => {
  test('a new step at the end takes over the results of the one before', () => {
    const { draft, id } = addStep(poster, { slug: 'contact-sheet', name: 'Contact sheet' });

    expect(id).toBe('contact_sheet');
    expect(draft.results).toEqual([]);
    expect(addStep({ ...poster, results: ['print'] }, { slug: 'tune', name: 'Tune' }).draft.results).toEqual(['print']);
    expect(addStep(poster, { slug: 'flow-x1', name: 'My poster' }).id).toBe('my_poster');
  });

  test('a step that goes takes its uses along', () => {
    const draft = removeStep(poster, 'drawing');

    expect(draft.steps.map((step) => step.id)).toEqual(['print', 'page']);
    expect(stepOf(draft, 'print')).toEqual({ id: 'print', tool: 'large', inputs: {}, otherwise: 'skip' });
    expect(stepOf(draft, 'page')?.inputs?.pictures).toEqual({
      first_of: [{ step: 'print', result: 'all' }, { field: 'photos' }],
    });
  });

  test('another name is used everywhere, and back again it is the same flow', () => {
    const draft = renameStep(poster, 'drawing', 'sketch');

    expect(draft.steps.map(needsOf)).toEqual([[], ['sketch'], ['print', 'sketch']]);
    expect(sameDraft(renameStep(draft, 'sketch', 'drawing'), poster)).toBe(true);
    expect(renameStep(poster, 'page', 'sheet').results).toEqual(['sheet']);
  });

  test('what the editor does not know stays', () => {
    const other = { tool: 'draw', inputs: { prompt: { field: 'prompt' } }, later: [1] };
    const draft = { ...poster, steps: [...poster.steps, { id: 'x', tool: 'draw', otherwise: other, unknown: true }] };

    expect(stepOf(renameStep(draft, 'drawing', 'sketch'), 'x')).toEqual({
      id: 'x',
      tool: 'draw',
      otherwise: other,
      unknown: true,
    });
    expect(stepOf(renameField(draft, 'prompt', 'words'), 'x')?.otherwise).toEqual({
      ...other,
      inputs: { prompt: { field: 'words' } },
    });
  });

  test('results are the last step until one is named', () => {
    expect(setResult({ ...poster, results: [] }, 'print', true).results).toEqual(['page', 'print']);
    expect(setResult(poster, 'page', false).results).toEqual([]);
  });

  test('the item of a list goes to the file that nothing feeds', () => {
    const plain = { ...poster, steps: [...poster.steps, { id: 'more', tool: 'large', inputs: {} }] };
    const each = setForEach(plain, 'more', { field: 'photos' }, tools.get('large') ?? undefined);

    expect(stepOf(each, 'more')).toEqual({
      id: 'more',
      tool: 'large',
      inputs: { picture: { item: true } },
      for_each: { field: 'photos' },
      max: 4,
    });
    expect(stepOf(setForEach(each, 'more', undefined, undefined), 'more')).toEqual({
      id: 'more',
      tool: 'large',
      inputs: {},
    });
  });
});

describe('fields', () => {
  test('a field that goes takes its uses and conditions along', () => {
    const draft = removeField(poster, 'prompt');

    expect(stepOf(draft, 'drawing')?.inputs).toEqual({ style: 'flat' });
    expect(stepOf(draft, 'page')?.when).toBeUndefined();
    expect(removeField(poster, 'photos').fields).toHaveLength(1);
  });

  test('a field in a group can be renamed', () => {
    const draft = renameField(poster, 'photos', 'pictures');

    expect(draft.fields[1]).toEqual({
      group: 'More',
      fields: [{ key: 'pictures', type: 'IMGS', label: 'Photos', max_items: 4 }],
    });
    expect(JSON.stringify(stepOf(draft, 'page'))).toContain('{"field":"pictures"}');
  });

  test('fields change places', () => {
    expect(moveField(poster, 'prompt', 1).fields[1]?.key).toBe('prompt');
    expect(moveField(poster, 'prompt', -1).fields).toEqual(poster.fields);
  });
});

describe('connections', () => {
  test('an input for one file gets the new source, one for a list gets one more', () => {
    expect(stepOf(connect(poster, 'print', 'picture', { step: 'drawing' }, false), 'print')?.inputs).toEqual({
      picture: { step: 'drawing' },
    });
    const empty = { ...poster, steps: [{ id: 'page', tool: 'sheet' }] };
    const one = connect(empty, 'page', 'pictures', { field: 'photos' }, true);
    const two = connect(one, 'page', 'pictures', { step: 'a', result: 'all' }, true);
    const three = connect(two, 'page', 'pictures', { step: 'b', result: 'all' }, true);

    expect(stepOf(two, 'page')?.inputs?.pictures).toEqual({
      all_of: [{ field: 'photos' }, { step: 'a', result: 'all' }],
    });
    expect(stepOf(disconnect(three, 'page', 'pictures', [1]), 'page')?.inputs?.pictures).toEqual({
      all_of: [{ field: 'photos' }, { step: 'b', result: 'all' }],
    });
    expect(stepOf(disconnect(two, 'page', 'pictures', [0]), 'page')?.inputs?.pictures).toEqual({
      step: 'a',
      result: 'all',
    });
    expect(stepOf(disconnect(one, 'page', 'pictures', []), 'page')?.inputs).toEqual({});
  });

  test('options within options are taken out', () => {
    const source = { first_of: [{ step: 'a' }, { all_of: [{ step: 'b' }, { step: 'c' }] }] };

    expect(withoutLeaf(source, [1, 0])).toEqual({ first_of: [{ step: 'a' }, { step: 'c' }] });
    expect(withoutLeaf(source, [0])).toEqual({ all_of: [{ step: 'b' }, { step: 'c' }] });
  });

  test('no step may need itself', () => {
    expect(wouldCircle(poster.steps, 'page', 'drawing')).toBe(true);
    expect(wouldCircle(poster.steps, 'print', 'print')).toBe(true);
    expect(wouldCircle(poster.steps, 'drawing', 'page')).toBe(false);
  });
});
