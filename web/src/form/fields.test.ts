import { describe, expect, test } from 'vitest';
import { carryOver, checkField, checkForm } from './check';
import { inputsOf, isAdvanced, type Leaf, leavesOf, type Node, valueIn } from './fields';
import { accepts, addMedia, fieldFor } from './mediafields';
import { changedFields, summarize } from './summary';

function leaf(change: Partial<Leaf>): Leaf {
  return {
    uuid: change.fieldKey ?? 'u',
    isField: true,
    fieldKey: 'key',
    type: 'TEXT',
    label: 'Label',
    required: false,
    defaultValue: null,
    display: {},
    ...change,
  };
}

const prompt = leaf({
  fieldKey: 'prompt',
  type: 'PROMPT',
  label: 'Prompt',
  required: true,
  display: { max_length: 5 },
});
const grain = leaf({
  fieldKey: 'grain',
  type: 'SLIDER',
  label: 'Grain',
  defaultValue: 0.1,
  display: { min: 0, max: 1, step: 0.05, advanced: true },
});
const seed = leaf({
  fieldKey: 'seed',
  type: 'SEED',
  label: 'Seed',
  display: { min: 0, integer: true, advanced: true },
});
const style = leaf({
  fieldKey: 'style',
  type: 'SINGLE_SELECT',
  label: 'Style',
  defaultValue: 'any',
  display: {
    text: {
      options: [
        { text: 'Any', value: 'any' },
        { text: 'Flat', value: 'flat' },
      ],
    },
  },
});
const tags = leaf({
  fieldKey: 'tags',
  type: 'MULTI_SELECT',
  label: 'Tags',
  display: {
    radio: {
      options: [
        { text: 'One', value: 1 },
        { text: 'Two', value: 2 },
      ],
    },
    max_items: 1,
  },
});
const size = leaf({
  fieldKey: 'size',
  type: 'WIDTH_HEIGHT',
  label: 'Size',
  defaultValue: { width: 512, height: 512 },
  display: { min: 64, max: 1024, multiple_of: 8, select: { options: [{ text: 'Odd', width: 333, height: 333 }] } },
});
const picture = leaf({ fieldKey: 'picture', type: 'IMG', label: 'Picture', display: { accept: ['image/png'] } });
const pictures = leaf({ fieldKey: 'pictures', type: 'IMGS', label: 'Pictures', display: { max_items: 2 } });
const more: Node = { uuid: 'more', isField: false, label: 'More', children: [grain, seed] };
const heading = leaf({ fieldKey: '', type: 'HEADER', label: 'Light' });
const form: Node[] = [prompt, heading, style, tags, size, picture, pictures, more];

describe('the tree of fields', () => {
  test('groups are flattened, headings are left out', () => {
    expect(leavesOf(form).map((field) => field.fieldKey)).toEqual([
      'prompt',
      'style',
      'tags',
      'size',
      'picture',
      'pictures',
      'grain',
      'seed',
    ]);
  });

  test('a group is advanced if all of its fields are', () => {
    expect(isAdvanced(more)).toBe(true);
    expect(isAdvanced({ ...more, children: [prompt, grain] } as Node)).toBe(false);
    expect(isAdvanced({ ...more, children: [] } as Node)).toBe(false);
  });
});

describe('inputs of a run', () => {
  test('changed fields are sent, defaults and empty ones are not', () => {
    const values = { prompt: 'owl', style: '', grain: 0, tags: [], size: { width: 64, height: 64 }, gone: 'x' };

    expect(inputsOf(form, values)).toEqual({ prompt: 'owl', grain: 0, size: { width: 64, height: 64 } });
  });

  test('files are sent as references only', () => {
    const file = { kind: 'UPLOAD_REF' as const, id: 'u1', thumb: '/t.png', name: 'a.png' };

    expect(inputsOf(form, { picture: file, pictures: [file] })).toEqual({
      picture: { kind: 'UPLOAD_REF', id: 'u1' },
      pictures: [{ kind: 'UPLOAD_REF', id: 'u1' }],
    });
  });

  test('a field without a value has its default', () => {
    expect(valueIn(grain, {})).toBe(0.1);
    expect(valueIn(seed, {})).toBeUndefined();
    expect(valueIn(grain, { grain: 0 })).toBe(0);
  });
});

describe('the checker', () => {
  test('needed fields are missing, not wrong', () => {
    expect(checkField(prompt, '')).toEqual({ kind: 'missing', message: 'Prompt is needed.' });
    expect(checkField(style, undefined)).toBeUndefined();
  });

  test('lengths count characters as people do', () => {
    expect(checkField(prompt, '🦉🦉🦉🦉🦉')).toBeUndefined();
    expect(checkField(prompt, 'owlish')?.message).toBe('Use at most 5 characters.');
  });

  test('numbers keep to their range', () => {
    expect(checkField(grain, 1)).toBeUndefined();
    expect(checkField(grain, 2)?.message).toBe('Use a number from 0 to 1.');
    expect(checkField(seed, 1.5)?.message).toBe('Write a whole number.');
    expect(checkField(seed, -1)?.message).toBe('Use at least 0.');
    expect(checkField(grain, Number.NaN)?.message).toBe('Write a number.');
  });

  test('sizes keep to range and multiple, unless the field offers them', () => {
    expect(checkField(size, { width: 64, height: 1024 })).toBeUndefined();
    expect(checkField(size, { width: 65, height: 64 })?.message).toBe('Each side is a multiple of 8 pixels.');
    expect(checkField(size, { width: 32, height: 64 })?.message).toBe('Each side has 64 to 1,024 pixels.');
    expect(checkField(size, { width: Number.NaN, height: 64 })?.kind).toBe('wrong');
    expect(checkField(size, { width: 333, height: 333 })).toBeUndefined();
  });

  test('a form names each field with a problem', () => {
    expect(Object.keys(checkForm(form, { grain: 7, tags: [1, 2] }))).toEqual(['prompt', 'tags', 'grain']);
  });
});

describe('values from elsewhere', () => {
  test('what fits is kept, defaults are left out, the rest is named', () => {
    const older = {
      prompt: 'owl',
      style: 'glossy',
      grain: 0.1,
      seed: 400,
      guidance: 3,
      size: { width: 64, height: 64 },
      picture: { kind: 'LIBRARY_REF', id: 'r:0' },
      tags: null,
    };

    expect(carryOver(form, older)).toEqual({
      values: {
        prompt: 'owl',
        seed: 400,
        size: { width: 64, height: 64 },
        picture: { kind: 'LIBRARY_REF', id: 'r:0' },
      },
      dropped: ['style', 'guidance'],
    });
  });

  test('a number is not put into a text, nor a file that is none', () => {
    expect(carryOver(form, { prompt: 3, picture: { kind: 'MULTIPART', file_index: 0 }, grain: 9 }).dropped).toEqual([
      'prompt',
      'picture',
      'grain',
    ]);
  });
});

describe('the line of folded fields', () => {
  test('it shows defaults as long as nothing was changed', () => {
    expect(summarize([more], {})).toEqual({ changed: 0, line: 'grain 0.1, seed random' });
  });

  test('it shows only what was changed', () => {
    expect(summarize([more], { seed: 400, grain: 0.1 })).toEqual({ changed: 1, line: 'seed 400' });
    expect(changedFields(form, { style: 'flat', grain: 0.1 }).map((field) => field.label)).toEqual(['Style']);
  });
});

describe('files', () => {
  const file = (id: string) => ({ kind: 'LIBRARY_REF' as const, id });

  test('a file goes to the first empty field that takes its kind', () => {
    expect(fieldFor(form, {}, 'IMG', 'image/png')?.fieldKey).toBe('picture');
    expect(fieldFor(form, { picture: file('a') }, 'IMG', 'image/png')?.fieldKey).toBe('pictures');
    expect(fieldFor(form, {}, 'IMG', 'image/webp')?.fieldKey).toBe('pictures');
    expect(fieldFor(form, {}, 'VID')).toBeUndefined();
  });

  test('a list takes files up to its limit, each once', () => {
    expect(addMedia(pictures, [file('a'), file('b')], file('c'))).toEqual([file('b'), file('c')]);
    expect(addMedia(pictures, [file('a'), file('b')], file('a'))).toEqual([file('b'), file('a')]);
    expect(addMedia(picture, file('a'), file('b'))).toEqual(file('b'));
  });

  test('types are compared where the browser knows them', () => {
    expect(accepts(picture, 'image/webp')).toBe(false);
    expect(accepts(picture, '')).toBe(true);
    expect(accepts(pictures, 'video/mp4')).toBe(false);
  });
});
