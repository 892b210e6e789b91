import { describe, expect, test } from 'vitest';
import { leaf, poster } from './fixtures';
import { changeType, fieldOfLeaf, leafOfField, newField, otherSettings, readOptions, writeOptions } from './formfields';
import { beginHistory, record, redo, undo } from './history';
import { constantSource, draftOf, fitName, leavesOfSource, readSource, resultsOf, sameDraft } from './model';

test('names are cut so that what is written around them has room', () => {
  const copy = (name: string) => `${name} (copy)`;
  expect(fitName('Poster', copy)).toBe('Poster (copy)');
  expect(fitName('🦊'.repeat(80), copy)).toBe(`${'🦊'.repeat(73)} (copy)`);
});

describe('sources', () => {
  test('are read by their kind', () => {
    expect(readSource('flat')).toEqual({ kind: 'constant', value: 'flat' });
    expect(readSource({ value: { width: 1, height: 2 } })).toEqual({
      kind: 'constant',
      value: { width: 1, height: 2 },
    });
    expect(readSource({ field: 'a' })).toEqual({ kind: 'field', field: 'a' });
    expect(readSource({ step: 'a' })).toEqual({ kind: 'step', step: 'a', result: 'first' });
    expect(readSource({ step: 'a', result: 2 })).toEqual({ kind: 'step', step: 'a', result: 2 });
    expect(readSource({ item: true })).toEqual({ kind: 'item' });
    expect(readSource({ later: 1 })).toEqual({ kind: 'unknown' });
  });

  test('constants that are objects are wrapped', () => {
    expect(constantSource(3)).toBe(3);
    expect(constantSource(['a'])).toEqual(['a']);
    expect(constantSource({ width: 1, height: 1 })).toEqual({ value: { width: 1, height: 1 } });
  });

  test('have leaves through all options', () => {
    expect(leavesOfSource(poster.steps[2]?.inputs?.pictures).map((one) => one.path)).toEqual([[0], [1, 0], [1, 1]]);
  });
});

describe('drafts', () => {
  test('are the same whatever the order of their keys', () => {
    expect(sameDraft(poster, { ...poster, name: ' Poster ', steps: poster.steps.map((step) => ({ ...step })) })).toBe(
      true,
    );
    expect(sameDraft(poster, { ...poster, steps: poster.steps.toReversed() })).toBe(false);
    expect(sameDraft(draftOf({ ...poster, description: undefined }), poster)).toBe(true);
  });

  test('have the results of the last step if none is named', () => {
    expect(resultsOf({ ...poster, results: [] })).toEqual(['page']);
    expect(resultsOf({ results: [], steps: [] })).toEqual([]);
  });
});

describe('history', () => {
  test('goes back and forth', () => {
    let history = record(record(beginHistory('a'), 'b'), 'c');
    history = undo(history);
    expect(history.present).toBe('b');
    expect(redo(history).present).toBe('c');
    expect(redo(record(history, 'd')).present).toBe('d');
    expect(undo(undo(undo(history))).present).toBe('a');
  });

  test('takes letters of a word back together', () => {
    let history = record(beginHistory(''), 'o', 'name', 1000);
    history = record(history, 'ow', 'name', 1100);
    history = record(history, 'owl', 'name', 2500);
    expect(undo(history).present).toBe('ow');
    expect(undo(undo(history)).present).toBe('');
  });
});

describe('fields of a flow', () => {
  test('a field of a tool becomes one of the flow with the same limits', () => {
    const style = leaf('style', 'SINGLE_SELECT', {
      label: 'Style',
      defaultValue: 'flat',
      display: { radio: { options: [{ text: 'Flat', value: 'flat' }] }, help: 'Look' } as never,
    });

    expect(fieldOfLeaf(style)).toEqual({
      key: 'style',
      type: 'SINGLE_SELECT',
      label: 'Style',
      help: 'Look',
      options: [{ text: 'Flat', value: 'flat' }],
      show_as: 'radio',
      default: 'flat',
    });
    expect(leafOfField(fieldOfLeaf(style))).toMatchObject({ fieldKey: 'style', defaultValue: 'flat', label: 'Style' });
  });

  test('another type drops the settings of the old one', () => {
    const field = { ...newField('PROMPT', 'words', 'Words'), required: true, default: 'owl' };

    expect(changeType(field, 'IMG')).toEqual({ key: 'words', type: 'IMG', label: 'Words', required: true });
    expect(changeType(field, 'SLIDER')).toMatchObject({ min: 0, max: 10 });
    expect(otherSettings({ ...field, accept: ['image/png'] })).toEqual({ accept: ['image/png'] });
    expect(otherSettings(field)).toBeUndefined();
  });

  test('options are lines', () => {
    const options = [
      { text: 'Flat', value: 'flat' },
      { text: 'x', value: 'x' },
    ];
    expect(writeOptions(options)).toBe('flat: Flat\nx');
    expect(readOptions('flat: Flat\n\n x ', options)).toEqual(options);
    expect(readOptions('1: One', [{ value: 2 }])).toEqual([{ text: 'One', value: 1 }]);
  });
});
